//! Strategic merge patch: merge patch that knows which lists merge, and by which key.
//!
//! Source of the rules: `sig-api-machinery/strategic-merge-patch.md` of kubernetes/community.

use serde_json::{Map, Value};

use super::PatchError;
use crate::schema::Schema;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList/";
const ELEMENT_ORDER: &str = "$setElementOrder/";

/// Applies a strategic merge patch.
///
/// Objects merge field by field and `null` removes a field. Lists are replaced, unless their place has the patch strategy
/// `merge`: then scalars are added and objects merge by the merge key of the place. Directives: `$patch: replace|merge|delete`
/// in objects and list items, `$retainKeys`, `$deleteFromPrimitiveList/<field>`, `$setElementOrder/<field>`.
///
/// # Errors
/// When a directive is malformed or unknown, or an item of a merging list of objects lacks its merge key.
pub fn strategic_merge_patch(schema: &Schema, document: &Value, patch: &Value) -> Result<Value, PatchError> {
    let patch = patch.as_object().ok_or_else(|| malformed("a strategic merge patch must be an object".to_owned()))?;
    let document = document.as_object().cloned().unwrap_or_default();
    Ok(Value::Object(merge_object(schema, document, patch)?.unwrap_or_default()))
}

fn malformed(message: String) -> PatchError {
    PatchError::Malformed(message)
}

enum Directive {
    Merge,
    Replace,
    Delete,
}

fn directive(patch: &Map<String, Value>) -> Result<Directive, PatchError> {
    match patch.get(DIRECTIVE) {
        None => Ok(Directive::Merge),
        Some(Value::String(text)) => match text.as_str() {
            "merge" => Ok(Directive::Merge),
            "replace" => Ok(Directive::Replace),
            "delete" => Ok(Directive::Delete),
            other => Err(malformed(format!("unknown patch type: {other}"))),
        },
        Some(other) => Err(malformed(format!("unknown patch type: {other}"))),
    }
}

