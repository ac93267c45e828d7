//! The addresses that connections are allowed to.
//!
//! The author of a source names a server, and the server names other hosts: with redirects, and a registry with the address of
//! its token server. These hosts must not be nearer to this machine than the server. Otherwise a server on the internet could
//! make this process send requests to services of its network or its machine, and report their responses. Names are checked when
//! they are resolved, so that a name cannot have one address at the check and another one at the connection.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

pub(crate) use chandler_core::reach::{Reach, embedded, reach};
use parking_lot::{Mutex, MutexGuard};
use reqwest::{
    Url,
    dns::{Addrs, Name, Resolve, Resolving},
};

/// The name of a host has no address: it does not exist, or DNS does not answer.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NotResolved(#[source] std::io::Error);

/// Why an address is not connected to. Holds no address: the status must not reveal what a name resolves to in this network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Forbidden {
    #[error("its address is one that no server of a source may have (link-local, multicast or unspecified)")]
    Never,
    #[error("its address is nearer to this machine than the address of the server that leads to it")]
    Nearer,
    #[error("the name `localhost` resolves to an address that is not on this machine")]
    NotLocalhost,
}

/// Watches over the connections on behalf of one server that a source names.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// The host of the server as a URL has it.
    home: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The farthest address that the server was seen at. None before it was resolved, and where a proxy resolves it.
    home: Option<Reach>,
    /// The hosts that the server named. All other hosts are proxies, which the administrator named.
    led_to: BTreeSet<String>,
}

impl Guard {
    pub(crate) fn new(home: &Url) -> Self {
        let home = home.host_str().unwrap_or_default().to_owned();
        Self { inner: Arc::new(Inner { home, state: Mutex::default() }) }
    }

    /// Checks the host of a URL before it is asked. A name is only noted here, and checked when it is resolved.
    pub(crate) fn admit(&self, url: &Url) -> Result<(), Forbidden> {
        let host = url.host_str().unwrap_or_default();
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
        match literal {
            Some(address) => self.inner.filter(host, vec![address]).map(drop),
            None if host == self.inner.home => Ok(()),
            None => {
                self.inner.state().led_to.insert(host.to_owned());
                Ok(())
            }
        }
    }
}

/// Why a name gives no address.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoAddress {
    #[error(transparent)]
    NotResolved(#[from] NotResolved),
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
}

impl Guard {
    /// The addresses of the server that may be connected to. Without brackets around an address of IPv6.
    pub(crate) async fn addresses(&self) -> Result<Vec<IpAddr>, NoAddress> {
        self.inner.addresses(&self.inner.home).await
    }
}

