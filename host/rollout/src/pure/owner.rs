//! The owner of a set of objects, as the parent of an ApplySet (KEP-3659).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chandler_core::ObjectKey;
use chandler_crd_upgrade::Policy;
use chandler_permissions::Account;
use kube::Resource;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::pure::{
    account_grant::AccountGrant,
    error::RolloutError,
    existing_owner::{Collision, Collisions, ExistingOwner},
    holdings::{Holdings, ObjectId},
    ignored::Ignored,
    immutable::OnImmutable,
    ledger::Ledger,
    live,
    parent::Parent,
    policy::{CollisionProtection, Deletion},
};

/// The field manager under which the API server records what Chandler writes.
pub(crate) const FIELD_MANAGER: &str = "chandler";
/// The label of the parent that names its set.
pub(crate) const SET_ID: &str = "applyset.kubernetes.io/id";
/// The label of each member that names its set.
pub(crate) const PART_OF: &str = "applyset.kubernetes.io/part-of";
/// The annotation of the parent that names the only tool that may change the set.
pub(crate) const TOOLING: &str = "applyset.kubernetes.io/tooling";
/// The annotation of the parent that lists the kinds of the members, as `Kind.group`, sorted, with commas between them.
pub(crate) const GROUP_KINDS: &str = "applyset.kubernetes.io/contains-group-kinds";
/// The annotation of the parent that lists the namespaces of the members.
pub(crate) const NAMESPACES: &str = "applyset.kubernetes.io/additional-namespaces";
/// The value of [`TOOLING`].
pub(crate) const TOOL: &str = "chandler/v0.1";
/// The label with the kind of the owner, as RukPak set it.
pub(crate) const OWNER_KIND: &str = "core.rukpak.io/owner-kind";
/// The label with the name of the owner, as RukPak set it.
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
    /// The namespace of objects for which the release sets none.
    pub install_namespace: String,
    /// The ServiceAccount that is impersonated for all requests about the objects; none to use the rights of the client itself.
    pub account: Option<Account>,
    /// Whether the ServiceAccount may be used for this owner, or `None` if any may.
    pub account_grant: Option<Arc<dyn AccountGrant>>,
    /// The policy for upgrades of its CustomResourceDefinitions.
    pub crd_upgrades: Policy,
    /// The users who approved findings about upgrades of its CustomResourceDefinitions, by the digest of the findings about a CRD.
    pub approved_upgrades: BTreeMap<String, String>,
    /// What happens to an object if the release changes its immutable fields.
    pub on_immutable: OnImmutable,
    /// Whether the release is a rollback to an earlier one. A CustomResourceDefinition that the earlier release would make
    /// unsafe keeps the versions of the newer release.
    pub rollback: bool,
    /// How objects of the release that belong to another owner are treated.
    pub collisions: CollisionProtection,
    /// What happens to its objects when it is deleted, and to CRDs that a release no longer contains.
    pub deletion: Deletion,
    /// The fields of its objects that other field managers may set.
    pub ignored: Ignored,
    /// Objects that it adopts regardless of its policy, with their UIDs.
    pub adopts: BTreeMap<ObjectId, String>,
    /// The record of the objects that it created or adopted. Without a record nothing is written, and labels and references are
    /// trusted, which is sufficient for a display.
    pub ledger: Option<Arc<dyn Ledger>>,
    /// The owner as a watch delivered it last; none to read it.
    pub parent: Option<Parent>,
    /// The finalizer that it gets with the marks of its ApplySet, before anything is recorded or written.
    pub finalizer: Option<String>,
    /// Whether its objects are in another cluster than the owner itself. They have no reference to it: the garbage collector of their cluster
    /// would delete objects whose owner does not exist there.
    pub elsewhere: bool,
}

