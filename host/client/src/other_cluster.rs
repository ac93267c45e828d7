//! From an untrusted kubeconfig to a client of another cluster.
//!
//! The author of a kubeconfig must gain nothing from this process: no program is run, no file is read, no other server than the one over TLS is
//! connected to, and no address that belongs to this machine or to the services of its cloud. Messages show no content of a kubeconfig.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_core::reach::{Reach, reach};
use chandler_proxies::{Proxies, ProxyError};
use chandler_yaml::Limits;
use http::Uri;
use kube::{Client, Config};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use serde_json::{Map, Value, json};

use crate::{
    builder::guarded,
    configuration::of_environment,
    connector::{Connector, Nearest},
};

/// The largest kubeconfig, in bytes.
pub const KUBECONFIG_BYTES: usize = 256 << 10;
/// How long a connection to the server may take.
const CONNECT: Duration = Duration::from_secs(5);
/// How long the server may take until it answers.
const ANSWER: Duration = Duration::from_secs(20);

/// A kubeconfig that is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// It is larger than a kubeconfig can be.
    #[error("the kubeconfig is larger than {} KiB: keep one cluster, one user and one context in it", KUBECONFIG_BYTES >> 10)]
    TooLarge,
    /// It is not YAML.
    #[error("line {line}, column {column} of the kubeconfig is not valid YAML")]
    Yaml {
        /// The line.
        line: u32,
        /// The column.
        column: u32,
    },
    /// A field is missing, or of another type.
    #[error("the kubeconfig has no valid {0}")]
    Missing(&'static str),
    /// A field needs something that a kubeconfig of another cluster cannot have.
    #[error("{field} of the kubeconfig is refused: {instead}")]
    Refused {
        /// The field.
        field: &'static str,
        /// What to do instead.
        instead: &'static str,
    },
    /// A field that is not known may change how the server is reached or who the user is.
    #[error("{0} of the kubeconfig has a field that is not supported: remove it")]
    Unknown(&'static str),
    /// Data that should be PEM in base64 is not.
    #[error("{0} of the kubeconfig is not PEM in base64")]
    NotPem(&'static str),
    /// The server of the kubeconfig is near this machine.
    #[error(transparent)]
    Address(#[from] NearServer),
    /// The proxy of the environment is not valid.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// The certificate and the key do not belong together, or cannot be used.
    #[error("the certificates or the key in the kubeconfig cannot be used")]
    Credentials,
}

/// The server has an address of this machine, or one that no server of users may have. Holds no address: a status must not reveal what a name
/// resolves to in this network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the server of the kubeconfig has an address of this machine, or one that no server may have (link-local, multicast, unspecified): name one \
     that the controller reaches over the network"
)]
pub struct NearServer;

/// Where the servers of kubeconfigs may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TargetRules {
    /// Whether a server may have an address of this machine (loopback), as in tests. Default: no.
    pub allow_loopback: bool,
}

impl TargetRules {
    fn nearest(self) -> Reach {
        if self.allow_loopback { Reach::Loopback } else { Reach::Private }
    }
}

/// A client with the server and the credentials of a kubeconfig, which is checked first.
///
/// # Errors
/// Why the kubeconfig is not used.
pub fn target(kubeconfig: &[u8], rules: TargetRules, proxies: &Proxies) -> Result<Client, TargetError> {
    let mut config = target_config(kubeconfig, rules)?;
    let connector = match of_environment(&config.cluster_url, proxies)? {
        // The proxy is where the administrator put it, and resolves the name itself.
        Some(proxy) => {
            config.proxy_url = Some(proxy);
            None
        }
        None => Some(Connector::guarded(Nearest(rules.nearest()))),
    };
    guarded(config, connector).map_err(|_| TargetError::Credentials)
}

/// The configuration that a kubeconfig describes, without a proxy. Connects to nothing.
///
/// # Errors
/// Why the kubeconfig is not used.
pub fn target_config(kubeconfig: &[u8], rules: TargetRules) -> Result<Config, TargetError> {
    if kubeconfig.len() > KUBECONFIG_BYTES {
        return Err(TargetError::TooLarge);
    }
    let limits = Limits { bytes: KUBECONFIG_BYTES, depth: 20, nodes: 10_000 };
    let documents = chandler_yaml::parse(kubeconfig, &limits)
        .map_err(|error| TargetError::Yaml { line: error.line, column: error.column })?;
    let [document] = documents.as_slice() else { return Err(TargetError::Missing("single document")) };
    let root = document.root.to_json();
    let name = text(&root, "current-context").ok_or(TargetError::Missing("current-context"))?;
    let context = named(&root, "contexts", "context", &name, "context of current-context")?;
    let user_name = text_of(context, "user").ok_or(TargetError::Missing("user of the context"))?;
    let cluster_name = text_of(context, "cluster").ok_or(TargetError::Missing("cluster of the context"))?;
    let cluster = named(&root, "clusters", "cluster", &cluster_name, "cluster of the context")?;
    let user = named(&root, "users", "user", &user_name, "user of the context")?;
    let mut config = Config::new(server(cluster, rules)?);
    config.root_cert = authorities(cluster)?;
    config.tls_server_name = text_of(cluster, "tls-server-name");
    config.auth_info = credentials(user)?;
    config.connect_timeout = Some(CONNECT);
    config.read_timeout = Some(ANSWER);
    config.write_timeout = Some(ANSWER);
    config.default_retry = false;
    Ok(config)
}

/// Fields of a cluster that are refused, and what to do instead.
const CLUSTER_REFUSED: &[(&str, &str, &str)] = &[
    ("insecure-skip-tls-verify", "insecure-skip-tls-verify", "set certificate-authority-data"),
    ("certificate-authority", "certificate-authority", "no file is read: set certificate-authority-data"),
    ("proxy-url", "proxy-url", "the administrator configures the proxies of the controller"),
];
/// Fields of a cluster that are read, or that change nothing.
const CLUSTER_KNOWN: &[&str] =
    &["server", "certificate-authority-data", "tls-server-name", "disable-compression", "extensions"];

