//! Parses OpenAPI v3 schemas to [`Schema`]s.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use serde_json::{Map, Value};

use crate::schema::{
    model::{
        Combinations, Definition, ListType, MapType, Node, PatchStrategy, Pattern, Range, Rule, Scalar, Schema, Shape,
    },
    presence,
};

/// Deepest nesting read; `JSONSchemaProps` of real CRDs stay below 40.
const DEEPEST: usize = 200;

/// Why a schema cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// Something that must be a schema is not an object.
    #[error("{path}: a schema must be an object")]
    NotAnObject {
        /// Path of the schema.
        path: String,
    },
    /// `type` is none of the OpenAPI types.
    #[error("{path}: type {found:?} is none of array, boolean, integer, number, object, string")]
    UnknownType {
        /// Path of the schema.
        path: String,
        /// The type found.
        found: String,
    },
    /// A reference to a definition that does not exist.
    #[error("{path}: there is no definition {name:?}")]
    UnknownReference {
        /// Path of the schema.
        path: String,
        /// The name referred to.
        name: String,
    },
    /// The nesting exceeds the limit.
    #[error("{path}: schemas nest deeper than {DEEPEST} levels")]
    TooDeep {
        /// Path of the schema.
        path: String,
    },
}

/// Reads a schema that refers to no definitions.
pub(crate) fn whole(json: &Value) -> Result<Node, SchemaError> {
    Parser { names: None }.node(json, "openAPIV3Schema", 0)
}

/// Reads a part of the schema of a CRD, without its rules.
pub(crate) fn part(json: &Value) -> Result<Schema, SchemaError> {
    let mut node = whole(json)?;
    node.rules.clear();
    Ok(Schema::new(node))
}

/// Reads one definition of the built-in table.
pub(crate) fn definition(name: &str, json: &Value, names: &HashMap<String, Definition>) -> Result<Node, SchemaError> {
    match name {
        // The generated JSON schema calls a quantity "string or number" and an IntOrString "string or integer".
        "io.k8s.apimachinery.pkg.api.resource.Quantity" => Ok(scalar_node(Scalar::Quantity)),
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString" => Ok(scalar_node(Scalar::IntOrString)),
        _ => {
            let mut node = Parser { names: Some(names) }.node(json, name, 0)?;
            add_key_defaults(name, &mut node.shape);
            presence::mark(name, &mut node.shape);
            name.clone_into(&mut node.name);
            Ok(node)
        }
    }
}

/// Key fields of lists that may be omitted; the package drops the defaults that the OpenAPI document of Kubernetes states.
fn add_key_defaults(name: &str, shape: &mut Shape) {
    const WITH_PROTOCOL: &[&str] = &["io.k8s.api.core.v1.ContainerPort", "io.k8s.api.core.v1.ServicePort"];
    let Shape::Object { properties, .. } = shape else { return };
    if WITH_PROTOCOL.contains(&name)
        && let Some(protocol) = properties.get_mut("protocol")
    {
        protocol.default = Some(Arc::new(Value::from("TCP")));
    }
}

fn scalar_node(scalar: Scalar) -> Node {
    Node { shape: Shape::Scalar(scalar), ..Node::default() }
}

struct Parser<'a> {
    /// Names of the built-in definitions; `None` for CRDs, which have no references.
    names: Option<&'a HashMap<String, Definition>>,
}