impl Owner {
    /// The owner for this object, or `None` if the object was never stored and so has no name and UID.
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
            account_grant: None,
            crd_upgrades: Policy::default(),
            approved_upgrades: BTreeMap::new(),
            on_immutable: OnImmutable::default(),
            rollback: false,
            collisions: CollisionProtection::default(),
            deletion: Deletion::default(),
            ignored: Ignored::default(),
            adopts: BTreeMap::new(),
            ledger: None,
            parent: None,
            finalizer: None,
            elsewhere: false,
        })
    }

    /// Sets the ServiceAccount that is impersonated.
    pub fn on_behalf_of(self, account: Option<Account>) -> Self {
        Self { account, ..self }
    }

    /// Sets which ServiceAccounts may be used.
    pub fn granted_by(self, account_grant: Arc<dyn AccountGrant>) -> Self {
        Self { account_grant: Some(account_grant), ..self }
    }

    /// Sets the policy for upgrades of CustomResourceDefinitions.
    pub fn with_crd_upgrades(self, crd_upgrades: Policy) -> Self {
        Self { crd_upgrades, ..self }
    }

    /// Sets the approved findings about upgrades of CustomResourceDefinitions, by digest, with the users who approved them.
    pub fn with_approved_upgrades(self, approved_upgrades: BTreeMap<String, String>) -> Self {
        Self { approved_upgrades, ..self }
    }

    /// Sets what happens to an object if the release changes its immutable fields.
    pub fn with_on_immutable(self, on_immutable: OnImmutable) -> Self {
        Self { on_immutable, ..self }
    }

    /// Sets whether the release is a rollback.
    pub fn rollback(self, rollback: bool) -> Self {
        Self { rollback, ..self }
    }

    /// Sets how objects of other owners are treated.
    pub fn with_collisions(self, collisions: CollisionProtection) -> Self {
        Self { collisions, ..self }
    }

    /// Sets the deletion policy.
    pub fn with_deletion(self, deletion: Deletion) -> Self {
        Self { deletion, ..self }
    }

    /// Sets the fields that other field managers may set.
    pub fn ignoring(self, ignored: Ignored) -> Self {
        Self { ignored, ..self }
    }

    /// Sets the objects that are adopted regardless of the policy, with their UIDs.
    pub fn adopting(self, adopts: BTreeMap<ObjectId, String>) -> Self {
        Self { adopts, ..self }
    }

    /// Sets the record of the owner's objects.
    pub fn recorded_in(self, ledger: Arc<dyn Ledger>) -> Self {
        Self { ledger: Some(ledger), ..self }
    }

    /// Sets the owner as a watch delivered it last, so that it is read only where its newest state matters.
    pub fn with_parent(self, parent: Parent) -> Self {
        Self { parent: Some(parent), ..self }
    }

    /// Sets the finalizer that it gets before anything is written.
    pub fn held_by(self, finalizer: &str) -> Self {
        Self { finalizer: Some(finalizer.to_owned()), ..self }
    }

    /// Sets that its objects are in another cluster, which only the credentials for that cluster may write: no ServiceAccount is impersonated.
    pub fn in_another_cluster(self) -> Self {
        Self { elsewhere: true, account: None, account_grant: None, ..self }
    }

    /// Whether a member of its set refers to it, or cannot: one that could and does not was orphaned by the garbage collector.
    pub(crate) fn is_referred_to(&self, object: &Value) -> bool {
        self.elsewhere || live::refers_to(object, &self.uid)
    }

    /// Whether members are listed in each namespace by itself, so that a user without permissions in other namespaces may do so.
    pub(crate) fn lists_namespaces(&self) -> bool {
        self.elsewhere || self.account.is_some()
    }

    /// Whether an object of another owner may be adopted. One that the owner had, and that another owner of its kind took, is not taken
    /// back: two of them that may adopt the same object would otherwise take it from each other for ever.
    pub(crate) fn may_adopt(&self, object: &Value, existing_owner: &ExistingOwner) -> bool {
        let held = || self.holdings().is_some_and(|holdings| holdings.holds(&live::id(object), live::uid(object)));
        if existing_owner.sibling(&self.kind).is_some() && held() {
            return false;
        }
        let named = || self.adopts.get(&live::id(object)).is_some_and(|uid| uid == live::uid(object));
        existing_owner.yields_to(self.collisions) || named()
    }

    /// The current record, or `None` if the owner has none.
    pub(crate) fn holdings(&self) -> Option<Arc<Holdings>> {
        self.ledger.as_ref().map(|ledger| ledger.holdings())
    }

    /// The mark for an object that is written under this name; none without a record.
    pub(crate) fn mark(&self, id: &ObjectId) -> Option<String> {
        let ledger = self.ledger.as_ref()?;
        Some(ledger.holdings().mark(id, ledger.written_revision()))
    }

    /// The mark for an object that is created again under this name; `None` if the record has no object of the name.
    pub(crate) fn mark_after(&self, id: &ObjectId) -> Option<String> {
        let ledger = self.ledger.as_ref()?;
        ledger.holdings().mark_after(id, ledger.written_revision())
    }

    /// The record, without which nothing may be written.
    pub(crate) fn ledger(&self) -> Result<&dyn Ledger, RolloutError> {
        self.ledger.as_deref().ok_or_else(|| RolloutError::Unrecorded(format!("{} {}", self.kind, self.name)))
    }

    /// The identifier of the owner's ApplySet, in the form that the KEP prescribes, so that other tools can compute it.
    pub fn set_id(&self) -> String {
        // The namespace of a cluster-scoped parent is empty.
        let hash = Sha256::digest(format!("{}..{}.{}", self.name, self.kind, self.group));
        format!("applyset-{}-v1", URL_SAFE_NO_PAD.encode(hash))
    }

    /// Whether the spec asks for an object regardless of its current owner.
    fn asks_for(&self, object: &ObjectKey) -> bool {
        self.collisions == CollisionProtection::None || self.adopts.contains_key(&ObjectId::of(object))
    }

    /// Objects that another owner of this kind took, and that the spec no longer asks for: the record can forget them, so that they may be
    /// adopted on a later request.
    pub(crate) fn given_up(&self, collisions: &Collisions) -> BTreeSet<ObjectId> {
        let taken = collisions.found.iter().filter(|it| it.existing_owner.sibling(&self.kind).is_some());
        taken.filter(|it| !self.asks_for(&it.object)).map(|it| ObjectId::of(&it.object)).collect()
    }

    /// The error for a release with these objects.
    pub(crate) fn refuse(&self, found: Vec<Collision>) -> RolloutError {
        let is_lost = |it: &Collision| it.existing_owner.sibling(&self.kind).is_some() && self.asks_for(&it.object);
        let lost = found.iter().any(is_lost);
        RolloutError::Collisions(Collisions { owner_kind: self.kind.clone(), owner: self.name.clone(), found, lost })
    }

    /// `group/version`.
    pub(crate) fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// The labels of each member.
    pub(crate) fn member_labels(&self) -> [(&'static str, String); 3] {
        [(PART_OF, self.set_id()), (OWNER_KIND, self.kind.clone()), (OWNER_NAME, self.name.clone())]
    }

    /// The owner references of each member: none in another cluster.
    pub(crate) fn references(&self) -> Vec<Value> {
        if self.elsewhere { Vec::new() } else { vec![self.reference()] }
    }

    /// The owner reference of each member.
    ///
    /// The finalizer deletes objects in order. The reference keeps other controllers from adopting the objects, lets this
    /// controller take over objects of RukPak without creating them again, shows whether the garbage collector has orphaned
    /// them, and lets the garbage collector delete them if the finalizer is lost.
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
    use crate::pure::{holdings::Settlement, ledger::InMemory, seal::Seal};

    #[test]
    fn the_set_id_has_the_form_of_the_kep() {
        let owner = Owner {
            group: "core.rukpak.io".into(),
            version: "v1alpha2".into(),
            kind: "BundleDeployment".into(),
            plural: "bundledeployments".into(),
            name: "a".into(),
            uid: "u".into(),
            install_namespace: "n".into(),
            account: None,
            account_grant: None,
            crd_upgrades: Policy::default(),
            approved_upgrades: BTreeMap::new(),
            on_immutable: OnImmutable::default(),
            rollback: false,
            collisions: CollisionProtection::default(),
            deletion: Deletion::default(),
            ignored: Ignored::default(),
            adopts: BTreeMap::new(),
            ledger: None,
            parent: None,
            finalizer: None,
            elsewhere: false,
        };
        // base64url(sha256("a..BundleDeployment.core.rukpak.io")), computed with Python's hashlib and base64.
        assert_eq!(owner.set_id(), "applyset-z9uvW4yqlz70Q-WNFsaL39IvTJ7vNQP2rx34q9YUMeE-v1");
        assert!(owner.set_id().len() <= 63, "it is the value of a label");
    }

    #[test]
    fn an_owner_keeps_each_setting() {
        let account = Account { namespace: "n".into(), name: "deployer".into() };
        let id = ObjectId { group: String::new(), kind: "ConfigMap".into(), namespace: None, name: "x".into() };
        let adopts = BTreeMap::from([(id, "u".to_owned())]);
        let deletion = Deletion { orphan: true, ..Deletion::default() };
        let owner = live::tests::owner()
            .on_behalf_of(Some(account.clone()))
            .with_crd_upgrades(Policy { disabled: true, ..Policy::default() })
            .rollback(true)
            .with_collisions(CollisionProtection::None)
            .with_deletion(deletion)
            .adopting(adopts.clone());
        assert_eq!(owner.account, Some(account));
        assert!(owner.crd_upgrades.disabled && owner.rollback && owner.deletion.orphan);
        assert_eq!((owner.collisions, owner.adopts.clone()), (CollisionProtection::None, adopts));
        assert_eq!(
            owner.ledger().err().map(|error| error.to_string()).as_deref(),
            Some("BundleDeployment a has no record of its objects; nothing is written without one")
        );
        assert!(live::tests::recorded_owner().ledger().is_ok());
    }

    #[test]
    fn objects_in_another_cluster_have_no_reference_and_are_not_orphaned_without_one() {
        let account = Account { namespace: "n".into(), name: "deployer".into() };
        let here = live::tests::owner().on_behalf_of(Some(account));
        let there = here.clone().in_another_cluster();
        let (bare, referring) = (json!({"metadata": {}}), json!({"metadata": {"ownerReferences": [here.reference()]}}));
        assert_eq!((here.references(), there.references()), (vec![here.reference()], vec![]));
        assert!(here.is_referred_to(&referring) && !here.is_referred_to(&bare) && there.is_referred_to(&bare));
        assert_eq!(there.account, None, "accounts of this cluster are unknown there");
        assert!(there.lists_namespaces(), "its user may have no permissions in other namespaces");
        assert_eq!(there.set_id(), here.set_id(), "a restored owner finds its objects");
    }

    #[test]
    fn objects_named_by_uid_are_adopted_whatever_the_policy_says() {
        let id = ObjectId { group: String::new(), kind: "ConfigMap".into(), namespace: None, name: "x".into() };
        let owner = live::tests::owner().adopting(BTreeMap::from([(id, "u".to_owned())]));
        let object = |name: &str, uid: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "uid": uid}});
        for (name, uid, adopted) in [("x", "u", true), ("x", "other", false), ("y", "u", false)] {
            assert_eq!(owner.may_adopt(&object(name, uid), &ExistingOwner::Unknown), adopted, "{name} {uid}");
        }
        let anyone = live::tests::owner().with_collisions(CollisionProtection::None);
        assert!(anyone.may_adopt(&object("y", "u"), &ExistingOwner::Unknown));
    }

    #[test]
    fn what_another_one_took_is_not_taken_back_until_it_was_given_up() {
        let id = ObjectId { group: String::new(), kind: "ConfigMap".into(), namespace: None, name: "x".into() };
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "uid": "u"}});
        let key = ObjectKey {
            group: String::new(),
            version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: None,
            name: "x".into(),
        };
        let asking = |held: Option<&str>| {
            let holdings = Holdings::new("uid", Seal::new([1; 32])).settled(&Settlement {
                held: held.map(|uid| (id.clone(), uid.to_owned())).into_iter().collect(),
                ..Settlement::default()
            });
            live::tests::owner()
                .recorded_in(Arc::new(InMemory::with(holdings)))
                .adopting([(id.clone(), "u".to_owned())].into())
        };
        let other = |kind: &str| ExistingOwner::Controller { kind: kind.into(), name: "b".into() };
        assert!(asking(None).may_adopt(&object, &other("BundleDeployment")));
        assert!(!asking(Some("u")).may_adopt(&object, &other("BundleDeployment")));
        assert!(asking(Some("an earlier one")).may_adopt(&object, &other("BundleDeployment")));
        // Other controllers do not take turns by adoption; a cooldown damps their conflicts.
        assert!(asking(Some("u")).may_adopt(&object, &other("Deployment")));

        let collision = Collision { object: key, existing_owner: other("BundleDeployment") };
        let given_up = |owner: &Owner| match owner.refuse(vec![collision.clone()]) {
            RolloutError::Collisions(found) => (owner.given_up(&found), found.lost),
            other => panic!("{other}"),
        };
        assert_eq!(given_up(&asking(Some("u"))), (BTreeSet::new(), true));
        assert_eq!(given_up(&asking(Some("u")).adopting(BTreeMap::new())), ([id.clone()].into(), false));
    }
}
