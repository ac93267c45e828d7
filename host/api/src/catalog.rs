//! `chandler.dev/v1alpha1 Catalog`: packages that can be installed.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BundleSource, limits::duration, schema};

/// The shortest interval of polls.
pub const SHORTEST_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A catalog: packages, their channels and their versions, in the file-based format of OLM.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "chandler.dev",
    version = "v1alpha1",
    kind = "Catalog",
    plural = "catalogs",
    status = "CatalogStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A catalog of packages that can be installed, in the file-based format of OLM.",
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name": "Packages", "type": "integer", "jsonPath": ".status.contents.packages"}"#,
    printcolumn = r#"{"name": "Bundles", "type": "integer", "jsonPath": ".status.contents.bundles"}"#,
    printcolumn = r#"{"name": "Unpacked", "type": "date", "jsonPath": ".status.lastUnpacked"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Priority", "type": "integer", "jsonPath": ".spec.priority", "priority": 1}"#,
    printcolumn = r#"{"name": "Digest", "type": "string", "jsonPath": ".status.digest", "priority": 1}"#,
    printcolumn = r#"{"name": "Message", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Ready\")].message", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct CatalogSpec {
    /// Where the files of the catalog come from. An image needs the label operators.operatorframework.io.index.configs.v1, which
    /// names their directory. Secrets and ConfigMaps list in their annotation chandler.dev/catalogs the Catalogs that may use them.
    pub source: BundleSource,
    /// The interval at which a source that can change, such as a tag, is resolved again: at least 1s. Default: the interval of the
    /// controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub poll_interval: Option<String>,
    /// Which catalog is preferred where several offer the same version of a package: the one with the highest number.
    #[serde(default, skip_serializing_if = "schema::is_zero")]
    pub priority: i32,
    /// Do not resolve the source any more. The index that is in use stays in use.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub suspend: bool,
}

/// A field of a Catalog that cannot be parsed. The API server refuses most of these.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("spec.pollInterval: {0:?} is not a duration such as 10m, of at least 1s")]
pub struct PollIntervalError(String);

impl CatalogSpec {
    /// The interval of polls, if the spec has one.
    pub fn poll_interval(&self) -> Result<Option<Duration>, PollIntervalError> {
        let parse = |text: &String| {
            let interval = duration(text).filter(|interval| *interval >= SHORTEST_POLL_INTERVAL);
            interval.ok_or_else(|| PollIntervalError(text.clone()))
        };
        self.poll_interval.as_ref().map(parse).transpose()
    }
}

/// The state at the last reconcile. All fields but the conditions describe the index that is in use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CatalogStatus {
    /// Conditions: Resolved, Unpacked and Valid describe what the source names now. Ready is True while an index is in use, even an index
    /// of earlier content: then the reason is CatalogStale.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The generation of the spec that this status describes; -1 until the controller has observed the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The last value of the annotation reconcile.chandler.dev/requestedAt that the controller handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// The source of exactly the content that is in use, such as an image by digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_source: Option<BundleSource>,
    /// The digest of the files that are in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What the catalog has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<CatalogContents>,
    /// When the content that is in use was unpacked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_unpacked: Option<Time>,
}

/// How much a catalog has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CatalogContents {
    /// The number of packages.
    pub packages: i64,
    /// The number of channels of all packages.
    pub channels: i64,
    /// The number of bundles: versions of packages.
    pub bundles: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_a_second_or_more() {
        let parse =
            |text: &str| CatalogSpec { poll_interval: Some(text.to_owned()), ..CatalogSpec::default() }.poll_interval();
        assert_eq!(CatalogSpec::default().poll_interval(), Ok(None));
        assert_eq!(parse("1h30m"), Ok(Some(Duration::from_mins(90))));
        assert_eq!(parse("1s"), Ok(Some(SHORTEST_POLL_INTERVAL)));
        for refused in ["999ms", "0s", "-1s", "10", ""] {
            assert_eq!(parse(refused), Err(PollIntervalError(refused.to_owned())));
        }
    }
}
