//! Rolls a release out to an API server: plan, apply in stages, prune, probe, delete.
//!
//! No call waits. Each one does as much as possible now and reports what it waits for; the caller calls again when something
//! changed. All state is in the cluster, so the next call repairs the effects of a crash at any point.
//!
//! | folder | contents | may use |
//! |---|---|---|
//! | `pure` | decisions and data: owner, situations, drift, deletion plan, errors, reports; no requests | `pure` |
//! | `compute` | the same decisions about large objects, on threads of their own | `pure` |
//! | `client` | the requests to the API server, impersonation, concurrency | `pure` |
//! | `read` | everything that only reads the cluster or asks for dry runs: discovery, snapshot, checks, preview | all above |
//! | `write` | everything that changes the cluster: stages, prune, orphan, teardown, the owner's record | all above |
//! | [`rollout`] | [`Rollout`], the entry point, with one file per call | all above |
//!
//! `tests/layers.rs` enforces the last column.

mod client;
mod compute;
mod pure;
mod read;
pub mod rollout;
mod write;

pub use chandler_health::{Dependencies, Health, Rule, State, assess, cause::has_causes};

pub use client::{account::impersonating, answers::readable, members::informers};
pub use pure::{
    account_grant::AccountGrant,
    crd::DefinedKinds,
    deletion_plan::{self, CrdInUse, DeletionPreview},
    drift_options::{self, DriftOptions, DriftPolicy},
    error::{self, ComparisonTooLarge, ObjectFailure, PermissionsMissing, RolloutError},
    existing_owner::{self, Collision, Collisions, ExistingOwner},
    fields::{self, FieldChange, FieldDrift},
    holdings::{self, Holdings, Intent, ObjectId, Settlement},
    ignored::{self, Ignored, IgnoredFields, IgnoredFieldsError},
    immutable::{self, ImmutableAction, OnImmutable},
    ledger::{self, InMemory, Ledger, LedgerError},
    older_record::{self, OlderRecord},
    owner::{self, Owner},
    ownership::{self, Manager},
    parent::{PARENT_MARKS, Parent},
    policy::{CollisionProtection, CrdPolicy, Deletion},
    preview::{self, Change, ChangeKind, Preview},
    report::{self, Changes, Conflict, Drift, DriftKind, Observation, Progress, Teardown, Unhealthy},
    request::RolloutRequest,
    seal::{self, Seal},
};
pub use read::adoption::Adoptee;
pub use rollout::{Options, Rollout, causes};
