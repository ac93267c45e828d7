//! Whether a new version of a CustomResourceDefinition keeps clients and stored objects working.
//!
//! Pure: what the cluster has and what is to replace it come in, findings come out. The rules are those of
//! `sigs.k8s.io/crdify`, which OLM v1 runs before it installs anything, with more of them and with settings for each.
//!
//! | module | holds |
//! |---|---|
//! | [`mod@compare`] | an old CRD and a new one, compared |
//! | `policy` | the enforcement that a policy (`chandler_core::crd_upgrade`) gives to a finding |
//! | [`finding`] | what was found, and what becomes of it |
//! | `crd`, `version_order` | reads a CRD; the order of versions |
//! | `whole` | what concerns a CRD as a whole |
//! | `walk` | two schemas, level by level |
//! | [`objects`] | custom resources that are in the cluster, against the new schemas |
//! | `keywords`, `combinations`, `validations`, `change` | one level, keyword by keyword |

mod change;
mod combinations;
pub mod compare;
mod crd;
pub mod finding;
mod keywords;
pub mod objects;
mod policy;
mod validations;
mod version_order;
mod walk;
mod whole;

pub use chandler_core::crd_upgrade::{CrdPolicy, Enforcement, Policy, Rule, RulePolicy};
pub use compare::{comparable, compare};
pub use finding::{Effect, Finding, Report, explain};
pub use objects::{CustomResource, ObjectCheck, limit::CheckError};
