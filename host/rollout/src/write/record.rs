//! Writes the owner's record.

use std::collections::{BTreeMap, BTreeSet};

use chandler_core::ObjectKey;
use serde_json::Value;

use crate::pure::{
    deletion_plan::DeletionPlan,
    desired::Desired,
    error::RolloutError,
    holdings::{ObjectId, Settlement},
    ledger::Ledger,
    live,
    member::Member,
    owner::Owner,
};

/// Records which objects of the release exist, and which objects of the record are gone.
pub(crate) async fn settle<'a>(
    ledger: &dyn Ledger,
    owner: &Owner,
    desired: &[Desired],
    ours: impl Iterator<Item = (&'a ObjectKey, &'a Value)>,
    unwanted: &DeletionPlan<Member>,
) -> Result<(), RolloutError> {
    let present = ours.filter(|(_, live)| owner.is_referred_to(live));
    let uid = |(key, live): (&ObjectKey, &Value)| (ObjectId::of(key), live::uid(live).to_owned());
    let mut held: BTreeMap<ObjectId, String> = present.map(uid).collect();
    // These include objects that an interrupted call created and objects that are inherited and no longer wanted.
    held.extend(unwanted.all().map(|member| uid((&member.key, &member.object))));
    let wanted: BTreeSet<ObjectId> = desired.iter().map(|desired| ObjectId::of(&desired.key)).collect();
    let known = ledger.holdings();
    let gone = known.held().map(|(id, _)| id).filter(|id| !held.contains_key(id) && !wanted.contains(id));
    let gone = gone.cloned().collect();
    note(ledger, Settlement { held, gone, ..Settlement::default() }).await
}

/// Records a settlement if it changes the record.
pub(crate) async fn note(ledger: &dyn Ledger, settlement: Settlement) -> Result<(), RolloutError> {
    let known = ledger.holdings();
    if known.settled(&settlement) == *known {
        return Ok(());
    }
    Ok(ledger.settle(settlement).await?)
}
