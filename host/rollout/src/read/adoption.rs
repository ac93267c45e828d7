//! Objects of a release that exist and are somebody else's, for people who may hand them over.
//!
//! They do so by naming them, with their UIDs, where the owner is described; the next rollout takes them over.

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

/// An object of a release that exists and is somebody else's.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Adoptee {
    /// The object.
    pub object: ObjectKey,
    /// Whose it is.
    pub existing_owner: ExistingOwner,
    /// What the rollout would change of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldChange>,
    /// What the API server says against that, or why it could not be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Its UID.
    pub uid: String,
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
