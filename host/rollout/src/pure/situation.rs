//! What to do about each object: first the situation is named, then one table decides.

use std::{cmp::Reverse, collections::HashSet};

use chandler_core::{Budget, ObjectKey, Stop, is_custom_group, order};
use serde_json::Value;

use crate::pure::{
    desired::{APPLIED, Desired},
    difference::difference,
    existing_owner::ExistingOwner,
    fields::FieldDrift,
    hidden_changes::hidden_change,
    live::{annotation, foreign_owner, is_terminating},
    owner::Owner,
};

/// How an object in the cluster stands to the release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Situation {
    /// It does not exist.
    Absent,
    /// It is ours and as released.
    Equal,
    /// It is ours and seems to differ at this place, or may; a dry run tells.
    SeemsChanged(String),
    /// It is ours and somebody changed these fields.
    Changed(Vec<FieldDrift>),
    /// It is ours, or should be, and whatever it is like, it is left so.
    Tolerated,
    /// Nothing can be done about it now, and others do not wait for it.
    Skipped,
    /// It is ours and from another release, or was made by the predecessor.
    Outdated,
    /// It is ours and being deleted. Nothing can be done about it until it is gone.
    Terminating,
    /// It is somebody else's.
    Foreign(ExistingOwner),
    /// It is somebody else's, and may be taken over.
    Adoptable(ExistingOwner),
}

/// What to do about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Create it by POST: applying would adopt what somebody else made in between.
    Create,
    /// Bring it from another release to this one.
    Update,
    /// Take it over from somebody else.
    Adopt,
    /// Undo what somebody changed.
    Recover,
    /// Leave it alone.
    Keep,
    /// Come back when it is gone.
    Wait,
    /// Do not go on at all.
    Refuse,
}

impl Situation {
    /// The situation of an object, as far as it can be told without asking the API server again.
    ///
    /// # Errors
    /// Where that takes more steps than are left.
    pub(crate) fn of(desired: &Desired, live: Option<&Value>, owner: &Owner, budget: &Budget) -> Result<Self, Stop> {
        let Some(live) = live else { return Ok(Self::Absent) };
        if let Some(existing_owner) = foreign_owner(live, owner) {
            return Ok(match owner.may_adopt(live, &existing_owner) {
                // There is nothing to take over of what goes.
                true if is_terminating(live) => Self::Terminating,
                true => Self::Adoptable(existing_owner),
                false => Self::Foreign(existing_owner),
            });
        }
        if is_terminating(live) {
            return Ok(Self::Terminating);
        }
        if annotation(live, APPLIED) != Some(desired.digest.as_str()) {
            return Ok(Self::Outdated);
        }
        let place = match difference(&desired.value, live, budget)? {
            None => hidden_change(&desired.value, live, budget)?,
            place => place,
        };
        Ok(place.map_or(Self::Equal, Self::SeemsChanged))
    }

    /// The table.
    pub(crate) fn action(&self) -> Action {
        match self {
            Self::Absent => Action::Create,
            Self::Equal | Self::Tolerated => Action::Keep,
            Self::SeemsChanged(_) | Self::Changed(_) => Action::Recover,
            Self::Outdated => Action::Update,
            Self::Terminating | Self::Skipped => Action::Wait,
            Self::Foreign(_) => Action::Refuse,
            Self::Adoptable(_) => Action::Adopt,
        }
    }
}

/// The order of deletion: the reverse of the order in which objects are applied. Within the workloads, custom resources go
/// first, so that the controllers that are deleted with them can still clean up behind them.
pub(crate) fn deletion_rank(key: &ObjectKey) -> (Reverse<order::Phase>, bool) {
    (Reverse(order::phase_of(key)), !is_custom_group(&key.group))
}

/// Which of the owner's objects the release does not hold.
pub(crate) fn stale<'a>(
    members: impl IntoIterator<Item = &'a ObjectKey>,
    desired: &[Desired],
) -> impl Iterator<Item = &'a ObjectKey> {
    // Versions are no part of what an object is.
    let id = |key: &ObjectKey| (key.group.clone(), key.kind.clone(), key.namespace.clone(), key.name.clone());
    let held: HashSet<_> = desired.iter().map(|desired| id(&desired.key)).collect();
    members.into_iter().filter(move |member| !held.contains(&id(member)))
}

#[cfg(test)]
mod tests {
    use chandler_core::Object;
    use kube::api::ApiResource;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::pure::{desired::Served, live::tests::owner, policy::CollisionProtection};

    fn situation_of(desired: &Desired, live: Option<&Value>, owner: &Owner) -> Situation {
        Situation::of(desired, live, owner, &Budget::new(10_000)).unwrap()
    }

    fn desired(kind: &str, group: &str, name: &str) -> Desired {
        let value = json!({"apiVersion": if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") },
            "kind": kind, "metadata": {"name": name}, "data": {"a": "b"}});
        let object = Object::parse(value.to_string().as_bytes(), 0, None).unwrap();
        let resource = ApiResource {
            group: group.into(),
            version: "v1".into(),
            api_version: object.key.api_version(),
            kind: kind.into(),
            plural: kind.to_lowercase(),
        };
        Desired::new(&object, Served { resource, namespaced: true }, true, &owner())
    }

