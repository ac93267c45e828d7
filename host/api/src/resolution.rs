//! `core.deppy.io/v1alpha1 Resolution`: packages that an administrator wants, and what the resolver chose for them.
//!
//! The shape is new: Deppy only described this kind (seed documents of platform operators), and never had it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    approval::Approval, bundle_deployment::ServiceAccountReference, maintenance::MaintenanceWindow,
    ownership::CollisionProtection, rollout_settings::OnFailure, schema,
};

/// The most packages of one Resolution.
pub const PACKAGES: usize = 500;
/// The default number of decisions that are kept.
pub const DECISIONS: i32 = 5;

/// The packages that are wanted, and what happens with the decision.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "core.deppy.io",
    version = "v1alpha1",
    kind = "Resolution",
    plural = "resolutions",
    status = "ResolutionStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Packages that are wanted: the controller chooses a version of each and of what they need, and installs the set.",
    printcolumn = r#"{"name": "Resolved", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Resolved\")].status"}"#,
    printcolumn = r#"{"name": "Installed", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Installed\")].status"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name": "Decision", "type": "integer", "jsonPath": ".status.decision"}"#,
    printcolumn = r#"{"name": "Pending", "type": "string", "jsonPath": ".status.pending.reason"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Bundles", "type": "string", "jsonPath": ".status.bundles", "priority": 1}"#,
    printcolumn = r#"{"name": "Message", "type": "string", "jsonPath": ".status.conditions[?(.type==\"Ready\")].message", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ResolutionSpec {
    /// The packages that are wanted.
    #[schemars(length(max = 500), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub packages: Vec<PackageRequest>,
    /// What the whole set must meet, beyond the packages: the constraints of bundles, with the same types and values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub constraints: Vec<SetConstraint>,
    /// The catalogs to choose from, by their labels. The label olm.operatorframework.io/metadata.name is the name of a catalog.
    /// Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalogs: Option<CatalogSelector>,
    /// Which upgrades are allowed. CatalogProvided, the default: upgrades along the channels. SelfCertified: any, downgrades too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::enumeration::<UpgradePolicy>")]
    pub upgrades: Option<UpgradePolicy>,
    /// What happens with packages that the chosen ones need. Install, the default: they become part of the decision. Report: they are
    /// listed. Ignore: they are not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::enumeration::<DependencyPolicy>")]
    pub dependencies: Option<DependencyPolicy>,
    /// When packages that the set has only because others need them are upgraded. Latest, the default: they get the newest version that fits with
    /// what is asked for. Minimal: only where what is asked for gets a better version that way. Pinned: only where what is asked for would not
    /// fit at all otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::enumeration::<DependencyUpgrades>")]
    pub dependency_upgrades: Option<DependencyUpgrades>,
    /// Whether pre-releases can be chosen without being named by a range.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub prereleases: bool,
    /// Decide nothing new. Installed packages stay, and are kept healthy.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub suspend: bool,
    /// Whether a change of what is installed needs approval. Automatic, the default, needs none. With Manual, it waits until
    /// `chandler approve resolveset-NAME` approves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::enumeration::<Approval>")]
    pub approval: Option<Approval>,
    /// When what is installed may change. Outside of these times, a new decision waits; the first installation does not. Default: always.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub maintenance_windows: Vec<MaintenanceWindow>,
    /// What the decision is for. Default: it is only reported in the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<ResolutionOutput>,
}

/// A package that is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PackageRequest {
    /// The name of the package.
    #[schemars(regex(pattern = "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"), length(max = 253))]
    pub name: String,
    /// The versions, such as `>=1.2, <2`, `~1.4` or `1.x || 3.x`. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub version: Option<String>,
    /// The channels. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 253)))]
    pub channels: Vec<String>,
    /// The catalogs, by their labels, in addition to spec.catalogs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalogs: Option<CatalogSelector>,
    /// Whether the others are installed without this package if it does not fit. Those that come first in the list are preferred.
    /// status.leftOut lists the packages that are left out, with the reasons.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub optional: bool,
}

