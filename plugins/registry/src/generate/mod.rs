//! Generates the objects of the release from a valid bundle.
//!
//! One file per generator, in this order. The order has no effect: the host sorts by kind before it applies.

mod api_services;
mod certificates;
mod cluster_permissions;
mod crds;
mod deployment_config;
mod deployments;
mod environment;
mod others;
mod permissions;
mod service_accounts;
mod services;
mod webhooks;

use std::{borrow::Cow, collections::BTreeMap, fmt};

use chandler_sdk::Location;
use serde_json::Value;

pub(crate) use certificates::CertificateProvider;
pub(crate) use others::subjects_without_namespace;

use crate::{
    bundle::{Bundle, Crd},
    compatibility::Compatibility,
    config::{UndeclaredConversions, Variable},
    csv::ApiService,
    modes::ALL_NAMESPACES,
    names::object_name,
};

/// The inputs of the generators.
pub(crate) struct Context<'a> {
    /// The bundle.
    pub(crate) bundle: &'a Bundle,
    /// The install namespace.
    pub(crate) namespace: &'a str,
    /// The namespaces that it watches, or only [`ALL_NAMESPACES`].
    pub(crate) targets: &'a [String],
    /// The provider of certificates for webhooks and aggregated APIs, if any.
    pub(crate) certificates: Option<CertificateProvider>,
    /// Environment variables of the operator's containers.
    pub(crate) environment: &'a [Variable],
    /// The administrator's changes to the Deployments.
    pub(crate) deployment_config: Option<&'a Value>,
    /// What happens to conversion webhooks that the ClusterServiceVersion does not declare.
    pub(crate) undeclared_conversions: UndeclaredConversions,
    /// Whether known errors of OLM v1 are kept.
    pub(crate) compatibility: Compatibility,
}

/// An object and its source.
pub(crate) struct Generated<'a> {
    /// The object as JSON.
    pub(crate) json: Cow<'a, [u8]>,
    /// The file, line and pointer of its source.
    pub(crate) origin: Location,
    pub(crate) identity: Identity,
    /// Its source in the bundle.
    pub(crate) source: Source,
    /// Why API servers would reject it, if that is certain: a part of its identity is missing or invalid.
    pub(crate) fault: Option<String>,
}

/// The identity of an object, shown as `Kind.group namespace/name`. The version is not part of it: two versions of a group serve one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    /// Empty for the core group.
    pub(crate) group: String,
    pub(crate) kind: String,
    /// Empty for an object of the cluster.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// The source of an object in the bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The name of a service account.
    ServiceAccount,
    /// A Deployment behind a Service that the API server calls.
    Service,
    /// A manifest of the bundle.
    Manifest {
        /// The namespace in the manifest.
        namespace: Option<String>,
    },
    /// Anything else.
    Other,
}

impl<'a> Generated<'a> {
    fn new(value: &Value, origin: Location) -> Self {
        let text = |pointer| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("/apiVersion"), text("/kind"));
        let name = text("/metadata/name");
        let not_text = ["/metadata/namespace", "/metadata/name"].into_iter().find_map(|pointer| {
            let other = value.pointer(pointer).filter(|value| !value.is_string() && !value.is_null())?;
            Some(format!("{} is not a string but {other}", pointer.trim_start_matches('/').replace('/', ".")))
        });
        let fault = not_text.or_else(|| fault(api_version, kind, text("/metadata/namespace"), name));
        let identity = Identity::new(api_version, kind, text("/metadata/namespace"), name);
        Self { json: Cow::Owned(value.to_string().into_bytes()), origin, identity, source: Source::Other, fault }
    }

    fn crd(crd: &'a Crd) -> Self {
        let identity = Identity::new(&crd.api_version, "CustomResourceDefinition", "", &crd.name);
        let fault = fault(&crd.api_version, "CustomResourceDefinition", "", &crd.name);
        Self {
            json: Cow::Borrowed(&crd.json),
            origin: crd.place.object.clone(),
            identity,
            source: Source::Other,
            fault,
        }
    }
}

