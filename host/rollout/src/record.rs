//! What a call notes in the owner's record, and when.

use std::collections::{BTreeMap, BTreeSet};

use chandler_core::ObjectKey;
use serde_json::Value;

use crate::{
    deletion_plan::DeletionPlan,
    desired::Desired,
    error::RolloutError,
    holdings::{Intent, ObjectId, Settlement},
    ledger::Ledger,
    live::{self, foreign_owner},
    owner::Owner,
    plan::{Action, Situation},
    snapshot::Member,
};

/// What is about to be created and taken over. What exists and is the owner's by reference alone, because the record was lost,
/// is taken over, too.
pub(crate) fn intent(desired: &[Desired], situations: &[Situation], live: &[Option<Value>]) -> Intent {
    let mut intent = Intent::default();
    for ((desired, situation), live) in desired.iter().zip(situations).zip(live) {
        let id = ObjectId::of(&desired.key);
        match (situation.action(), live) {
            // What is being deleted is made again.
            (Action::Create | Action::Wait, _) => drop(intent.created.insert(id)),
            (Action::Adopt, Some(live)) => drop(intent.adopted.insert(id, live::uid(live).to_owned())),
            _ => {}
        }
    }
    intent
}

/// Notes which objects of the release are there, and which of those that the record holds are not.
pub(crate) async fn settle<'a>(
    ledger: &dyn Ledger,
    owner: &Owner,
    desired: &[Desired],
    ours: impl Iterator<Item = (&'a ObjectKey, &'a Value)>,
    unwanted: &DeletionPlan<Member>,
) -> Result<(), RolloutError> {
    let present = ours.filter(|(_, live)| live::refers_to(live, &owner.uid));
    let uid = |(key, live): (&ObjectKey, &Value)| (ObjectId::of(key), live::uid(live).to_owned());
    let mut held: BTreeMap<ObjectId, String> = present.map(uid).collect();
    // Among them what was created by a call that died, or is inherited, and is not wanted any more.
    held.extend(unwanted.all().map(|member| uid((&member.key, &member.object))));
    let wanted: BTreeSet<ObjectId> = desired.iter().map(|desired| ObjectId::of(&desired.key)).collect();
    let known = ledger.holdings();
    let gone = known.held().map(|(id, _)| id).filter(|id| !held.contains_key(id) && !wanted.contains(id));
    let gone = gone.cloned().collect();
    note(ledger, Settlement { held, gone, ..Settlement::default() }).await
}

/// Notes something that changes what is known; nothing is written for anything else.
pub(crate) async fn note(ledger: &dyn Ledger, settlement: Settlement) -> Result<(), RolloutError> {
    let known = ledger.holdings();
    if known.settled(&settlement) == *known {
        return Ok(());
    }
    Ok(ledger.settle(settlement).await?)
}

/// Whether an object that the record holds does not refer to the owner any more. Somebody took the reference off, or the
/// garbage collector did, since the owner is deleted and its objects are to stay.
pub(crate) fn is_orphaned(owner: &Owner, live: &[Option<Value>], unwanted: &DeletionPlan<Member>) -> bool {
    let objects = live.iter().flatten().chain(unwanted.all().map(|member| &member.object));
    let mut ours = objects.filter(|object| foreign_owner(object, owner).is_none());
    ours.any(|object| !live::refers_to(object, &owner.uid))
}
