//! Which proxy a connection uses: the scheme, the host and the port of a server in, a [`Proxy`] out. No network.
//!
//! | item | purpose |
//! |---|---|
//! | [`Proxies`] | the variables of the environment: [`select`](Proxies::select) decides |
//! | [`Proxy`] | the URL of a proxy, whose credentials no message shows |
//! | `exceptions` | the entries of `NO_PROXY` |
//!
//! The rules are Go's (golang.org/x/net/http/httpproxy), which kubectl and other tools of clusters follow, and `ALL_PROXY` as in curl:
//! a variable counts in capitals first, and one that is set to nothing is not set.

mod exceptions;
mod proxy;

use std::{env, net::IpAddr};

pub use proxy::{Proxy, ProxyError, refusal};

use crate::exceptions::{Exceptions, Server};

/// The proxies of an environment. The default is none.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    http: Option<Result<Proxy, ProxyError>>,
    https: Option<Result<Proxy, ProxyError>>,
    exceptions: Exceptions,
}

impl Proxies {
    /// The proxies of this process's environment.
    pub fn from_environment() -> Self {
        Self::new(|name| env::var(name).ok())
    }

    /// The proxies of an environment with these variables.
    pub fn new(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let found = |name: &str| {
            [name.to_owned(), name.to_ascii_lowercase()].into_iter().find_map(|name| Some((set(&name)?, name)))
        };
        let proxy = |name| {
            let (url, name) = found(name).or_else(|| found("ALL_PROXY"))?;
            Some(Proxy::parse(&url, &name))
        };
        let exceptions = found("NO_PROXY").map(|(value, _)| value).unwrap_or_default();
        Self { http: proxy("HTTP_PROXY"), https: proxy("HTTPS_PROXY"), exceptions: Exceptions::parse(&exceptions) }
    }

    /// The proxy for connections to this server; `None` if they are direct, as all to this machine are.
    ///
    /// # Errors
    /// The variable with the proxy is not valid. A direct connection instead would circumvent what the administrator intended.
    pub fn select(&self, scheme: &str, host: &str, port: Option<u16>) -> Result<Option<&Proxy>, ProxyError> {
        let (proxy, usual) = if scheme == "http" { (&self.http, 80) } else { (&self.https, 443) };
        let Some(proxy) = proxy else { return Ok(None) };
        let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_ascii_lowercase();
        let address = host.parse::<IpAddr>().ok().map(|address| address.to_canonical());
        if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
            return Ok(None);
        }
        let server = Server { host: &host, address, port: port.unwrap_or(usual) };
        if self.exceptions.contain(&server) {
            return Ok(None);
        }
        proxy.as_ref().map(Some).map_err(Clone::clone)
    }
}

#[cfg(test)]
mod tests;