impl Identity {
    fn new(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
        Self { group: group.into(), kind: kind.into(), namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, kind, namespace, name } = self;
        let dot = if group.is_empty() { "" } else { "." };
        let slash = if namespace.is_empty() { "" } else { "/" };
        write!(f, "{kind}{dot}{group} {namespace}{slash}{name}")
    }
}

/// Names are used in URL paths: `IsValidPathSegmentName` of `k8s.io/apimachinery/pkg/api/validation/path`.
fn fault(api_version: &str, kind: &str, namespace: &str, name: &str) -> Option<String> {
    let legal = |text: &str| {
        !matches!(text, "" | "." | "..")
            && text.len() <= 253
            && !text.contains(['/', '%'])
            && !text.contains(char::is_control)
    };
    let parts = [("apiVersion", api_version), ("kind", kind), ("metadata.name", name)];
    if let Some((field, _)) = parts.iter().find(|(_, text)| text.is_empty()) {
        return Some(format!("{field} is missing"));
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("core", api_version));
    let parts = [
        ("apiVersion", api_version, legal(group) && legal(version)),
        ("kind", kind, kind.bytes().all(|byte| byte.is_ascii_alphanumeric())),
        ("metadata.name", name, legal(name)),
        ("metadata.namespace", namespace, namespace.is_empty() || legal(namespace)),
    ];
    let (field, text, _) = parts.iter().find(|(.., legal)| !legal)?;
    Some(format!("{field} is invalid: {text:?}"))
}

/// The objects of the release.
pub(crate) fn generate<'a>(context: &Context<'a>) -> Vec<Generated<'a>> {
    let generators = [
        service_accounts::generate,
        permissions::generate,
        cluster_permissions::generate,
        crds::generate,
        others::generate,
        deployments::generate,
        webhooks::validating,
        webhooks::mutating,
        api_services::generate,
        services::generate,
        certificates::generate,
    ];
    generators.iter().flat_map(|generator| generator(context)).collect()
}

impl Context<'_> {
    /// Whether the operator watches every namespace.
    fn watches_all(&self) -> bool {
        matches!(self.targets, [target] if target == ALL_NAMESPACES)
    }

    /// The aggregated APIs that are installed.
    fn api_services(&self) -> &[ApiService] {
        if self.compatibility.installs_api_services() { &self.bundle.csv.spec.apiservicedefinitions.owned } else { &[] }
    }

    /// The names of the Deployments that the API server calls, and that need a certificate, each with a pointer to the
    /// first webhook or API that names it.
    fn serving_deployments(&self) -> BTreeMap<&str, String> {
        let webhooks = self.bundle.csv.spec.webhookdefinitions.iter().enumerate();
        let webhooks = webhooks
            .map(|(index, webhook)| (webhook.deployment_name.as_str(), format!("/spec/webhookdefinitions/{index}")));
        let services = self.api_services().iter().enumerate();
        let services = services.map(|(index, service)| {
            (service.deployment_name.as_str(), format!("/spec/apiservicedefinitions/owned/{index}"))
        });
        let mut serving = BTreeMap::new();
        for (deployment, pointer) in webhooks.chain(services) {
            serving.entry(deployment).or_insert(pointer);
        }
        serving
    }
}

/// The Service in front of a Deployment that the API server calls.
fn service_name(deployment: &str) -> String {
    object_name(&deployment.replace('.', "-"), "service")
}

/// The Secret with its certificate, and the Certificate that fills it.
fn certificate_name(deployment: &str) -> String {
    object_name(&service_name(deployment), "cert")
}

/// The name of a service account; the default account of the namespace if the bundle sets none.
fn service_account_or_default(name: &str) -> &str {
    if name.is_empty() { "default" } else { name }
}
