//! RFC 6902 JSON patch, with the limits of kube-apiserver.

use serde_json::Value;

use super::PatchError;

/// Most operations of one patch, as in kube-apiserver.
const MOST_OPERATIONS: usize = 10_000;
/// Largest document that a patch may grow an object to, in bytes of JSON: twice what a request may carry.
const LARGEST_RESULT: usize = 6 * 1024 * 1024;

/// Applies an RFC 6902 patch: all operations or none.
///
/// # Errors
/// When the patch is malformed, has more than 10 000 operations, does not fit the document, or makes it larger than 6 MiB.
pub fn json_patch(document: &Value, patch: &Value) -> Result<Value, PatchError> {
    let count = patch.as_array().map_or(0, Vec::len);
    if count > MOST_OPERATIONS {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {count}"
        )));
    }
    let patch: json_patch::Patch =
        serde_json::from_value(patch.clone()).map_err(|error| PatchError::Malformed(error.to_string()))?;
    let mut patched = document.clone();
    for operation in patch.iter() {
        let one = std::slice::from_ref(operation);
        json_patch::patch(&mut patched, one).map_err(|error| PatchError::Unprocessable(message(&error)))?;
        // Only copying can grow a document faster than the patch itself.
        if matches!(operation, json_patch::PatchOperation::Copy(_)) && patched.to_string().len() > LARGEST_RESULT {
            return Err(PatchError::TooLarge(format!("the patched object is larger than {LARGEST_RESULT} bytes")));
        }
    }
    Ok(patched)
}

fn message(error: &json_patch::PatchError) -> String {
    match error.kind {
        json_patch::PatchErrorKind::TestFailed => {
            format!(
                "the server rejected our request due to an error in our request: testing path {} failed",
                error.path
            )
        }
        _ => format!("the server rejected our request due to an error in our request: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operations_apply_all_or_none() {
        let document = json!({"spec": {"replicas": 1, "list": ["a", "b"]}});
        let patch = json!([
            {"op": "test", "path": "/spec/replicas", "value": 1},
            {"op": "replace", "path": "/spec/replicas", "value": 2},
            {"op": "add", "path": "/spec/list/-", "value": "c"},
            {"op": "remove", "path": "/spec/list/0"},
            {"op": "copy", "from": "/spec/list", "path": "/spec/copied"},
            {"op": "move", "from": "/spec/copied", "path": "/spec/moved"},
        ]);
        assert_eq!(
            json_patch(&document, &patch).unwrap(),
            json!({"spec": {"replicas": 2, "list": ["b", "c"], "moved": ["b", "c"]}})
        );
    }

    #[test]
    fn inapplicable_and_malformed_patches_are_distinguished() {
        let document = json!({"a": 1});
        let failing = json!([{"op": "test", "path": "/a", "value": 2}]);
        assert!(matches!(json_patch(&document, &failing), Err(PatchError::Unprocessable(_))));
        let missing = json!([{"op": "remove", "path": "/b"}]);
        assert!(matches!(json_patch(&document, &missing), Err(PatchError::Unprocessable(_))));
        for malformed in [json!({"op": "add"}), json!([{"op": "burn", "path": "/a"}]), json!([{"op": "add"}])] {
            assert!(matches!(json_patch(&document, &malformed), Err(PatchError::Malformed(_))), "{malformed}");
        }
    }

    #[test]
    fn copies_cannot_blow_an_object_up() {
        let document = json!({"a": ["x".repeat(1000)]});
        let doubling: Vec<Value> = (0..40).map(|_| json!({"op": "copy", "from": "/a", "path": "/a/-"})).collect();
        assert!(matches!(json_patch(&document, &Value::Array(doubling)), Err(PatchError::TooLarge(_))));
        let many: Vec<Value> = (0..10_001).map(|_| json!({"op": "test", "path": "/a", "value": 1})).collect();
        assert!(matches!(json_patch(&document, &Value::Array(many)), Err(PatchError::TooLarge(_))));
    }
}