/// A constraint on the set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetConstraint {
    /// The type of the property of a bundle that has the same meaning: olm.package.required, olm.gvk.required or olm.constraint.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["olm.package.required", "olm.gvk.required", "olm.constraint"]))]
    pub kind: String,
    /// Its value.
    #[schemars(schema_with = "schema::any_value")]
    pub value: Value,
}

/// Selects catalogs by their labels. All that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CatalogSelector {
    /// Labels that must have these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub match_labels: BTreeMap<String, String>,
    /// Conditions on labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub match_expressions: Vec<CatalogExpression>,
}

/// A condition on a label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CatalogExpression {
    /// The label.
    #[schemars(length(max = 317))]
    pub key: String,
    /// In: the label has one of the values. NotIn: it has none of them, or is missing. Exists, DoesNotExist.
    #[schemars(schema_with = "schema::enumeration::<LabelOperator>")]
    pub operator: LabelOperator,
    /// The values, for In and NotIn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 63)))]
    pub values: Vec<String>,
}

/// The operator of a condition on a label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LabelOperator {
    /// The label has one of the values.
    #[default]
    In,
    /// It has none of the values, or is missing.
    NotIn,
    /// It is there.
    Exists,
    /// It is missing.
    DoesNotExist,
}

impl schema::Enumeration for LabelOperator {
    const NAMES: &[&str] = &["In", "NotIn", "Exists", "DoesNotExist"];
}

/// Which upgrades are allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum UpgradePolicy {
    /// Upgrades along the channels.
    #[default]
    CatalogProvided,
    /// Any change of the version.
    SelfCertified,
}

impl schema::Enumeration for UpgradePolicy {
    const NAMES: &[&str] = &["CatalogProvided", "SelfCertified"];
}

/// What happens with packages that the chosen ones need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DependencyPolicy {
    /// They are part of the decision.
    #[default]
    Install,
    /// They are reported.
    Report,
    /// They are not looked at.
    Ignore,
}

impl schema::Enumeration for DependencyPolicy {
    const NAMES: &[&str] = &["Install", "Report", "Ignore"];
}

/// When packages are upgraded that the set has only because others need them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DependencyUpgrades {
    /// They get the newest version that fits with what is asked for.
    #[default]
    Latest,
    /// Where what is asked for gets a better version that way.
    Minimal,
    /// Where what is asked for would not fit at all otherwise.
    Pinned,
}

impl schema::Enumeration for DependencyUpgrades {
    const NAMES: &[&str] = &["Latest", "Minimal", "Pinned"];
}

/// What the decision is for: a type, and the field that the type names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolutionOutput {
    /// None: the decision is only reported. ResolveSet: the controller installs it.
    #[serde(rename = "type")]
    #[schemars(schema_with = "schema::enumeration::<OutputType>")]
    pub kind: OutputType,
    /// How the decision is installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolve_set: Option<ResolveSetOutput>,
}

/// The type of an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutputType {
    /// The decision is only reported.
    #[default]
    None,
    /// The decision is installed, as a BundleDeployment of BundleDeployments.
    ResolveSet,
}

impl schema::Enumeration for OutputType {
    const NAMES: &[&str] = &["None", "ResolveSet"];
}

