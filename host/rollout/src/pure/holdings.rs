//! The objects that an owner created or adopted: the record that decides which objects are its own. Pure.
//!
//! Every user who may patch an object can write its labels, annotations and owner references, so these are a view for other
//! tools and no evidence. Only objects that this record lists by UID may be changed, pruned or deleted. An object that was
//! created is recognized before its UID is recorded: it carries a [`Seal`] that only this owner could compute for its name.

use std::collections::{BTreeMap, BTreeSet};

use chandler_core::ObjectKey;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::pure::{desired::SEAL, live, seal::Seal};

/// The identity of an object, independent of its API version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    /// The API group; empty for the core group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace; none for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

impl ObjectId {
    /// The identity of the object with this key.
    pub fn of(key: &ObjectKey) -> Self {
        let ObjectKey { group, kind, namespace, name, .. } = key.clone();
        Self { group, kind, namespace, name }
    }

    /// `group/Kind/namespace/name`: no part can contain a slash, but the name of an RBAC object may contain a colon.
    pub(crate) fn text(&self) -> String {
        let Self { group, kind, namespace, name } = self;
        format!("{group}/{kind}/{}/{name}", namespace.as_deref().unwrap_or_default())
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(4, '/');
        let mut part = || parts.next().map(str::to_owned);
        let (group, kind, namespace, name) = (part()?, part()?, part()?, part()?);
        (!kind.is_empty() && !name.is_empty()).then_some(Self {
            group,
            kind,
            namespace: Some(namespace).filter(|namespace| !namespace.is_empty()),
            name,
        })
    }
}

impl Serialize for ObjectId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for ObjectId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("{text:?} is not group/Kind/namespace/name")))
    }
}

/// The objects of one owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Holdings {
    /// The UID of the owner.
    owner: String,
    /// What marks name instead of the UID, if the owner was restored from a backup and so has another UID than before: the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
    /// The secret for marking its objects.
    seal: Seal,
    /// Whether objects whose controller reference names the owner's UID are its own although they are not listed. This is the
    /// case if an owner installed something and has no record: after the record was lost, or after RukPak.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    inherits: bool,
    /// The UIDs of the objects that were created or adopted.
    #[serde(default)]
    held: BTreeMap<ObjectId, String>,
    /// Objects that are about to be created and have no UID yet.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    expected: BTreeSet<ObjectId>,
    /// The UIDs of objects that an owner of this name created or adopted and then orphaned on purpose.
    #[serde(default, rename = "left", skip_serializing_if = "BTreeMap::is_empty")]
    orphaned: BTreeMap<ObjectId, String>,
}

/// What a rollout is about to do, before its first write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intent {
    /// Objects that do not exist and will be created.
    pub created: BTreeSet<ObjectId>,
    /// Objects that exist and will be adopted, with their UIDs.
    pub adopted: BTreeMap<ObjectId, String>,
    /// Whether objects are created again that are recognized by the UIDs in the record: it must be stored as it is.
    pub again: bool,
}

/// What a rollout has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settlement {
    /// Objects of the owner that exist, with their UIDs.
    pub held: BTreeMap<ObjectId, String>,
    /// Objects that are gone or belong to another owner now.
    pub gone: BTreeSet<ObjectId>,
    /// Objects that were orphaned on purpose.
    pub orphaned: BTreeSet<ObjectId>,
    /// Whether the release is complete, so that nothing is expected or inherited any more.
    pub complete: bool,
}

impl Holdings {
    /// The record of an owner without objects.
    pub fn new(owner: impl Into<String>, seal: Seal) -> Self {
        Self {
            owner: owner.into(),
            identity: None,
            seal,
            inherits: false,
            held: BTreeMap::new(),
            expected: BTreeSet::new(),
            orphaned: BTreeMap::new(),
        }
    }

    /// Counts objects that refer to the owner by UID as its own until a release is complete.
    #[must_use]
    pub fn inheriting(self) -> Self {
        Self { inherits: true, ..self }
    }

    /// The record of another owner with the same name, after this owner is gone: it holds nothing, and the objects of the
    /// earlier owner count as orphaned.
    #[must_use]
    pub fn succeeded_by(self, owner: impl Into<String>, seal: Seal) -> Self {
        let mut orphaned = self.orphaned;
        orphaned.extend(self.held);
        Self { orphaned, ..Self::new(owner, seal) }
    }

