//! What the record of an owner says before and after a rollout. Pure.

use serde_json::Value;

use crate::pure::{
    deletion_plan::DeletionPlan,
    desired::Desired,
    holdings::{Intent, ObjectId},
    live::{self, foreign_owner},
    member::Member,
    owner::Owner,
    situation::{Action, Situation},
};

/// The objects that are about to be created and adopted. Objects that exist and belong to the owner by reference alone, because
/// the record was lost, are adopted, too. An object that may be deleted and created again counts as created. One that another client
/// deleted needs no intent: the seal of the new one names the one in the record.
pub(crate) fn intent(owner: &Owner, desired: &[Desired], situations: &[Situation], live: &[Option<Value>]) -> Intent {
    let mut intent = Intent::default();
    let holdings = owner.holdings();
    let recognizes_next = |id: &ObjectId| holdings.as_ref().is_some_and(|holdings| holdings.recognizes_next(id));
    for ((desired, situation), live) in desired.iter().zip(situations).zip(live) {
        let id = ObjectId::of(&desired.key);
        match (situation.action(), live) {
            (Action::Create, None) if recognizes_next(&id) => intent.again = true,
            // A terminating object will be created again.
            (Action::Create | Action::Wait, _) => drop(intent.created.insert(id)),
            (Action::Update, Some(live)) if owner.on_immutable.recreates(desired, live) => {
                intent.created.insert(id);
            }
            (Action::Adopt, Some(live)) => drop(intent.adopted.insert(id, live::uid(live).to_owned())),
            _ => {}
        }
    }
    intent
}

/// Whether an object in the record is about to be created again. A user deleted it, or the garbage collector did, because the owner is
/// gone.
pub(crate) fn lacks_recorded(owner: &Owner, desired: &[Desired], situations: &[Situation]) -> bool {
    let Some(holdings) = owner.holdings() else { return false };
    let mut created = desired.iter().zip(situations).filter(|(_, situation)| situation.action() == Action::Create);
    created.any(|(desired, _)| {
        let id = ObjectId::of(&desired.key);
        holdings.held().any(|(held, _)| *held == id)
    })
}

/// Whether an object in the record does not refer to the owner any more. A user removed the reference, or the garbage collector
/// did, because the owner was deleted with `--cascade=orphan`.
pub(crate) fn is_orphaned(owner: &Owner, live: &[Option<Value>], unwanted: &DeletionPlan<Member>) -> bool {
    let objects = live.iter().flatten().chain(unwanted.all().map(|member| &member.object));
    let mut ours = objects.filter(|object| foreign_owner(object, owner).is_none());
    ours.any(|object| !owner.is_referred_to(object))
}
