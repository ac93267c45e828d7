//! The reconcilers of BundleDeployments, ProvisionerClasses, Catalogs, Resolutions, PlatformOperators, PlatformPolicies, Receivers and Alerts.
//!
//! A reconcile of a BundleDeployment is one line: source, digest, tree, provisioner, release, rollout, status. Each step returns a
//! value; the assessment of `bundle_deployment` collects them as plain data. One pure function derives the status from it, and the
//! status is written only where it differs. [`chandler_runtime`] runs the reconcilers.
//!
//! | module | contents |
//! |---|---|
//! | [`run`](mod@run) | wires everything, and runs it until shutdown |
//! | [`options`] | the options that an administrator sets |
//! | `bundle_deployment` | the reconciler of BundleDeployments |
//! | `provisioner_class` | the reconciler of ProvisionerClasses |
//! | `catalog` | the reconciler of Catalogs |
//! | `resolution` | the reconciler of Resolutions |
//! | `decision_maps` | the sets that other resolvers decide, in ConfigMaps |
//! | `platform_operator` | the reconciler of PlatformOperators |
//! | `platform_policy` | the reconciler of PlatformPolicies |
//! | `receiver` | the reconciler of Receivers, and what their webhooks have polled |
//! | `alert` | Alerts: notifications to servers outside of the cluster |
//! | `cluster_operator` | the ClusterOperators that report PlatformOperators and the controller to OpenShift |
//! | `cluster` | the API server and the options, which all reconcilers share |
//! | `deployments` | the BundleDeployments as their watch last delivered them |
//! | `tls_profile` | the TLS profile of an OpenShift cluster |
//! | `signals` | how reconcilers learn of changes that another one noticed |
//! | `capacities` | how much memory releases in progress may take |
//! | `memory` | state between reconciles that may be lost |
//! | `contents` | the content that BundleDeployments have |
//! | `held` | what the content service may show |
//! | `account_grant` | which ServiceAccounts a BundleDeployment may be installed on behalf of |
//! | `absent` | requests about objects that may be gone |
//! | `dynamic` | objects of kinds that the cluster may not serve |
//! | `problem` | why a step failed, as the status reports it |
//! | `collisions` | watches of the objects of other owners that are in the way |
//! | `grants` | permissions, accounts and namespaces that users add |
//! | `targets` | the other clusters that bundles are installed into |
//! | `registries` | registries that do not answer, and the BundleDeployments that wait for them |
//! | `mirror_sets` | mirrors that the cluster sets |
//! | `monitoring` | what probes and scrapes learn of this controller |
//! | `values` | watches of ConfigMaps and Secrets with values, and what hides their values |
//! | `events` | the Events of status changes |
//! | `status` | what the statuses of several kinds have in common |
//! | `sealed_files` | records beside the caches that only this controller writes |
//! | `growth` | how much content came into the cache since it was cleaned |
//! | `housekeeping` | keeps the caches within their budgets, and removes orphaned records |

mod absent;
mod account_grant;
mod alert;
mod bundle_deployment;
mod capacities;
mod catalog;
mod cluster;
mod cluster_operator;
mod collisions;
mod contents;
mod decision_maps;
mod deployments;
mod dynamic;
mod endpoints;
mod events;
mod grants;
mod growth;
mod held;
mod housekeeping;
mod memory;
mod mirror_sets;
mod monitoring;
pub mod options;
mod platform_operator;
mod platform_policy;
mod problem;
mod provisioner_class;
mod receiver;
mod registries;
mod resolution;
pub mod run;
mod sealed_files;
mod signals;
mod status;
mod targets;
mod tls_profile;
mod undecodable;
mod values;

pub use chandler_resolution::cluster_operators::{
    Names as ClusterOperatorNames, Thresholds as ClusterOperatorThresholds,
};
pub use chandler_runtime::{Election, ElectionError, Timing, WatchSelector};
pub use chandler_serve::{Options as ContentOptions, ServiceOptions};
pub use cluster_operator::{ClusterOperatorMode, ClusterOperatorSettings};
pub use mirror_sets::{MirrorSets, UnknownMirrorSets};
pub use options::{Options, PlatformPackages, TargetOptions};
pub use run::{ControllerError, run};
