//! Secrets of the type `kubernetes.io/dockerconfigjson`.
//!
//! An entry is chosen as the kubelet does it (`pkg/credentialprovider/keyring.go`): the host may have `*` in its parts,
//! ports must be equal, a path must be a prefix, and the most specific entry wins. Two differences: a path matches whole
//! parts only (`/org` is not `/org-evil`), and only the first match is tried.

use std::{cmp::Reverse, collections::BTreeMap, fmt};

use base64::{Engine, engine::general_purpose::STANDARD};
use chandler_core::pattern;
use serde::Deserialize;

use super::{AccessError, Credentials, ImageReference, Keyring};

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    auths: Option<BTreeMap<String, Auth>>,
}

#[derive(Clone, Deserialize)]
struct Auth {
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    password: Option<String>,
    #[serde(default, rename = "auth")]
    encoded: Option<String>,
    #[serde(default, rename = "identitytoken")]
    identity_token: Option<String>,
    #[serde(default, rename = "registrytoken")]
    registry_token: Option<String>,
}

/// Parsed pull secrets. The most specific entry counts; of equal ones, the entry of the first secret.
#[derive(Clone, Default)]
pub struct PullSecrets {
    /// The most specific first.
    entries: Vec<(Pattern, String, Auth)>,
}

impl PullSecrets {
    /// Reads the configurations of pull secrets.
    ///
    /// # Errors
    /// [`AccessError::PullSecret`] if one is not a configuration. An entry is checked when it is used.
    pub fn new<'a>(docker_configs: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, AccessError> {
        let mut entries = Vec::new();
        for config in docker_configs {
            // Without the error of the parser, which may quote the secret.
            let config: Config = serde_json::from_slice(config).map_err(|error| {
                AccessError::PullSecret(format!("it is not a docker config in JSON (line {})", error.line()))
            })?;
            // A configuration may contain only credential helpers.
            let auths = config.auths.unwrap_or_default();
            entries.extend(auths.into_iter().filter_map(|(name, auth)| Some((Pattern::parse(&name)?, name, auth))));
        }
        entries.sort_by_key(|(pattern, ..)| Reverse(pattern.specificity()));
        Ok(Self { entries })
    }
}

impl fmt::Debug for PullSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.entries.iter().map(|(_, name, _)| name);
        f.debug_list().entries(names).finish()
    }
}

impl Keyring for PullSecrets {
    fn credentials(&self, image: &ImageReference) -> Result<Option<Credentials>, AccessError> {
        // Messages show only the name of the entry.
        let Some((_, name, auth)) = self.entries.iter().find(|(pattern, ..)| pattern.matches(image)) else {
            return Ok(None);
        };
        let found = auth.clone().credentials();
        found.map_err(|problem| AccessError::PullSecret(format!("entry {name:?}: {problem}")))
    }
}

impl Auth {
    fn credentials(self) -> Result<Option<Credentials>, &'static str> {
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        if let Some(token) = filled(self.registry_token) {
            return Ok(Some(Credentials::RegistryToken(token)));
        }
        if let Some(token) = filled(self.identity_token) {
            return Ok(Some(Credentials::IdentityToken(token)));
        }
        if let Some(encoded) = filled(self.encoded) {
            let decoded = STANDARD.decode(encoded.trim()).map_err(|_| "`auth` is not base64")?;
            let decoded = String::from_utf8(decoded).map_err(|_| "`auth` is not UTF-8")?;
            let (username, password) = decoded.split_once(':').ok_or("`auth` has no `:`")?;
            // Some tools pad with NUL.
            let password = password.trim_end_matches('\0');
            return Ok(Some(Credentials::Basic { username: username.to_owned(), password: password.to_owned() }));
        }
        match (filled(self.username), self.password) {
            (Some(username), Some(password)) => Ok(Some(Credentials::Basic { username, password })),
            (Some(_), None) => Err("`username` has no `password`"),
            (None, _) => Ok(None),
        }
    }
}

/// The name of an entry: a host, which may contain `*`, a port and a path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    host: String,
    port: Option<String>,
    path: Vec<String>,
}

impl Pattern {
    fn parse(name: &str) -> Option<Self> {
        let name = name.strip_prefix("https://").or_else(|| name.strip_prefix("http://")).unwrap_or(name);
        let (host, path) = name.split_once('/').unwrap_or((name, ""));
        // Docker writes the endpoints of the API: `https://index.docker.io/v1/`.
        let path = match path {
            "v1" | "v2" => "",
            path => path.strip_prefix("v1/").or_else(|| path.strip_prefix("v2/")).unwrap_or(path),
        };
        let (host, port) = split_port(host);
        let path = path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let host = host.to_ascii_lowercase();
        (!host.is_empty()).then(|| Self { host, port: port.map(str::to_owned), path })
    }

    /// Longer paths first, then exact hosts.
    fn specificity(&self) -> (usize, bool) {
        (self.path.len(), !self.host.contains('*'))
    }

    fn matches(&self, image: &ImageReference) -> bool {
        let names = [image.registry(), image.registry_name()];
        let host = names.iter().any(|name| {
            let (host, port) = split_port(name);
            self.port.as_deref() == port && host_matches(&self.host, &host.to_ascii_lowercase())
        });
        let mut parts = image.repository().split('/');
        host && self.path.iter().all(|part| parts.next() == Some(part))
    }
}

/// The host and the port, if there is one; a host in brackets is an IPv6 address.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    }
}