/// Merges an object; `None` when the patch deletes it.
fn merge_object(
    schema: &Schema,
    mut object: Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<Option<Map<String, Value>>, PatchError> {
    match directive(patch)? {
        Directive::Merge => {}
        Directive::Delete => return Ok(None),
        Directive::Replace => {
            let plain = patch.iter().filter(|(name, _)| *name != DIRECTIVE);
            return Ok(Some(plain.map(|(name, value)| (name.clone(), value.clone())).collect()));
        }
    }
    if let Some(retained) = patch.get(RETAIN_KEYS) {
        retain_keys(&mut object, retained, patch)?;
    }
    for (name, change) in patch {
        if let Some(name) = name.strip_prefix(DELETE_FROM_LIST) {
            delete_from_list(&mut object, name, change)?;
        }
    }
    for (name, change) in patch {
        if name == DIRECTIVE
            || name == RETAIN_KEYS
            || name.starts_with(DELETE_FROM_LIST)
            || name.starts_with(ELEMENT_ORDER)
        {
            continue;
        }
        let any = Schema::any();
        let schema = schema.property(name).unwrap_or(&any);
        let current = object.remove(name);
        if let Some(merged) = merge_value(schema, current, change)? {
            object.insert(name.clone(), merged);
        }
    }
    for (name, order) in patch {
        if let Some(name) = name.strip_prefix(ELEMENT_ORDER) {
            set_element_order(schema, &mut object, name, order, patch.get(name))?;
        }
    }
    Ok(Some(object))
}

fn retain_keys(
    object: &mut Map<String, Value>,
    retained: &Value,
    patch: &Map<String, Value>,
) -> Result<(), PatchError> {
    let retained: Vec<&str> = retained.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let unknown = patch
        .iter()
        .find(|(name, value)| !name.starts_with('$') && !value.is_null() && !retained.contains(&name.as_str()));
    if let Some((name, _)) = unknown {
        return Err(malformed(format!("$retainKeys must name every field of the patch, but lacks {name:?}")));
    }
    object.retain(|name, _| retained.contains(&name.as_str()));
    Ok(())
}

fn delete_from_list(object: &mut Map<String, Value>, name: &str, deleted: &Value) -> Result<(), PatchError> {
    let deleted = deleted.as_array().ok_or_else(|| malformed(format!("{DELETE_FROM_LIST}{name} must be a list")))?;
    if let Some(list) = object.get_mut(name).and_then(Value::as_array_mut) {
        list.retain(|item| !deleted.contains(item));
    }
    Ok(())
}

/// Merges one value; `None` when the patch removes it.
fn merge_value(schema: &Schema, current: Option<Value>, change: &Value) -> Result<Option<Value>, PatchError> {
    match (change, current) {
        (Value::Null, _) => Ok(None),
        (Value::Object(change), current) => {
            let current = match current {
                Some(Value::Object(current)) => current,
                _ => Map::new(),
            };
            Ok(merge_object(schema, current, change)?.map(Value::Object))
        }
        (Value::Array(change), current) => {
            let current = match current {
                Some(Value::Array(current)) => current,
                _ => Vec::new(),
            };
            merge_list(schema, current, change).map(|list| Some(Value::Array(list)))
        }
        (scalar, _) => Ok(Some(scalar.clone())),
    }
}

fn merge_list(schema: &Schema, current: Vec<Value>, change: &[Value]) -> Result<Vec<Value>, PatchError> {
    let any = Schema::any();
    let items = schema.items().unwrap_or(&any);
    let replaces = change.iter().any(|item| item.get(DIRECTIVE).and_then(Value::as_str) == Some("replace"));
    if replaces || !schema.patch.merge {
        let plain = change.iter().filter(|item| item.get(DIRECTIVE).is_none());
        return plain.map(|item| cleaned(items, item)).collect();
    }
    match &schema.patch.merge_key {
        Some(key) => merge_objects(items, key, current, change),
        None => Ok(merge_scalars(current, change)),
    }
}

/// A value of the patch that meets no current one: its directives apply to nothing and go.
fn cleaned(schema: &Schema, value: &Value) -> Result<Value, PatchError> {
    match value {
        Value::Object(_) => Ok(merge_value(schema, None, value)?.unwrap_or(Value::Null)),
        other => Ok(other.clone()),
    }
}

fn merge_scalars(mut current: Vec<Value>, change: &[Value]) -> Vec<Value> {
    for item in change {
        if !current.contains(item) {
            current.push(item.clone());
        }
    }
    current
}

fn merge_objects(
    schema: &Schema,
    key: &str,
    mut current: Vec<Value>,
    change: &[Value],
) -> Result<Vec<Value>, PatchError> {
    for item in change {
        let Value::Object(item) = item else {
            return Err(malformed(format!("items of a list that merges by {key:?} must be objects")));
        };
        let Some(identity) = item.get(key) else {
            return Err(malformed(format!(
                "map: {} does not contain declared merge key: {key}",
                Value::Object(item.clone())
            )));
        };
        let position = current.iter().position(|candidate| candidate.get(key) == Some(identity));
        let found = position.map(|position| current.remove(position));
        let before = match found {
            Some(Value::Object(found)) => found,
            _ => Map::new(),
        };
        if let Some(merged) = merge_object(schema, before, item)? {
            let merged = Value::Object(merged);
            match position {
                Some(position) => current.insert(position, merged),
                None => current.push(merged),
            }
        } else {
            // Everything with that key goes, should there be several.
            current.retain(|candidate| candidate.get(key) != Some(identity));
        }
    }
    Ok(current)
}

/// Orders a merged list: items that the directive names get its order, others keep their place relative to the items
/// before them.
fn set_element_order(
    schema: &Schema,
    object: &mut Map<String, Value>,
    name: &str,
    order: &Value,
    change: Option<&Value>,
) -> Result<(), PatchError> {
    let order = order.as_array().ok_or_else(|| malformed(format!("{ELEMENT_ORDER}{name} must be a list")))?;
    let merge_key = schema.property(name).and_then(|list| list.patch.merge_key.clone());
    let identity = |item: &Value| match &merge_key {
        Some(key) => item.get(key).cloned().unwrap_or(Value::Null),
        None => item.clone(),
    };
    let order: Vec<Value> = order.iter().map(identity).collect();
    let changed = change.and_then(Value::as_array).into_iter().flatten();
    let unordered =
        changed.filter(|item| item.get(DIRECTIVE).is_none()).map(identity).find(|changed| !order.contains(changed));
    if let Some(unordered) = unordered {
        return Err(malformed(format!("{ELEMENT_ORDER}{name} does not name {unordered}, which the patch sets")));
    }
    let Some(list) = object.get_mut(name).and_then(Value::as_array_mut) else { return Ok(()) };
    let position = |item: &Value| order.iter().position(|ordered| *ordered == identity(item));
    let mut ordered: Vec<(usize, Value)> = Vec::with_capacity(list.len());
    let mut after = 0;
    for item in list.drain(..) {
        // An unnamed item goes with the named one before it; the stable sort keeps it behind.
        after = position(&item).map_or(after, |position| position + 1);
        ordered.push((after, item));
    }
    ordered.sort_by_key(|(position, _)| *position);
    list.extend(ordered.into_iter().map(|(_, item)| item));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::schema::{Builtins, GroupVersionKind};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn pod() -> Schema {
        Builtins::get().kind(&GroupVersionKind::new("", "v1", "Pod")).unwrap().schema.clone()
    }

    fn deployment() -> Schema {
        Builtins::get().kind(&GroupVersionKind::new("apps", "v1", "Deployment")).unwrap().schema.clone()
    }

    #[test]
    fn lists_merge_by_key_and_scalars_are_added() {
        let document = json!({
            "metadata": {"finalizers": ["a", "b"]},
            "spec": {
                "containers": [
                    {"name": "a", "image": "a:1", "args": ["x"], "ports": [{"containerPort": 80, "name": "http"}]},
                    {"name": "b", "image": "b:1"},
                ],
                "tolerations": [{"key": "x"}],
            },
        });
        let cases = [
            (
                json!({"spec": {"containers": [{"name": "b", "image": "b:2"}, {"name": "c", "image": "c:1"}]}}),
                "/spec/containers",
                json!([
                    {"name": "a", "image": "a:1", "args": ["x"], "ports": [{"containerPort": 80, "name": "http"}]},
                    {"name": "b", "image": "b:2"},
                    {"name": "c", "image": "c:1"},
                ]),
            ),
            (
                json!({"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}),
                "/spec/containers",
                json!([{"name": "b", "image": "b:1"}]),
            ),
            (
                json!({"spec": {"containers": [{"$patch": "replace"}, {"name": "z"}]}}),
                "/spec/containers",
                json!([{"name": "z"}]),
            ),
            (
                json!({"spec": {"containers": [{"name": "a", "args": ["y"], "ports": [{"containerPort": 80, "name": "web"}]}]}}),
                "/spec/containers/0",
                json!({"name": "a", "image": "a:1", "args": ["y"], "ports": [{"containerPort": 80, "name": "web"}]}),
            ),
            (
                json!({"spec": {"containers": [{"name": "b", "image": null}]}}),
                "/spec/containers/1",
                json!({"name": "b"}),
            ),
            (json!({"spec": {"tolerations": [{"key": "y"}]}}), "/spec/tolerations", json!([{"key": "y"}])),
            (json!({"metadata": {"finalizers": ["b", "c"]}}), "/metadata/finalizers", json!(["a", "b", "c"])),
            (json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}), "/metadata/finalizers", json!(["b"])),
            (
                json!({"metadata": {"finalizers": ["c"], "$setElementOrder/finalizers": ["c", "b", "a"]}}),
                "/metadata/finalizers",
                json!(["c", "b", "a"]),
            ),
            (
                json!({"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}}),
                "/spec/containers/0/name",
                json!("b"),
            ),
            (json!({"spec": {"$patch": "replace", "nodeName": "n"}}), "/spec", json!({"nodeName": "n"})),
        ];
        for (patch, pointer, expected) in cases {
            let patched = strategic_merge_patch(&pod(), &document, &patch).unwrap();
            assert_eq!(patched.pointer(pointer), Some(&expected), "{patch}");
        }
    }

    #[test]
    fn a_deleted_object_is_removed() {
        let document = json!({"spec": {"securityContext": {"runAsUser": 1}, "nodeName": "n"}});
        let patch = json!({"spec": {"securityContext": {"$patch": "delete"}}});
        assert_eq!(strategic_merge_patch(&pod(), &document, &patch).unwrap(), json!({"spec": {"nodeName": "n"}}));
    }

    #[test]
    fn retained_keys_drop_the_rest() {
        let document = json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
        let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
        assert_eq!(
            strategic_merge_patch(&deployment(), &document, &patch).unwrap(),
            json!({"spec": {"strategy": {"type": "Recreate"}}})
        );
    }

    #[test]
    fn malformed_directives_are_refused() {
        for patch in [
            json!([]),
            json!({"spec": {"$patch": "burn"}}),
            json!({"spec": {"containers": [{"image": "x"}]}}),
            json!({"spec": {"containers": ["x"]}}),
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}}),
            json!({"metadata": {"finalizers": ["c"], "$setElementOrder/finalizers": ["a"]}}),
            json!({"spec": {"$retainKeys": ["a"], "b": 1}}),
        ] {
            assert!(
                matches!(strategic_merge_patch(&pod(), &json!({}), &patch), Err(PatchError::Malformed(_))),
                "{patch}"
            );
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Bool(true)),
            any::<i32>().prop_map(Value::from),
            "[a-z$/]{0,6}".prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            let names = prop_oneof![
                Just("spec"),
                Just("containers"),
                Just("name"),
                Just("metadata"),
                Just("finalizers"),
                Just("$patch"),
                Just("$setElementOrder/containers"),
                Just("$retainKeys"),
                Just("$deleteFromPrimitiveList/finalizers"),
            ];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::hash_map(names.prop_map(str::to_owned), inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_empty_patch_changes_nothing(document in any_json()) {
            prop_assume!(document.is_object());
            prop_assert_eq!(strategic_merge_patch(&pod(), &document, &json!({})).unwrap(), document);
        }

        #[test]
        fn any_patch_is_applied_or_refused(document in any_json(), patch in any_json()) {
            let _ = strategic_merge_patch(&pod(), &document, &patch);
        }
    }
}
