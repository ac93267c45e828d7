//! Objects of a release that exist and belong to other owners, for users who may adopt them.
//!
//! A user adopts them by listing them with their UIDs in the spec of the owner; the next rollout takes them over.

use chandler_core::ObjectKey;
use serde::Serialize;
use serde_json::Value;

use crate::{
    client::cluster::Cluster,
    pure::{
        crd::redefined_kinds, desired::Desired, existing_owner::ExistingOwner, fields::FieldChange, live,
        situation::Situation,
    },
    read::preview,
};

/// An object of a release that exists and belongs to another owner.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Adoptee {
    /// The object.
    pub object: ObjectKey,
    /// Its owner.
    pub existing_owner: ExistingOwner,
    /// The fields that the rollout would change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldChange>,
    /// The error of the API server about it, or why no dry run was possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Its UID.
    pub uid: String,
}

/// The objects of a release that belong to other owners, with the fields that would change.
pub(crate) async fn find(
    cluster: &Cluster,
    desired: &[Desired],
    situations: &[Situation],
    live: &[Option<Value>],
) -> Vec<Adoptee> {
    let redefined = redefined_kinds(desired, situations);
    let mut found = Vec::new();
    for ((desired, situation), live) in desired.iter().zip(situations).zip(live) {
        let (Situation::Foreign(existing_owner) | Situation::Adoptable(existing_owner), Some(live)) = (situation, live)
        else {
            continue;
        };
        let askable = !redefined.contains(&(desired.key.group.as_str(), desired.key.kind.as_str()));
        let (fields, note) = preview::difference(cluster, desired, live, askable).await;
        found.push(Adoptee {
            object: desired.key.clone(),
            existing_owner: existing_owner.clone(),
            fields,
            note,
            uid: live::uid(live).to_owned(),
        });
    }
    found
}
