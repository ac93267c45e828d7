//! The BundleDeployment of a set, whose bundle is the manifests of a decision.

use chandler_api::{
    AdoptedObject, BundleDeployment, BundleDeploymentSpec, BundleSource, ChangeCause, ConfigMapSource,
    LocalObjectReference, PendingChange, Reason, Resolution, ResolveSetOutput, RolloutSettings,
    names::RESOLVESET_CLASS,
};
use chandler_resolution::installation::ready;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Map, Value, json};

use super::decisions::{Decision, owner};

/// What the name of a BundleDeployment of a set begins with.
const PREFIX: &str = "resolveset-";

/// The most objects that `spec.adopt` of a BundleDeployment lists.
const ADOPTED: usize = 2_000;

/// The name of the BundleDeployment of the set of a Resolution.
pub(crate) fn deployment_name(resolution: &str) -> String {
    format!("{PREFIX}{resolution}")
}

/// The Resolution that a BundleDeployment of this name may belong to.
pub(super) fn resolution_of(deployment: &str) -> Option<&str> {
    deployment.strip_prefix(PREFIX)
}

/// Whether a BundleDeployment belongs to this very Resolution.
pub(super) fn is_owned(deployment: &BundleDeployment, resolution: &Resolution) -> bool {
    let uid = resolution.uid();
    deployment.owner_references().iter().any(|owner| owner.controller == Some(true) && Some(&owner.uid) == uid.as_ref())
}

/// Whether a BundleDeployment is the set of this very Resolution: its bundle is one of the decisions, which only the controller writes. Its
/// name and its owner reference prove nothing.
pub(super) fn is_set(deployment: &BundleDeployment, resolution: &Resolution) -> bool {
    is_owned(deployment, resolution)
        && deployment.spec.provisioner_class_name == RESOLVESET_CLASS
        && config_map(deployment).is_some_and(|map| is_decision(map, &deployment.name_any()))
}

/// Whether a ConfigMap has the name of a decision for the BundleDeployment of this name.
fn is_decision(config_map: &str, deployment: &str) -> bool {
    let number = config_map.strip_prefix(deployment).and_then(|rest| rest.strip_prefix('-'));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a BundleDeployment is exactly what the controller creates for one of these decisions. After a crash the controller may have
/// created it without noting that; another client that writes an equal one, including the account, gains nothing.
pub(super) fn is_as_created<'a>(
    deployment: &BundleDeployment,
    resolution: &Resolution,
    output: &ResolveSetOutput,
    mut decisions: impl Iterator<Item = &'a Decision>,
) -> bool {
    decisions.any(|decision| deployment.spec == spec(resolution, output, decision))
}

/// Whether the fields that the controller writes are as it writes them for a decision. An administrator may have set all other fields.
pub(super) fn is_as_written(
    deployment: &BundleDeployment,
    resolution: &Resolution,
    output: &ResolveSetOutput,
    decision: &Decision,
) -> bool {
    let fields = |spec: &BundleDeploymentSpec| serde_json::to_value(spec).ok();
    let (existing, wanted) = (fields(&deployment.spec), fields(&spec(resolution, output, decision)));
    existing.zip(wanted).is_some_and(|(existing, wanted)| difference(&existing, &wanted).is_none())
}

/// Links the restored BundleDeployment of a set to its Resolution.
pub(super) async fn link(
    api: &Api<BundleDeployment>,
    deployment: &BundleDeployment,
    resolution: &Resolution,
) -> Result<BundleDeployment, kube::Error> {
    let metadata = json!({"uid": deployment.uid(), "ownerReferences": [owner(resolution)]});
    let patch = Patch::Merge(json!({"metadata": metadata}));
    api.patch(&deployment.name_any(), &PatchParams::default(), &patch).await
}

/// The ConfigMap of the decision that a BundleDeployment has.
pub(super) fn config_map(deployment: &BundleDeployment) -> Option<&str> {
    config_map_of(&deployment.spec.source)
}

fn config_map_of(source: &BundleSource) -> Option<&str> {
    match source.config_maps.as_deref()? {
        [one] => Some(&one.config_map.name),
        _ => None,
    }
}

/// What was written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// Nothing: the BundleDeployment is already as wanted.
    Nothing,
    /// A change.
    Change,
    /// A BundleDeployment with this UID.
    Created(String),
}