/// Each part between dots is matched for itself, so that `*.example.com` is not `a.b.example.com`.
fn host_matches(pattern: &str, host: &str) -> bool {
    if !pattern.contains('*') {
        return pattern == host;
    }
    let (patterns, hosts): (Vec<_>, Vec<_>) = (pattern.split('.').collect(), host.split('.').collect());
    patterns.len() == hosts.len() && patterns.iter().zip(hosts).all(|(pattern, part)| pattern::matches(pattern, part))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn credentials(secret: &Value, image: &str) -> Result<Option<Credentials>, AccessError> {
        PullSecrets::new([secret.to_string().as_bytes()])?.credentials(&image.parse().unwrap())
    }

    fn basic(username: &str, password: &str) -> Credentials {
        Credentials::Basic { username: username.to_owned(), password: password.to_owned() }
    }

    /// The name of the entry that is used.
    fn entry(names: &[&str], image: &str) -> Option<String> {
        let auths: BTreeMap<_, _> =
            names.iter().map(|name| (*name, json!({"username": name, "password": ""}))).collect();
        credentials(&json!({"auths": auths}), image).unwrap().map(|found| match found {
            Credentials::Basic { username, .. } => username,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn the_most_specific_entry_is_used() {
        for (names, image, expected) in [
            (vec!["quay.io"], "quay.io/org/app:v1", Some("quay.io")),
            (vec!["quay.io", "quay.io/org"], "quay.io/org/app", Some("quay.io/org")),
            (
                vec!["quay.io", "quay.io/org/app"],
                "quay.io/org/app@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                Some("quay.io/org/app"),
            ),
            (vec!["quay.io/org"], "quay.io/org-evil/app", None),
            (vec!["quay.io/org/app"], "quay.io/org", None),
            (vec!["https://quay.io/v1/"], "quay.io/app", Some("https://quay.io/v1/")),
            (vec!["https://quay.io/v2/org"], "quay.io/org/app", Some("https://quay.io/v2/org")),
            (vec!["QUAY.io"], "quay.io/app", Some("QUAY.io")),
            (vec!["quay.io"], "notquay.io/app", None),
            (vec!["quay.io"], "quay.io:443/app", None),
            (vec!["host:5000"], "host:5000/app", Some("host:5000")),
            (vec!["host:5000"], "host:5001/app", None),
            (vec!["*.example.com"], "a.example.com/app", Some("*.example.com")),
            (vec!["*.example.com"], "a.b.example.com/app", None),
            (vec!["*.example.com"], "example.com/app", None),
            (vec!["*"], "quay.io/app", None),
            (vec!["r*y-*.example.com"], "registry-eu.example.com/app", Some("r*y-*.example.com")),
            (vec!["*.example.com", "a.example.com"], "a.example.com/app", Some("a.example.com")),
            (vec!["https://index.docker.io/v1/"], "library/nginx", Some("https://index.docker.io/v1/")),
            (vec!["docker.io"], "nginx", Some("docker.io")),
            (vec!["https://"], "nginx", None),
        ] {
            assert_eq!(entry(&names, image).as_deref(), expected, "{names:?} for {image}");
        }
    }

    #[test]
    fn all_forms_of_credentials_are_read() {
        for (auth, expected) in [
            (json!({"username": "u", "password": "p"}), Some(basic("u", "p"))),
            (json!({"auth": "dTpwOnE="}), Some(basic("u", "p:q"))),
            (json!({"auth": "dTpw", "username": "other", "password": "other"}), Some(basic("u", "p"))),
            (json!({"auth": "dTpwAAA="}), Some(basic("u", "p"))),
            (json!({"identitytoken": "t", "auth": "dTpw"}), Some(Credentials::IdentityToken("t".to_owned()))),
            (json!({"registrytoken": "t"}), Some(Credentials::RegistryToken("t".to_owned()))),
            (json!({}), None),
            (json!({"email": "a@example.com", "auth": ""}), None),
        ] {
            assert_eq!(credentials(&json!({"auths": {"quay.io": auth}}), "quay.io/app"), Ok(expected), "{auth}");
        }
        for none in [json!({}), json!({"auths": {}}), json!({"auths": null}), json!({"credsStore": "desktop"})] {
            assert_eq!(credentials(&none, "quay.io/app"), Ok(None));
        }
    }

    #[test]
    fn errors_name_the_entry_and_show_no_secret() {
        for (secret, expected) in [
            (json!("s3cret"), "it is not a docker config in JSON (line 1)"),
            (json!({"auths": "s3cret"}), "it is not a docker config in JSON (line 1)"),
            (json!({"auths": {"quay.io": {"auth": "s3cret!"}}}), "entry \"quay.io\": `auth` is not base64"),
            (json!({"auths": {"quay.io": {"auth": "//8="}}}), "entry \"quay.io\": `auth` is not UTF-8"),
            (json!({"auths": {"quay.io": {"auth": "czNjcmV0"}}}), "entry \"quay.io\": `auth` has no `:`"),
            (json!({"auths": {"quay.io": {"username": "s3cret"}}}), "entry \"quay.io\": `username` has no `password`"),
        ] {
            let error = credentials(&secret, "quay.io/app").unwrap_err();
            assert_eq!(error.to_string(), format!("the pull secret is not usable: {expected}"));
        }
        // Invalid entries that do not match are ignored.
        let secret = json!({"auths": {"quay.io": {"auth": "!"}, "other.io": {"username": "u", "password": "p"}}});
        assert_eq!(credentials(&secret, "other.io/app"), Ok(Some(basic("u", "p"))));
    }
}
