//! Compares objects that seem changed by dry runs, once for each state of an object.

use std::collections::HashMap;

use chandler_core::Digest;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    client::cluster::Cluster,
    pure::{
        desired::Desired,
        difference::normalized,
        error::{ApiError, RolloutError, object_failure},
        fields, live, managed_fields,
        preview::overlaid,
        situation::Situation,
    },
    read::dry_run,
};

/// Objects that match the release according to dry runs.
pub(crate) struct Comparisons {
    /// The maximum number of remembered objects.
    limit: usize,
    /// By UID, the digest of the live and the desired object that were found equal.
    equal: Mutex<HashMap<String, Digest>>,
}

impl Comparisons {
    /// An empty memory for this number of objects.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, equal: Mutex::default() }
    }

    /// Determines by a dry run whether an object that seems changed at this place would change by an apply.
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
        match dry_run::dry_run_apply(actor, desired, live).await.map_err(|refusal| refusal.error) {
            Ok(applied) if normalized(&applied) == normalized_live => {
                self.remember(live::uid(live), digest);
                Ok(Situation::Equal)
            }
            Ok(applied) => Ok(Situation::Changed(fields::drift(live, &applied))),
            // A refusal is reported when the object is applied; so is a webhook that does not support dry runs.
            Err(ApiError::Refused(_) | ApiError::Invalid(_)) => {
                let fields = fields::drift(live, &predicted(&desired.value, live, place));
                Ok(if fields.is_empty() { Situation::Equal } else { Situation::Changed(fields) })
            }
            Err(error) => Err(RolloutError::Objects(vec![object_failure(&desired.key, "compare")(error)])),
        }
    }

    /// Records an object that was just created or applied: it matches the release, including the defaults of the API server.
    pub(crate) fn written(&self, desired: &Desired, live: &Value) {
        self.remember(live::uid(live), digest(desired, live));
    }

    fn remembers(&self, uid: &str, digest: &Digest) -> bool {
        self.equal.lock().get(uid) == Some(digest)
    }

    fn remember(&self, uid: &str, digest: Digest) {
        let mut equal = self.equal.lock();
        if equal.len() >= self.limit {
            equal.clear();
        }
        equal.insert(uid.to_owned(), digest);
    }
}

/// The digest of everything that determines whether an apply changes an object.
fn digest(desired: &Desired, live: &Value) -> Digest {
    let mut object = normalized(live);
    for names in ["labels", "annotations"] {
        let own = desired.value.pointer(&format!("/metadata/{names}")).and_then(Value::as_object);
        if let Some(found) = object.pointer_mut(&format!("/metadata/{names}")).and_then(Value::as_object_mut) {
            found.retain(|name, _| own.is_some_and(|own| own.contains_key(name)));
        }
    }
    // Ignored fields are part of the value and not of the digest of the release. Chandler's own records determine which fields
    // an apply removes.
    let records: Vec<&Value> = managed_fields::own(live).filter_map(|record| record.get("fieldsV1")).collect();
    Digest::of(json!([desired.value, object, records]).to_string().as_bytes())
}

/// The predicted result of an apply without a dry run: the desired object overlaid on the live one, and the value at the
/// changed place replaced as a whole.
fn predicted(desired: &Value, live: &Value, place: &str) -> Value {
    let mut wanted = overlaid(live, desired);
    if let (Some(wanted), Some(desired)) = (wanted.pointer_mut(place), desired.pointer(place)) {
        *wanted = desired.clone();
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_dry_run_the_changed_value_is_replaced_as_a_whole() {
        let desired = json!({"selector": {"app": "a"}, "labels": {"app": "a"}});
        let live = json!({"selector": {"app": "a", "b": "c"}, "labels": {"app": "x", "b": "c"}, "other": 1});
        let wanted = json!({"selector": {"app": "a"}, "labels": {"app": "a", "b": "c"}, "other": 1});
        assert_eq!(predicted(&desired, &live, "/selector"), wanted);
        assert_eq!(predicted(&live, &live, "/metadata/managedFields"), live);
    }
}
