//! Orphans objects: removes the owner's marks, so that neither the garbage collector nor Chandler deletes them later.

use chandler_core::ObjectKey;
use futures::FutureExt as _;
use serde_json::{Map, Value, json};

use crate::{
    client::{cluster::Cluster, concurrent::all},
    pure::{
        desired::{APPLIED, SEAL},
        error::{ApiError, ObjectFailure, RolloutError, object_failure},
        live,
        member::Member,
        owner::{FIELD_MANAGER, OWNER_KIND, OWNER_NAME, Owner, PART_OF},
    },
};

/// The marks to remove from an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marks {
    /// All labels, annotations and references of the owner.
    All,
    /// The owner reference only, as the garbage collector does.
    Reference,
}

/// Orphans these objects, several at a time, and returns those that were changed. All are tried before failures are reported.
pub(crate) async fn orphan(
    cluster: &Cluster,
    owner: &Owner,
    members: Vec<Member>,
    marks: Marks,
) -> Result<Vec<ObjectKey>, RolloutError> {
    let requests = members.into_iter().map(|member| {
        async move {
            let orphaned = orphan_one(cluster, owner, &member, marks).await;
            orphaned.map(|done| done.then_some(member.key))
        }
        .boxed()
    });
    let (mut orphaned, mut failures) = (Vec::new(), Vec::new());
    for result in all(requests.collect()).await {
        match result {
            Ok(key) => orphaned.extend(key),
            Err(failure) => failures.push(failure),
        }
    }
    if failures.is_empty() { Ok(orphaned) } else { Err(RolloutError::Objects(failures)) }
}

/// Orphans an object, and returns whether it had marks. If it changed since it was read, it is read again, once.
async fn orphan_one(cluster: &Cluster, owner: &Owner, member: &Member, marks: Marks) -> Result<bool, ObjectFailure> {
    let failed = object_failure(&member.key, "orphan");
    match remove_marks(cluster, owner, member, &member.object, marks).await {
        Err(ApiError::Conflict(_)) => {}
        result => return result.map_err(failed),
    }
    let again = async {
        match member.now(cluster).await? {
            Some(found) => remove_marks(cluster, owner, member, &found, marks).await,
            None => Ok(false),
        }
    };
    again.await.map_err(failed)
}

async fn remove_marks(
    cluster: &Cluster,
    owner: &Owner,
    member: &Member,
    object: &Value,
    marks: Marks,
) -> Result<bool, ApiError> {
    let Some(metadata) = without_marks(object, owner, marks) else { return Ok(false) };
    match cluster.patch_metadata(&member.resource, object, metadata, FIELD_MANAGER).await {
        Ok(_) => Ok(true),
        Err(ApiError::NotFound(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The metadata change that removes the owner's marks and no other, or `None` if the object has none.
fn without_marks(object: &Value, owner: &Owner, marks: Marks) -> Option<Value> {
    let mut change = Map::new();
    let references = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    if let Some(references) = references {
        let is_ours = |reference: &&Value| reference.get("uid").and_then(Value::as_str) == Some(&owner.uid);
        let others: Vec<&Value> = references.iter().filter(|reference| !is_ours(reference)).collect();
        if others.len() < references.len() {
            change.insert("ownerReferences".to_owned(), json!(others));
        }
    }
    let in_other_set = live::label(object, PART_OF).is_some_and(|set| set != owner.set_id());
    if !in_other_set && marks == Marks::All {
        let marks = [PART_OF, OWNER_KIND, OWNER_NAME].into_iter().filter(|name| live::label(object, name).is_some());
        let labels: Map<String, Value> = marks.map(|name| (name.to_owned(), Value::Null)).collect();
        if !labels.is_empty() {
            change.insert("labels".to_owned(), Value::Object(labels));
        }
        let notes = [APPLIED, SEAL].into_iter().filter(|name| live::annotation(object, name).is_some());
        let annotations: Map<String, Value> = notes.map(|name| (name.to_owned(), Value::Null)).collect();
        if !annotations.is_empty() {
            change.insert("annotations".to_owned(), Value::Object(annotations));
        }
    }
    (!change.is_empty()).then_some(Value::Object(change))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pure::live::tests::owner;

    #[test]
    fn only_the_marks_of_the_owner_are_removed() {
        let owner = owner();
        let ours = owner.reference();
        let other = json!({"kind": "Team", "name": "t", "uid": "other"});
        let labels = json!({PART_OF: owner.set_id(), OWNER_KIND: "BundleDeployment", OWNER_NAME: "a", "team": "t"});
        let all = json!({"labels": {PART_OF: null, OWNER_KIND: null, OWNER_NAME: null}, "annotations": {APPLIED: null, SEAL: null},
            "ownerReferences": []});
        for (metadata, expected) in [
            (
                json!({"labels": labels, "annotations": {APPLIED: "x", SEAL: "z", "note": "y"}, "ownerReferences": [ours]}),
                Some(all),
            ),
            (json!({"ownerReferences": [other, ours]}), Some(json!({"ownerReferences": [other]}))),
            // Another owner adopted it, and the reference remained.
            (
                json!({"labels": {PART_OF: "other", OWNER_NAME: "b"}, "annotations": {APPLIED: "x"}, "ownerReferences": [ours]}),
                Some(json!({"ownerReferences": []})),
            ),
            (json!({"labels": {"team": "t"}, "ownerReferences": [other]}), None),
            (json!({"labels": 1, "ownerReferences": "odd"}), None),
        ] {
            let object = json!({"metadata": metadata});
            assert_eq!(without_marks(&object, &owner, Marks::All), expected, "{metadata}");
            let references = expected.as_ref().and_then(|expected| expected.get("ownerReferences"));
            let reference = references.map(|references| json!({"ownerReferences": references}));
            assert_eq!(without_marks(&object, &owner, Marks::Reference), reference, "{metadata}");
        }
    }
}