impl Parser<'_> {
    fn schema(&self, json: &Value, path: &str, depth: usize) -> Result<Schema, SchemaError> {
        let mut schema = match (json.get("$ref").and_then(Value::as_str), self.names) {
            (Some(name), Some(names)) => {
                let definition = names
                    .get(name)
                    .ok_or_else(|| SchemaError::UnknownReference { path: path.to_owned(), name: name.to_owned() })?;
                Schema::definition(definition)
            }
            _ => Schema::new(self.node(json, path, depth)?),
        };
        schema.patch = patch_strategy(json);
        schema.default = json.get("default").cloned().map(Arc::new);
        Ok(schema)
    }

    fn node(&self, json: &Value, path: &str, depth: usize) -> Result<Node, SchemaError> {
        if depth > DEEPEST {
            return Err(SchemaError::TooDeep { path: path.to_owned() });
        }
        let object = json.as_object().ok_or_else(|| SchemaError::NotAnObject { path: path.to_owned() })?;
        let shape = if flag(object, "x-kubernetes-int-or-string") {
            Shape::Scalar(Scalar::IntOrString)
        } else {
            match object.get("type").and_then(Value::as_str).or_else(|| implied_type(object)) {
                Some("object") => self.object(object, path, depth)?,
                Some("array") => self.list(object, path, depth)?,
                Some("string") => Shape::Scalar(Scalar::String {
                    format: text(object, "format"),
                    pattern: text(object, "pattern").map(Pattern::new),
                    length: size(object, "minLength", "maxLength"),
                }),
                Some("integer") => {
                    Shape::Scalar(Scalar::Integer { format: text(object, "format"), range: range(object) })
                }
                Some("number") => Shape::Scalar(Scalar::Number { range: range(object) }),
                Some("boolean") => Shape::Scalar(Scalar::Boolean),
                None if flag(object, "x-kubernetes-preserve-unknown-fields") => Shape::Deduced,
                None => Shape::Any,
                Some(other) => {
                    return Err(SchemaError::UnknownType { path: path.to_owned(), found: other.to_owned() });
                }
            }
        };
        Ok(Node {
            name: String::new(),
            shape,
            nullable: flag(object, "nullable"),
            enumeration: object.get("enum").and_then(Value::as_array).cloned().unwrap_or_default(),
            rules: rules(object),
            combinations: self.combinations(object, path, depth)?,
            openapi: if depth == 0 && self.names.is_none() { json.clone() } else { Value::Null },
        })
    }

    fn object(&self, object: &Map<String, Value>, path: &str, depth: usize) -> Result<Shape, SchemaError> {
        let properties = object.get("properties").and_then(Value::as_object).into_iter().flatten();
        let properties = properties
            .map(|(name, schema)| {
                Ok((name.clone(), self.schema(schema, &format!("{path}.properties[{name}]"), depth + 1)?))
            })
            .collect::<Result<_, SchemaError>>()?;
        let values = match object.get("additionalProperties") {
            Some(Value::Bool(true)) => Some(Schema::any()),
            None | Some(Value::Bool(false)) => None,
            Some(schema) => Some(self.schema(schema, &format!("{path}.additionalProperties"), depth + 1)?),
        };
        let required = object.get("required").and_then(Value::as_array).into_iter().flatten();
        let map_type = match object.get("x-kubernetes-map-type").and_then(Value::as_str) {
            Some("atomic") => MapType::Atomic,
            _ => MapType::Granular,
        };
        Ok(Shape::Object {
            properties,
            required: required.filter_map(Value::as_str).map(str::to_owned).collect(),
            values,
            map_type,
            // A built-in "object" without anything inside (RawExtension, FieldsV1) holds any object.
            preserve_unknown: flag(object, "x-kubernetes-preserve-unknown-fields")
                || (self.names.is_some()
                    && !object.contains_key("properties")
                    && !object.contains_key("additionalProperties")),
            embedded_resource: flag(object, "x-kubernetes-embedded-resource"),
            size: size(object, "minProperties", "maxProperties"),
        })
    }

    fn list(&self, object: &Map<String, Value>, path: &str, depth: usize) -> Result<Shape, SchemaError> {
        let items = match object.get("items") {
            Some(items) => self.schema(items, &format!("{path}.items"), depth + 1)?,
            None => Schema::any(),
        };
        let keys = object.get("x-kubernetes-list-map-keys").and_then(Value::as_array).into_iter().flatten();
        let list_type = match object.get("x-kubernetes-list-type").and_then(Value::as_str) {
            Some("set") => ListType::Set,
            Some("map") => ListType::Map(keys.filter_map(Value::as_str).map(str::to_owned).collect()),
            _ => ListType::Atomic,
        };
        Ok(Shape::List {
            items,
            list_type,
            size: size(object, "minItems", "maxItems"),
            unique: flag(object, "uniqueItems"),
        })
    }

    fn combinations(
        &self,
        object: &Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<Option<Combinations>, SchemaError> {
        let branches = |key: &str| -> Result<Vec<Schema>, SchemaError> {
            let branches = object.get(key).and_then(Value::as_array).into_iter().flatten();
            branches
                .enumerate()
                .map(|(index, branch)| self.schema(branch, &format!("{path}.{key}[{index}]"), depth + 1))
                .collect()
        };
        let combinations = Combinations {
            all_of: branches("allOf")?,
            any_of: branches("anyOf")?,
            one_of: branches("oneOf")?,
            not: object.get("not").map(|not| self.schema(not, &format!("{path}.not"), depth + 1)).transpose()?,
        };
        let empty = combinations.all_of.is_empty()
            && combinations.any_of.is_empty()
            && combinations.one_of.is_empty()
            && combinations.not.is_none();
        Ok(if empty { None } else { Some(combinations) })
    }
}