    /// What the API server would hold after this was applied.
    fn applied(desired: &Desired) -> Value {
        let mut live = desired.value.clone();
        live["metadata"]["uid"] = json!("u");
        live["metadata"]["generation"] = json!(1);
        live["metadata"]["labels"]["added"] = json!("by somebody");
        live["metadata"]["managedFields"] = json!([
            {"manager": "chandler", "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:a": {}}}},
            {"manager": "kubectl", "operation": "Update", "apiVersion": "v1",
             "fieldsV1": {"f:metadata": {"f:labels": {"f:added": {}}}}},
        ]);
        live
    }

    #[test]
    fn one_table_decides() {
        let desired = desired("ConfigMap", "", "x");
        let changed = |change: &dyn Fn(&mut Value)| {
            let mut live = applied(&desired);
            change(&mut live);
            live
        };
        for (live, situation, action) in [
            (None, Situation::Absent, Action::Create),
            (Some(applied(&desired)), Situation::Equal, Action::Keep),
            (
                Some(changed(&|live| live["data"]["a"] = json!("c"))),
                Situation::SeemsChanged("/data/a".into()),
                Action::Recover,
            ),
            (
                Some(changed(&|live| live["metadata"]["managedFields"][1]["fieldsV1"] = json!({"f:data": {}}))),
                Situation::SeemsChanged("/data".into()),
                Action::Recover,
            ),
            (
                Some(changed(&|live| live["metadata"]["annotations"][APPLIED] = json!("other"))),
                Situation::Outdated,
                Action::Update,
            ),
            (
                Some(changed(&|live| live["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"))),
                Situation::Terminating,
                Action::Wait,
            ),
            (
                // Somebody took the labels off: the reference still tells whose it is.
                Some(changed(&|live| live["metadata"]["labels"] = json!({}))),
                Situation::SeemsChanged("/metadata/labels/applyset.kubernetes.io~1part-of".into()),
                Action::Recover,
            ),
            (
                Some(json!({"metadata": {"managedFields": [{"manager": "helm"}]}})),
                Situation::Foreign(ExistingOwner::Manager { name: "helm".into() }),
                Action::Refuse,
            ),
        ] {
            let found = situation_of(&desired, live.as_ref(), &owner());
            assert_eq!((found.action(), found), (action, situation));
        }
    }

    #[test]
    fn what_may_be_taken_over_is_adopted_unless_it_goes() {
        let desired = desired("ConfigMap", "", "x");
        let made = json!({"metadata": {"managedFields": [{"manager": "kubectl"}]}});
        let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        let controlled = json!({"metadata": {"ownerReferences":
            [{"kind": "Deployment", "name": "d", "uid": "x", "controller": true}]}});
        let action =
            |live: &Value, collisions| situation_of(&desired, Some(live), &Owner { collisions, ..owner() }).action();
        for (collisions, expected) in [
            (CollisionProtection::Prevent, [Action::Refuse, Action::Refuse, Action::Refuse]),
            (CollisionProtection::IfNoController, [Action::Adopt, Action::Wait, Action::Refuse]),
            (CollisionProtection::None, [Action::Adopt, Action::Wait, Action::Adopt]),
        ] {
            assert_eq!([&made, &going, &controlled].map(|live| action(live, collisions)), expected, "{collisions:?}");
        }
    }

    #[test]
    fn custom_resources_are_deleted_before_what_runs_their_controllers() {
        let rank = |kind: &str, group: &str| deletion_rank(&desired(kind, group, "x").key);
        let order = [
            rank("ValidatingWebhookConfiguration", "admissionregistration.k8s.io"),
            rank("Database", "example.com"),
            rank("Deployment", "apps"),
            rank("Service", ""),
            rank("CustomResourceDefinition", "apiextensions.k8s.io"),
            rank("ServiceAccount", ""),
            rank("Namespace", ""),
        ];
        assert!(order.is_sorted(), "{order:?}");
    }

    fn any_desired() -> impl Strategy<Value = Desired> {
        let kind = prop_oneof![
            Just(("ConfigMap", "")),
            Just(("Namespace", "")),
            Just(("Deployment", "apps")),
            Just(("Role", "rbac.authorization.k8s.io")),
            Just(("Database", "example.com")),
        ];
        (kind, "[a-c]").prop_map(|((kind, group), name)| desired(kind, group, &name))
    }

    proptest! {
        #[test]
        fn only_what_the_release_does_not_hold_is_stale(
            release in prop::collection::vec(any_desired(), 0..12),
            members in prop::collection::vec(any_desired(), 0..12),
        ) {
            let keys: Vec<ObjectKey> = members.iter().map(|member| member.key.clone()).collect();
            let stale: Vec<&ObjectKey> = stale(&keys, &release).collect();
            for key in &keys {
                let held = release.iter().any(|desired| desired.key.same_object(key));
                prop_assert_eq!(stale.contains(&key), !held);
            }
        }

        #[test]
        fn deletion_reverses_the_order_of_application(one in any_desired(), other in any_desired()) {
            if one.phase < other.phase {
                prop_assert!(deletion_rank(&one.key) > deletion_rank(&other.key));
            }
        }

        #[test]
        fn what_was_applied_is_kept(desired in any_desired()) {
            prop_assert_eq!(situation_of(&desired, Some(&applied(&desired)), &owner()), Situation::Equal);
        }
    }
}