/// Creates the BundleDeployment, or changes the fields that differ from the Resolution. Administrators may set all other fields.
pub(super) async fn write(
    api: &Api<BundleDeployment>,
    existing: Option<&BundleDeployment>,
    resolution: &Resolution,
    output: &ResolveSetOutput,
    decision: &Decision,
    (adopted, is_obsolete): (&[AdoptedObject], impl Fn(&AdoptedObject) -> bool),
) -> Result<Written, kube::Error> {
    let spec = spec(resolution, output, decision);
    let Some(existing) = existing else {
        let mut deployment = BundleDeployment::new(&deployment_name(&resolution.name_any()), spec);
        deployment.metadata = ObjectMeta {
            labels: Some(resolution.labels().clone()).filter(|labels| !labels.is_empty()),
            owner_references: Some(vec![owner(resolution)]),
            ..deployment.metadata
        };
        let created = api.create(&PostParams::default(), &deployment).await?;
        return Ok(Written::Created(created.uid().unwrap_or_default()));
    };
    let fields = |spec: &BundleDeploymentSpec| serde_json::to_value(spec).map_err(kube::Error::SerdeError);
    let mut change = difference(&fields(&existing.spec)?, &fields(&spec)?);
    if let Some(adopt) = still_to_adopt(&existing.spec.adopt, adopted, is_obsolete) {
        change.get_or_insert_default().insert("adopt".to_owned(), json!(adopt));
    }
    let Some(change) = change else { return Ok(Written::Nothing) };
    let patch = json!({"metadata": {"uid": existing.uid()}, "spec": change});
    api.patch(&existing.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(Written::Change)
}

/// The fields that the Resolution decides.
const FIELDS: [&str; 5] = ["installNamespace", "provisionerClassName", "source", "serviceAccount", "approval"];

fn spec(resolution: &Resolution, output: &ResolveSetOutput, decision: &Decision) -> BundleDeploymentSpec {
    let config_map = LocalObjectReference { name: decision.name.clone() };
    BundleDeploymentSpec {
        install_namespace: output.install_namespace.clone(),
        provisioner_class_name: RESOLVESET_CLASS.to_owned(),
        source: BundleSource::config_maps(vec![ConfigMapSource { config_map, ..ConfigMapSource::default() }]),
        service_account: output.service_account.clone(),
        approval: resolution.spec.approval,
        rollout: output
            .on_failure
            .map(|on_failure| RolloutSettings { on_failure: Some(on_failure), ..RolloutSettings::default() }),
        ..BundleDeploymentSpec::default()
    }
}

/// The ConfigMap of the decision that a BundleDeployment rolled back to, after the one of its spec failed.
pub(super) fn rolled_back_to(deployment: &BundleDeployment) -> Option<&str> {
    let current = deployment.status.as_ref()?.history.last().filter(|current| current.rollback_to.is_some())?;
    config_map_of(&current.source)
}

/// Whether objects of other owners stop the current spec.
pub(super) fn collides(deployment: &BundleDeployment) -> bool {
    ready(deployment).is_some_and(|it| {
        it.reason == Reason::ObjectCollision.as_str() && it.observed_generation == deployment.metadata.generation
    })
}

/// The change of the current spec that waits for approval. The status may still have a change of an earlier spec, and an update of a
/// provisioner does not change the spec.
pub(super) fn awaited_change(deployment: &BundleDeployment) -> Option<&PendingChange> {
    let status = deployment.status.as_ref()?;
    let pending = status.pending_change.as_ref().filter(|pending| pending.cause != Some(ChangeCause::Provisioner));
    pending.filter(|_| status.observed_generation == deployment.metadata.generation)
}

/// The merge patch that sets these fields of a spec to the wanted values; empty if they have them.
pub(crate) fn changed_fields(now: &Value, wanted: &Value, fields: &[&str]) -> Map<String, Value> {
    let differs = |field: &&&str| now.get(**field) != wanted.get(**field);
    let change = |field: &str| match (now.get(field), wanted.get(field)) {
        // A source is replaced as a whole.
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let gone = old.keys().filter(|key| !new.contains_key(*key)).map(|key| (key.clone(), Value::Null));
            Value::Object(gone.chain(new.clone()).collect())
        }
        (_, new) => new.cloned().unwrap_or(Value::Null),
    };
    fields.iter().filter(differs).map(|field| ((*field).to_owned(), change(field))).collect()
}

/// The merge patch that sets the fields of the Resolution to the wanted values, if any differs.
fn difference(now: &Value, wanted: &Value) -> Option<Map<String, Value>> {
    let mut change = changed_fields(now, wanted, &FIELDS);
    let on_failure = |spec: &Value| spec.pointer("/rollout/onFailure").cloned();
    if on_failure(now) != on_failure(wanted) {
        let value = on_failure(wanted).unwrap_or(Value::Null);
        change.insert("rollout".to_owned(), json!({"onFailure": value}));
    }
    (!change.is_empty()).then_some(change)
}

