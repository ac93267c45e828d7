//! Why a release is refused, as far as no request is needed to find out. Pure.

use std::collections::HashMap;

use chandler_core::ObjectKey;
use chandler_crd_upgrade::Upgrade;
use chandler_yaml::list_keys::{ACCEPTED_ONCE, duplicate_items};
use kube::api::ApiResource;

use crate::pure::{
    desired::Desired,
    error::{ApiError, ObjectFailure, RolloutError},
    existing_owner::Collision,
    holdings::ObjectId,
    owner::Owner,
    situation::Situation,
};

/// Whether checks continue after a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnRefusal {
    /// The first refusal ends them, for a caller that is about to write.
    Stop,
    /// All checks are made and nothing is written, for a preview.
    Collect,
}

/// The refusals of a release.
#[derive(Debug)]
pub(crate) struct Refusals {
    pub(crate) on_refusal: OnRefusal,
    found: Vec<RolloutError>,
}

impl Refusals {
    /// No refusals yet.
    pub(crate) fn new(on_refusal: OnRefusal) -> Self {
        Self { on_refusal, found: Vec::new() }
    }

    /// The value of a check, or `None` if it was refused and the checks continue. An error which means that a check could not be
    /// made ends the checks in any case.
    pub(crate) fn check<T>(&mut self, result: Result<T, RolloutError>) -> Result<Option<T>, RolloutError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if self.on_refusal == OnRefusal::Collect && error.is_refusal() => {
                self.found.push(error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Records a refusal.
    pub(crate) fn add(&mut self, error: RolloutError) -> Result<(), RolloutError> {
        self.check::<()>(Err(error)).map(drop)
    }

    /// The upgrades of CRDs that were refused, with all others that have findings.
    pub(crate) fn upgrades(&self) -> Vec<Upgrade> {
        let refused = self.found.iter().filter_map(|error| match error {
            RolloutError::UnsafeCrdUpgrade(refused) => Some(refused.upgrades.clone()),
            _ => None,
        });
        refused.flatten().collect()
    }

    /// The messages of all refusals, in the order of the checks.
    pub(crate) fn messages(&self) -> Vec<String> {
        self.found.iter().map(ToString::to_string).collect()
    }
}

/// Refuses a release with objects of other owners.
pub(crate) fn refuse_collisions(
    owner: &Owner,
    desired: &[Desired],
    situations: &[Situation],
) -> Result<(), RolloutError> {
    let found: Vec<Collision> = desired
        .iter()
        .zip(situations)
        .filter_map(|(desired, situation)| match situation {
            Situation::Foreign(existing_owner) => {
                Some(Collision { object: desired.key.clone(), existing_owner: existing_owner.clone() })
            }
            _ => None,
        })
        .collect();
    if found.is_empty() { Ok(()) } else { Err(owner.refuse(found)) }
}

/// Refuses new objects that could never be updated: with duplicate items in a list where only a create accepts them. The API server itself
/// refuses them in objects that exist. An object in the record was installed by a version without this check, and is created again.
pub(crate) fn refuse_duplicate_items(
    owner: &Owner,
    desired: &[Desired],
    situations: &[Situation],
) -> Result<(), RolloutError> {
    let holdings = owner.holdings();
    let is_recorded = |key: &ObjectKey| holdings.as_ref().is_some_and(|holdings| holdings.mentions(&ObjectId::of(key)));
    let created = desired.iter().zip(situations).filter(|(desired, situation)| {
        **situation == Situation::Absent && !desired.create_only && !is_recorded(&desired.key)
    });
    let failures = created.filter_map(|(desired, _)| {
        let found: Vec<String> = duplicate_items(&desired.value).iter().map(ToString::to_string).collect();
        let error = ApiError::Invalid(format!("{}: {ACCEPTED_ONCE}", found.join(", ")));
        (!found.is_empty()).then(|| ObjectFailure { object: desired.key.clone(), action: "create", error })
    });
    let failures: Vec<ObjectFailure> = failures.collect();
    if failures.is_empty() { Ok(()) } else { Err(RolloutError::Objects(failures)) }
}

/// Refuses a release that contains the same object twice: in two API versions, or once with and once without the install
/// namespace.
pub(crate) fn refuse_duplicates(desired: &[Desired]) -> Result<(), RolloutError> {
    let mut seen: HashMap<(&str, &str, Option<&str>, &str), &ObjectKey> = HashMap::new();
    for object in desired {
        let ApiResource { group, plural, .. } = &object.resource;
        let id = (group.as_str(), plural.as_str(), object.key.namespace.as_deref(), object.key.name.as_str());
        if let Some(first) = seen.insert(id, &object.key) {
            return Err(RolloutError::Duplicate {
                first: Box::new(first.clone()),
                second: Box::new(object.key.clone()),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use chandler_core::Object;
    use serde_json::{Value, json};

    use super::*;
    use crate::pure::{desired::Served, error::ApiError, existing_owner::ExistingOwner, live::tests::owner};

    #[test]
    fn only_completed_checks_refuse() {
        let request = |error| RolloutError::Request { action: "read".into(), error };
        let missing = || RolloutError::NamespacesNotFound(vec!["n".into()]);
        assert!(missing().is_refusal());
        assert!(!request(ApiError::Forbidden("no".into())).is_refusal());
        assert!(!request(ApiError::Unavailable("no".into())).is_refusal());

        let mut all = Refusals::new(OnRefusal::Collect);
        assert_eq!(all.check(Ok(1)).unwrap(), Some(1));
        assert_eq!(all.check::<()>(Err(missing())).unwrap(), None);
        all.add(RolloutError::NamespacesNotFound(vec!["m".into()])).unwrap();
        assert!(all.check::<()>(Err(request(ApiError::Unavailable("away".into())))).is_err());
        assert_eq!(all.messages().len(), 2);
        assert!(Refusals::new(OnRefusal::Stop).add(missing()).is_err(), "a rollout stops at the first refusal");
    }

    fn object(value: &Value, stage: u32) -> Object {
        Object::parse(value.to_string().as_bytes(), stage, None).unwrap()
    }

    #[test]
    fn duplicate_objects_are_refused() {
        let kind = |version: &str| Served {
            namespaced: true,
            resource: ApiResource {
                group: "a.b".into(),
                version: version.into(),
                api_version: format!("a.b/{version}"),
                kind: "Ox".into(),
                plural: "oxen".into(),
            },
        };
        let ox = |version: &str, namespace: Option<&str>| {
            let value = json!({"apiVersion": format!("a.b/{version}"), "kind": "Ox", "metadata": {"name": "x", "namespace": namespace}});
            Desired::new(&object(&value, 0), kind(version), true, &owner())
        };
        assert!(refuse_duplicates(&[ox("v1", None), ox("v1", Some("other"))]).is_ok());
        for pair in [[ox("v1", None), ox("v2", None)], [ox("v1", None), ox("v1", Some("install"))]] {
            assert_eq!(
                refuse_duplicates(&pair).unwrap_err().to_string(),
                "Ox.a.b install/x and Ox.a.b install/x in the release are the same object in the cluster"
            );
        }
    }

    #[test]
    fn new_objects_with_duplicate_items_are_refused() {
        let kind = Served {
            namespaced: true,
            resource: ApiResource {
                group: "apps".into(),
                version: "v1".into(),
                api_version: "apps/v1".into(),
                kind: "Deployment".into(),
                plural: "deployments".into(),
            },
        };
        let desired = |annotations: Value| {
            let container =
                json!({"name": "c", "env": [{"name": "MODE", "value": "a"}, {"name": "MODE", "value": "b"}]});
            let value = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x", "annotations": annotations},
                "spec": {"template": {"spec": {"containers": [container]}}}});
            Desired::new(&object(&value, 0), kind.clone(), true, &owner())
        };
        let refuse = |desired, situation| refuse_duplicate_items(&owner(), &[desired], &[situation]);
        let error = refuse(desired(json!({})), Situation::Absent).unwrap_err();
        insta::assert_snapshot!(error, @r#"cannot create Deployment.apps install/x: spec.template.spec.containers[0].env: duplicate entries for key [name="MODE"]: an API server accepts it once and refuses each later update"#);
        assert!(error.is_refusal() && !error.is_transient());
        // It exists already, or is never updated.
        assert!(refuse(desired(json!({})), Situation::Outdated).is_ok());
        assert!(refuse(desired(json!({"chandler.dev/create-only": "true"})), Situation::Absent).is_ok());
    }

    #[test]
    fn objects_of_other_owners_are_refused() {
        let kind = Served {
            namespaced: true,
            resource: ApiResource {
                group: String::new(),
                version: "v1".into(),
                api_version: "v1".into(),
                kind: "ConfigMap".into(),
                plural: "configmaps".into(),
            },
        };
        let desired = |name: &str| {
            let value = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
            Desired::new(&object(&value, 0), kind.clone(), true, &owner())
        };
        let objects = [desired("x"), desired("y")];
        let refuse = |situation| refuse_collisions(&owner(), &objects, &[Situation::Equal, situation]);
        assert!(refuse(Situation::Adoptable(ExistingOwner::Unknown)).is_ok());
        let RolloutError::Collisions(found) = refuse(Situation::Foreign(ExistingOwner::Unknown)).unwrap_err() else {
            panic!("another error")
        };
        assert_eq!((found.owner.as_str(), found.found.len()), ("a", 1));
        assert_eq!(found.found[0].to_string(), "ConfigMap install/y already exists and was not created by Chandler");
    }
}
