//! The plan for objects that are no longer wanted: delete, orphan or keep. Pure.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use chandler_core::{ObjectKey, order::Phase};
use serde::Serialize;

use crate::pure::{
    crd::is_crd,
    policy::{CrdPolicy, Deletion},
    removal_order,
    resource_policy::Split,
    situation::deletion_rank,
};

/// Why objects are no longer wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeletionReason {
    /// The owner is deleted.
    Teardown,
    /// The release does not contain them.
    Prune,
}

/// An object that is no longer wanted.
pub(crate) trait Unwanted {
    /// Its identity.
    fn key(&self) -> &ObjectKey;
    /// Whether it is being deleted already.
    fn is_terminating(&self) -> bool;
    /// Whether its annotation keeps it in the cluster.
    fn asks_to_stay(&self) -> bool;
    /// The members of a set that it depends on; `None` if it cannot be a member of a set.
    fn depends_on(&self) -> Option<Vec<&str>>;
}

/// What happens to objects: each is in one of the lists.
#[derive(Debug, PartialEq)]
pub(crate) struct DeletionPlan<T> {
    /// They are deleted, the first list first. The next list begins when the objects of the previous one are gone.
    pub(crate) delete: Vec<Vec<T>>,
    /// They stay without an owner.
    pub(crate) orphan: Vec<T>,
    /// They stay and remain objects of the owner, because custom resources would be deleted with them.
    pub(crate) keep: Vec<T>,
}

impl<T> Default for DeletionPlan<T> {
    fn default() -> Self {
        Self { delete: Vec::new(), orphan: Vec::new(), keep: Vec::new() }
    }
}

impl<T> DeletionPlan<T> {
    /// All objects.
    pub(crate) fn all(&self) -> impl Iterator<Item = &T> {
        self.delete.iter().flatten().chain(&self.orphan).chain(&self.keep)
    }

    /// Keeps all objects as they are.
    pub(crate) fn keep_all(&mut self) {
        self.keep.extend(self.delete.drain(..).flatten());
        self.keep.append(&mut self.orphan);
    }

    /// The objects that are deleted.
    pub(crate) fn deleted(&self) -> impl Iterator<Item = &T> {
        self.delete.iter().flatten()
    }
}

/// Plans the deletion of these objects; `used` are the CRDs with custom resources that are not among the objects, and that are not kept.
///
/// A teardown never deletes custom resources of other users: while one CRD stays, every object stays.
pub(crate) fn plan_deletion<T: Unwanted>(
    deletion: Deletion,
    reason: DeletionReason,
    Split { kept, rest: objects }: Split<T>,
    used: &BTreeSet<ObjectKey>,
) -> DeletionPlan<T> {
    let mut deletion_plan = DeletionPlan::default();
    if reason == DeletionReason::Teardown && deletion.orphan {
        deletion_plan.orphan = kept.into_iter().chain(objects).collect();
        return deletion_plan;
    }
    let stays =
        |object: &T| deletion.crds == CrdPolicy::WhileUnused && used.contains(object.key()) && !object.is_terminating();
    if reason == DeletionReason::Teardown && objects.iter().any(stays) {
        deletion_plan.keep = kept.into_iter().chain(objects).collect();
        return deletion_plan;
    }
    deletion_plan.orphan = kept;
    let mut ranks: BTreeMap<(bool, Reverse<Phase>, bool, usize), Vec<T>> = BTreeMap::new();
    let members = objects.iter().filter_map(|object| Some((object.key().name.as_str(), object.depends_on()?)));
    let rounds = removal_order::rounds(&members.collect());
    let rounds: BTreeMap<String, usize> = rounds.into_iter().map(|(name, round)| (name.to_owned(), round)).collect();
    for object in objects {
        let crd = is_crd(object.key());
        if stays(&object) {
            deletion_plan.keep.push(object);
        } else if crd && deletion.crds == CrdPolicy::Keep && !object.is_terminating() {
            deletion_plan.orphan.push(object);
        } else {
            // The controllers that handle finalizers of custom resources are among the other objects, so such CRDs are deleted
            // first.
            let first = crd && (object.is_terminating() || used.contains(object.key()));
            let (phase, custom) = deletion_rank(object.key());
            let round = object.depends_on().and_then(|_| rounds.get(&object.key().name)).copied().unwrap_or(0);
            ranks.entry((!first, phase, custom, round)).or_default().push(object);
        }
    }
    deletion_plan.delete = ranks.into_values().collect();
    deletion_plan
}

