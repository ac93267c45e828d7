//! The reconcilers: BundleDeployment and ProvisionerClass.
//!
//! A reconcile of a BundleDeployment is a line of steps: source, tree, class, render, choose, approve, certificates, apply, observe,
//! status. Each step returns a value of its own type. The assessment is built from these values, and one pure function derives the
//! status from it, which is written only where it differs. ARCHITECTURE.md walks through the files.
//!
//! | module | holds |
//! |---|---|
//! | [`options`] | what an administrator sets |
//! | [`run`](mod@run) | starts and stops everything |
//! | `bundle_deployment` | the reconciler of BundleDeployments |
//! | `provisioner_class` | the reconciler of ProvisionerClasses |
//! | `approvals` | the ChangeApprovals that there are |
//! | [`certificates`] | serving certificates that a release asks for |
//! | `ceiling` | who may name which object of the system namespace |
//! | `classes` | which class is served by which component |
//! | `generated_secrets` | Secrets of a release whose values the host generates |
//! | `contention` | objects that another client changes again after each repair |
//! | `memory` | what is remembered between reconciles |
//! | `polls` | asks what tags stand for |
//! | `images` | references, pull secrets and registries |
//! | `jobs` | what is fetched and rendered beside the slots |
//! | `served` | which artifact served each class last |
//! | `slots` | how many BundleDeployments are worked on at once |
//! | `finalizers` | how changed finalizers are written |
//! | `status_patch` | how a changed status is written |
//! | `supersession` | ends a rollout for a newer spec |
//! | `cluster_info` | what provisioners are told about the cluster |
//! | [`watch_selector`] | which BundleDeployments and ProvisionerClasses a controller works on |
//! | `watches` | watches on the kinds that releases hold |
//! | `backoff` | when to try again |
//! | `events` | Events on transitions |
//! | `housekeeping` | keeps the caches within their budgets |

mod approvals;
mod backoff;
mod bundle_deployment;
mod ceiling;
pub mod certificates;
mod classes;
mod cluster_info;
mod contention;
mod context;
mod events;
mod finalizers;
mod generated_secrets;
mod housekeeping;
mod images;
mod jobs;
mod memory;
pub mod options;
mod polls;
mod problem;
mod provisioner_class;
pub mod run;
mod served;
mod slots;
mod status_patch;
mod supersession;
pub mod watch_selector;
mod watches;

pub use bundle_deployment::drift::{ignored_fields, of_rollout as drift_policy};
pub use bundle_deployment::owner_of;
pub use cluster_info::kinds;
pub use options::Options;
pub use run::{ControllerError, run};
pub use watch_selector::WatchSelector;
