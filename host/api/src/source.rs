//! Where a bundle's content comes from.
//!
//! The API server checks that exactly one member is set and that it is the one that `type` names; see
//! [`crds`](mod@crate::crds). The types accept more than that, so that one odd object does not stop a watch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::is_false;

/// The source of a bundle's content: a type, and the member that the type names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleSource {
    /// The kind of source: image, configMaps, git or http. The member of the same name says where the content is.
    #[serde(rename = "type")]
    pub kind: String,
    /// An image in an OCI registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageSource>,
    /// A directory in a git repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitSource>,
    /// ConfigMaps in the controller's namespace, each of which holds a directory of the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_maps: Option<Vec<ConfigMapSource>>,
    /// A gzip-compressed tar archive that is served over HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpSource>,
}

impl BundleSource {
    /// The type of images.
    pub const IMAGE: &str = "image";
    /// The type of ConfigMaps.
    pub const CONFIG_MAPS: &str = "configMaps";
    /// The type of git repositories.
    pub const GIT: &str = "git";
    /// The type of archives over HTTP.
    pub const HTTP: &str = "http";

    /// A source that is an image.
    pub fn image(image: ImageSource) -> Self {
        Self { kind: Self::IMAGE.into(), image: Some(image), ..Self::default() }
    }

    /// A source that is a list of ConfigMaps.
    pub fn config_maps(config_maps: Vec<ConfigMapSource>) -> Self {
        Self { kind: Self::CONFIG_MAPS.into(), config_maps: Some(config_maps), ..Self::default() }
    }
}

/// An image in an OCI registry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageSource {
    /// The reference of the image, with a tag or a digest.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The name of a Secret of type kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg in the controller's namespace. Its
    /// annotation chandler.dev/bundledeployments lists the BundleDeployments that may name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_secret: Option<String>,
    /// Do not verify the registry's certificate. The connection still uses TLS. For tests only.
    #[serde(default, rename = "insecureSkipTLSVerify", skip_serializing_if = "is_false")]
    pub insecure_skip_tls_verify: bool,
    /// Certificates in PEM that are trusted for this registry, beside those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_data: Option<String>,
}

/// A directory in a git repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitSource {
    /// The URL of the repository.
    pub repository: String,
    /// The directory of the bundle in the repository; its root where this is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// What to check out: exactly one of branch, tag and commit.
    #[serde(rename = "ref")]
    pub reference: GitRef,
    /// How to log in, where that is necessary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Authorization>,
}

/// What to check out: exactly one member is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitRef {
    /// A branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// A tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// A commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// A ConfigMap that holds a directory of the bundle: one file for each key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapSource {
    /// The ConfigMap, in the controller's namespace. It has to be immutable. Its annotation chandler.dev/bundledeployments, where
    /// it has one, lists the BundleDeployments that may name it.
    pub config_map: LocalObjectReference,
    /// The directory of the bundle in which the files are; its root where this is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// A gzip-compressed tar archive that is served over HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HttpSource {
    /// The URL of the archive.
    pub url: String,
    /// How to log in, where that is necessary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Authorization>,
}

/// How to log in to a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Authorization {
    /// A Secret in the controller's namespace. For HTTP it holds username and password; for git over SSH it holds
    /// ssh-privatekey and ssh-knownhosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<LocalObjectReference>,
    /// Do not verify the server's certificate or host key. For tests only.
    #[serde(default, skip_serializing_if = "is_false")]
    pub insecure_skip_verify: bool,
}

/// The name of an object in the controller's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct LocalObjectReference {
    /// The name of the object.
    #[serde(default)]
    #[schemars(extend("default" = ""))]
    pub name: String,
}
