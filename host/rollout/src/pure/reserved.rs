//! Objects that belong to the installation of Chandler itself. Pure.

use chandler_permissions::{Installation, Item, delegation::reserved};
use serde_json::Map;

use crate::pure::{desired::Desired, error::RolloutError, owner::Owner};

/// Refuses such objects in a release that is installed with the rights of the controller. A ServiceAccount needs all
/// permissions for them, which the permission check verifies.
pub(crate) fn refuse(owner: &Owner, desired: &[Desired], installation: &Installation) -> Result<(), RolloutError> {
    if owner.account.is_some() {
        return Ok(());
    }
    let empty = Map::new();
    let found: Vec<_> = desired
        .iter()
        .filter_map(|desired| {
            let value = desired.value.as_object().unwrap_or(&empty);
            let item = Item { key: &desired.key, plural: &desired.resource.plural, value };
            Some((desired.key.clone(), reserved(&item, installation)?))
        })
        .collect();
    if found.is_empty() { Ok(()) } else { Err(RolloutError::Reserved(found)) }
}
