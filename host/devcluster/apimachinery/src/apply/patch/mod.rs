//! Patches: JSON patch (RFC 6902), JSON merge patch (RFC 7386), strategic merge patch.

mod json;
mod strategic;

pub use json::json_patch;
use serde_json::Value;
pub use strategic::strategic_merge_patch;

/// Why a patch cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchError {
    /// The patch is malformed (400).
    #[error("{0}")]
    Malformed(String),
    /// The patch does not fit the object (422), e.g. a failed `test`.
    #[error("{0}")]
    Unprocessable(String),
    /// The patch is larger than the server accepts (413).
    #[error("{0}")]
    TooLarge(String),
}

/// Applies an RFC 7386 patch.
pub fn merge_patch(document: &Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    let mut merged = document.as_object().cloned().unwrap_or_default();
    for (name, change) in patch {
        if change.is_null() {
            merged.remove(name);
        } else {
            let merged_field = merge_patch(merged.get(name).unwrap_or(&Value::Null), change);
            merged.insert(name.clone(), merged_field);
        }
    }
    Value::Object(merged)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn merge_patch_of_the_rfc() {
        // RFC 7386, appendix A.
        let cases = [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a": "b"}), json!(["c"]), json!(["c"])),
            (json!({"a": "foo"}), json!(null), json!(null)),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ];
        for (document, patch, expected) in cases {
            assert_eq!(merge_patch(&document, &patch), expected, "{document} {patch}");
        }
    }
}
