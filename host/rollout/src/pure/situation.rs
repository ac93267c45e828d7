//! The situation of each object and the action that follows from it. Pure.

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

/// The state of an object in the cluster in relation to the release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Situation {
    /// It does not exist.
    Absent,
    /// It belongs to the owner and matches the release.
    Equal,
    /// It belongs to the owner and seems to differ at this place, or may differ; a dry run decides.
    SeemsChanged(String),
    /// It belongs to the owner and these fields were changed.
    Changed(Vec<FieldDrift>),
    /// It belongs to the owner, or should, and its drift is not repaired.
    Tolerated,
    /// It cannot be written now and is skipped; other objects do not wait for it.
    Skipped,
    /// It belongs to the owner, and another release or RukPak was the last to apply it.
    Outdated,
    /// It belongs to the owner and is being deleted. Nothing can be done until it is gone.
    Terminating,
    /// It belongs to another owner.
    Foreign(ExistingOwner),
    /// It belongs to another owner, and may be adopted.
    Adoptable(ExistingOwner),
}

/// What to do with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Create it by POST: an apply would adopt an object that another client creates in between.
    Create,
    /// Update it from another release to this one.
    Update,
    /// Adopt it from another owner.
    Adopt,
    /// Delete it and create it again: the update turned out to change an immutable field. No situation has this action.
    Recreate,
    /// Repair it.
    Recover,
    /// Do nothing.
    Keep,
    /// Wait until it is gone.
    Wait,
    /// Refuse the release.
    Refuse,
}

impl Situation {
    /// The situation of an object, as far as known without another request.
    ///
    /// # Errors
    /// If the comparison takes more steps than the budget has left.
    pub(crate) fn of(desired: &Desired, live: Option<&Value>, owner: &Owner, budget: &Budget) -> Result<Self, Stop> {
        let Some(live) = live else { return Ok(Self::Absent) };
        if let Some(existing_owner) = foreign_owner(live, owner) {
            return Ok(match owner.may_adopt(live, &existing_owner) {
                // A terminating object cannot be adopted.
                true if is_terminating(live) => Self::Terminating,
                true => Self::Adoptable(existing_owner),
                false => Self::Foreign(existing_owner),
            });
        }
        if is_terminating(live) {
            return Ok(Self::Terminating);
        }
        if desired.create_only {
            return Ok(Self::Equal);
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

    /// The action for each situation.
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

/// The order of deletion: the reverse of the order in which objects are applied. Among the workloads, custom resources are
/// deleted first, so that their controllers can still clean up.
pub(crate) fn deletion_rank(key: &ObjectKey) -> (Reverse<order::Phase>, bool) {
    (Reverse(order::phase_of(key)), !is_custom_group(&key.group))
}

/// The owner's objects that the release does not contain.
pub(crate) fn stale<'a>(
    members: impl IntoIterator<Item = &'a ObjectKey>,
    desired: &[Desired],
) -> impl Iterator<Item = &'a ObjectKey> {
    // The API version is not part of an object's identity.
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

    /// The object that the API server would store after an apply.
    fn applied(desired: &Desired) -> Value {
        let mut live = desired.value.clone();
        live["metadata"]["uid"] = json!("u");
        live["metadata"]["generation"] = json!(1);
        live["metadata"]["labels"]["added"] = json!("by a user");
        live["metadata"]["managedFields"] = json!([
            {"manager": "chandler", "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:a": {}}}},
            {"manager": "kubectl", "operation": "Update", "apiVersion": "v1",
             "fieldsV1": {"f:metadata": {"f:labels": {"f:added": {}}}}},
        ]);
        live
    }

    #[test]
    fn every_situation_has_one_action() {
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
                // The labels were removed; the reference still names the owner.
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
    fn objects_of_others_are_adopted_unless_they_terminate() {
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
    fn custom_resources_are_deleted_before_their_controllers() {
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
        fn only_objects_outside_the_release_are_stale(
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
        fn an_applied_object_is_kept(desired in any_desired()) {
            prop_assert_eq!(situation_of(&desired, Some(&applied(&desired)), &owner()), Situation::Equal);
        }
    }
}
