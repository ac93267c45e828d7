//! Whose objects these are, as an ApplySet (KEP-3659).

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chandler_crd_upgrade::Policy;
use chandler_permissions::Account;
use kube::Resource;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::pure::{
    error::RolloutError,
    existing_owner::{Collision, Collisions, ExistingOwner},
    holdings::{Holdings, ObjectId},
    ignored::Ignored,
    ledger::Ledger,
    live,
    policy::{CollisionProtection, Deletion},
};

/// The field manager under which the API server records what Chandler writes.
pub(crate) const FIELD_MANAGER: &str = "chandler";
/// The label of the parent that names its set.
pub(crate) const SET_ID: &str = "applyset.kubernetes.io/id";
/// The label of each member that names its set.
pub(crate) const PART_OF: &str = "applyset.kubernetes.io/part-of";
/// The annotation of the parent that names the tool that may change the set.
pub(crate) const TOOLING: &str = "applyset.kubernetes.io/tooling";
/// The annotation of the parent that lists the kinds of the members, as `Kind.group`, sorted, with commas between them.
pub(crate) const GROUP_KINDS: &str = "applyset.kubernetes.io/contains-group-kinds";
/// The annotation of the parent that lists the namespaces of the members.
pub(crate) const NAMESPACES: &str = "applyset.kubernetes.io/additional-namespaces";
/// What stands in [`TOOLING`].
pub(crate) const TOOL: &str = "chandler/v0.1";
/// The label with the kind of the owner, as the predecessor wrote it.
pub(crate) const OWNER_KIND: &str = "core.rukpak.io/owner-kind";
/// The label with the name of the owner, as the predecessor wrote it.
pub(crate) const OWNER_NAME: &str = "core.rukpak.io/owner-name";

/// The object that a release belongs to: the parent of its ApplySet. It is cluster-scoped.
#[derive(Clone, Debug)]
pub struct Owner {
    /// Its API group.
    pub group: String,
    /// Its API version.
    pub version: String,
    /// Its kind.
    pub kind: String,
    /// The plural name of its kind.
    pub plural: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// The namespace for objects of the release that name none.
    pub install_namespace: String,
    /// The ServiceAccount on whose behalf the objects are read, written and deleted; none where the rights of the client
    /// itself are used.
    pub account: Option<Account>,
    /// How upgrades of its CustomResourceDefinitions are checked.
    pub crd_upgrades: Policy,
    /// Whether the release that is brought to the cluster ran before and comes back. A CustomResourceDefinition that it
    /// would make unsafe stays as the newer release made it.
    pub rollback: bool,
    /// What is done about objects of the release that are somebody else's.
    pub collisions: CollisionProtection,
    /// What becomes of its objects when it is deleted, and of CRDs that a release no longer has.
    pub deletion: Deletion,
    /// The fields of its objects that are left to others.
    pub ignored: Ignored,
    /// Objects that it takes over whatever its policy says, with their UIDs.
    pub adopts: BTreeMap<ObjectId, String>,
    /// The record of what it created or adopted. Without one nothing can be written, and labels and references are taken for
    /// true: that is a view for people.
    pub ledger: Option<Arc<dyn Ledger>>,
}

impl Owner {
    /// The owner that this object is. None where it was never stored, and so has no name and UID.
    pub fn of<K: Resource<DynamicType = ()>>(object: &K, install_namespace: &str) -> Option<Self> {
        let metadata = object.meta();
        Some(Self {
            group: K::group(&()).into_owned(),
            version: K::version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            plural: K::plural(&()).into_owned(),
            name: metadata.name.clone()?,
            uid: metadata.uid.clone()?,
            install_namespace: install_namespace.to_owned(),
            account: None,
            crd_upgrades: Policy::default(),
            rollback: false,
            collisions: CollisionProtection::default(),
            deletion: Deletion::default(),
            ignored: Ignored::default(),
            adopts: BTreeMap::new(),
            ledger: None,
        })
    }

    /// The same owner, whose objects are handled on behalf of a ServiceAccount.
    pub fn on_behalf_of(self, account: Option<Account>) -> Self {
        Self { account, ..self }
    }

    /// The same owner, whose CustomResourceDefinitions are upgraded under this policy.
    pub fn with_crd_upgrades(self, crd_upgrades: Policy) -> Self {
        Self { crd_upgrades, ..self }
    }

