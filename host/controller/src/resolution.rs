//! The reconciler of Resolutions: ask the resolver, and install what it decides as a set of BundleDeployments.
//!
//! | module | contents | I/O |
//! |---|---|---|
//! | `reconciler` | the state of the reconciler, and one reconcile | yes |
//! | `answer` | the answer of the resolver, which is asked again only if something changed | disk |
//! | `decide` | what the set should contain: the answer, the checks of the members, and windows, in rounds | yes |
//! | `decided` | the members as the decisions of a Resolution describe them | yes |
//! | `decisions` | the decisions that are kept, in ConfigMaps | yes |
//! | `handover` | members that pass from one set to another | no |
//! | `handovers` | what is known about such members | no |
//! | `membership` | which BundleDeployments belong to the set, by its record | yes |
//! | `missing` | the catalogs that are not ready, and what is not decided without them | no |
//! | `observed` | what is known about the BundleDeployments: records, and the bundles of their packages in catalogs | disk |
//! | `preflight` | checks all members of a decision before it is installed, and remembers what was refused | yes |
//! | `member_checks` | renders and previews the members of a decision | yes |
//! | `set` | the BundleDeployment of the set | yes |
//! | `sets` | to which Resolution a BundleDeployment belongs | yes |
//! | `states` | the Resolutions, and which changes of other objects concern one | no |
//! | `teardown` | deletes the set with its Resolution | yes |
//!
//! What a Resolution asks, which bundle each package gets and the status are decided in `host/resolution`.

mod answer;
mod decide;
mod decided;
mod decisions;
mod handover;
mod handovers;
mod member_checks;
mod membership;
mod missing;
mod observed;
mod preflight;
mod reconciler;
mod set;
mod sets;
mod states;
mod teardown;

pub(crate) use self::{
    membership::Membership, reconciler::Resolutions, set::changed_fields, sets::Sets, states::ResolutionStates,
};
