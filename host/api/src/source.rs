//! Where a bundle's content comes from.
//!
//! The API server checks that exactly one field is set and that `type` names it; see [`crds`](mod@crate::crds). The types
//! accept more, so that one invalid object does not stop a watch. `host/source` parses them, once.

use chandler_verify::Verification;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::is_false;

/// The source of a bundle's content: a type, and the field that the type names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleSource {
    /// The type of the source: image, configMaps, git, http or upload. Set the field of the same name as well.
    #[serde(rename = "type")]
    pub kind: String,
    /// An image in an OCI registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageSource>,
    /// A directory in a git repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitSource>,
    /// ConfigMaps in the controller's namespace. Each one holds a directory of the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_maps: Option<Vec<ConfigMapSource>>,
    /// An archive on an HTTP server, or a chart in a Helm repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Box<HttpSource>>,
    /// Files that are uploaded to the controller's content service. Not for Catalogs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload: Option<UploadSource>,
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
    /// The type of uploaded content.
    pub const UPLOAD: &str = "upload";

    /// An image source.
    pub fn image(image: ImageSource) -> Self {
        Self { kind: Self::IMAGE.into(), image: Some(image), ..Self::default() }
    }

    /// A source of ConfigMaps.
    pub fn config_maps(config_maps: Vec<ConfigMapSource>) -> Self {
        Self { kind: Self::CONFIG_MAPS.into(), config_maps: Some(config_maps), ..Self::default() }
    }

    /// A source in a git repository.
    pub fn git(git: GitSource) -> Self {
        Self { kind: Self::GIT.into(), git: Some(git), ..Self::default() }
    }

    /// A source of an archive over HTTP.
    pub fn http(http: HttpSource) -> Self {
        Self { kind: Self::HTTP.into(), http: Some(Box::new(http)), ..Self::default() }
    }

    /// A source of uploaded content.
    pub fn upload(upload: UploadSource) -> Self {
        Self { kind: Self::UPLOAD.into(), upload: Some(upload), ..Self::default() }
    }

    /// Every object of the controller's namespace that the source names, whatever its type: these the controller reads with its own
    /// permissions. Nothing else lists them: grants, delegation and the watches for changes ask here. A new field does not compile
    /// until this function has decided about it.
    pub fn references(&self) -> Vec<SystemReference> {
        let Self { kind: _, image, git, config_maps, http, upload } = self;
        let mut found = Vec::new();
        if let Some(image) = image {
            // A verification holds keys and names of signers.
            let ImageSource {
                reference: _,
                pull_secret,
                insecure_skip_tls_verify: _,
                certificate_data: _,
                verification: _,
            } = image;
            found.extend(pull_secret.iter().cloned().map(SystemReference::Secret));
        }
        if let Some(git) = git {
            let GitSource { repository: _, directory: _, reference: _, auth, certificate_data: _ } = git;
            found.extend(auth.as_ref().and_then(Authorization::reference));
        }
        for map in config_maps.iter().flatten() {
            let ConfigMapSource { config_map: LocalObjectReference { name }, path: _ } = map;
            found.push(SystemReference::ConfigMap(name.clone()));
        }
        if let Some(http) = http {
            let HttpSource { url: _, chart: _, version: _, sha256: _, auth, certificate_data: _ } = &**http;
            found.extend(auth.as_ref().and_then(Authorization::reference));
        }
        if let Some(upload) = upload {
            let UploadSource { digest: _ } = upload;
        }
        // An empty name names nothing.
        found.retain(|reference| !reference.name().is_empty());
        found
    }
}

/// An object of the controller's namespace that a source names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SystemReference {
    /// The Secret of this name.
    Secret(String),
    /// The ConfigMap of this name.
    ConfigMap(String),
}

impl SystemReference {
    /// The name of the object.
    pub fn name(&self) -> &str {
        let (Self::Secret(name) | Self::ConfigMap(name)) = self;
        name
    }
}

impl Authorization {
    /// The Secret that holds the credentials.
    fn reference(&self) -> Option<SystemReference> {
        let Self { secret, insecure_skip_verify: _ } = self;
        secret.as_ref().map(|LocalObjectReference { name }| SystemReference::Secret(name.clone()))
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
    /// annotation chandler.dev/bundledeployments (for a Catalog: chandler.dev/catalogs) lists the objects that may use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_secret: Option<String>,
    /// Do not verify the registry's certificate. The connection still uses TLS. For tests only.
    #[serde(default, rename = "insecureSkipTLSVerify", skip_serializing_if = "is_false")]
    pub insecure_skip_tls_verify: bool,
    /// PEM certificates that are trusted for this registry, in addition to the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_data: Option<String>,
    /// The signatures that the image must have, in the forms of cosign. An image without them is not unpacked. The rules of the administrator
    /// (--image-verification) hold as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
}

/// A directory in a git repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitSource {
    /// The URL of the repository: https, http for a commit, or for SSH ssh://user@host/path or user@host:path.
    pub repository: String,
    /// The directory of the bundle in the repository. Default: the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The revision to check out: exactly one of branch, tag, commit and semver.
    #[serde(rename = "ref")]
    pub reference: GitRef,
    /// Credentials, if the server requires them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Authorization>,
    /// PEM certificates that are trusted for this server, in addition to the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_data: Option<String>,
}