/// Fields of a user that are refused, and what to do instead.
const USER_REFUSED: &[(&str, &str, &str)] = &[
    ("exec", "exec", "no program is run: set token, or client-certificate-data and client-key-data"),
    ("auth-provider", "auth-provider", "set token, or client-certificate-data and client-key-data"),
    ("tokenFile", "tokenFile", "no file is read: set token"),
    ("client-certificate", "client-certificate", "no file is read: set client-certificate-data"),
    ("client-key", "client-key", "no file is read: set client-key-data"),
    ("as", "as", "use credentials of the user itself"),
    ("as-uid", "as-uid", "use credentials of the user itself"),
    ("as-groups", "as-groups", "use credentials of the user itself"),
    ("as-user-extra", "as-user-extra", "use credentials of the user itself"),
    ("username", "username", "set token, or client-certificate-data and client-key-data"),
    ("password", "password", "set token, or client-certificate-data and client-key-data"),
];
/// Fields of a user that are read, or that change nothing.
const USER_KNOWN: &[&str] = &["token", "client-certificate-data", "client-key-data", "extensions"];

/// Refuses fields that are set and not known. A field with a value that means nothing (null, false, an empty text) is not set.
fn check(
    map: &Map<String, Value>,
    refused: &'static [(&'static str, &'static str, &'static str)],
    known: &[&str],
    what: &'static str,
) -> Result<(), TargetError> {
    let is_set = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::Object(_) => true,
    };
    for (name, _) in map.iter().filter(|(_, value)| is_set(value)) {
        if let Some(&(_, field, instead)) = refused.iter().find(|(field, ..)| field == name) {
            return Err(TargetError::Refused { field, instead });
        }
        if !known.contains(&name.as_str()) {
            return Err(TargetError::Unknown(what));
        }
    }
    Ok(())
}

fn server(cluster: &Map<String, Value>, rules: TargetRules) -> Result<Uri, TargetError> {
    check(cluster, CLUSTER_REFUSED, CLUSTER_KNOWN, "the cluster")?;
    let text = text_of(cluster, "server").ok_or(TargetError::Missing("server"))?;
    let url: Uri = text.parse().map_err(|_| TargetError::Missing("server"))?;
    if url.scheme_str() != Some("https") {
        return Err(TargetError::Refused { field: "server", instead: "its URL must begin with https://" });
    }
    let authority = url.authority().ok_or(TargetError::Missing("server"))?;
    if authority.as_str().contains('@') || url.query().is_some() {
        let instead = "its URL must have no user, no password and no query";
        return Err(TargetError::Refused { field: "server", instead });
    }
    let host = authority.host();
    if host.is_empty() {
        return Err(TargetError::Missing("server"));
    }
    let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>().ok();
    if literal.is_some_and(|address| reach(address) > rules.nearest()) {
        return Err(NearServer.into());
    }
    Ok(url)
}

fn authorities(cluster: &Map<String, Value>) -> Result<Option<Vec<Vec<u8>>>, TargetError> {
    const FIELD: &str = "certificate-authority-data";
    let Some(data) = text_of(cluster, FIELD) else { return Ok(None) };
    let pem = pem(&data).ok_or(TargetError::NotPem(FIELD))?;
    let certificates: Result<Vec<Vec<u8>>, _> = CertificateDer::pem_slice_iter(&pem)
        .map(|certificate| certificate.map(|certificate| certificate.as_ref().to_vec()))
        .collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(Some(certificates)),
        _ => Err(TargetError::NotPem(FIELD)),
    }
}

fn pem(data: &str) -> Option<Vec<u8>> {
    let compact: String = data.chars().filter(|character| !character.is_ascii_whitespace()).collect();
    STANDARD.decode(compact).ok()
}

fn credentials(user: &Map<String, Value>) -> Result<kube::config::AuthInfo, TargetError> {
    check(user, USER_REFUSED, USER_KNOWN, "the user")?;
    let mut kept = Map::new();
    for field in ["client-certificate-data", "client-key-data"] {
        if let Some(data) = text_of(user, field) {
            pem(&data).ok_or(TargetError::NotPem(field))?;
            kept.insert(field.to_owned(), json!(data));
        }
    }
    if kept.len() == 1 {
        return Err(TargetError::Missing("client-certificate-data with its client-key-data"));
    }
    if let Some(token) = text_of(user, "token") {
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TargetError::Missing("token"));
        }
        kept.insert("token".to_owned(), json!(token));
    }
    if kept.is_empty() {
        return Err(TargetError::Missing("credentials: set token, or client-certificate-data and client-key-data"));
    }
    serde_json::from_value(Value::Object(kept)).map_err(|_| TargetError::Missing("user"))
}

/// The entry of this name in a list of a kubeconfig. The first of several counts, as for kubectl.
fn named<'a>(
    root: &'a Value,
    list: &str,
    member: &str,
    name: &str,
    what: &'static str,
) -> Result<&'a Map<String, Value>, TargetError> {
    let entries = root.get(list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let entry = entries.iter().find(|entry| entry.get("name").and_then(Value::as_str) == Some(name));
    entry.and_then(|entry| entry.get(member)?.as_object()).ok_or(TargetError::Missing(what))
}

fn text(value: &Value, name: &str) -> Option<String> {
    value.as_object().and_then(|map| text_of(map, name))
}

/// A text that is not empty.
fn text_of(map: &Map<String, Value>, name: &str) -> Option<String> {
    map.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests;
