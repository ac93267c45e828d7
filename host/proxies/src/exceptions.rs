//! The entries of `NO_PROXY`.

use std::net::IpAddr;

use ipnet::IpNet;

/// A server that a connection is for.
pub(crate) struct Server<'a> {
    /// In lower case, without brackets.
    pub(crate) host: &'a str,
    /// The host, if it is an address.
    pub(crate) address: Option<IpAddr>,
    pub(crate) port: u16,
}

/// The servers that are connected to directly.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exceptions(Vec<Exception>);

#[derive(Clone, Debug)]
enum Exception {
    /// `*`
    All,
    Network(IpNet),
    Address(IpAddr, Option<u16>),
    /// A domain without its first dot, and whether the domain itself is meant as well.
    Domain {
        name: String,
        itself: bool,
        port: Option<u16>,
    },
}

impl Exceptions {
    /// Entries are separated by commas or spaces. An entry that is not valid matches nothing.
    pub(crate) fn parse(text: &str) -> Self {
        let entries = text.split(|c: char| c == ',' || c.is_whitespace());
        Self(entries.filter_map(|entry| Exception::parse(&entry.to_ascii_lowercase())).collect())
    }

    pub(crate) fn contain(&self, server: &Server<'_>) -> bool {
        self.0.iter().any(|exception| exception.matches(server))
    }
}

impl Exception {
    fn parse(entry: &str) -> Option<Self> {
        if entry == "*" {
            return Some(Self::All);
        }
        if let Ok(network) = entry.parse() {
            return Some(Self::Network(network));
        }
        // More than one colon is an address of IPv6, without brackets.
        let (host, port) = match entry.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port.parse().ok()?)),
            _ => (entry, None),
        };
        if let Ok(address) = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            return Some(Self::Address(address.to_canonical(), port));
        }
        let host = host.trim_end_matches('.');
        let (name, itself) = match host.strip_prefix("*.").or_else(|| host.strip_prefix('.')) {
            Some(name) => (name, false),
            None => (host, true),
        };
        (!name.is_empty()).then(|| Self::Domain { name: name.to_owned(), itself, port })
    }

    fn matches(&self, server: &Server<'_>) -> bool {
        let same = |port: &Option<u16>| port.is_none_or(|port| port == server.port);
        match self {
            Self::All => true,
            Self::Network(network) => server.address.is_some_and(|address| network.contains(&address)),
            Self::Address(address, port) => server.address == Some(*address) && same(port),
            Self::Domain { name, itself, port } => {
                let below = server.host.strip_suffix(name.as_str());
                let matches = below.is_some_and(|below| if below.is_empty() { *itself } else { below.ends_with('.') });
                matches && same(port)
            }
        }
    }
}
