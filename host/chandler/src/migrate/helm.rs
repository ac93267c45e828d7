//! Releases of Helm 3 and 4, as Helm stores them in Secrets: the JSON of the release, compressed with gzip and encoded as base64.
//!
//! Users who may write Secrets in a namespace may write releases, so everything in one is untrusted: its sizes are bounded, and the Secret decides which
//! release it is. A release has the files of its chart, but none of the charts in `charts/`: Helm does not store these.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read as _,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chandler_api::BundleDeployment;
use chandler_core::ObjectKey;
use flate2::read::GzDecoder;
use kube::ResourceExt as _;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::view::{output, text::one_line};

/// The type of the Secrets.
pub const SECRET_TYPE: &str = "helm.sh/release.v1";
/// The key with the release.
pub const KEY: &str = "release";
/// The member of the configuration with the name of the release, where that is not the name of the BundleDeployment.
pub const RELEASE_NAME: &str = "releaseName";
/// What the names of the Secrets begin with.
const PREFIX: &str = "sh.helm.release.v1.";
/// The largest release, encoded, in bytes: an API server accepts no larger Secret.
const ENCODED_BYTES: usize = 2 << 20;
/// The largest release, as JSON, in bytes.
const RELEASE_BYTES: u64 = 16 << 20;
/// The most files of a chart.
const FILES: usize = 10_000;
/// The most objects that a release lists.
const OBJECTS: usize = 10_000;
/// What gzip data begins with.
const GZIP: [u8; 3] = [0x1f, 0x8b, 0x08];

/// Which revision of which release a Secret has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RevisionName {
    /// The name of the release.
    pub release: String,
    /// The revision, from 1.
    pub revision: u64,
}

impl RevisionName {
    /// Reads the name of a Secret. `None` if Helm gives no Secret this name.
    pub fn of_secret(name: &str) -> Option<Self> {
        let (release, revision) = name.strip_prefix(PREFIX)?.rsplit_once(".v")?;
        let revision =
            revision.parse().ok().filter(|revision: &u64| *revision > 0 && revision.to_string() == name_tail(name))?;
        (!release.is_empty()).then(|| Self { release: release.to_owned(), revision })
    }
}

/// The name of the release that a BundleDeployment installs.
pub fn release_name(deployment: &BundleDeployment) -> String {
    let configured = deployment.spec.config.as_ref().and_then(|config| config.get(RELEASE_NAME)?.as_str());
    configured.map_or_else(|| deployment.name_any(), str::to_owned)
}

/// What follows the last `.v` of a name.
fn name_tail(name: &str) -> &str {
    name.rsplit_once(".v").map_or("", |(_, tail)| tail)
}

/// Why a release is not migrated.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// It is too large.
    #[error("it is larger than {0} MiB")]
    TooLarge(u64),
    /// It is not what Helm writes.
    #[error("it is not a release as Helm stores it: {0}")]
    Malformed(String),
    /// It says that it is another release.
    #[error(
        "it says that it is revision {revision} of {namespace}/{name}, and its Secret has another name or namespace"
    )]
    OtherRelease {
        /// The name in the release.
        name: String,
        /// The namespace in the release.
        namespace: String,
        /// The revision in the release.
        revision: u64,
    },
    /// It is not deployed.
    #[error("its revision {revision} is {status}")]
    Status {
        /// The revision.
        revision: u64,
        /// The status of Helm.
        status: String,
    },
    /// The chart cannot be installed.
    #[error("its chart {0}")]
    Chart(String),
    /// The release has only a part of the chart.
    #[error("its chart contains other charts, which Helm does not store with the release: {}", .0.join(", "))]
    Subcharts(Vec<String>),
}

