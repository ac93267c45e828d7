//! The references of `spec.valuesFrom`, merged in their order, with `spec.config` over them. Pure.

use chandler_api::{DEFAULT_VALUES_KEY, ValuesInUse, ValuesKind, ValuesReference};
use chandler_core::Digest;
use serde_json::{Map, Value};

use crate::{
    assignment::{Assignment, typed},
    document,
    error::{Problem, ValuesError},
    read::{Object, Objects},
    redaction::Redactor,
};

/// The most bytes of the values of all references together. By default an API server accepts little more for one object.
pub const TOTAL_BYTES: usize = 1 << 20;

/// The values of all references. It has no `Debug`: it holds values of Secrets.
#[derive(Clone, Default, PartialEq)]
pub struct Values {
    merged: Map<String, Value>,
    /// Like `merged`, without values of Secrets.
    public: Map<String, Value>,
    references: Vec<ValuesReference>,
    in_use: Vec<ValuesInUse>,
    redactor: Redactor,
}

impl Values {
    /// The values that references have in these objects of a namespace.
    pub fn resolve(references: &[ValuesReference], namespace: &str, objects: &Objects) -> Result<Self, ValuesError> {
        let mut values = Self { references: references.to_vec(), in_use: objects.in_use(), ..Self::default() };
        let (mut secrets, mut left) = (Vec::new(), TOTAL_BYTES);
        for (index, reference) in references.iter().enumerate() {
            let key = key(reference);
            let failed = |key: Option<&str>, problem| ValuesError {
                index,
                kind: reference.kind,
                object: format!("{namespace}/{}", reference.name),
                key: key.map(str::to_owned),
                problem,
            };
            let object = objects.0.get(&(reference.kind, reference.name.clone())).and_then(Option::as_ref);
            let Some(object) = object else {
                if reference.optional {
                    continue;
                }
                return Err(failed(None, Problem::NotFound));
            };
            let Some(bytes) = object.keys.get(key) else {
                if reference.optional {
                    continue;
                }
                return Err(failed(Some(key), Problem::KeyNotFound { keys: keys(reference.kind, object) }));
            };
            left = left
                .checked_sub(bytes.len())
                .ok_or_else(|| failed(Some(key), Problem::TooLarge { limit: TOTAL_BYTES }))?;
            let layer = layer(reference, bytes).map_err(|problem| failed(Some(key), problem))?;
            if reference.kind == ValuesKind::Secret {
                secrets.push(layer.value());
            } else {
                // Without the values of Secrets a path may lead nowhere. For values that are left out, their versions are in the digest.
                let _ = layer.clone().put(&mut values.public);
            }
            layer.put(&mut values.merged).map_err(|problem| failed(Some(key), problem))?;
        }
        values.redactor = Redactor::of(&secrets);
        Ok(values)
    }

    /// Whether there are no references.
    pub fn is_empty(&self) -> bool {
        self.references.is_empty()
    }

    /// Whether a reference names a Secret.
    pub fn has_secrets(&self) -> bool {
        has_secrets(&self.references)
    }

    /// The configuration with these values below it: maps are merged member by member, everything else is replaced.
    pub fn below(&self, config: Option<&Map<String, Value>>) -> Map<String, Value> {
        overlaid(&self.merged, config)
    }

    /// A digest of the configuration that does not depend on values of Secrets, which could be guessed from it, but on their versions.
    /// `complete` is a configuration without values of Secrets.
    pub fn digest(&self, complete: &Map<String, Value>) -> Digest {
        Digest::of_json(&(complete, &self.references, &self.in_use))
    }

    /// A digest of the configuration and the references, which does not depend on any value in the objects.
    pub fn references_digest(&self, config: Option<&Map<String, Value>>) -> Digest {
        Digest::of_json(&(config, &self.references))
    }

    /// The configuration with the values of ConfigMaps alone below it.
    pub fn public_below(&self, config: Option<&Map<String, Value>>) -> Map<String, Value> {
        overlaid(&self.public, config)
    }

    /// The objects, for a revision.
    pub fn in_use(&self) -> &[ValuesInUse] {
        &self.in_use
    }

    /// What hides the values of Secrets.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }
}

/// Whether a reference names a Secret.
pub fn has_secrets(references: &[ValuesReference]) -> bool {
    references.iter().any(|reference| reference.kind == ValuesKind::Secret)
}

/// The values of one reference.
#[derive(Clone)]
enum Layer {
    Map(Map<String, Value>),
    Single(Box<Assignment>),
}

impl Layer {
    fn put(self, values: &mut Map<String, Value>) -> Result<(), Problem> {
        match self {
            Self::Map(map) => overlay(values, map),
            Self::Single(assignment) => assignment.apply(values)?,
        }
        Ok(())
    }

    fn value(&self) -> Value {
        match self {
            Self::Map(map) => Value::Object(map.clone()),
            Self::Single(assignment) => assignment.value().clone(),
        }
    }
}

