//! Refuses requests that a web page sends through a browser to a server on this machine. Pure.
//!
//! A web page can make a browser send requests to loopback addresses. With a name whose address changes while the page is open
//! (DNS rebinding) it can also read the responses. A local server must therefore check the headers: a browser always sends the
//! name in `Host`, and the origin of the request in `Origin` or `Sec-Fetch-Site`. Other clients (docker, oras, crane, kubectl)
//! send only `Host`.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::text::printable;

/// Names of this machine that cannot be registered: the loopback names, and the names that containers use for their host.
const OWN: &[&str] = &[
    "localhost",
    "host.docker.internal",
    "host.containers.internal",
    "host.lima.internal",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// The headers of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stated<'a> {
    /// `Host` or `:authority`.
    pub host: Option<&'a str>,
    /// `Origin`.
    pub origin: Option<&'a str>,
    /// `Sec-Fetch-Site`.
    pub fetch_site: Option<&'a str>,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Foreign {
    /// The host is not a name of this machine.
    #[error(
        "{0:?} is not a host name of this server: use a loopback address, `localhost` or the address it listens on"
    )]
    Host(String),
    /// A page of another origin sent the request.
    #[error("requests of web pages from {0:?} are not answered")]
    Origin(String),
    /// A browser reports that another site sent the request.
    #[error("requests of web pages of other sites are not answered (Sec-Fetch-Site: {0:?})")]
    Site(String),
}

/// Refuses a request that a web page sent.
///
/// The host must be an address, since only this machine can serve pages from its addresses, or a name of this machine. A request
/// without a host does not come from a browser.
///
/// # Errors
/// The host is a name of another machine, or a page of another origin sent the request.
pub fn refuse(stated: Stated<'_>) -> Result<(), Foreign> {
    let shown = |text: &str| printable(text).chars().take(100).collect::<String>();
    if let Some(host) = stated.host
        && !is_own(host)
    {
        return Err(Foreign::Host(shown(host)));
    }
    if let Some(origin) = stated.origin {
        let same = origin.split_once("://").map(|(_, authority)| authority).zip(stated.host);
        if !same.is_some_and(|(authority, host)| authority.eq_ignore_ascii_case(host)) {
            return Err(Foreign::Origin(shown(origin)));
        }
    }
    match stated.fetch_site {
        // `same-site` includes other ports of localhost, where any server may listen.
        None | Some("same-origin" | "none") => Ok(()),
        Some(site) => Err(Foreign::Site(shown(site))),
    }
}

/// Whether an authority names this machine, with any port.
fn is_own(authority: &str) -> bool {
    if let Some(rest) = authority.strip_prefix('[') {
        let address = rest.split_once(']').map(|(address, port)| (address, port.strip_prefix(':')));
        let has_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        return address.is_some_and(|(address, port)| {
            address.parse::<Ipv6Addr>().is_ok() && port.map_or(rest.ends_with(']'), has_port)
        });
    }
    let name = match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) => return false,
        None => authority,
    };
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    name.parse::<Ipv4Addr>().is_ok()
        || OWN.contains(&name.as_str())
        || (name.ends_with(".localhost") && name.bytes().all(is_of_names))
}

/// Whether a byte is valid in a host name. The bytes that end the host in a URL (`/`, `\`, `?`, `#`, `@`) are not.
fn is_of_names(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_names_of_this_machine_are_accepted_as_hosts() {
        for (host, own) in [
            ("127.0.0.1:5000", true),
            ("127.0.0.1", true),
            ("10.0.0.7:6443", true),
            ("[::1]:5000", true),
            ("[::1]", true),
            ("localhost:5000", true),
            ("LOCALHOST.", true),
            ("registry.localhost:5000", true),
            ("host.docker.internal:5000", true),
            ("kubernetes.default.svc", true),
            ("attacker.example:5000", false),
            ("localhost.attacker.example", false),
            ("127.0.0.1.nip.io:5000", false),
            ("notlocalhost", false),
            ("attacker.example@127.0.0.1:5000", false),
            ("127.0.0.1:5000@attacker.example", false),
            ("[::1].attacker.example", false),
            ("[attacker.example]:80", false),
            ("[::1]x", false),
            ("0x7f000001", false),
            ("", false),
            (":5000", false),
            // The part before the loopback name ends the host.
            ("attacker.example/.localhost", false),
            ("attacker.example\\.localhost:5000", false),
            ("attacker.example?.localhost", false),
            ("attacker.example#.localhost:5000", false),
            ("attacker.example@registry.localhost", false),
            ("attacker.example:80/.localhost", false),
            ("attacker\t.localhost", false),
            ("my_registry-2.Team.localhost:5000", true),
        ] {
            let found = refuse(Stated { host: Some(host), ..Stated::default() });
            assert_eq!(found.is_ok(), own, "{host}: {found:?}");
        }
        assert_eq!(refuse(Stated::default()), Ok(()));
    }

    #[test]
    fn pages_of_other_origins_are_refused() {
        let host = Some("localhost:5000");
        for (origin, fetch_site, answered) in [
            (None, None, true),
            (None, Some("none"), true),
            (Some("http://localhost:5000"), Some("same-origin"), true),
            (Some("http://LocalHost:5000"), None, true),
            (Some("https://attacker.example"), None, false),
            (Some("http://localhost:3000"), Some("same-site"), false),
            (None, Some("same-site"), false),
            (None, Some("cross-site"), false),
            (Some("http://localhost:5000"), Some("cross-site"), false),
            (Some("null"), None, false),
            (Some(""), None, false),
            (Some("localhost:5000"), None, false),
        ] {
            let found = refuse(Stated { host, origin, fetch_site });
            assert_eq!(found.is_ok(), answered, "{origin:?} {fetch_site:?}: {found:?}");
        }
        assert!(refuse(Stated { origin: Some("http://127.0.0.1"), ..Stated::default() }).is_err());
    }
}
