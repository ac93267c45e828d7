//! From a valid bundle to the objects of the release.
//!
//! One file per generator, and this is their order. It matters to nobody but a reader of the result: the host sorts by
//! kind before it applies.

mod certificates;
mod cluster_permissions;
mod crds;
mod deployment_config;
mod deployments;
mod others;
mod permissions;
mod service_accounts;
mod services;
mod webhooks;

use std::{borrow::Cow, collections::BTreeSet};

use chandler_sdk::Location;
use serde_json::Value;

pub(crate) use certificates::CertificateProvider;

use crate::{
    bundle::{Bundle, Crd},
    compatibility::Compatibility,
    modes::ALL_NAMESPACES,
    names::object_name,
};

/// Everything that the objects depend on.
pub(crate) struct Context<'a> {
    /// The bundle.
    pub(crate) bundle: &'a Bundle,
    /// Where the operator is installed.
    pub(crate) namespace: &'a str,
    /// The namespaces that it watches, or [`ALL_NAMESPACES`] alone.
    pub(crate) targets: &'a [String],
    /// Who makes the certificates of webhooks, if anybody does.
    pub(crate) certificates: Option<CertificateProvider>,
    /// What the configuration changes in the Deployments.
    pub(crate) deployment_config: Option<&'a Value>,
    /// Whether known faults of the reference are kept.
    pub(crate) compatibility: Compatibility,
}

/// An object and where it comes from.
pub(crate) struct Generated<'a> {
    /// The object as JSON.
    pub(crate) json: Cow<'a, [u8]>,
    /// The file, line and pointer that explain it.
    pub(crate) origin: Location,
    /// What makes it the same object: `Kind.group namespace/name`.
    pub(crate) identity: String,
    /// What it was made from.
    pub(crate) source: Source,
}

/// What an object was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The name of a service account.
    ServiceAccount,
    /// Anything else.
    Other,
}

impl<'a> Generated<'a> {
    fn new(value: &Value, origin: Location) -> Self {
        let text = |pointer| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let identity =
            identity(text("/apiVersion"), text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
        Self { json: Cow::Owned(value.to_string().into_bytes()), origin, identity, source: Source::Other }
    }

    fn crd(crd: &'a Crd) -> Self {
        let identity = identity(&crd.api_version, "CustomResourceDefinition", "", &crd.name);
        Self { json: Cow::Borrowed(&crd.json), origin: crd.place.clone(), identity, source: Source::Other }
    }
}

/// The version does not count: two versions of a group serve one object.
fn identity(api_version: &str, kind: &str, namespace: &str, name: &str) -> String {
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let dot = if group.is_empty() { "" } else { "." };
    let slash = if namespace.is_empty() { "" } else { "/" };
    format!("{kind}{dot}{group} {namespace}{slash}{name}")
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

    /// The names of the Deployments that serve a webhook.
    fn webhook_deployments(&self) -> BTreeSet<&str> {
        self.bundle.csv.spec.webhookdefinitions.iter().map(|webhook| webhook.deployment_name.as_str()).collect()
    }
}

/// The Service in front of a Deployment that serves webhooks.
fn service_name(deployment: &str) -> String {
    object_name(&deployment.replace('.', "-"), "service")
}

/// The Secret with its certificate, and the Certificate that fills it.
fn certificate_name(deployment: &str) -> String {
    object_name(&service_name(deployment), "cert")
}

/// The name of a service account; bundles that give none mean the one of the namespace.
fn service_account_or_default(name: &str) -> &str {
    if name.is_empty() { "default" } else { name }
}