/// What the set should adopt, if that differs from the current list. Administrators list objects, too. Objects that the set has taken over
/// no longer need an entry, and the schema limits the list, so the oldest entries make room.
fn still_to_adopt(
    now: &[AdoptedObject],
    more: &[AdoptedObject],
    is_obsolete: impl Fn(&AdoptedObject) -> bool,
) -> Option<Vec<AdoptedObject>> {
    let new = more.iter().filter(|object| !now.contains(object));
    let all: Vec<&AdoptedObject> = now.iter().chain(new).filter(|object| !is_obsolete(object)).collect();
    let surplus = all.len().saturating_sub(ADOPTED);
    let kept: Vec<AdoptedObject> = all.into_iter().skip(surplus).cloned().collect();
    (kept != now).then_some(kept)
}

#[cfg(test)]
mod tests {
    use chandler_api::BundleDeploymentStatus;

    use super::*;

    #[test]
    fn only_fields_of_the_resolution_are_changed() {
        let now = json!({"installNamespace": "shop", "suspend": true, "approval": "Manual",
                         "source": {"type": "image", "image": {"ref": "a"}}});
        let wanted = json!({"installNamespace": "shop", "serviceAccount": {"name": "deployer"},
                            "source": {"type": "configMaps", "configMaps": [{}]}});
        let change = json!({"approval": null, "serviceAccount": {"name": "deployer"},
                            "source": {"type": "configMaps", "configMaps": [{}], "image": null}});
        assert_eq!(difference(&now, &wanted).map(Value::Object), Some(change));
        assert_eq!(difference(&wanted, &wanted), None);
        let settings = json!({"rollout": {"progressDeadlineSeconds": 60, "onFailure": "Rollback"}});
        let change = difference(&settings, &json!({})).map(Value::Object);
        assert_eq!(change, Some(json!({"rollout": {"onFailure": null}})));
        let suspended = json!({"suspend": true, "installNamespace": "shop"});
        assert_eq!(difference(&suspended, &json!({"installNamespace": "shop"})), None);
    }

    #[test]
    fn what_the_set_adopts_is_added_once_within_the_limit_and_removed_once_it_is_taken_over() {
        let object =
            |uid: usize| AdoptedObject { name: "base".into(), uid: uid.to_string(), ..AdoptedObject::default() };
        let none = |_: &AdoptedObject| false;
        assert_eq!(still_to_adopt(&[object(1)], &[], none), None);
        assert_eq!(still_to_adopt(&[object(1)], &[object(1)], none), None);
        assert_eq!(still_to_adopt(&[object(1)], &[object(1), object(2)], none), Some(vec![object(1), object(2)]));
        let full: Vec<AdoptedObject> = (0..ADOPTED).map(object).collect();
        let found = still_to_adopt(&full, &[object(ADOPTED)], none).unwrap();
        assert_eq!((found.len(), &found[0], found.last()), (ADOPTED, &object(1), Some(&object(ADOPTED))));
        let first = |it: &AdoptedObject| it.uid == "1";
        assert_eq!(still_to_adopt(&[object(1), object(2)], &[], first), Some(vec![object(2)]));
        assert_eq!(still_to_adopt(&[], &[object(1)], first), None);
        assert_eq!(still_to_adopt(&[object(1)], &[object(1), object(2)], first), Some(vec![object(2)]));
    }

    #[test]
    fn a_change_of_an_earlier_spec_waits_for_nothing() {
        let mut deployment = BundleDeployment::new("resolveset-shop", BundleDeploymentSpec::default());
        deployment.metadata.generation = Some(2);
        let change = Some(PendingChange::default());
        let mut status = BundleDeploymentStatus { pending_change: change, ..BundleDeploymentStatus::default() };
        for (observed, waits) in [(1, false), (2, true)] {
            status.observed_generation = Some(observed);
            deployment.status = Some(status.clone());
            assert_eq!(awaited_change(&deployment).is_some(), waits, "{observed}");
        }
        let update = PendingChange { cause: Some(ChangeCause::Provisioner), ..PendingChange::default() };
        status.pending_change = Some(update);
        deployment.status = Some(status);
        assert_eq!(awaited_change(&deployment), None, "the decision is installed");
    }

    #[test]
    fn a_decision_is_named_after_its_set() {
        assert!(is_decision("resolveset-shop-12", "resolveset-shop"));
        for other in ["resolveset-shop", "resolveset-shop-", "resolveset-shop-1a", "resolveset-shop-two-1", "content-1"]
        {
            assert!(!is_decision(other, "resolveset-shop"), "{other}");
        }
    }

    #[test]
    fn a_set_is_named_after_its_resolution() {
        assert_eq!(resolution_of(&deployment_name("shop")), Some("shop"));
        assert_eq!(resolution_of("shop"), None);
    }
}