fn layer(reference: &ValuesReference, bytes: &[u8]) -> Result<Layer, Problem> {
    let Some(path) = &reference.target_path else {
        return document::values(bytes, reference.kind == ValuesKind::Secret).map(Layer::Map);
    };
    let value = single(document::text(bytes)?);
    Ok(Layer::Single(Box::new(Assignment::at(path, value)?)))
}

/// A single value as Flux reads it: text in quotes is a string, other text has the type that `--set` gives it.
fn single(text: &str) -> Value {
    let quoted = ['"', '\''].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote));
    quoted.map_or_else(|| typed(text), Value::from)
}

fn key(reference: &ValuesReference) -> &str {
    reference.values_key.as_deref().filter(|key| !key.is_empty()).unwrap_or(DEFAULT_VALUES_KEY)
}

fn keys(kind: ValuesKind, object: &Object) -> Vec<String> {
    if kind == ValuesKind::Secret { Vec::new() } else { object.keys.keys().cloned().collect() }
}

fn overlaid(base: &Map<String, Value>, config: Option<&Map<String, Value>>) -> Map<String, Value> {
    let mut result = base.clone();
    overlay(&mut result, config.cloned().unwrap_or_default());
    result
}

/// Puts one map over another: maps are merged member by member, everything else is replaced. A null stays, as in `spec.config`.
pub fn overlay(base: &mut Map<String, Value>, above: Map<String, Value>) {
    for (name, value) in above {
        match (base.get_mut(&name), value) {
            (Some(Value::Object(below)), Value::Object(above)) => overlay(below, above),
            (_, value) => {
                base.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::ObjectMeta;
    use serde_json::json;

    use super::*;

    fn object(uid: &str, keys: &[(&str, &str)]) -> Object {
        let metadata =
            ObjectMeta { uid: Some(uid.to_owned()), resource_version: Some("1".to_owned()), ..ObjectMeta::default() };
        let keys = keys.iter().map(|(key, text)| ((*key).to_owned(), text.as_bytes().to_vec())).collect();
        Object { metadata, keys }
    }

    fn objects() -> Objects {
        let id = |kind, name: &str| (kind, name.to_owned());
        Objects(
            [
                (
                    id(ValuesKind::ConfigMap, "base"),
                    Some(object(
                        "a",
                        &[
                            ("values.yaml", "a: {x: 1, w: 1}\nl: [1, 2]\n"),
                            ("other", "a: 7\n"),
                            ("list", "[hunter]\n"),
                            ("bad", "a: [\n"),
                        ],
                    )),
                ),
                (
                    id(ValuesKind::Secret, "db"),
                    Some(object(
                        "b",
                        &[
                            ("values.yaml", "a: {w: hunter2}\n"),
                            ("password", "hunter2"),
                            ("pin", "1234"),
                            ("quoted", "\"1234\""),
                            ("bad", "hunter2: [\n"),
                            ("text", "hunter2"),
                        ],
                    )),
                ),
                (id(ValuesKind::Secret, "gone"), None),
            ]
            .into(),
        )
    }

    fn references(value: Value) -> Vec<ValuesReference> {
        serde_json::from_value(value).unwrap()
    }

    fn resolve(list: Value) -> Result<Values, ValuesError> {
        Values::resolve(&references(list), "shop", &objects())
    }

    #[test]
    fn references_are_merged_in_their_order_below_the_configuration() {
        let (base, db) = (json!({"kind": "ConfigMap", "name": "base"}), json!({"kind": "Secret", "name": "db"}));
        let config = json!({"a": {"z": 3}, "l": [9]}).as_object().cloned();
        let merged =
            |list: Value| Value::Object(resolve(list).unwrap_or_else(|error| panic!("{error}")).below(config.as_ref()));
        assert_eq!(merged(json!([])), json!({"a": {"z": 3}, "l": [9]}));
        assert_eq!(merged(json!([base, db])), json!({"a": {"x": 1, "w": "hunter2", "z": 3}, "l": [9]}));
        assert_eq!(merged(json!([db, base])), json!({"a": {"x": 1, "w": 1, "z": 3}, "l": [9]}));
        let at = |key: &str, path: &str| json!({"kind": "Secret", "name": "db", "valuesKey": key, "targetPath": path});
        assert_eq!(
            merged(json!([at("password", "s[0].password"), at("pin", "n"), at("quoted", "q")])),
            json!({"a": {"z": 3}, "l": [9], "s": [{"password": "hunter2"}], "n": 1234, "q": "1234"})
        );
        let optional = json!([
            {"kind": "Secret", "name": "gone", "optional": true},
            {"kind": "Secret", "name": "db", "valuesKey": "no", "optional": true},
        ]);
        assert_eq!(merged(optional), json!({"a": {"z": 3}, "l": [9]}));
    }

    #[test]
    fn a_problem_names_the_object_and_the_key_and_what_to_do() {
        let refused = |reference: Value| {
            let error = resolve(json!([reference])).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(!error.contains("hunter"), "{error}");
            error
        };
        let of = |kind: &str, name: &str, key: &str| refused(json!({"kind": kind, "name": name, "valuesKey": key}));
        insta::assert_snapshot!(refused(json!({"kind": "Secret", "name": "gone"})), @"spec.valuesFrom[0]: Secret shop/gone: does not exist: create it, or set `optional: true` in the reference");
        insta::assert_snapshot!(of("ConfigMap", "base", "no"), @"spec.valuesFrom[0]: ConfigMap shop/base, key no: the key does not exist (it has bad, list, other, values.yaml): add it, correct `valuesKey`, or set `optional: true`");
        insta::assert_snapshot!(of("Secret", "db", "no"), @"spec.valuesFrom[0]: Secret shop/db, key no: the key does not exist: add it, correct `valuesKey`, or set `optional: true`");
        insta::assert_snapshot!(of("ConfigMap", "base", "list"), @"spec.valuesFrom[0]: ConfigMap shop/base, key list: is of type array, but values are a map: correct the text, or set `targetPath` to the place of a single value");
        let (shown, hidden) = (of("ConfigMap", "base", "bad"), of("Secret", "db", "bad"));
        assert!(
            shown.starts_with("spec.valuesFrom[0]: ConfigMap shop/base, key bad: is not valid YAML (line "),
            "{shown}"
        );
        let place = hidden.strip_prefix("spec.valuesFrom[0]: Secret shop/db, key bad: is not valid YAML (line ");
        let place = place.and_then(|rest| rest.strip_suffix("): correct the text")).unwrap();
        assert!(place.chars().all(|char| char.is_ascii_digit() || ", column".contains(char)), "{hidden}");
        insta::assert_snapshot!(of("Secret", "db", "text"), @"spec.valuesFrom[0]: Secret shop/db, key text: is of type string, but values are a map: correct the text, or set `targetPath` to the place of a single value");
        let path = json!({"kind": "Secret", "name": "db", "valuesKey": "password", "targetPath": "a..b"});
        insta::assert_snapshot!(refused(path), @r#"spec.valuesFrom[0]: Secret shop/db, key password: targetPath: a part of the path in "a..b" is empty"#);
        let bad = json!({"kind": "ConfigMap", "name": "base", "valuesKey": "bad", "optional": true});
        assert!(refused(bad).contains("not valid YAML"), "optional is about what is missing");
    }

    #[test]
    fn a_path_below_a_single_value_is_refused() {
        let list = json!([
            {"kind": "ConfigMap", "name": "base", "valuesKey": "other"},
            {"kind": "Secret", "name": "db", "valuesKey": "password", "targetPath": "a.b"},
        ]);
        insta::assert_snapshot!(resolve(list).err().unwrap(), @"spec.valuesFrom[1]: Secret shop/db, key password: targetPath: a.b cannot be set: a is not an object");
    }

    #[test]
    fn the_values_of_all_references_are_bounded() {
        let half = "a: ".to_owned() + &"x".repeat(TOTAL_BYTES / 2 + 1);
        let objects =
            Objects([((ValuesKind::ConfigMap, "big".to_owned()), Some(object("a", &[("values.yaml", &half)])))].into());
        let reference = references(json!([{"kind": "ConfigMap", "name": "big"}, {"kind": "ConfigMap", "name": "big"}]));
        assert!(Values::resolve(&reference[..1], "n", &objects).is_ok());
        let error = Values::resolve(&reference, "n", &objects).err().unwrap();
        assert_eq!((error.index, error.problem), (1, Problem::TooLarge { limit: TOTAL_BYTES }));
    }

    #[test]
    fn the_digest_depends_on_versions_and_not_on_values_of_secrets() {
        let list = references(json!([{"kind": "ConfigMap", "name": "base"}, {"kind": "Secret", "name": "db"}]));
        let digest = |objects: &Objects| {
            let values = Values::resolve(&list, "n", objects).unwrap_or_else(|error| panic!("{error}"));
            assert!(!Value::Object(values.public_below(None)).to_string().contains("hunter2"));
            values.digest(&values.public_below(None))
        };
        let id = (ValuesKind::Secret, "db".to_owned());
        let (first, mut other) = (objects(), objects());
        other.0.insert(id.clone(), Some(object("b", &[("values.yaml", "a: {w: other}\n")])));
        assert_eq!(digest(&first), digest(&other), "the same version");
        other.0.insert(id, Some(object("c", &[("values.yaml", "a: {w: hunter2}\n")])));
        assert_ne!(digest(&first), digest(&other), "another object");
        let again = Values::resolve(&list[..1], "n", &first).unwrap_or_else(|error| panic!("{error}"));
        assert_ne!(digest(&first), again.digest(&again.public_below(None)));
    }
}
