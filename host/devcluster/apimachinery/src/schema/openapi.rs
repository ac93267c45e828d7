//! `/openapi/v3` documents, which kubectl reads for validation, `explain` and merge keys.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::schema::{
    registry::Builtins,
    resources::{GroupVersionKind, ResourceType},
    table,
};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/// The OpenAPI v3 document of one group and version.
///
/// It holds the paths of `resources`, with the query parameters that kubectl looks for (`fieldValidation`, `dryRun`,
/// `fieldManager`, `force`), and every type that they refer to. Built-in types carry no descriptions.
pub fn document(title: &str, resources: &[&ResourceType]) -> Value {
    let mut schemas = Map::new();
    let mut paths = Map::new();
    let mut wanted = BTreeSet::from([OBJECT_META.to_owned(), LIST_META.to_owned(), DELETE_OPTIONS.to_owned()]);
    for resource in resources {
        if resource.schema.is_builtin() {
            wanted.insert(resource.definition.clone());
        } else {
            let schema = custom_schema(resource);
            collect_references(&schema, &mut wanted);
            schemas.insert(resource.definition.clone(), schema);
        }
        schemas.insert(format!("{}List", resource.definition), list_schema(resource));
        add_paths(resource, &mut paths);
    }
    add_definitions(wanted, &mut schemas);
    json!({
        "openapi": "3.0.0",
        "info": {"title": title, "version": Builtins::KUBERNETES_VERSION},
        "paths": paths,
        "components": {"schemas": schemas},
    })
}

/// Adds built-in types and all that they refer to.
fn add_definitions(mut wanted: BTreeSet<String>, schemas: &mut Map<String, Value>) {
    while let Some(name) = wanted.pop_first() {
        if schemas.contains_key(&name) {
            continue;
        }
        let Some(definition) = table::table().definitions.get(&name) else { continue };
        let rendered = rendered(definition);
        collect_references(&rendered, &mut wanted);
        schemas.insert(name, rendered);
    }
}

