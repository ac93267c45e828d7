//! A release onto an API server: plan, apply in stages, prune, probe, delete.
//!
//! Nothing here waits. One call does as much as can be done now and tells what it waits for; the caller calls again when
//! something changed. All state is in the cluster, so a crash at any point is repaired by the next call.
//!
//! | module | holds | I/O |
//! |---|---|---|
//! | [`rollout`] | [`Rollout`]: what the controller calls | yes |
//! | [`owner`] | whose objects these are, as an ApplySet (KEP-3659) | no |
//! | [`holdings`] | what an owner created or adopted, by UID: the only evidence | no |
//! | [`ledger`] | where the caller keeps that | the caller's |
//! | [`report`] | what a call did, found and waits for | no |
//! | [`error`] | why nothing could be done | no |
//! | `discovery` | which kinds the API server serves | yes |
//! | `desired` | an object of the release as it should be in the cluster | no |
//! | `live` | an object as the API server returns it, and whose it is | no |
//! | [`existing_owner`] | the others whose objects may be, and when theirs are taken over | no |
//! | `policy` | how an owner treats objects of others, and its own that are not wanted any more | no |
//! | [`deletion_plan`] | what becomes of objects that are not wanted any more | no |
//! | `custom_resources` | which CRDs have custom resources | lists |
//! | `terminating` | what holds back an object that is being deleted | lists |
//! | `resolve` | the release, object by object, with everything that can be refused before any write | no |
//! | `cluster` | the requests | yes |
//! | `answers` | answers that are nested too deeply to be read | no |
//! | `concurrent` | several requests at a time | no |
//! | `snapshot` | what is in the cluster | yes |
//! | [`preview`] | what a rollout would change | dry runs |
//! | [`fields`], `secrets` | how two states of an object differ, for people to read, without what may be secret | no |
//! | `absent` | what has the name of an object without being in the set | yes |
//! | `difference` | whether an object is as it should be | no |
//! | `comparisons` | whether what seems changed is | dry runs |
//! | `unseen` | whether an apply may change what a comparison does not show | no |
//! | [`ownership`] | which field managers own a field | no |
//! | [`ignored`] | fields that are left to others | no |
//! | [`drift_options`] | what is left as it is although it is not as released | no |
//! | `managed_fields` | how a field manager of updates becomes one of applies | no |
//! | `dependencies` | what health depends on beside the objects | yes |
//! | `plan` | what to do about each object | no |
//! | `account` | acting on behalf of a ServiceAccount | yes |
//! | `permissions` | what the ServiceAccount lacks | reviews |
//! | `adoption` | handing objects of others to an owner | yes |
//! | `places` | where objects of the owner may be | no |
//! | `cpu` | threads for what keeps a processor busy | no |
//! | `verdicts` | whether the objects are healthy, within bounds | no |
//! | `situations` | every object of a release compared, within bounds | no |
//! | `crd_upgrade` | whether new versions of CRDs keep clients and stored objects working | lists |
//! | `rollback` | CRDs that stay as they are when an older release comes back | no |
//! | `checks` | every check before the first write, in one list for rollout and preview | yes |
//! | `reserved` | objects that are part of the installation of Chandler itself | no |
//! | `preflight` | what is refused before anything is written | dry runs |
//! | `parent` | the ApplySet's own annotations | yes |
//! | `record` | what is noted in the owner's record, and when | through the ledger |
//! | `replace` | applying where what somebody else wrote makes it impossible | yes |
//! | `untyped` | what the API server says of values that are not of their type | no |
//! | `apply`, `stages`, `prune`, `orphan`, `teardown` | doing it | yes |

mod absent;
mod account;
mod adoption;
mod answers;
mod apply;
mod checks;
mod cluster;
mod comparisons;
mod concurrent;
mod cpu;
mod crd_upgrade;
mod custom_resources;
pub mod deletion_plan;
mod dependencies;
mod desired;
mod difference;
mod discovery;
pub mod drift_options;
pub mod error;
pub mod existing_owner;
pub mod fields;
pub mod holdings;
pub mod ignored;
pub mod ledger;
mod live;
mod managed_fields;
mod orphan;
pub mod owner;
pub mod ownership;
mod parent;
mod permissions;
mod places;
mod plan;
mod policy;
mod preflight;
pub mod preview;
mod prune;
mod record;
mod replace;
pub mod report;
mod reserved;
mod resolve;
mod rollback;
pub mod rollout;
mod secrets;
mod situations;
mod snapshot;
mod stages;
mod teardown;
mod terminating;
mod unseen;
mod untyped;
mod verdicts;

pub use account::impersonating;
pub use adoption::Adoptee;
pub use answers::readable;
pub use chandler_health::{Dependencies, Health, Rule, State, assess};
pub use deletion_plan::{CrdInUse, DeletionPreview};
pub use drift_options::{DriftOptions, DriftPolicy};
pub use error::{ComparisonTooLarge, ObjectFailure, PermissionsMissing, RolloutError};
pub use existing_owner::{Collision, Collisions, ExistingOwner};
pub use fields::{FieldChange, FieldDrift};
pub use holdings::{Holdings, Intent, ObjectId, Seal, Settlement};
pub use ignored::{Ignored, IgnoredFields, IgnoredFieldsError};
pub use ledger::{InMemory, Ledger, LedgerError};
pub use owner::Owner;
pub use ownership::Manager;
pub use policy::{CollisionProtection, CrdPolicy, Deletion};
pub use preview::{Change, ChangeKind, Preview};
pub use report::{Changes, Conflict, Drift, DriftKind, Observation, Progress, Teardown, Unhealthy};
pub use rollout::{Options, Rollout};
