//! Handing objects of others to an owner, on behalf of somebody who may.
//!
//! An object that carries the label of the owner's set, and that nobody controls, is the owner's. So it is enough to write
//! that; the next rollout brings the object to what it should be.

use chandler_core::ObjectKey;
use kube::api::ApiResource;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    cluster::{Cluster, about},
    desired::Desired,
    error::ObjectFailure,
    fields::FieldChange,
    holder::Holder,
    live,
    owner::Owner,
    plan::Situation,
    preflight::redefined_kinds,
    preview::{self, Ours},
};

/// The field manager of what is written here.
const MANAGER: &str = "chandler-adopt";

/// An object of a release that exists and is somebody else's.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Adoptee {
    /// The object.
    pub object: ObjectKey,
    /// Whose it is.
    pub holder: Holder,
    /// What the rollout would change of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldChange>,
    /// What the API server says against that, or why it could not be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(skip)]
    resource: ApiResource,
    #[serde(skip)]
    live: Value,
}

/// The objects of a release that are somebody else's, with what would change.
pub(crate) async fn find(
    cluster: &Cluster,
    desired: &[Desired],
    situations: &[Situation],
    live: &[Option<Value>],
) -> Vec<Adoptee> {
    let redefined = redefined_kinds(desired, situations);
    let mut found = Vec::new();
    for ((desired, situation), live) in desired.iter().zip(situations).zip(live) {
        let (Situation::Foreign(holder) | Situation::Adoptable(holder), Some(live)) = (situation, live) else {
            continue;
        };
        let askable = !redefined.contains(&(desired.key.group.as_str(), desired.key.kind.as_str()));
        let (fields, note) = preview::difference(cluster, Ours::No, &desired.unowned(), live, askable).await;
        found.push(Adoptee {
            object: desired.key.clone(),
            holder: holder.clone(),
            fields,
            note,
            resource: desired.resource.clone(),
            live: live.clone(),
        });
    }
    found
}

/// Makes an object a member of the owner's set, if nobody changed it since it was read. Its controller loses it.
pub(crate) async fn adopt(cluster: &Cluster, owner: &Owner, adoptee: &Adoptee) -> Result<(), ObjectFailure> {
    let metadata = marks(&adoptee.live, owner);
    let result = cluster.patch_metadata(&adoptee.resource, &adoptee.live, metadata, MANAGER).await;
    result.map(drop).map_err(about(&adoptee.object, "take over"))
}

/// The change of its metadata that makes an object the owner's.
fn marks(object: &Value, owner: &Owner) -> Value {
    let labels: Map<String, Value> =
        owner.member_labels().into_iter().map(|(name, text)| (name.to_owned(), json!(text))).collect();
    let mut metadata = Map::from_iter([("labels".to_owned(), Value::Object(labels))]);
    if let Some(references) = live::references_without_controller(object) {
        metadata.insert("ownerReferences".to_owned(), json!(references));
    }
    Value::Object(metadata)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::{foreign_owner, tests::owner};

    #[test]
    fn what_is_marked_is_the_owners() {
        let team = json!({"kind": "Team", "name": "t", "uid": "t"});
        let controller = json!({"kind": "Deployment", "name": "d", "uid": "d", "controller": true});
        for metadata in [
            json!({"managedFields": [{"manager": "kubectl"}]}),
            json!({"ownerReferences": [team, controller], "labels": {"team": "t"}}),
        ] {
            let mut object = json!({"metadata": metadata});
            assert!(foreign_owner(&object, &owner()).is_some());
            for (name, value) in marks(&object, &owner()).as_object().unwrap() {
                object["metadata"][name] = value.clone();
            }
            assert_eq!(foreign_owner(&object, &owner()), None);
        }
        let kept = marks(&json!({"metadata": {"ownerReferences": [team, controller]}}), &owner());
        assert_eq!(kept["ownerReferences"], json!([team]), "only the controller is released");
    }
}