    /// The record of the same owner after it was restored from a backup, with another UID, as were its objects. An object that the owner
    /// held, and that carries its mark, is its own, as if it had just been created.
    #[must_use]
    pub fn restored_as(self, owner: impl Into<String>) -> Self {
        let identity = self.identity.unwrap_or(self.owner);
        let mut expected = self.expected;
        expected.extend(self.held.keys().cloned());
        Self { owner: owner.into(), identity: Some(identity), expected, ..self }
    }

    /// The objects that the owner had before it was restored from a backup, until a release is complete. They were restored as well, or will
    /// be.
    pub fn restored(&self) -> impl Iterator<Item = &ObjectId> {
        let is_restored = self.identity.is_some();
        self.expected.iter().filter(move |id| is_restored && self.held.contains_key(id))
    }

    /// The UID of the owner.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// What names the owner in marks and in the names of stored releases: its UID, or the first one if it was restored from a backup.
    pub fn identity(&self) -> &str {
        self.identity.as_deref().unwrap_or(&self.owner)
    }

    /// Whether objects that refer to the owner by UID are its own although they are not listed.
    pub fn inherits(&self) -> bool {
        self.inherits
    }

    /// Whether the owner has no objects, and none can have been created for it.
    pub fn is_empty(&self) -> bool {
        !self.inherits && self.held.is_empty() && self.expected.is_empty()
    }

    /// Whether any objects were orphaned.
    pub fn has_orphaned(&self) -> bool {
        !self.orphaned.is_empty()
    }

    /// The objects of the owner, with their UIDs.
    pub(crate) fn held(&self) -> impl Iterator<Item = (&ObjectId, &str)> {
        self.held.iter().map(|(id, uid)| (id, uid.as_str()))
    }

    /// Every object that may exist: the owner's objects, and the ones that are about to be created.
    pub(crate) fn known(&self) -> impl Iterator<Item = &ObjectId> {
        self.held.keys().chain(&self.expected)
    }

    /// Whether the record says anything about an object of this name.
    pub(crate) fn mentions(&self, id: &ObjectId) -> bool {
        self.held.contains_key(id) || self.expected.contains(id) || self.orphaned.contains_key(id)
    }

    /// Whether the owner created or adopted the object with this UID.
    pub(crate) fn holds(&self, id: &ObjectId, uid: &str) -> bool {
        !uid.is_empty() && self.held.get(id).is_some_and(|held| held == uid)
    }

    /// Whether an object with this mark is one that the owner was about to create.
    pub(crate) fn created(&self, id: &ObjectId, mark: &str) -> bool {
        self.expected.contains(id) && self.seal.revision(self.identity(), id, mark).is_some()
    }

    /// Whether an object with this mark is what the owner created after the object in the record was deleted. Only the new object can have
    /// the mark: it did not exist before, and a copy proves nothing once the record has the new object.
    fn created_again(&self, id: &ObjectId, mark: &str) -> bool {
        self.held.get(id).is_some_and(|before| self.seal.succeeds(self.identity(), id, mark, before))
    }

    /// Whether the owner created or adopted an object: the record lists its UID, or it has the mark of one that the owner is about to
    /// create, or created in place of the one in the record. No other field of the object is evidence.
    pub fn is_own(&self, object: &Value) -> bool {
        let id = live::id(object);
        let is_created = |mark: &str| self.created(&id, mark) || self.created_again(&id, mark);
        self.holds(&id, live::uid(object)) || live::annotation(object, SEAL).is_some_and(is_created)
    }

    /// Whether the object with this UID was orphaned.
    pub(crate) fn is_orphan(&self, id: &ObjectId, uid: &str) -> bool {
        !uid.is_empty() && self.orphaned.get(id).is_some_and(|orphan| orphan == uid)
    }

    /// The mark for an object that a revision of the owner writes under this name.
    pub(crate) fn mark(&self, id: &ObjectId, revision: u64) -> String {
        self.seal.mark(self.identity(), id, revision)
    }

    /// The mark for an object that a revision of the owner creates again under this name. `None` if the record has no object of the name.
    pub(crate) fn mark_after(&self, id: &ObjectId, revision: u64) -> Option<String> {
        self.seal.mark_after(self.identity(), id, revision, self.held.get(id)?)
    }

    /// Whether an object of this name needs no intent before it is created: its mark names the object in the record that it replaces.
    pub(crate) fn recognizes_next(&self, id: &ObjectId) -> bool {
        self.mark_after(id, 0).is_some()
    }

    /// The revision that wrote an object, by its mark; 0 for a mark that names none. `None` without a mark of this owner.
    pub(crate) fn revision_of(&self, object: &Value) -> Option<u64> {
        self.seal.revision(self.identity(), &live::id(object), live::annotation(object, SEAL)?)
    }

