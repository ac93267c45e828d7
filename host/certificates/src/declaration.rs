//! The certificates that a release requests.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::IpAddr,
};

use chandler_core::{Object, ObjectKey, Release, dns_name};
use serde_json::{Map, Value};

use crate::annotations::{INJECT_CA, PEER_NAMES, SERVING_SECRET};

/// The most certificates of one release. Each takes about a millisecond to issue, and one API request in each
/// reconcile.
const MAX_CERTIFICATES: usize = 100;
/// The most further names of a Service's certificate.
const MAX_PEER_NAMES: usize = 50;
/// The most errors that a message lists.
const MAX_LISTED: usize = 10;

/// Why the requests of a release are invalid. Only a change of the release resolves this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeclarationError {
    /// The value of an annotation is invalid.
    #[error("{object}: annotation {annotation} is {value:?}; it must be {want}")]
    Value {
        /// The object.
        object: Box<ObjectKey>,
        /// The annotation.
        annotation: &'static str,
        /// Its value.
        value: String,
        /// The allowed values.
        want: &'static str,
    },
    /// The name of a Service or of its namespace is not a DNS label, so no certificate can be issued.
    #[error("{0}: name and namespace of a Service with a certificate must be DNS labels")]
    ServiceName(Box<ObjectKey>),
    /// The annotation is not supported on this object.
    #[error("{object}: annotation {annotation} is not supported on this kind")]
    Kind {
        /// The object.
        object: Box<ObjectKey>,
        /// The annotation.
        annotation: &'static str,
    },
    /// An object requests a CA bundle but refers to no Service of the release with a certificate.
    #[error(
        "{0}: annotation certificates.chandler.dev/inject-ca is set, but the object refers to no Service of the release with annotation certificates.chandler.dev/serving-secret"
    )]
    NothingToInject(Box<ObjectKey>),
    /// The release contains a Secret that Chandler would create.
    #[error(
        "{0} is in the release, but annotation certificates.chandler.dev/serving-secret makes Chandler create it; remove the Secret or the annotation"
    )]
    SecretInRelease(Box<ObjectKey>),
    /// The release requests too many certificates.
    #[error("the release requests {0} certificates; the limit is {MAX_CERTIFICATES}")]
    TooMany(usize),
    /// Several errors.
    #[error("{}", lines(.0, MAX_LISTED))]
    Several(Vec<DeclarationError>),
}

/// A Secret for which Chandler issues a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The Secret.
    pub secret: ObjectKey,
    /// The Services that the certificate is for, all in the Secret's namespace.
    pub services: BTreeSet<String>,
    /// The further names, with which the certificate is also for clients.
    pub peer_names: BTreeSet<String>,
    pub(crate) stage: u32,
}

/// An object into which Chandler writes CA bundles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The object.
    pub object: ObjectKey,
    /// The certificates whose authorities it needs: indexes of [`Declarations::certificates`].
    pub certificates: BTreeSet<usize>,
}

/// The requests of a release.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declarations {
    certificates: Vec<Declaration>,
    targets: Vec<Target>,
    /// The certificate of each Service.
    by_service: BTreeMap<Service, usize>,
}

/// A Service, by namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Service {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Declaration {
    /// The DNS names by which the API server and Pods reach the Services, and the further names.
    pub fn names(&self) -> BTreeSet<String> {
        let namespace = self.secret.namespace.as_deref().unwrap_or_default();
        self.services
            .iter()
            .map(|service| format!("{service}.{namespace}"))
            .flat_map(|host| [format!("{host}.svc"), format!("{host}.svc.cluster.local"), host])
            .chain(self.peer_names.iter().cloned())
            .collect()
    }
}

