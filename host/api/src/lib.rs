//! The custom resource types and their CustomResourceDefinitions.
//!
//! | module | holds |
//! |---|---|
//! | [`bundle_deployment`] | `core.rukpak.io/v1alpha2 BundleDeployment` |
//! | [`probe`] | health rules beyond those that Chandler knows for a kind |
//! | [`drift`] | what the controller does about objects that differ from the release |
//! | [`approval`] | changes that are pending approval |
//! | [`change_approval`] | `chandler.dev/v1alpha1 ChangeApproval` |
//! | [`rollout_settings`] | how a release is rolled out |
//! | [`revision`] | a revision: a change that was rolled out |
//! | [`bundle`] | the metadata of a bundle in the status |
//! | [`source`] | where a bundle's content comes from |
//! | [`values`] | references to values of a configuration in ConfigMaps and Secrets |
//! | [`provisioner_class`] | `chandler.dev/v1alpha1 ProvisionerClass` |
//! | [`catalog`] | `chandler.dev/v1alpha1 Catalog` |
//! | [`olm_catalogs`] | catalogs of OLM, read as Catalogs |
//! | [`resolution`] | `core.deppy.io/v1alpha1 Resolution` |
//! | [`platform_operator`] | `platform.openshift.io/v1alpha1 PlatformOperator` |
//! | [`platform_policy`] | `chandler.dev/v1alpha1 PlatformPolicy` |
//! | [`receiver`] | `chandler.dev/v1alpha1 Receiver` |
//! | [`alert`] | `chandler.dev/v1alpha1 Alert` |
//! | [`cluster_operator`] | `config.openshift.io/v1 ClusterOperator`, which belongs to OpenShift |
//! | [`maintenance`] | times at which what is installed may change |
//! | [`limits`] | the limits of one call of a provisioner, parsed |
//! | [`ownership`] | adoption of existing objects, and deletion |
//! | [`permissions`] | permissions that the ServiceAccount of a BundleDeployment lacks |
//! | [`conditions`] | condition types and reasons, and setting a condition |
//! | [`own_kinds`] | the kinds of Chandler, in one list |
//! | [`names`] | labels, annotations, finalizers and built-in classes |
//! | [`crds`](mod@crds) | the CRDs that an administrator installs |
//!
//! Every field, condition type, reason, label and finalizer of the archived RukPak project keeps its name and meaning, so
//! that manifests and scripts written for RukPak keep working. Additions are optional.
//!
//! Doc comments of fields are the descriptions that `kubectl explain` prints.

pub mod alert;
pub mod approval;
pub mod bundle;
pub mod bundle_deployment;
pub mod catalog;
pub mod change_approval;
pub mod cluster_operator;
pub mod conditions;
pub mod crds;
pub mod drift;
pub mod limits;
pub mod maintenance;
pub mod names;
pub mod olm_catalogs;
pub mod own_kinds;
pub mod ownership;
pub mod permissions;
pub mod platform_operator;
pub mod platform_policy;
pub mod probe;
pub mod provisioner_class;
pub mod receiver;
pub mod resolution;
pub mod revision;
pub mod rollout_settings;
mod schema;
pub mod source;
pub mod values;

pub use alert::{
    Alert, AlertFilter, AlertKind, AlertProvider, AlertSeverity, AlertSpec, AlertStatus, LastDelivery, ProviderType,
};
pub use approval::{Approval, ChangeCause, PendingChange, ProvisionerChange};
pub use bundle::{BundleCandidate, BundleDescription, BundleProperty, BundleWarning};
pub use bundle_deployment::{
    BundleDeployment, BundleDeploymentSpec, BundleDeploymentStatus, KubeConfigReference, KubeConfigSecret, Preflight,
    ProvisionerInUse, ReleaseInUse, ServiceAccountReference,
};
pub use catalog::{Catalog, CatalogContents, CatalogSpec, CatalogStatus};
pub use chandler_core::crd_upgrade::Policy as CrdUpgradeSafety;
pub use chandler_verify::Verification;
pub use change_approval::{ApprovedUpgrade, ChangeApproval, ChangeApprovalSpec, approved_upgrades};
pub use cluster_operator::{
    ClusterOperator, ClusterOperatorCondition, ClusterOperatorSpec, ClusterOperatorStatus, OperandVersion,
    RelatedObject,
};
pub use conditions::{
    ConditionStatus, ConditionType, NewCondition, Reason, Remedy, ReportingKind, find_condition, set_condition,
};
pub use crds::{crds, crds_yaml};
pub use drift::{DriftPolicy, DriftState, Drifted, DriftedField, DriftedObject, IgnoredDifference};
pub use limits::{CallLimits, LimitError};
pub use maintenance::MaintenanceWindow;
pub use olm_catalogs::{OlmCatalogs, UnknownCatalogs};
pub use own_kinds::OwnKind;
pub use ownership::{AdoptedObject, CollisionProtection, CrdDeletion, Deletion, DeletionPolicy};
pub use permissions::MissingPermissions;
pub use platform_operator::{
    ActiveBundleDeployment, PlatformOperator, PlatformOperatorSpec, PlatformOperatorStatus, PlatformPackage,
};
pub use platform_policy::{PlatformPolicy, PlatformPolicySpec, PlatformPolicyStatus, PolicyPackage};
pub use probe::{Probe, ProbeSelector};
pub use provisioner_class::{
    ClassCalls, ClassDeletion, ClassUses, Component, ProvisionerClass, ProvisionerClassSpec, ProvisionerClassStatus,
    ProvisionerLimits, StagedUpdate, UpdatePolicy, WhileInUse,
};
pub use receiver::{
    PolledKind, Receiver, ReceiverOidc, ReceiverResource, ReceiverSpec, ReceiverStatus, ReceiverType, TokenReference,
};
pub use resolution::{
    CatalogExpression, CatalogInUse, CatalogSelector, DecisionSummary, DependencyPolicy, DependencyUpgrades, HeldBack,
    LabelOperator, LeftOut, OutputType, PackageRequest, PendingDecision, Resolution, ResolutionOutput, ResolutionSpec,
    ResolutionStatus, ResolveSetOutput, ResolvedMember, SetConstraint, UpgradePolicy,
};
pub use revision::{ApprovedChange, Outcome, Revision};
pub use rollout_settings::{ImmutableAction, ImmutableKind, OnFailure, OnImmutable, RolloutSettings};
pub use source::{
    Authorization, BundleSource, ConfigMapSource, GitRef, GitSource, HttpSource, ImageSource, LocalObjectReference,
    SystemReference, UploadSource,
};
pub use values::{DEFAULT_VALUES_KEY, ValuesInUse, ValuesKind, ValuesReference};