/// A CRD with custom resources that would be deleted with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CrdInUse {
    /// The CRD.
    pub crd: ObjectKey,
    /// The number of custom resources, without those that are deleted anyway, or `None` if they cannot be counted.
    pub count: Option<u64>,
    /// Whether more exist than were counted.
    pub more: bool,
    /// The number of namespaces among the counted custom resources.
    pub namespaces: usize,
    /// The first few of them, as `namespace/name`.
    pub examples: Vec<String>,
}

impl fmt::Display for CrdInUse {
    /// `oxen.example.com: 3 in 2 namespaces (a/x, a/y, b/z)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(count) = self.count else {
            return write!(f, "{}: the count is unknown", self.crd.name);
        };
        let (at_least, more) = if self.more { ("at least ", true) } else { ("", count > self.examples.len() as u64) };
        write!(f, "{}: {at_least}{count}", self.crd.name)?;
        match self.namespaces {
            0 => {}
            1 => f.write_str(" in 1 namespace")?,
            several => write!(f, " in {several} namespaces")?,
        }
        if !self.examples.is_empty() {
            write!(f, " ({}{})", self.examples.join(", "), if more { ", …" } else { "" })?;
        }
        Ok(())
    }
}

/// The number of CRDs that a message lists.
const LISTED: usize = 5;

/// The message that nothing is deleted, with advice.
pub fn held(in_use: &[CrdInUse]) -> String {
    let mut listed: Vec<String> = in_use.iter().take(LISTED).map(ToString::to_string).collect();
    if in_use.len() > LISTED {
        listed.push(format!("and {} more CRDs", in_use.len() - LISTED));
    }
    format!(
        "nothing is deleted, because custom resources exist that would be deleted with their CRDs: {}; delete them, or set \
         spec.deletion.crds to Keep (CRDs and custom resources stay) or to Delete (both are deleted)",
        listed.join("; ")
    )
}

/// The message that a CRD is kept although the release no longer contains it. It is stable, so that an unchanged state writes
/// no status.
pub fn kept(crd: &ObjectKey) -> String {
    format!(
        "{crd} is no longer in the release and is kept because custom resources of its kind exist: delete them, or \
         set spec.deletion.crds to Keep (the CRD stays) or to Delete (they are deleted with it)"
    )
}