/// How a decision is installed: the controller creates the BundleDeployment resolveset-NAME, whose bundle is one BundleDeployment for each
/// package that was chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolveSetOutput {
    /// The namespace that packages are installed in. It must exist.
    #[schemars(regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"), length(max = 63))]
    pub install_namespace: String,
    /// The namespaces of packages that are installed in another one, by package.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 500))]
    pub namespaces: BTreeMap<String, String>,
    /// The names of the BundleDeployments of packages, by package. Default: the name of the package. A package that is installed keeps the name
    /// that its BundleDeployment has, and a name that another package of the set has is not given twice.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 500))]
    pub names: BTreeMap<String, String>,
    /// The ServiceAccount whose permissions create the BundleDeployments and install the packages. Default: as for a BundleDeployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ServiceAccountReference>,
    /// The configuration of packages, by package: what spec.config of a BundleDeployment may have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "configurations")]
    pub config: BTreeMap<String, Map<String, Value>>,
    /// What happens if objects of a package exist and have another owner, as for a BundleDeployment. Default: Prevent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::enumeration::<CollisionProtection>")]
    pub collision_protection: Option<CollisionProtection>,
    /// The number of decisions that are kept for a rollback, the current one included. Default: 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 20))]
    pub history_limit: Option<i32>,
    /// What happens if a member fails within its progress deadline after a change of the set. Hold, the default: the set stays as it is
    /// until a user fixes it. Rollback: the controller installs the last decision that was complete and healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::enumeration::<OnFailure>")]
    pub on_failure: Option<OnFailure>,
    /// The number of a decision in status.history to roll back to. While this is set, nothing new is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub to_decision: Option<i64>,
}

fn configurations(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "maxProperties": 500,
        "additionalProperties": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    })
}

/// The state at the last reconcile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolutionStatus {
    /// Conditions. Resolved: the packages have an answer. Installed and Healthy: all members of the set are. Ready summarizes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The generation of the spec that this status describes; -1 until the controller has observed the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The number of the decision that is installed or being installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<i64>,
    /// The BundleDeployment of the set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle_deployment: Option<String>,
    /// What was chosen, by package.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["package"]))]
    pub members: Vec<ResolvedMember>,
    /// The names of their bundles, separated by commas: a column of `kubectl get` shows one value. At most 20 names.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bundles: String,
    /// The decision that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<PendingDecision>,
    /// Why the packages have no answer: at most 50 lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explanation: Vec<String>,
    /// What users should know of the decision: at most 20 lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Optional packages that do not fit, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["package"]))]
    pub left_out: Vec<LeftOut>,
    /// What would be chosen if something were different: at most 20 lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<String>,
    /// The catalogs that were read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub catalogs: Vec<CatalogInUse>,
    /// The decisions that are kept, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["number"]))]
    pub history: Vec<DecisionSummary>,
}

/// A bundle that was chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedMember {
    /// The package.
    pub package: String,
    /// The name of the bundle.
    pub bundle: String,
    /// Its version.
    pub version: String,
    /// The catalog that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<String>,
    /// The channel that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Its image.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// The versions that are still between what is installed and the best one, which is the last. The members have the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// Why it was chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// The BundleDeployment that installs it. One that is not a member of the set was installed by others, and is left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle_deployment: Option<String>,
    /// The state of its BundleDeployment: the reason of the condition Ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The message of its deprecation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// A newer version that is wanted, or that the package could get, and that does not fit with the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_back: Option<HeldBack>,
}

/// A newer version of a package that is not chosen because of others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldBack {
    /// The version.
    pub version: String,
    /// What holds it back, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explanation: Vec<String>,
}

/// An optional package that does not fit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// The package.
    pub package: String,
    /// Why, in a word: NotSatisfiable, or PreflightFailed if the checks before the installation refuse it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why: at most ten lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explanation: Vec<String>,
}

/// A decision that waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingDecision {
    /// What it waits for: Preflighting, PreflightFailed, ApprovalRequired or OutsideMaintenanceWindow.
    pub reason: String,
    /// Why it waits, as a message for users.
    pub message: String,
    /// What would change: a line for each package.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
}

/// A catalog that was read for a decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CatalogInUse {
    /// The name.
    pub name: String,
    /// The digest of its files.
    pub digest: String,
    /// Whether these files are of an earlier time, since the catalog is broken now or its server is unreachable.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub stale: bool,
}

/// A decision that is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionSummary {
    /// Its number.
    pub number: i64,
    /// When it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    /// The packages and versions: at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
}
