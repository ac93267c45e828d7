//! Whether objects that seem changed are: the API server tells in a dry run, once for each state of an object.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use chandler_core::Digest;
use serde_json::{Value, json};

use crate::{
    client::cluster::Cluster,
    pure::{
        desired::Desired,
        difference::normalized,
        error::{ApiError, RolloutError, object_failure},
        fields, live, managed_fields,
        preview::laid_over,
        situation::Situation,
    },
    read::dry_run,
};

/// What dry runs found to be as released.
pub(crate) struct Comparisons {
    /// How many objects are remembered at most.
    limit: usize,
    /// By UID, the digest of what was found equal: of the object and of what it should be.
    equal: Mutex<HashMap<String, Digest>>,
}

impl Comparisons {
    /// None yet, and so many objects at most.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, equal: Mutex::default() }
    }

    /// Has the API server tell whether an object that seems changed at this place is: applying would then change it.
    pub(crate) async fn compare(
        &self,
        actor: &Cluster,
        desired: &Desired,
        live: &Value,
        place: &str,
    ) -> Result<Situation, RolloutError> {
        let digest = digest(desired, live);
        if self.remembers(live::uid(live), &digest) {
            return Ok(Situation::Equal);
        }
        let normalized_live = normalized(live);
        match dry_run::dry_run_apply(actor, desired, live).await {
            Ok(applied) if normalized(&applied) == normalized_live => {
                self.remember(live::uid(live), digest);
                Ok(Situation::Equal)
            }
            Ok(applied) => Ok(Situation::Changed(fields::drift(live, &applied))),
            // A refusal shows up again, with its message, when the object is applied; so does a webhook that refuses dry runs.
            Err(ApiError::Refused(_) | ApiError::Invalid(_)) => {
                let fields = fields::drift(live, &as_far_as_known(&desired.value, live, place));
                Ok(if fields.is_empty() { Situation::Equal } else { Situation::Changed(fields) })
            }
            Err(error) => Err(RolloutError::Objects(vec![object_failure(&desired.key, "compare")(error)])),
        }
    }

    /// Notes an object that was just created: it is as released, with what the API server filled in.
    pub(crate) fn created(&self, desired: &Desired, live: &Value) {
        self.remember(live::uid(live), digest(desired, live));
    }

    fn remembers(&self, uid: &str, digest: &Digest) -> bool {
        self.equal.lock().unwrap_or_else(PoisonError::into_inner).get(uid) == Some(digest)
    }

    fn remember(&self, uid: &str, digest: Digest) {
        let mut equal = self.equal.lock().unwrap_or_else(PoisonError::into_inner);
        if equal.len() >= self.limit {
            equal.clear();
        }
        equal.insert(uid.to_owned(), digest);
    }
}

/// What decides whether an apply changes an object.
fn digest(desired: &Desired, live: &Value) -> Digest {
    let mut object = normalized(live);
    for names in ["labels", "annotations"] {
        let own = desired.value.pointer(&format!("/metadata/{names}")).and_then(Value::as_object);
        if let Some(found) = object.pointer_mut(&format!("/metadata/{names}")).and_then(Value::as_object_mut) {
            found.retain(|name, _| own.is_some_and(|own| own.contains_key(name)));
        }
    }
    // What is left to others is part of the value and not of the digest of what was released. What this host has on record
    // decides what an apply removes.
    let records: Vec<&Value> = managed_fields::own(live).filter_map(|record| record.get("fieldsV1")).collect();
    Digest::of(json!([desired.value, object, records]).to_string().as_bytes())
}

/// What an apply makes of an object, where the API server does not tell: what is desired laid over it, and whole at the place
/// that seems changed.
fn as_far_as_known(desired: &Value, live: &Value, place: &str) -> Value {
    let mut wanted = laid_over(live, desired);
    if let (Some(wanted), Some(desired)) = (wanted.pointer_mut(place), desired.pointer(place)) {
        *wanted = desired.clone();
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_seems_changed_is_taken_as_a_whole_where_nobody_tells() {
        let desired = json!({"selector": {"app": "a"}, "labels": {"app": "a"}});
        let live = json!({"selector": {"app": "a", "b": "c"}, "labels": {"app": "x", "b": "c"}, "other": 1});
        let wanted = json!({"selector": {"app": "a"}, "labels": {"app": "a", "b": "c"}, "other": 1});
        assert_eq!(as_far_as_known(&desired, &live, "/selector"), wanted);
        assert_eq!(as_far_as_known(&live, &live, "/metadata/managedFields"), live);
    }
}
