//! The JSON Schema of the configuration.

use serde_json::{Map, Value, json};

use super::watch::{LONGEST, NAMESPACE_PATTERN};
use crate::{
    json::set,
    modes::InstallModes,
    typed::{Keep, Record, Type, tables::pod::SUBSCRIPTION_CONFIG},
};

/// The schema for an operator with these install modes.
///
/// `deploymentConfig` is made from the tables of types. As with the reference, its own keys are closed, and everything
/// below them is open: a field that a newer Kubernetes knows passes, and is dropped by the typed round trip.
pub(crate) fn schema(modes: &InstallModes) -> Value {
    let mut deployment_config = record(&SUBSCRIPTION_CONFIG);
    set(&mut deployment_config, ["description"], "Changes to the Deployments of the operator.");
    set(&mut deployment_config, ["additionalProperties"], false);
    let mut properties = json!({
        "certificateProvider": {
            "description": "Who makes the certificates of webhooks; `none` leaves them to you.",
            "enum": ["cert-manager", "openshift-service-ca", "none", null],
        },
        "compatibility": {
            "description": "`reference` for the objects of OLM v1, faults and all; `extended` to have known faults mended.",
            "enum": ["reference", "extended", null],
            "default": "reference",
        },
        "deploymentConfig": deployment_config,
    });
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of a registry+v1 bundle",
        "type": "object",
        "additionalProperties": false,
    });
    let configurable = modes.own() || modes.single();
    if configurable {
        let required = !modes.all() && !modes.multi();
        set(&mut properties, ["watchNamespace"], watch_namespace(modes, required));
        if required {
            set(&mut schema, ["required"], json!(["watchNamespace"]));
        }
    }
    if modes.multi() {
        set(
            &mut properties,
            ["watchNamespaces"],
            json!({
                "description": "The namespaces that the operator watches.",
                "anyOf": [{"type": "null"}, {"type": "array", "minItems": 1, "items": namespace()}],
            }),
        );
        if configurable && !modes.all() {
            set(&mut schema, ["anyOf"], json!([{"required": ["watchNamespace"]}, {"required": ["watchNamespaces"]}]));
        }
    }
    set(&mut schema, ["properties"], properties);
    schema
}

fn namespace() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": LONGEST, "pattern": NAMESPACE_PATTERN})
}

fn watch_namespace(modes: &InstallModes, required: bool) -> Value {
    let mut namespace = namespace();
    // Which namespace that is, only the request knows; the format tells a reader, and `provision` checks.
    match (modes.own(), modes.single()) {
        (true, false) => set(&mut namespace, ["format"], "ownNamespaceInstallMode"),
        (false, true) => set(&mut namespace, ["format"], "singleNamespaceInstallMode"),
        _ => {}
    }
    let description = "The namespace that the operator watches.";
    if required {
        set(&mut namespace, ["description"], json!(description));
        return namespace;
    }
    json!({"description": description, "anyOf": [{"type": "null"}, namespace]})
}

fn record(record: &Record) -> Value {
    let properties: Map<String, Value> =
        record.fields.iter().map(|field| (field.name.to_owned(), of(&field.kind))).collect();
    let required: Vec<&str> = record
        .fields
        .iter()
        .filter(|field| matches!(field.keep, Keep::Always | Keep::Required))
        .map(|field| field.name)
        .collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        set(&mut schema, ["required"], json!(required));
    }
    schema
}

fn of(kind: &Type) -> Value {
    match kind {
        Type::String | Type::Time | Type::Bytes => json!({"type": "string"}),
        Type::Bool => json!({"type": "boolean"}),
        Type::Int32 | Type::Int64 => json!({"type": "integer"}),
        Type::Float64 => json!({"type": "number"}),
        Type::Quantity => json!({"type": ["string", "number"]}),
        Type::IntOrString => json!({"type": ["string", "integer"]}),
        Type::Any => json!({}),
        Type::SchemaOrBool => json!({"type": ["object", "boolean"]}),
        Type::SchemaOrList | Type::SchemaOrStrings => json!({"type": ["object", "array"]}),
        Type::List(item) => json!({"type": "array", "items": of(item)}),
        Type::Map(value) => json!({"type": "object", "additionalProperties": of(value)}),
        Type::Record(inner) => record(inner),
    }
}