    /// The record after an intent.
    #[must_use]
    pub fn intending(&self, intent: &Intent) -> Self {
        let mut next = self.clone();
        next.expected.extend(intent.created.iter().cloned());
        next.held.extend(intent.adopted.clone());
        next
    }

    /// The record after a settlement.
    #[must_use]
    pub fn settled(&self, settlement: &Settlement) -> Self {
        let mut next = self.clone();
        for id in &settlement.orphaned {
            next.orphaned.extend(next.held.remove_entry(id));
        }
        next.held.retain(|id, _| !settlement.gone.contains(id));
        for (id, uid) in &settlement.held {
            next.held.insert(id.clone(), uid.clone());
            next.expected.remove(id);
            next.orphaned.remove(id);
        }
        if settlement.complete {
            next.expected.clear();
            next.inherits = false;
        }
        next
    }

    /// The record after all objects were orphaned.
    #[must_use]
    pub fn all_orphaned(&self) -> Self {
        let orphaned = self.held.keys().cloned().collect();
        self.settled(&Settlement { orphaned, complete: true, ..Settlement::default() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(name: &str) -> ObjectId {
        ObjectId { group: "apps".into(), kind: "Deployment".into(), namespace: Some("n".into()), name: name.into() }
    }

    fn holdings() -> Holdings {
        Holdings::new("uid", Seal::new([7; 32]))
    }

    fn uids(names: &[(&str, &str)]) -> BTreeMap<ObjectId, String> {
        names.iter().map(|(name, uid)| (id(name), (*uid).to_owned())).collect()
    }

    #[test]
    fn an_object_is_held_by_uid() {
        let settled = holdings().settled(&Settlement { held: uids(&[("a", "1")]), ..Settlement::default() });
        assert!(settled.holds(&id("a"), "1"));
        assert!(!settled.holds(&id("a"), "2"), "another object of its name");
        assert!(!settled.holds(&id("a"), "") && !settled.holds(&id("b"), "1"));
    }

    #[test]
    fn a_mark_holds_for_one_name_of_one_owner() {
        let expecting = holdings().intending(&Intent { created: [id("a"), id("b")].into(), ..Intent::default() });
        let mark = expecting.mark(&id("a"), 0);
        assert_eq!(mark.len(), 64);
        assert!(expecting.created(&id("a"), &mark));
        assert!(!expecting.created(&id("b"), &mark), "copied to another object");
        assert!(!expecting.created(&id("a"), ""), "no mark");
        assert!(!holdings().created(&id("a"), &mark), "nothing was expected");
        assert!(expecting.created(&id("a"), &expecting.mark(&id("a"), 3)), "a mark that names its revision");
    }

    #[test]
    fn an_object_that_was_created_again_is_recognized_until_the_record_has_it() {
        let with = |uid| holdings().settled(&Settlement { held: uids(&[("a", uid)]), ..Settlement::default() });
        let (before, after) = (with("u-1"), with("u-2"));
        let mark = before.mark_after(&id("a"), 2).unwrap();
        assert!(before.recognizes_next(&id("a")) && !before.recognizes_next(&id("b")));
        let object = |uid: &str, mark: &str| {
            serde_json::json!({"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "a", "namespace": "n", "uid": uid, "annotations": {SEAL: mark}}})
        };
        let revised = before.mark(&id("a"), 2);
        assert!(before.is_own(&object("u-2", &mark)) && before.is_own(&object("u-1", &revised)));
        assert!(!before.is_own(&object("u-2", &revised)), "any object may have a copy of the mark of the one before");
        assert!(after.is_own(&object("u-2", &mark)) && !after.is_own(&object("u-3", &mark)), "a copy comes too late");
        assert_eq!(after.revision_of(&object("u-2", &mark)), Some(2));
        let gone = before.settled(&Settlement { gone: [id("a")].into(), ..Settlement::default() });
        assert!(!gone.is_own(&object("u-2", &mark)) && gone.mark_after(&id("a"), 2).is_none());
    }

    #[test]
    fn orphans_pass_to_the_next_owner_of_the_name_by_uid() {
        let held = holdings().settled(&Settlement { held: uids(&[("a", "1"), ("b", "2")]), ..Settlement::default() });
        let left =
            held.settled(&Settlement { orphaned: [id("a")].into(), gone: [id("b")].into(), ..Settlement::default() });
        assert!(left.is_empty() && left.is_orphan(&id("a"), "1") && !left.is_orphan(&id("a"), "2"));
        let next = held.succeeded_by("next", Seal::new([9; 32]));
        assert!(
            next.is_empty() && next.is_orphan(&id("b"), "2"),
            "the objects of an owner without a teardown count as orphaned"
        );
        let back = next.settled(&Settlement { held: uids(&[("b", "2")]), ..Settlement::default() });
        assert!(back.holds(&id("b"), "2") && !back.is_orphan(&id("b"), "2") && back.is_orphan(&id("a"), "1"));
    }

    #[test]
    fn a_restored_owner_recognizes_restored_objects_by_their_marks() {
        let held = holdings().settled(&Settlement { held: uids(&[("a", "1"), ("b", "2")]), ..Settlement::default() });
        let (mark, forged) = (held.mark(&id("a"), 3), Holdings::new("uid", Seal::new([8; 32])).mark(&id("a"), 3));
        let restored = held.restored_as("new");
        assert_eq!((restored.owner(), restored.identity()), ("new", "uid"));
        assert_eq!(restored.restored().map(|id| id.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert!(restored.created(&id("a"), &mark) && !restored.created(&id("a"), &forged));
        assert!(!restored.created(&id("b"), &mark), "copied to another object");
        assert_eq!(restored.mark(&id("a"), 3), mark, "so that unchanged objects keep theirs");

        let mut settlement = Settlement { held: uids(&[("a", "10")]), ..Settlement::default() };
        let found = restored.settled(&settlement);
        assert!(found.holds(&id("a"), "10") && !found.holds(&id("a"), "1"));
        assert_eq!(found.restored().map(|id| id.name.as_str()).collect::<Vec<_>>(), ["b"]);
        settlement.complete = true;
        let complete = restored.settled(&settlement);
        assert_eq!(complete.restored().count(), 0);
        // Restored a second time.
        let again = complete.restored_as("newest");
        assert_eq!((again.owner(), again.identity()), ("newest", "uid"));
        assert!(again.created(&id("a"), &mark));
    }

    #[test]
    fn a_complete_release_expects_nothing() {
        let expecting = holdings().inheriting().intending(&Intent { created: [id("a")].into(), ..Intent::default() });
        assert!(!expecting.is_empty());
        let complete = expecting.settled(&Settlement { complete: true, ..Settlement::default() });
        assert!(complete.is_empty() && !complete.inherits());
    }

    fn any_id() -> impl Strategy<Value = ObjectId> {
        ("[a-z.]{0,6}", "[A-Z][a-z]{0,4}", prop::option::of("[a-z]{1,4}"), "[a-z:.-]{1,8}")
            .prop_map(|(group, kind, namespace, name)| ObjectId { group, kind, namespace, name })
    }

    proptest! {
        #[test]
        fn a_record_round_trips(
            held in prop::collection::btree_map(any_id(), "[a-f0-9]{4}", 0..5),
            expected in prop::collection::btree_set(any_id(), 0..5),
            orphaned in prop::collection::btree_map(any_id(), "[a-f0-9]{4}", 0..5),
            inherits in any::<bool>(),
            identity in prop::option::of("[a-f0-9]{4}"),
            seal in any::<[u8; 32]>(),
        ) {
            let seal = Seal::new(seal);
            let holdings = Holdings { owner: "uid".into(), identity, seal, inherits, held, expected, orphaned };
            let text = serde_json::to_string(&holdings).unwrap();
            prop_assert_eq!(serde_json::from_str::<Holdings>(&text).unwrap(), holdings);
        }

        #[test]
        fn parsing_any_text_does_not_panic(text in ".{0,40}") {
            let _ = serde_json::from_str::<ObjectId>(&serde_json::to_string(&text).unwrap());
        }
    }

    #[test]
    fn the_record_lists_what_is_held_and_what_may_exist() {
        let intent = Intent { created: [id("c")].into(), ..Intent::default() };
        let held = holdings().settled(&Settlement { held: uids(&[("a", "1"), ("b", "2")]), ..Settlement::default() });
        let next = held.intending(&intent);
        let listed: Vec<(&str, &str)> = next.held().map(|(id, uid)| (id.name.as_str(), uid)).collect();
        assert_eq!(listed, [("a", "1"), ("b", "2")]);
        assert_eq!(next.known().map(|id| id.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(next.owner(), "uid");
        assert!(!next.has_orphaned() && next.all_orphaned().has_orphaned());
        assert_eq!(next.all_orphaned().known().count(), 0);
    }
}
