//! A BundleDeployment as the owner of objects.

use chandler_api::{
    AdoptedObject, BundleDeployment, CollisionProtection, CrdDeletion, Deletion, DeletionPolicy, ImmutableAction,
    OnImmutable,
};
use chandler_permissions::{Account, AccountPolicy};
use chandler_rollout::{CrdPolicy, ObjectId, Owner};

use super::{account, spec_error::SpecError};

/// A BundleDeployment as the owner of a release in this namespace, with the settings of its spec about objects. Its objects are handled
/// with the rights of the client. None where the BundleDeployment was never stored.
pub fn owner_of(deployment: &BundleDeployment, install_namespace: &str) -> Option<Owner> {
    let spec = &deployment.spec;
    let preflight = spec.preflight.as_ref();
    let crd_upgrades = preflight.and_then(|preflight| preflight.crd_upgrade_safety.clone()).unwrap_or_default();
    let owner = Owner::of(deployment, install_namespace)?;
    let owner = if spec.kube_config.is_some() { owner.in_another_cluster() } else { owner };
    Some(
        owner
            .with_crd_upgrades(crd_upgrades)
            .with_on_immutable(on_immutable(spec.rollout.as_ref().and_then(|rollout| rollout.on_immutable.as_ref())))
            .with_collisions(collisions(spec.collision_protection.unwrap_or_default()))
            .with_deletion(deletion(spec.deletion.unwrap_or_default()))
            .adopting(spec.adopt.iter().map(adopted).collect()),
    )
}

/// The same owner, with objects that are handled on behalf of the ServiceAccount of the spec or of the installation.
pub fn owner(
    deployment: &BundleDeployment,
    install_namespace: &str,
    policy: &AccountPolicy,
) -> Result<Owner, SpecError> {
    let account = account::account(deployment, policy)?;
    Ok(on_behalf_of(stored(deployment, install_namespace)?, account))
}

/// The same owner, with objects that are about to be deleted.
pub fn owner_at_deletion(deployment: &BundleDeployment, policy: &AccountPolicy) -> Result<Owner, SpecError> {
    let owner = stored(deployment, &deployment.spec.install_namespace)?;
    Ok(on_behalf_of(owner, account::account_for_deletion(deployment, policy)))
}

/// In another cluster the user of the kubeconfig acts; the account only reads it.
fn on_behalf_of(owner: Owner, account: Option<Account>) -> Owner {
    if owner.elsewhere { owner } else { owner.on_behalf_of(account) }
}

fn stored(deployment: &BundleDeployment, install_namespace: &str) -> Result<Owner, SpecError> {
    owner_of(deployment, install_namespace).ok_or(SpecError::NeverStored)
}

fn adopted(object: &AdoptedObject) -> (ObjectId, String) {
    let AdoptedObject { group, kind, namespace, name, uid } = object.clone();
    (ObjectId { group, kind, namespace, name }, uid)
}

fn on_immutable(policy: Option<&OnImmutable>) -> chandler_rollout::OnImmutable {
    let action = |action: ImmutableAction| match action {
        ImmutableAction::Refuse => chandler_rollout::ImmutableAction::Refuse,
        ImmutableAction::Recreate => chandler_rollout::ImmutableAction::Recreate,
    };
    let Some(OnImmutable { default, kinds }) = policy else { return chandler_rollout::OnImmutable::default() };
    let kinds = kinds.iter().map(|kind| (kind.group.clone(), kind.kind.clone(), action(kind.action)));
    chandler_rollout::OnImmutable { default: action(default.unwrap_or_default()), kinds: kinds.collect() }
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
        // A policy that is not set keeps what the bundle asks to keep.
        delete_kept: deletion.policy == Some(DeletionPolicy::Delete),
        crds: match deletion.crds {
            None => CrdPolicy::WhileUnused,
            Some(CrdDeletion::Keep) => CrdPolicy::Keep,
            Some(CrdDeletion::Delete) => CrdPolicy::Delete,
        },
    }
}