impl ReleaseError {
    /// What helps.
    pub fn hint(&self, namespace: &str, name: &str) -> String {
        match self {
            Self::Status { status, .. } if status.starts_with("pending-") => format!(
                "wait until Helm is done; if it was interrupted, go back to a deployed revision: `helm history {name} -n {namespace}`, \
                 `helm rollback {name} -n {namespace}`"
            ),
            Self::Status { .. } => format!(
                "deploy it with Helm first: `helm history {name} -n {namespace}`, `helm rollback {name} -n {namespace}`"
            ),
            Self::Subcharts(_) => format!(
                "push the chart, `helm push CHART.tgz oci://REGISTRY/PATH` or `chandler push CHART.tgz REGISTRY/PATH:VERSION`, and name it: \
                 `--image {name}=REGISTRY/PATH:VERSION`"
            ),
            Self::Chart(_) => {
                format!(
                    "name a chart that can be installed, with the same objects: `--image {name}=REGISTRY/PATH:VERSION`"
                )
            }
            Self::TooLarge(_) | Self::Malformed(_) | Self::OtherRelease { .. } => {
                format!("`helm get all {name} -n {namespace}` shows whether Helm can read it")
            }
        }
    }
}

/// A release.
#[derive(Clone, Debug, Deserialize)]
pub struct HelmRelease {
    name: String,
    #[serde(default)]
    namespace: String,
    version: u64,
    info: Info,
    chart: Chart,
    #[serde(default)]
    config: Option<Map<String, Value>>,
    #[serde(default)]
    manifest: String,
    #[serde(default)]
    hooks: Option<Vec<Hook>>,
}

#[derive(Clone, Debug, Deserialize)]
struct Info {
    status: String,
}

