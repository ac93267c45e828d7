//! The names of registries and images, as settings and rules compare them. Pure.

use std::net::{IpAddr, Ipv4Addr};

/// Why a host is refused: it is another spelling of a host, under which settings and rules do not know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The port is not a port number, or has leading zeros.
    #[error("a port is a number from 1 to 65535, without zeros before it")]
    Port,
    /// It is an address of IPv4, but not in its usual form.
    #[error("an address has four numbers from 0 to 255, without zeros before them, such as 127.0.0.1")]
    Address,
}

/// The name of a registry, or of an image without its tag or digest, in the one spelling that is compared: the host in lower case,
/// without the port that is asked by default, and `docker.io` for Docker Hub.
pub fn normalized(name: &str) -> String {
    let (host, path) = match name.split_once('/') {
        Some((host, path)) => (host, Some(path)),
        None => (name, None),
    };
    let host = host.to_ascii_lowercase();
    let host = match host.rsplit_once(':') {
        Some((name, "443")) => name,
        // A registry on this machine may be one without TLS.
        Some((name, "80")) if is_loopback(name) => name,
        _ => &host,
    };
    // References have two names for it.
    let host = if host == "index.docker.io" { "docker.io" } else { host };
    path.map_or_else(|| host.to_owned(), |path| format!("{host}/{path}"))
}

/// Checks that a host (`host` or `host:port`) has no other spelling than those that [`normalized`] knows. Connections would be made to
/// port 5000 for `05000`, and to 127.0.0.1 for `127.1` and `0x7f.1`.
///
/// # Errors
/// It may have one.
pub fn check_host(host: &str) -> Result<(), HostError> {
    let (name, port) = host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port)));
    if port.is_some_and(|port| port.starts_with(['0', '+']) || port.parse::<u16>().is_err()) {
        return Err(HostError::Port);
    }
    // What a URL takes for an address (https://url.spec.whatwg.org/#ends-in-a-number-checker).
    let last = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_number = match last.strip_prefix("0x") {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()),
    };
    if is_number && name.parse::<Ipv4Addr>().is_err() { Err(HostError::Address) } else { Ok(()) }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_a_name_are_one() {
        for (spellings, expected) in [
            (&["quay.io/a", "QUAY.io:443/a", "quay.io:443/a"][..], "quay.io/a"),
            (&["quay.io", "Quay.IO:443"], "quay.io"),
            (&["docker.io/a/b", "index.docker.io/a/b", "Index.Docker.IO:443/a/b"], "docker.io/a/b"),
            (&["localhost/a", "LOCALHOST:443/a", "localhost:80/a"], "localhost/a"),
            (&["127.0.0.1", "127.0.0.1:80", "127.0.0.1:443"], "127.0.0.1"),
            // Other servers.
            (&["quay.io:80/a", "Quay.io:80/a"], "quay.io:80/a"),
            (&["localhost:5000", "LocalHost:5000"], "localhost:5000"),
        ] {
            for spelling in spellings {
                assert_eq!(normalized(spelling), expected, "{spelling}");
                assert_eq!(normalized(&normalized(spelling)), expected, "{spelling}");
            }
        }
    }

    #[test]
    fn ports_and_addresses_have_one_spelling() {
        for host in ["a", "a:1", "a.io:65535", "127.0.0.1:5000", "1a.io", "0x.io", "1.2.3.4.io", "a_b", "0.0.0.0"] {
            assert_eq!(check_host(host), Ok(()), "{host}");
        }
        for host in ["a:", "a:0", "a:00", "a:0443", "a:65536", "a:+1", "a:443:443", "127.0.0.1:05000"] {
            assert_eq!(check_host(host), Err(HostError::Port), "{host}");
        }
        for host in ["1", "127.1", "127.0.0.01", "127.0.0.1.1", "256.0.0.1", "0x7f000001", "0X7F.1:80", "a.1", "a.0x"] {
            assert_eq!(check_host(host), Err(HostError::Address), "{host}");
        }
    }
}