/// Turns the table's short references into OpenAPI ones; a reference with siblings becomes an `allOf`, as in Kubernetes.
fn rendered(schema: &Value) -> Value {
    match schema {
        Value::Object(object) => {
            let mut rendered_object: Map<String, Value> = object
                .iter()
                .filter(|(name, value)| *name != "$ref" || !value.is_string())
                .map(|(name, value)| (name.clone(), rendered(value)))
                .collect();
            if let Some(Value::String(name)) = object.get("$ref") {
                let reference = reference(name);
                if rendered_object.is_empty() {
                    return reference;
                }
                rendered_object.insert("allOf".to_owned(), json!([reference]));
            }
            Value::Object(rendered_object)
        }
        Value::Array(items) => Value::Array(items.iter().map(rendered).collect()),
        scalar => scalar.clone(),
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn collect_references(schema: &Value, wanted: &mut BTreeSet<String>) {
    match schema {
        Value::Object(object) => {
            for (name, value) in object {
                match value {
                    Value::String(target) if name == "$ref" => {
                        wanted.insert(target.trim_start_matches("#/components/schemas/").to_owned());
                    }
                    value => collect_references(value, wanted),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, wanted)),
        _ => {}
    }
}

fn kind_extension(kind: &GroupVersionKind) -> Value {
    json!({"group": kind.group, "version": kind.version, "kind": kind.kind})
}

fn custom_schema(resource: &ResourceType) -> Value {
    let mut schema = match &resource.schema.openapi {
        Value::Object(schema) => schema.clone(),
        _ => Map::from_iter([
            ("type".to_owned(), "object".into()),
            ("x-kubernetes-preserve-unknown-fields".to_owned(), true.into()),
        ]),
    };
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        properties.insert("apiVersion".to_owned(), json!({"type": "string"}));
        properties.insert("kind".to_owned(), json!({"type": "string"}));
        properties.insert("metadata".to_owned(), reference(OBJECT_META));
    }
    let kind = kind_extension(&resource.group_version_kind);
    schema.insert("x-kubernetes-group-version-kind".to_owned(), json!([kind]));
    Value::Object(schema)
}

fn list_schema(resource: &ResourceType) -> Value {
    let mut kind = resource.group_version_kind.clone();
    kind.kind.push_str("List");
    json!({
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": reference(LIST_META),
            "items": {"type": "array", "items": reference(&resource.definition)},
        },
        "x-kubernetes-group-version-kind": [kind_extension(&kind)],
    })
}

fn add_paths(resource: &ResourceType, paths: &mut Map<String, Value>) {
    let kind = &resource.group_version_kind;
    let root =
        if kind.group.is_empty() { format!("/api/{}", kind.version) } else { format!("/apis/{}", kind.api_version()) };
    let plural = &resource.plural;
    let collection = if resource.namespaced {
        format!("{root}/namespaces/{{namespace}}/{plural}")
    } else {
        format!("{root}/{plural}")
    };
    let operations = |verbs: &[(&str, &str)]| {
        let operations = verbs.iter().map(|(method, action)| ((*method).to_owned(), operation(resource, action)));
        Value::Object(operations.collect())
    };
    if resource.virtual_resource {
        paths.insert(collection, operations(&[("post", "post")]));
        return;
    }
    if resource.namespaced {
        paths.insert(format!("{root}/{plural}"), operations(&[("get", "list")]));
    }
    let item = format!("{collection}/{{name}}");
    let on_one = [("get", "get"), ("put", "put"), ("patch", "patch")];
    if resource.status {
        paths.insert(format!("{item}/status"), operations(&on_one));
    }
    paths.insert(collection, operations(&[("get", "list"), ("post", "post"), ("delete", "deletecollection")]));
    paths.insert(item, operations(&[("get", "get"), ("put", "put"), ("patch", "patch"), ("delete", "delete")]));
}

fn operation(resource: &ResourceType, action: &str) -> Value {
    let parameters: &[&str] = match action {
        "list" | "deletecollection" => {
            &["labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "watch"]
        }
        "post" | "put" => &["dryRun", "fieldManager", "fieldValidation"],
        "patch" => &["dryRun", "fieldManager", "fieldValidation", "force"],
        "delete" => &["dryRun", "gracePeriodSeconds", "propagationPolicy"],
        _ => &["resourceVersion"],
    };
    let parameters: Vec<Value> = parameters
        .iter()
        .map(|name| {
            let value_type = match *name {
                "force" | "watch" => "boolean",
                "limit" | "gracePeriodSeconds" => "integer",
                _ => "string",
            };
            json!({"name": name, "in": "query", "schema": {"type": value_type, "uniqueItems": true}})
        })
        .collect();
    let content = json!({"application/json": {"schema": reference(&resource.definition)}});
    let mut operation = json!({
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": content}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": kind_extension(&resource.group_version_kind),
    });
    if let (Some(operation), "post" | "put") = (operation.as_object_mut(), action) {
        operation.insert("requestBody".to_owned(), json!({"required": true, "content": content}));
    }
    operation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_resolve_their_references_and_contain_what_kubectl_needs() {
        let resources: Vec<&ResourceType> =
            Builtins::get().resources().iter().filter(|resource| resource.group_version_kind.group == "apps").collect();
        let document = document("apps", &resources);
        let mut references = BTreeSet::new();
        collect_references(&document, &mut references);
        for name in &references {
            assert!(document["components"]["schemas"].get(name).is_some(), "{name}");
        }
        let patch = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
        assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "Deployment");
        assert!(patch["parameters"].as_array().unwrap().iter().any(|parameter| parameter["name"] == "fieldValidation"));
        let spec = &document["components"]["schemas"]["io.k8s.api.apps.v1.DeploymentSpec"]["properties"];
        assert_eq!(spec["strategy"]["x-kubernetes-patch-strategy"], "retainKeys");
        assert_eq!(spec["strategy"]["allOf"][0]["$ref"], "#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy");
    }

    #[test]
    fn every_resource_of_the_table_has_a_type() {
        for resource in Builtins::get().resources() {
            assert!(resource.schema.is_builtin(), "{}", resource.definition);
            assert!(resource.schema.property("kind").is_some(), "{}", resource.definition);
        }
    }
}