    /// The same owner, whose release ran before and comes back, or does not.
    pub fn rollback(self, rollback: bool) -> Self {
        Self { rollback, ..self }
    }

    /// The same owner, which meets objects of others in this way.
    pub fn with_collisions(self, collisions: CollisionProtection) -> Self {
        Self { collisions, ..self }
    }

    /// The same owner, whose objects are disposed of in this way.
    pub fn with_deletion(self, deletion: Deletion) -> Self {
        Self { deletion, ..self }
    }

    /// The same owner, of whose objects these fields are left to others.
    pub fn ignoring(self, ignored: Ignored) -> Self {
        Self { ignored, ..self }
    }

    /// The same owner, which takes over these objects, named with their UIDs, whatever its policy says.
    pub fn adopting(self, adopts: BTreeMap<ObjectId, String>) -> Self {
        Self { adopts, ..self }
    }

    /// The same owner, whose objects are those of this record.
    pub fn recorded_in(self, ledger: Arc<dyn Ledger>) -> Self {
        Self { ledger: Some(ledger), ..self }
    }

    /// Whether an object of somebody else may be taken over.
    pub(crate) fn may_adopt(&self, object: &Value, existing_owner: &ExistingOwner) -> bool {
        let named = || self.adopts.get(&live::id(object)).is_some_and(|uid| uid == live::uid(object));
        existing_owner.yields_to(self.collisions) || named()
    }

    /// The record as it is now; none where there is none.
    pub(crate) fn holdings(&self) -> Option<Arc<Holdings>> {
        self.ledger.as_ref().map(|ledger| ledger.holdings())
    }

    /// The record, without which nothing may be written.
    pub(crate) fn ledger(&self) -> Result<&dyn Ledger, RolloutError> {
        self.ledger.as_deref().ok_or_else(|| RolloutError::Unrecorded(format!("{} {}", self.kind, self.name)))
    }

    /// The identifier of the owner's ApplySet: the form that the KEP prescribes, so that it can be computed from outside.
    pub fn set_id(&self) -> String {
        // The namespace of a cluster-scoped parent is empty.
        let hash = Sha256::digest(format!("{}..{}.{}", self.name, self.kind, self.group));
        format!("applyset-{}-v1", URL_SAFE_NO_PAD.encode(hash))
    }

    /// The refusal of a release with these objects.
    pub(crate) fn refuse(&self, found: Vec<Collision>) -> RolloutError {
        RolloutError::Collisions(Collisions { owner_kind: self.kind.clone(), owner: self.name.clone(), found })
    }

    /// `group/version`.
    pub(crate) fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// The labels that each member carries.
    pub(crate) fn member_labels(&self) -> [(&'static str, String); 3] {
        [(PART_OF, self.set_id()), (OWNER_KIND, self.kind.clone()), (OWNER_NAME, self.name.clone())]
    }

    /// The reference that each member carries.
    ///
    /// Deletion in order is the finalizer's work. The reference keeps other controllers from adopting the objects, lets those of
    /// rukpak pass to this controller without being created again, shows whether the garbage collector has orphaned them, and
    /// has it remove them should the finalizer be lost.
    pub(crate) fn reference(&self) -> Value {
        json!({
            "apiVersion": self.api_version(),
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_set_id_is_that_of_the_kep() {
        let owner = Owner {
            group: "core.rukpak.io".into(),
            version: "v1alpha2".into(),
            kind: "BundleDeployment".into(),
            plural: "bundledeployments".into(),
            name: "a".into(),
            uid: "u".into(),
            install_namespace: "n".into(),
            account: None,
            crd_upgrades: Policy::default(),
            rollback: false,
            collisions: CollisionProtection::default(),
            deletion: Deletion::default(),
            ignored: Ignored::default(),
            adopts: BTreeMap::new(),
            ledger: None,
        };
        // base64url(sha256("a..BundleDeployment.core.rukpak.io")), computed with Python's hashlib and base64.
        assert_eq!(owner.set_id(), "applyset-z9uvW4yqlz70Q-WNFsaL39IvTJ7vNQP2rx34q9YUMeE-v1");
        assert!(owner.set_id().len() <= 63, "it is the value of a label");
    }
}