/// What the deletion of an owner would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletionPreview {
    /// Whether nothing is deleted, because custom resources exist.
    pub held: bool,
    /// The objects that are deleted, in this order. If nothing is deleted, those that would be.
    pub deleted: Vec<ObjectKey>,
    /// The objects that stay without an owner.
    pub orphaned: Vec<ObjectKey>,
    /// The CRDs that stay without their conversion webhook, because its Service is deleted. They convert by the strategy `None` then.
    pub without_conversion: Vec<ObjectKey>,
    /// The CRDs with custom resources of other users, which prevent the deletion or are deleted with their CRDs.
    pub in_use: Vec<CrdInUse>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pure::resource_policy::split;

    #[derive(Clone, Debug, PartialEq)]
    struct Thing(ObjectKey, bool);

    impl Unwanted for Thing {
        fn key(&self) -> &ObjectKey {
            &self.0
        }

        fn is_terminating(&self) -> bool {
            self.1
        }

        fn asks_to_stay(&self) -> bool {
            self.0.name == "kept"
        }

        fn depends_on(&self) -> Option<Vec<&str>> {
            // The next letter.
            let next = ["b", "c", "d", "e", "f"].into_iter().find(|next| *next > self.0.name.as_str());
            (self.0.kind == "BundleDeployment").then(|| next.into_iter().collect())
        }
    }

    fn thing(kind: &str, group: &str, name: &str, terminating: bool) -> Thing {
        let key = ObjectKey {
            group: group.into(),
            version: "v1".into(),
            kind: kind.into(),
            namespace: None,
            name: name.into(),
        };
        Thing(key, terminating)
    }

    fn crd(name: &str, terminating: bool) -> Thing {
        thing("CustomResourceDefinition", "apiextensions.k8s.io", name, terminating)
    }

    fn deletion(crds: CrdPolicy) -> Deletion {
        Deletion { crds, ..Deletion::default() }
    }

    fn plan(
        deletion: Deletion,
        reason: DeletionReason,
        objects: Vec<Thing>,
        used: &BTreeSet<ObjectKey>,
    ) -> DeletionPlan<Thing> {
        plan_deletion(deletion, reason, split(deletion, objects), used)
    }

    fn names(things: &[Vec<Thing>]) -> Vec<Vec<&str>> {
        things.iter().map(|rank| rank.iter().map(|thing| thing.0.name.as_str()).collect()).collect()
    }

    #[test]
    fn crds_in_use_are_deleted_first_or_kept_or_prevent_the_teardown() {
        let objects = || vec![thing("Deployment", "apps", "operator", false), crd("used", false), crd("idle", false)];
        let used = BTreeSet::from([crd("used", false).0]);
        let of = |crds, reason| plan(deletion(crds), reason, objects(), &used);

        let deleted = of(CrdPolicy::Delete, DeletionReason::Teardown);
        assert_eq!(names(&deleted.delete), [vec!["used"], vec!["operator"], vec!["idle"]]);
        let kept = of(CrdPolicy::Keep, DeletionReason::Teardown);
        assert_eq!((names(&kept.delete), kept.orphan.len()), (vec![vec!["operator"]], 2));
        let held = of(CrdPolicy::WhileUnused, DeletionReason::Teardown);
        assert_eq!((names(&held.delete), held.keep.len()), (vec![], 3));
        let pruned = of(CrdPolicy::WhileUnused, DeletionReason::Prune);
        assert_eq!(names(&pruned.delete), [vec!["operator"], vec!["idle"]]);
        assert_eq!(names(&[pruned.keep]), [vec!["used"]]);
    }

    #[test]
    fn members_of_a_set_are_deleted_before_what_they_depend_on() {
        let member = |name: &str, terminating| thing("BundleDeployment", "core.rukpak.io", name, terminating);
        let objects = vec![
            member("c", false),
            member("a", false),
            member("b", true),
            thing("Database", "example.com", "x", false),
        ];
        for reason in [DeletionReason::Teardown, DeletionReason::Prune] {
            let plan = plan(deletion(CrdPolicy::Keep), reason, objects.clone(), &BTreeSet::new());
            assert_eq!(names(&plan.delete), [vec!["a", "x"], vec!["b"], vec!["c"]], "{reason:?}");
        }
    }

    #[test]
    fn terminating_crds_are_awaited_first() {
        let objects = vec![thing("Deployment", "apps", "operator", false), crd("used", true)];
        let used = BTreeSet::from([crd("used", true).0]);
        for crds in [CrdPolicy::WhileUnused, CrdPolicy::Keep, CrdPolicy::Delete] {
            let deletion_plan = plan(deletion(crds), DeletionReason::Teardown, objects.clone(), &used);
            assert_eq!(names(&deletion_plan.delete), [vec!["used"], vec!["operator"]], "{crds:?}");
        }
    }

    #[test]
    fn custom_resources_that_prevent_a_deletion_are_counted_and_named() {
        let in_use = |count, more, namespaces, examples: &[&str]| CrdInUse {
            crd: crd("oxen.example.com", false).0,
            count,
            more,
            namespaces,
            examples: examples.iter().map(|&example| example.to_owned()).collect(),
        };
        for (in_use, expected) in [
            (in_use(Some(3), false, 2, &["a/x", "a/y", "b/z"]), "oxen.example.com: 3 in 2 namespaces (a/x, a/y, b/z)"),
            (in_use(Some(1), false, 0, &["x"]), "oxen.example.com: 1 (x)"),
            (in_use(Some(9), false, 1, &["a/x"]), "oxen.example.com: 9 in 1 namespace (a/x, …)"),
            (in_use(Some(2000), true, 1, &["a/x"]), "oxen.example.com: at least 2000 in 1 namespace (a/x, …)"),
            (in_use(None, false, 0, &[]), "oxen.example.com: the count is unknown"),
        ] {
            assert_eq!(in_use.to_string(), expected);
        }
        let many = vec![in_use(Some(1), false, 0, &["x"]); 7];
        assert!(held(&many).contains("oxen.example.com: 1 (x); and 2 more CRDs; delete them"), "{}", held(&many));
    }

    #[test]
    fn a_plan_names_what_is_deleted_and_all_of_it() {
        let mut plan = DeletionPlan {
            delete: vec![vec![crd("a", false)], vec![crd("b", false)]],
            orphan: vec![crd("c", false)],
            keep: vec![crd("d", false)],
        };
        let names = |things: Vec<&Thing>| things.into_iter().map(|thing| thing.0.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(plan.deleted().collect()), ["a", "b"]);
        assert_eq!(names(plan.all().collect()), ["a", "b", "c", "d"]);
        plan.keep_all();
        assert_eq!(names(plan.keep.iter().collect()), ["d", "a", "b", "c"]);
        assert_eq!((plan.delete.len(), plan.orphan.len()), (0, 0));
    }

    #[test]
    fn the_report_of_a_kept_crd_has_advice() {
        insta::assert_snapshot!(kept(&crd("oxen.example.com", false).0), @"CustomResourceDefinition.apiextensions.k8s.io oxen.example.com is no longer in the release and is kept because custom resources of its kind exist: delete them, or set spec.deletion.crds to Keep (the CRD stays) or to Delete (they are deleted with it)");
    }

    fn any_thing() -> impl Strategy<Value = Thing> {
        let kind = prop_oneof![
            Just(("ConfigMap", "")),
            Just(("Namespace", "")),
            Just(("Deployment", "apps")),
            Just(("CustomResourceDefinition", "apiextensions.k8s.io")),
            Just(("Database", "example.com")),
        ];
        (kind, "[a-f]|kept", any::<bool>()).prop_map(|((kind, group), name, going)| thing(kind, group, &name, going))
    }

    fn any_deletion() -> impl Strategy<Value = Deletion> {
        let crds = prop_oneof![Just(CrdPolicy::WhileUnused), Just(CrdPolicy::Keep), Just(CrdPolicy::Delete)];
        (any::<bool>(), any::<bool>(), crds).prop_map(|(orphan, delete_kept, crds)| Deletion {
            orphan,
            delete_kept,
            crds,
        })
    }

    proptest! {
        #[test]
        fn every_object_is_planned_once_and_a_held_teardown_deletes_nothing(
            deletion in any_deletion(),
            teardown in any::<bool>(),
            objects in prop::collection::vec(any_thing(), 0..12),
            used in prop::collection::btree_set("[a-f]", 0..6),
        ) {
            let used: BTreeSet<ObjectKey> = used.iter().map(|name| crd(name, false).0).collect();
            let reason = if teardown { DeletionReason::Teardown } else { DeletionReason::Prune };
            let deletion_plan = plan(deletion, reason, objects.clone(), &used);

            let sorted = |things: Vec<&Thing>| {
                let mut texts: Vec<String> = things.iter().map(|thing| format!("{thing:?}")).collect();
                texts.sort();
                texts
            };
            prop_assert_eq!(sorted(deletion_plan.all().collect()), sorted(objects.iter().collect()));
            if teardown && !deletion_plan.keep.is_empty() {
                prop_assert_eq!((deletion_plan.delete.len(), deletion_plan.orphan.len()), (0, 0));
            }
            if teardown && deletion.orphan {
                prop_assert_eq!(deletion_plan.orphan.len(), objects.len());
            }
            if !deletion.delete_kept {
                let asks = |thing: &Thing| thing.asks_to_stay() && !thing.is_terminating() && !is_crd(&thing.0);
                prop_assert!(!deletion_plan.deleted().any(asks));
            }
            for thing in deletion_plan.deleted().filter(|thing| is_crd(&thing.0) && !thing.1) {
                prop_assert!(deletion.crds != CrdPolicy::Keep);
                prop_assert!(deletion.crds == CrdPolicy::Delete || !used.contains(&thing.0));
            }
            for thing in &deletion_plan.keep {
                prop_assert!(teardown || is_crd(&thing.0));
            }
        }
    }
}
