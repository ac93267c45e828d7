//! Objects that belong to the installation of Chandler itself. Pure.

use chandler_permissions::{Delegation, Installation, Item, delegation::reserved};
use serde_json::Map;

use crate::pure::{desired::Desired, error::RolloutError, owner::Owner};

/// Refuses such objects in a release that is installed with the rights of the controller. A ServiceAccount needs all
/// permissions for them, which the permission check verifies. In another cluster that check is not made, so that nothing there may make a
/// Chandler act for the writer.
pub(crate) fn refuse(owner: &Owner, desired: &[Desired], installation: &Installation) -> Result<(), RolloutError> {
    if owner.account.is_some() {
        return Ok(());
    }
    let empty = Map::new();
    let found = desired.iter().filter_map(|desired| {
        let value = desired.value.as_object().unwrap_or(&empty);
        let item = Item { key: &desired.key, plural: &desired.resource.plural, value };
        let delegated = if owner.elsewhere {
            Delegation::of(&item, installation).into_iter().next()
        } else {
            reserved(&item, installation)
        };
        Some((desired.key.clone(), delegated?))
    });
    let found: Vec<_> = found.collect();
    if found.is_empty() {
        Ok(())
    } else if owner.elsewhere {
        Err(RolloutError::ReservedElsewhere(found))
    } else {
        Err(RolloutError::Reserved(found))
    }
}