/// The type that a schema without `type` speaks of; members of `allOf`, `anyOf` and the like state none.
fn implied_type(object: &Map<String, Value>) -> Option<&'static str> {
    const KEYWORDS: &[(&str, &[&str])] = &[
        ("object", &["properties", "required", "additionalProperties", "minProperties", "maxProperties"]),
        ("array", &["items", "minItems", "maxItems", "uniqueItems"]),
        ("string", &["pattern", "minLength", "maxLength", "format"]),
        ("number", &["minimum", "maximum", "multipleOf"]),
    ];
    let speaks = |keywords: &[&str]| keywords.iter().any(|keyword| object.contains_key(*keyword));
    KEYWORDS.iter().find(|(_, keywords)| speaks(keywords)).map(|(name, _)| *name)
}

fn flag(object: &Map<String, Value>, key: &str) -> bool {
    object.get(key) == Some(&Value::Bool(true))
}

fn text(object: &Map<String, Value>, key: &str) -> Option<String> {
    object.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn size(object: &Map<String, Value>, least: &str, greatest: &str) -> (Option<u64>, Option<u64>) {
    (object.get(least).and_then(Value::as_u64), object.get(greatest).and_then(Value::as_u64))
}

fn range(object: &Map<String, Value>) -> Range {
    let number = |key: &str| object.get(key).and_then(Value::as_f64);
    Range {
        minimum: number("minimum"),
        exclusive_minimum: flag(object, "exclusiveMinimum"),
        maximum: number("maximum"),
        exclusive_maximum: flag(object, "exclusiveMaximum"),
        multiple_of: number("multipleOf"),
    }
}

fn patch_strategy(json: &Value) -> PatchStrategy {
    let strategies = json.get("x-kubernetes-patch-strategy").and_then(Value::as_str).unwrap_or_default();
    PatchStrategy {
        merge: strategies.split(',').any(|strategy| strategy == "merge"),
        retain_keys: strategies.split(',').any(|strategy| strategy == "retainKeys"),
        merge_key: json.get("x-kubernetes-patch-merge-key").and_then(Value::as_str).map(str::to_owned),
    }
}

/// The rules of a schema.
pub(crate) fn rules(object: &Map<String, Value>) -> Vec<Rule> {
    let rules = object.get("x-kubernetes-validations").and_then(Value::as_array).into_iter().flatten();
    rules
        .filter_map(Value::as_object)
        .map(|rule| Rule {
            rule: text(rule, "rule").unwrap_or_default(),
            message: text(rule, "message"),
            message_expression: text(rule, "messageExpression"),
            reason: text(rule, "reason"),
            field_path: text(rule, "fieldPath"),
            optional_old_self: flag(rule, "optionalOldSelf"),
            compiled: OnceLock::new(),
        })
        .collect()
}