/// The revision to check out: exactly one field is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitRef {
    /// A branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// A tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// A commit: all of its 40 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// A range of versions, such as ">=1.2, <2": the tag with the highest version in it, with or without a v before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semver: Option<String>,
}

/// A ConfigMap that holds a directory of the bundle, one file per key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapSource {
    /// The ConfigMap, in the controller's namespace. It must be immutable. If it has the annotation
    /// chandler.dev/bundledeployments or chandler.dev/catalogs, only the BundleDeployments or Catalogs listed there may use it.
    pub config_map: LocalObjectReference,
    /// The directory of the bundle that the files are placed in. Default: the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// An archive on an HTTP server, or a chart in a Helm repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpSource {
    /// The URL of the archive: .tar, .tar.gz, .tar.zst or .zip, recognized by its first bytes. With chart, the URL of the Helm repository, without
    /// index.yaml. A URL with the scheme http needs sha256, unless the controller lists its host (--plain-http-registry).
    pub url: String,
    /// The name of a chart in the Helm repository at the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[a-zA-Z0-9._-]+$"), length(min = 1, max = 250))]
    pub chart: Option<String>,
    /// The version of the chart, or a range as helm install --version reads it, such as "1.2.3", "^1.2" or ">=1.2 <2": the newest version in it.
    /// Default: the newest version that is not a pre-release. Only with chart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub version: Option<String>,
    /// The SHA-256 digest of the archive, as 64 hexadecimal digits in lower case. With chart, it needs one version, not a range. Without it, the URL is
    /// polled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub sha256: Option<String>,
    /// Credentials, if the server requires them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Authorization>,
    /// PEM certificates that are trusted for this server, in addition to the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_data: Option<String>,
}

/// Files that are uploaded with PUT /uploads/NAME.tgz.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UploadSource {
    /// The digest of the files, as status.contentDigest has it: sha256: and 64 hexadecimal digits. Default: whatever is uploaded first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// Credentials for a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Authorization {
    /// A Secret in the controller's namespace, with the keys username and password, or bearerToken; for a git repository over SSH
    /// with the keys ssh-privatekey and ssh-knownhosts. Its annotation chandler.dev/bundledeployments (for a Catalog:
    /// chandler.dev/catalogs) lists the objects that may use it; only a Secret of type kubernetes.io/basic-auth or
    /// kubernetes.io/ssh-auth may be without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<LocalObjectReference>,
    /// Do not verify the server's certificate. For tests only. Refused for SSH.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_reference_of_a_source_is_found() {
        let secret = |name: &str| vec![SystemReference::Secret(name.to_owned())];
        let map = |name: &str| SystemReference::ConfigMap(name.to_owned());
        let cases = [
            (json!({"type": "image", "image": {"ref": "a", "pullSecret": "pull"}}), secret("pull")),
            (json!({"type": "image", "image": {"ref": "a"}}), vec![]),
            (
                json!({"type": "git", "git": {"repository": "r", "ref": {}, "auth": {"secret": {"name": "git"}}}}),
                secret("git"),
            ),
            (json!({"type": "git", "git": {"repository": "r", "ref": {}, "auth": {}}}), vec![]),
            (json!({"type": "http", "http": {"url": "u", "auth": {"secret": {"name": "web"}}}}), secret("web")),
            // The type does not decide what is found.
            (json!({"type": "image", "http": {"url": "u", "auth": {"secret": {"name": "web"}}}}), secret("web")),
            (
                json!({"type": "configMaps", "configMaps": [{"configMap": {"name": "a"}}, {"configMap": {}}, {"configMap": {"name": "b"}, "path": "p"}]}),
                vec![map("a"), map("b")],
            ),
            (json!({"type": "upload", "upload": {}}), vec![]),
        ];
        for (source, expected) in cases {
            let parsed: BundleSource = serde_json::from_value(source.clone()).unwrap();
            assert_eq!(parsed.references(), expected, "{source}");
        }
    }
}
