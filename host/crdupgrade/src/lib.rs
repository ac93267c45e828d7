//! Checks that a new version of a CustomResourceDefinition does not break clients or stored objects.
//!
//! Pure: the live CRD and its replacement come in, findings come out. The rules come from `sigs.k8s.io/crdify`, which OLM v1 runs before an
//! installation, with additional rules and settings for each.
//!
//! | module | contents |
//! |---|---|
//! | [`mod@compare`] | compares an old CRD and a new one |
//! | `policy` | the enforcement that a policy (`chandler_core::crd_upgrade`) gives to a finding |
//! | [`finding`] | findings and their enforcement |
//! | [`upgrade`] | the findings of a release by CRD, and the digests by which a user approves them |
//! | `crd`, `version_order` | reads a CRD; the order of versions |
//! | `outside_schemas` | changes of a CRD outside of its schemas |
//! | `walk` | compares two schemas level by level |
//! | [`rollback`] | the CRD that an earlier release gets back when a newer one added something to it |
//! | [`objects`] | checks existing custom resources against the new schemas |
//! | `keywords`, `combinations`, `validations`, `change` | compares one level keyword by keyword |

mod change;
mod combinations;
pub mod compare;
mod crd;
pub mod finding;
mod keywords;
pub mod objects;
mod outside_schemas;
mod policy;
pub mod rollback;
pub mod upgrade;
mod validations;
mod version_order;
mod walk;

pub use chandler_core::crd_upgrade::{CrdPolicy, Enforcement, Policy, Rule, RulePolicy};
pub use compare::{comparable, compare};
pub use finding::{Effect, Finding, Report};
pub use objects::{CustomResource, ObjectCheck, limit::CheckError};
pub use upgrade::{RefusedUpgrades, Upgrade};