impl Declarations {
    /// The requests of a release; objects without a namespace are in `install_namespace`.
    pub fn of(release: &Release, install_namespace: &str) -> Result<Self, DeclarationError> {
        let mut declarations = Self::default();
        let mut faults = Vec::new();
        for object in release.objects() {
            if let Some(secret) = object.annotation(SERVING_SECRET)
                && let Err(fault) = declarations.certificate(object, secret, install_namespace)
            {
                faults.push(fault);
            }
            if object.annotation(PEER_NAMES).is_some() && object.annotation(SERVING_SECRET).is_none() {
                faults.push(DeclarationError::Kind { object: Box::new(object.key.clone()), annotation: PEER_NAMES });
            }
        }
        for object in release.objects() {
            if let Some(value) = object.annotation(INJECT_CA)
                && let Err(fault) = declarations.target(object, value)
            {
                faults.push(fault);
            }
        }
        faults.extend(declarations.secrets_in(release, install_namespace));
        if declarations.certificates.len() > MAX_CERTIFICATES {
            faults.push(DeclarationError::TooMany(declarations.certificates.len()));
        }
        if faults.len() > 1 {
            return Err(DeclarationError::Several(faults));
        }
        if let Some(fault) = faults.pop() {
            return Err(fault);
        }
        declarations.place(release);
        Ok(declarations)
    }

    /// Whether nothing is requested.
    pub fn is_empty(&self) -> bool {
        self.certificates.is_empty()
    }

    /// The requested Secrets.
    pub fn certificates(&self) -> &[Declaration] {
        &self.certificates
    }

    /// The objects that need CA bundles.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// The certificate of a Service.
    pub(crate) fn certificate_of(&self, service: &Service) -> Option<usize> {
        self.by_service.get(service).copied()
    }

    fn certificate(&mut self, object: &Object, secret: &str, install_namespace: &str) -> Result<(), DeclarationError> {
        let key = &object.key;
        if (key.group.as_str(), key.kind.as_str()) != ("", "Service") {
            return Err(DeclarationError::Kind { object: Box::new(key.clone()), annotation: SERVING_SECRET });
        }
        if !dns_name::is_subdomain(secret) {
            return Err(DeclarationError::Value {
                object: Box::new(key.clone()),
                annotation: SERVING_SECRET,
                value: secret.chars().take(100).collect(),
                want: "the name of a Secret",
            });
        }
        let namespace = key.namespace.as_deref().unwrap_or(install_namespace);
        if !dns_name::is_label(&key.name) || !dns_name::is_label(namespace) {
            return Err(DeclarationError::ServiceName(Box::new(key.clone())));
        }
        let peer_names = peer_names(object)?;
        let secret = secret_key(namespace, secret);
        let known = self.certificates.iter().position(|certificate| certificate.secret == secret);
        let index = known.unwrap_or_else(|| {
            self.certificates.push(Declaration {
                secret,
                services: BTreeSet::new(),
                peer_names: BTreeSet::new(),
                stage: 0,
            });
            self.certificates.len() - 1
        });
        if let Some(certificate) = self.certificates.get_mut(index) {
            certificate.services.insert(key.name.clone());
            certificate.peer_names.extend(peer_names);
        }
        self.by_service.insert(Service { namespace: namespace.to_owned(), name: key.name.clone() }, index);
        Ok(())
    }

    fn target(&mut self, object: &Object, value: &str) -> Result<(), DeclarationError> {
        let key = || Box::new(object.key.clone());
        match value {
            "true" => {}
            "false" => return Ok(()),
            _ => {
                return Err(DeclarationError::Value {
                    object: key(),
                    annotation: INJECT_CA,
                    value: value.chars().take(100).collect(),
                    want: "\"true\"",
                });
            }
        }
        let Some(configurations) = client_configurations(&object.key, &object.value) else {
            return Err(DeclarationError::Kind { object: key(), annotation: INJECT_CA });
        };
        let certificates: BTreeSet<usize> =
            configurations.iter().filter_map(|configuration| self.certificate_of(&configuration.service)).collect();
        if certificates.is_empty() {
            return Err(DeclarationError::NothingToInject(key()));
        }
        self.targets.push(Target { object: object.key.clone(), certificates });
        Ok(())
    }

