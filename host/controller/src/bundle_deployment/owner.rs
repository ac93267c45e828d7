//! A BundleDeployment as the owner of objects. Pure.

use chandler_api::{AdoptedObject, BundleDeployment, CollisionProtection, DefinitionDeletion, Deletion, DeletionPolicy, Reason};
use chandler_rollout::{Definitions, ObjectId, Owner};

use super::service_account;
use crate::problem::Problem;

/// The owner that a BundleDeployment is when its release is in this namespace, with everything that its spec says about how
/// objects are treated, and whose objects are handled with the rights of the client. None where it was never stored.
pub fn owner_of(deployment: &BundleDeployment, install_namespace: &str) -> Option<Owner> {
    let spec = &deployment.spec;
    let preflight = spec.preflight.as_ref();
    let crd_upgrades = preflight.and_then(|preflight| preflight.crd_upgrade_safety.clone()).unwrap_or_default();
    let owner = Owner::of(deployment, install_namespace)?;
    Some(
        owner
            .with_crd_upgrades(crd_upgrades)
            .with_collisions(collisions(spec.collision_protection.unwrap_or_default()))
            .with_deletion(deletion(spec.deletion.unwrap_or_default()))
            .adopting(spec.adopt.iter().map(adopted).collect()),
    )
}

/// The same owner, whose objects are handled on behalf of the ServiceAccount that the spec names.
pub(super) fn owner(deployment: &BundleDeployment, install_namespace: &str) -> Result<Owner, Problem> {
    owner_of(deployment, install_namespace)
        .map(|owner| owner.on_behalf_of(service_account::account(deployment)))
        .ok_or_else(|| Problem::passing(Reason::InternalError, "the BundleDeployment was never stored"))
}

fn adopted(object: &AdoptedObject) -> (ObjectId, String) {
    let AdoptedObject { group, kind, namespace, name, uid } = object.clone();
    (ObjectId { group, kind, namespace, name }, uid)
}

fn collisions(protection: CollisionProtection) -> chandler_rollout::CollisionProtection {
    match protection {
        CollisionProtection::Prevent => chandler_rollout::CollisionProtection::Prevent,
        CollisionProtection::IfNoController => chandler_rollout::CollisionProtection::IfNoController,
        CollisionProtection::None => chandler_rollout::CollisionProtection::None,
    }
}

fn deletion(deletion: Deletion) -> chandler_rollout::Deletion {
    chandler_rollout::Deletion {
        orphan: deletion.policy == Some(DeletionPolicy::Orphan),
        definitions: match deletion.crds {
            None => Definitions::WhileUnused,
            Some(DefinitionDeletion::Keep) => Definitions::Keep,
            Some(DefinitionDeletion::Delete) => Definitions::Delete,
        },
    }
}