#[derive(Clone, Debug, Deserialize)]
struct Chart {
    metadata: Map<String, Value>,
    #[serde(default)]
    templates: Option<Vec<ChartFile>>,
    #[serde(default)]
    files: Option<Vec<ChartFile>>,
    #[serde(default)]
    values: Option<Map<String, Value>>,
    #[serde(default)]
    schema: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct ChartFile {
    name: String,
    #[serde(default)]
    data: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Hook {
    #[serde(default)]
    path: String,
}

/// Reads a release. `encoded` is the value of the Secret.
///
/// # Errors
/// It is too large, or not what Helm writes.
pub fn decode(encoded: &[u8]) -> Result<HelmRelease, ReleaseError> {
    if encoded.len() > ENCODED_BYTES {
        return Err(ReleaseError::TooLarge(ENCODED_BYTES as u64 >> 20));
    }
    let bytes = BASE64_STANDARD.decode(encoded).map_err(|_| malformed("it is not base64"))?;
    // Very old versions did not compress.
    let json = if bytes.starts_with(&GZIP) {
        let mut json = Vec::new();
        let read = GzDecoder::new(bytes.as_slice()).take(RELEASE_BYTES + 1).read_to_end(&mut json);
        read.map_err(|_| malformed("it is not gzip data"))?;
        json
    } else {
        bytes
    };
    if json.len() as u64 > RELEASE_BYTES {
        return Err(ReleaseError::TooLarge(RELEASE_BYTES >> 20));
    }
    // The error has the position and none of the values.
    serde_json::from_slice(&json)
        .map_err(|error| malformed(&format!("the JSON at line {}, column {}", error.line(), error.column())))
}

fn malformed(what: &str) -> ReleaseError {
    ReleaseError::Malformed(what.to_owned())
}

impl HelmRelease {
    /// Checks that it is the revision that its Secret has, and that it is deployed.
    ///
    /// # Errors
    /// It is another one, or something else happened to it.
    pub fn check(&self, namespace: &str, secret: &RevisionName) -> Result<(), ReleaseError> {
        if (self.name.as_str(), self.namespace.as_str(), self.version)
            != (secret.release.as_str(), namespace, secret.revision)
        {
            return Err(ReleaseError::OtherRelease {
                name: short(&self.name),
                namespace: short(&self.namespace),
                revision: self.version,
            });
        }
        if self.info.status == "deployed" {
            return Ok(());
        }
        Err(ReleaseError::Status { revision: self.version, status: short(&self.info.status) })
    }

    /// The values that the user set.
    pub fn values(&self) -> Map<String, Value> {
        self.config.clone().unwrap_or_default()
    }

    /// The name and the version of the chart, for messages.
    pub fn chart(&self) -> String {
        let of = |key: &str| self.chart.metadata.get(key).and_then(Value::as_str).unwrap_or("?");
        short(&format!("{} {}", of("name"), of("version")))
    }

    /// The files of the chart, by path.
    ///
    /// # Errors
    /// The release lacks charts within it, or it is a library.
    pub fn files(&self) -> Result<BTreeMap<String, Vec<u8>>, ReleaseError> {
        let Chart { metadata, templates, files, values, schema } = &self.chart;
        if metadata.get("type").and_then(Value::as_str) == Some("library") {
            return Err(ReleaseError::Chart("is a library, which installs nothing".to_owned()));
        }
        let subcharts = self.subcharts();
        if !subcharts.is_empty() {
            return Err(ReleaseError::Subcharts(subcharts));
        }
        let count = [templates, files].into_iter().flatten().map(Vec::len).fold(0, usize::saturating_add);
        if count > FILES {
            return Err(ReleaseError::Chart(format!("has more than {FILES} files")));
        }
        let mut found = BTreeMap::new();
        for file in [templates, files].into_iter().flatten().flatten() {
            // Helm keeps these apart. What is in charts/ beside charts is their provenance.
            if matches!(file.name.as_str(), "Chart.yaml" | "values.yaml" | "values.schema.json")
                || file.name.starts_with("charts/")
            {
                continue;
            }
            let bytes = decoded(&file.name, file.data.as_deref())?;
            if found.insert(file.name.clone(), bytes).is_some() {
                return Err(ReleaseError::Chart(format!("has the file {} twice", short(&file.name))));
            }
        }
        found.insert("Chart.yaml".to_owned(), yaml(&Value::Object(metadata.clone()))?);
        if let Some(values) = values.as_ref().filter(|values| !values.is_empty()) {
            found.insert("values.yaml".to_owned(), yaml(&Value::Object(values.clone()))?);
        }
        if let Some(schema) = schema.as_deref().filter(|schema| !schema.is_empty()) {
            found.insert("values.schema.json".to_owned(), decoded("values.schema.json", Some(schema))?);
        }
        Ok(found)
    }

    /// The charts in `charts/` that were part of the release: those that the chart depends on, and those that templates came from.
    fn subcharts(&self) -> Vec<String> {
        let dependencies = self.chart.metadata.get("dependencies").and_then(Value::as_array);
        let names = dependencies.into_iter().flatten().filter_map(|it| it.get("name")?.as_str());
        let sources = self.manifest.lines().filter_map(|line| line.strip_prefix("# Source: "));
        let hooks = self.hooks.iter().flatten().map(|hook| hook.path.as_str());
        let below = sources.chain(hooks).filter_map(|path| path.split_once("/charts/")?.1.split_once('/'));
        let all: BTreeSet<String> = names.chain(below.map(|(name, _)| name)).map(short).collect();
        all.into_iter().take(20).collect()
    }

    /// The objects that Helm installed, without hooks. The namespace is the one that is written in the object.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn objects(&self) -> Result<Vec<ObjectKey>, ReleaseError> {
        let unreadable = || malformed("its manifest is not YAML with objects");
        let documents = chandler_yaml::parse(self.manifest.as_bytes(), &chandler_yaml::Limits::default());
        let documents = documents.map_err(|_| unreadable())?;
        if documents.len() > OBJECTS {
            return Err(malformed("its manifest has too many objects"));
        }
        let objects = documents.iter().filter(|document| !document.root.is_null());
        objects.map(|document| key(&document.root.to_json()).ok_or_else(unreadable)).collect()
    }
}

/// The identity of an object.
fn key(object: &Value) -> Option<ObjectKey> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    let version = text("/apiVersion")?;
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    Some(ObjectKey {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: text("/kind")?.to_owned(),
        namespace: text("/metadata/namespace").map(str::to_owned),
        name: text("/metadata/name")?.to_owned(),
    })
}