    /// Secrets of the release that Chandler would create too.
    fn secrets_in(&self, release: &Release, install_namespace: &str) -> Vec<DeclarationError> {
        let secrets: BTreeSet<(Option<&str>, &str)> = self
            .certificates
            .iter()
            .map(|certificate| (certificate.secret.namespace.as_deref(), certificate.secret.name.as_str()))
            .collect();
        let taken = release.objects().iter().map(|object| &object.key).filter(|key| {
            let namespace = key.namespace.as_deref().unwrap_or(install_namespace);
            key.group.is_empty() && key.kind == "Secret" && secrets.contains(&(Some(namespace), key.name.as_str()))
        });
        taken.map(|key| DeclarationError::SecretInRelease(Box::new(key.clone()))).collect()
    }

    /// Puts each Secret into the first stage of the release, or into the stage of its namespace if the release creates
    /// that: no workload of an earlier stage may wait for a Secret of a later one.
    fn place(&mut self, release: &Release) {
        let first = release.objects().first().map_or(0, |object| object.stage);
        for certificate in &mut self.certificates {
            let namespace = release.objects().iter().find(|object| {
                object.key.is_namespace() && Some(&object.key.name) == certificate.secret.namespace.as_ref()
            });
            certificate.stage = namespace.map_or(first, |namespace| namespace.stage);
        }
    }
}

/// The further names in the annotation of a Service.
fn peer_names(object: &Object) -> Result<BTreeSet<String>, DeclarationError> {
    let Some(text) = object.annotation(PEER_NAMES) else { return Ok(BTreeSet::new()) };
    let is_dns_name = |name: &str| dns_name::is_subdomain(name.strip_prefix("*.").unwrap_or(name));
    let name = |name: &str| match name.parse::<IpAddr>() {
        Ok(address) => Some(address.to_string()),
        Err(_) => is_dns_name(name).then(|| name.to_owned()),
    };
    let names: Option<BTreeSet<String>> = text.split(',').map(|part| name(part.trim())).collect();
    names.filter(|names| names.len() <= MAX_PEER_NAMES).ok_or_else(|| DeclarationError::Value {
        object: Box::new(object.key.clone()),
        annotation: PEER_NAMES,
        value: text.chars().take(100).collect(),
        want: "at most 50 DNS names and IP addresses, separated by commas",
    })
}

fn secret_key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey {
        group: String::new(),
        kind: "Secret".to_owned(),
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
        version: "v1".to_owned(),
    }
}

/// A field of an object that configures how the API server calls a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientConfiguration {
    /// The JSON pointer of the parent of `caBundle`.
    pub(crate) pointer: String,
    pub(crate) service: Service,
}

/// The fields of an object that configure how the API server calls a Service; none for kinds without such fields.
/// Fields with a URL instead of a Service are left out.
pub(crate) fn client_configurations(key: &ObjectKey, value: &Map<String, Value>) -> Option<Vec<ClientConfiguration>> {
    let webhooks = || {
        let webhooks = value.get("webhooks").and_then(Value::as_array).into_iter().flatten();
        let configurations = webhooks.enumerate().filter_map(|(index, webhook)| {
            let service = service(webhook.get("clientConfig")?)?;
            Some(ClientConfiguration { pointer: format!("/webhooks/{index}/clientConfig"), service })
        });
        configurations.collect()
    };
    let at = |pointer: &str| {
        let mut place = value.get("spec");
        for name in pointer.split('/').skip(2) {
            place = place.and_then(|place| place.get(name));
        }
        let service = place.and_then(service);
        service.map(|service| ClientConfiguration { pointer: pointer.to_owned(), service }).into_iter().collect()
    };
    match (key.group.as_str(), key.kind.as_str()) {
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration") => {
            Some(webhooks())
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Some(at("/spec/conversion/webhook/clientConfig")),
        ("apiregistration.k8s.io", "APIService") => Some(at("/spec")),
        _ => None,
    }
}

fn service(configuration: &Value) -> Option<Service> {
    let service = configuration.get("service")?;
    let text = |name| service.get(name).and_then(Value::as_str).map(str::to_owned);
    Some(Service { namespace: text("namespace")?, name: text("name")? })
}

/// The first few errors, one per line.
pub(crate) fn lines(faults: &[impl fmt::Display], most: usize) -> String {
    let mut lines: Vec<String> = faults.iter().take(most).map(ToString::to_string).collect();
    if faults.len() > most {
        lines.push(format!("and {} more", faults.len() - most));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests;