impl Inner {
    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, NoAddress> {
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let found = tokio::net::lookup_host((name, 0)).await.map_err(NotResolved)?;
        Ok(self.filter(host, found.map(|address| address.ip()).collect())?)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Those addresses of a host that may be connected to; an error where none is left.
    fn filter(&self, host: &str, mut addresses: Vec<IpAddr>) -> Result<Vec<IpAddr>, Forbidden> {
        let mut state = self.state();
        let is_home = host == self.home;
        let is_literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
        if !is_home && !is_literal && !state.led_to.contains(host) {
            return Ok(addresses);
        }
        if host == "localhost" {
            addresses.retain(|address| reach(*address) == Reach::Loopback);
            if addresses.is_empty() {
                return Err(Forbidden::NotLocalhost);
            }
        }
        addresses.retain(|address| reach(*address) != Reach::Never);
        if addresses.is_empty() {
            return Err(Forbidden::Never);
        }
        if is_home {
            let farthest = addresses.iter().map(|address| reach(*address)).min();
            state.home = state.home.into_iter().chain(farthest).min();
            return Ok(addresses);
        }
        let nearest = state.home.unwrap_or(Reach::Public);
        addresses.retain(|address| reach(*address) <= nearest);
        if addresses.is_empty() { Err(Forbidden::Nearer) } else { Ok(addresses) }
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            // The client looks for the causes of these errors.
            let allowed = inner.addresses(name.as_str()).await.map_err(|error| match error {
                NoAddress::NotResolved(error) => Box::new(error) as Box<dyn std::error::Error + Send + Sync>,
                NoAddress::Forbidden(error) => Box::new(error),
            })?;
            let addresses: Addrs = Box::new(allowed.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> Reach {
        reach(text.parse().unwrap())
    }

    fn guard(registry: &str, resolved: &[&str]) -> Guard {
        let guard = Guard::new(&Url::parse(registry).unwrap());
        let host = guard.inner.home.clone();
        guard.inner.filter(&host, resolved.iter().map(|address| address.parse().unwrap()).collect()).unwrap();
        guard
    }

    #[test]
    fn what_a_registry_names_is_no_nearer_than_it_is() {
        let (public, private, here) = ("https://registry.example", "https://10.1.1.1:5000", "http://127.0.0.1:5000");
        for (registry, address, target, expected) in [
            (public, "1.1.1.1", "https://1.0.0.1", Ok(())),
            (public, "1.1.1.1", "https://10.0.0.1", Err(Forbidden::Nearer)),
            (public, "1.1.1.1", "https://127.0.0.1", Err(Forbidden::Nearer)),
            // In other spellings, which a URL makes one.
            (public, "1.1.1.1", "https://0x7f.1", Err(Forbidden::Nearer)),
            (public, "1.1.1.1", "https://2852039166", Err(Forbidden::Never)),
            (public, "1.1.1.1", "https://[::1]", Err(Forbidden::Nearer)),
            (public, "1.1.1.1", "https://[fd00::1]", Err(Forbidden::Nearer)),
            (public, "1.1.1.1", "https://[::ffff:169.254.169.254]", Err(Forbidden::Never)),
            (public, "10.0.0.9", "https://10.0.0.1", Ok(())),
            (private, "10.1.1.1", "https://10.0.0.1", Ok(())),
            (private, "10.1.1.1", "https://1.1.1.1", Ok(())),
            (private, "10.1.1.1", "https://127.0.0.1", Err(Forbidden::Nearer)),
            (private, "10.1.1.1", "https://169.254.169.254", Err(Forbidden::Never)),
            (here, "127.0.0.1", "http://127.0.0.1:5001", Ok(())),
            (here, "127.0.0.1", "http://10.0.0.1", Ok(())),
            (here, "127.0.0.1", "http://0.0.0.0", Err(Forbidden::Never)),
        ] {
            let guard = guard(registry, &[address]);
            assert_eq!(guard.admit(&Url::parse(target).unwrap()), expected, "{registry} ({address}) to {target}");
        }
    }

    #[test]
    fn names_are_checked_when_they_are_resolved() {
        let addresses = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpAddr>>();
        let guard = guard("https://registry.example", &["1.1.1.1"]);
        let filter = |host: &str, found: &[&str]| guard.inner.filter(host, addresses(found));
        // A proxy is where the administrator put it.
        assert_eq!(filter("storage.example", &["10.0.0.1"]), Ok(addresses(&["10.0.0.1"])));
        guard.admit(&Url::parse("https://storage.example/a").unwrap()).unwrap();
        assert_eq!(filter("storage.example", &["10.0.0.1"]), Err(Forbidden::Nearer));
        assert_eq!(filter("storage.example", &["10.0.0.1", "1.0.0.1"]), Ok(addresses(&["1.0.0.1"])));
        assert_eq!(filter("storage.example", &["169.254.169.254"]), Err(Forbidden::Never));
        assert_eq!(filter("localhost", &["1.1.1.1"]), Ok(addresses(&["1.1.1.1"])));
        guard.admit(&Url::parse("https://localhost/a").unwrap()).unwrap();
        assert_eq!(filter("localhost", &["1.1.1.1"]), Err(Forbidden::NotLocalhost));
        // The registry itself may be in this network, but having been public it leads nowhere nearer afterwards.
        assert_eq!(filter("registry.example", &["10.0.0.1"]), Ok(addresses(&["10.0.0.1"])));
        assert_eq!(filter("registry.example", &["169.254.1.1"]), Err(Forbidden::Never));
        assert_eq!(filter("storage.example", &["10.0.0.1"]), Err(Forbidden::Nearer));
    }

    #[test]
    fn the_registry_itself_may_not_be_link_local() {
        let url = Url::parse("https://169.254.169.254").unwrap();
        assert_eq!(Guard::new(&url).admit(&url), Err(Forbidden::Never));
    }

    proptest! {
        /// Whatever a registry names and however it is spelled, nothing nearer is admitted.
        #[test]
        fn no_literal_is_nearer_than_the_registry(bits: u32, registry in prop::sample::select(vec!["1.1.1.1", "10.0.0.1", "127.0.0.1"])) {
            let guard = guard(&format!("https://{registry}"), &[registry]);
            for text in [format!("https://{bits}/"), format!("https://{}/", Ipv4Addr::from_bits(bits)), format!("https://{bits:#x}/")] {
                let Ok(url) = Url::parse(&text) else { continue };
                let near = reach(Ipv4Addr::from_bits(bits).into());
                prop_assert_eq!(guard.admit(&url).is_ok(), near <= of(registry), "{}", text);
            }
        }
    }
}