/// Whether an object of a release of Helm is this object. Objects without a namespace are in the namespace of the release, or cluster-scoped.
pub fn is_same(helm: &ObjectKey, rendered: &ObjectKey, install_namespace: &str) -> bool {
    let namespace = |key: &ObjectKey| key.namespace.clone().unwrap_or_else(|| install_namespace.to_owned());
    (&helm.group, &helm.kind, &helm.name) == (&rendered.group, &rendered.kind, &rendered.name)
        && namespace(helm) == namespace(rendered)
}

fn decoded(name: &str, data: Option<&str>) -> Result<Vec<u8>, ReleaseError> {
    let decoded = BASE64_STANDARD.decode(data.unwrap_or_default());
    decoded.map_err(|_| malformed(&format!("the file {} is not base64", short(name))))
}

fn yaml(value: &Value) -> Result<Vec<u8>, ReleaseError> {
    let text = output::yaml(std::slice::from_ref(value)).map_err(|_| malformed("its chart cannot be written"))?;
    // The chart is one document.
    Ok(text.strip_prefix("---\n").unwrap_or(&text).as_bytes().to_vec())
}

/// A text for a message.
fn short(text: &str) -> String {
    one_line(text).chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn encoded(json: &[u8]) -> Vec<u8> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(json).unwrap();
        BASE64_STANDARD.encode(gzip.finish().unwrap()).into_bytes()
    }

    fn data(text: &str) -> String {
        BASE64_STANDARD.encode(text)
    }

    /// A release like Helm's, with changes.
    fn release(change: impl FnOnce(&mut Value)) -> HelmRelease {
        let mut release = json!({
            "name": "web", "namespace": "shop", "version": 3, "info": {"status": "deployed"},
            "chart": {
                "metadata": {"name": "web", "version": "1.2.3+b5", "apiVersion": "v2"}, "lock": null,
                "templates": [{"name": "templates/a.yaml", "data": data("a: {{ .Values.a }}\n"), "modtime": "x"}],
                "files": [{"name": "README.md", "data": data("read")}, {"name": "empty", "data": null}],
                "values": {"a": "1.0", "b": null}, "schema": data("{}"),
            },
            "config": {"a": 2},
            "manifest": "---\n# Source: web/templates/a.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n---\n# none\n",
        });
        change(&mut release);
        decode(&encoded(release.to_string().as_bytes())).unwrap()
    }

    fn secret() -> RevisionName {
        RevisionName { release: "web".to_owned(), revision: 3 }
    }

    #[test]
    fn the_name_of_a_secret_has_the_release_and_the_revision() {
        let of = |name: &str| RevisionName::of_secret(name).map(|it| (it.release, it.revision));
        assert_eq!(of("sh.helm.release.v1.web.v12"), Some(("web".to_owned(), 12)));
        assert_eq!(of("sh.helm.release.v1.web.v2.v1"), Some(("web.v2".to_owned(), 1)));
        for other in [
            "web",
            "sh.helm.release.v1.web",
            "sh.helm.release.v1.v1",
            "sh.helm.release.v1.web.v0",
            "sh.helm.release.v1.web.v01",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn a_release_has_the_files_of_its_chart() {
        let release = release(|_| {});
        release.check("shop", &secret()).unwrap();
        let files: Vec<(String, String)> = release
            .files()
            .unwrap()
            .into_iter()
            .map(|(path, bytes)| (path, String::from_utf8(bytes).unwrap()))
            .collect();
        insta::assert_debug_snapshot!(files);
        assert_eq!(serde_json::to_value(release.values()).unwrap(), json!({"a": 2}));
        let objects: Vec<String> = release.objects().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(objects, ["ConfigMap c"]);
    }

    #[test]
    fn charts_within_the_chart_are_missing() {
        for (what, change) in [
            ("dependency", json!({"chart": {"metadata": {"dependencies": [{"name": "sub"}]}}})),
            ("source", json!({"manifest": "---\n# Source: web/charts/sub/templates/a.yaml\nkind: ConfigMap\n"})),
            ("hook", json!({"hooks": [{"path": "web/charts/sub/templates/job.yaml"}]})),
        ] {
            let release = release(|release| json_patch::merge(release, &change));
            assert_eq!(
                release.files().unwrap_err().to_string(),
                "its chart contains other charts, which Helm does not store with the release: sub",
                "{what}"
            );
        }
    }

    #[test]
    fn what_is_not_the_deployed_revision_of_the_secret_is_refused() {
        let checked = |change: Value, namespace: &str| {
            let release = release(|release| json_patch::merge(release, &change));
            release.check(namespace, &secret()).map_err(|error| format!("{error}; {}", error.hint("shop", "web")))
        };
        let messages: Vec<String> = [
            (json!({"name": "vendor"}), "shop"),
            (json!({"version": 2}), "shop"),
            (json!({"namespace": "vendor"}), "shop"),
            (json!({}), "tenant"),
            (json!({"info": {"status": "pending-upgrade"}}), "shop"),
            (json!({"info": {"status": "failed"}}), "shop"),
            (json!({"info": {"status": "\u{1b}[2J"}}), "shop"),
        ]
        .into_iter()
        .map(|(change, namespace)| checked(change, namespace).unwrap_err())
        .collect();
        insta::assert_snapshot!(messages.join("\n"));
    }

    #[test]
    fn a_release_is_bounded() {
        let zeros = encoded(&vec![b' '; 17 << 20]);
        assert!(zeros.len() < ENCODED_BYTES);
        assert_eq!(decode(&zeros).unwrap_err().to_string(), "it is larger than 16 MiB");
        assert_eq!(decode(&vec![b'A'; 3 << 20]).unwrap_err().to_string(), "it is larger than 2 MiB");
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        assert!(matches!(decode(&encoded(deep.as_bytes())), Err(ReleaseError::Malformed(_))));
        let many = release(|release| {
            let file = json!({"name": "a"});
            release["chart"]["files"] = Value::Array(vec![file; FILES + 1]);
        });
        assert_eq!(many.files().unwrap_err().to_string(), "its chart has more than 10000 files");
        let twice = release(|release| release["chart"]["files"] = json!([{"name": "a"}, {"name": "a"}]));
        assert_eq!(twice.files().unwrap_err().to_string(), "its chart has the file a twice");
        let reserved = release(|release| {
            release["chart"]["files"] =
                json!([{"name": "Chart.yaml", "data": data("name: other\n")}, {"name": "charts/a.prov"}]);
        });
        let files = reserved.files().unwrap();
        assert!(
            String::from_utf8_lossy(&files["Chart.yaml"]).contains("name: web") && !files.contains_key("charts/a.prov")
        );
    }

    #[test]
    fn an_error_quotes_no_value() {
        for text in [r#"{"name": "s3cret"#, r#"{"name": 1, "config": "s3cret"}"#, "s3cret"] {
            let error = decode(&encoded(text.as_bytes())).unwrap_err().to_string();
            assert!(!error.contains("s3cret"), "{error}");
            assert!(matches!(decode(text.as_bytes()), Err(ReleaseError::Malformed(_))));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..200), json in "[\\[\\]{}:,\"a-z0-9 ]{0,80}") {
            for encoded in [bytes.clone(), BASE64_STANDARD.encode(&bytes).into_bytes(), encoded(json.as_bytes())] {
                if let Ok(release) = decode(&encoded) {
                    let _ = (release.files(), release.objects());
                }
            }
        }
    }
}
