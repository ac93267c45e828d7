//! The JSON Schema of the configuration.

use serde_json::{Map, Value, json};

use super::{
    environment::PROXY,
    watch::{LONGEST, NAMESPACE_PATTERN},
};
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
            "description": "Who makes the certificates of webhooks and aggregated APIs; `none` leaves them to you.",
            "enum": ["cert-manager", "openshift-service-ca", "host", "none", null],
        },
        "compatibility": {
            "description": "`extended` to have known faults and limits of OLM v1 mended; `reference` for its very objects.",
            "enum": ["reference", "extended", null],
            "default": "extended",
        },
        "deploymentConfig": deployment_config,
        "operatorConditionName": {
            "description": "The name of the OperatorCondition that the operator reports to, for its variable OPERATOR_CONDITION_NAME.",
            "anyOf": [{"type": "null"}, {"type": "string", "minLength": 1, "maxLength": 253}],
        },
        "proxy": proxy(),
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

fn proxy() -> Value {
    let members: Map<String, Value> = PROXY
        .into_iter()
        .map(|(member, variable, description)| {
            let description = format!("{description} Becomes the variable {variable} of the operator.");
            (member.to_owned(), json!({"description": description, "type": ["string", "null"], "minLength": 1}))
        })
        .collect();
    json!({
        "description": "The proxies by which the operator reaches what is outside the cluster.",
        "type": ["object", "null"],
        "additionalProperties": false,
        "properties": members,
    })
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
