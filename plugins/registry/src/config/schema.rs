//! The JSON Schema of the configuration.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};

use super::{
    environment::PROXY,
    watch::{LONGEST, NAMESPACE_PATTERN},
};
use crate::{
    json::set,
    modes::InstallModes,
    typed::{Field, Keep, Record, Type, tables::pod::SUBSCRIPTION_CONFIG},
};

/// The schema for an operator with these install modes, as text.
///
/// `deploymentConfig` is generated from the tables of types. As in OLM v1, its own keys are closed, and everything
/// below them is open: a field of a newer Kubernetes passes, and is dropped by the normalization.
pub(crate) fn schema(modes: &InstallModes) -> Result<String, serde_json::Error> {
    serde_json::to_string(&Schema(modes))
}

/// The whole schema. It is serialized directly: it has more than a thousand parts, and the host requests it before
/// every release.
struct Schema<'a>(&'a InstallModes);

impl Serialize for Schema<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut schema = serializer.serialize_map(None)?;
        schema.serialize_entry("$schema", "https://json-schema.org/draft/2020-12/schema")?;
        schema.serialize_entry("title", "Configuration of a registry+v1 bundle")?;
        schema.serialize_entry("type", "object")?;
        let Self(modes) = self;
        let configurable = modes.own() || modes.single();
        if configurable && !modes.all() {
            if modes.multi() {
                let one = json!([{"required": ["watchNamespace"]}, {"required": ["watchNamespaces"]}]);
                schema.serialize_entry("anyOf", &one)?;
            } else {
                schema.serialize_entry("required", &["watchNamespace"])?;
            }
        }
        schema.serialize_entry("additionalProperties", &false)?;
        schema.serialize_entry("properties", &Properties(modes))?;
        schema.end()
    }
}

struct Properties<'a>(&'a InstallModes);

impl Serialize for Properties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(modes) = self;
        let mut properties = serializer.serialize_map(None)?;
        for (name, schema) in common() {
            properties.serialize_entry(name, &schema)?;
        }
        properties.serialize_entry("deploymentConfig", &DeploymentConfig)?;
        if modes.own() || modes.single() {
            let required = !modes.all() && !modes.multi();
            properties.serialize_entry("watchNamespace", &watch_namespace(modes, required))?;
        }
        if modes.multi() {
            let namespaces = json!({
                "description": "The namespaces that the operator watches.",
                "anyOf": [{"type": "null"}, {"type": "array", "minItems": 1, "items": namespace()}],
            });
            properties.serialize_entry("watchNamespaces", &namespaces)?;
        }
        properties.end()
    }
}

/// The keys that every bundle accepts.
fn common() -> [(&'static str, Value); 5] {
    let certificate_provider = json!({
        "description": "The provider of certificates for webhooks and aggregated APIs; with `none` you provide them. Default: the host; with `compatibility: reference`, bundles that need certificates are refused without a provider.",
        "enum": ["cert-manager", "openshift-service-ca", "host", "none", null],
    });
    let compatibility = json!({
        "description": "`extended` fixes known errors and limitations of OLM v1; `reference` gives exactly its objects.",
        "enum": ["reference", "extended", null],
        "default": "extended",
    });
    let operator_condition_name = json!({
        "description": "The name of the OperatorCondition that the operator reports to, for its variable OPERATOR_CONDITION_NAME.",
        "anyOf": [{"type": "null"}, {"type": "string", "minLength": 1, "maxLength": 253}],
    });
    let undeclared = json!({
        "description": "CRDs with a conversion webhook that the ClusterServiceVersion does not declare: `keep` installs them unchanged and waits for the webhook; `remove` installs them without a conversion.",
        "enum": ["keep", "remove", null],
        "default": "keep",
    });
    [
        ("certificateProvider", certificate_provider),
        ("compatibility", compatibility),
        ("operatorConditionName", operator_condition_name),
        ("proxy", proxy()),
        ("undeclaredConversionWebhooks", undeclared),
    ]
}

struct DeploymentConfig;

impl Serialize for DeploymentConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut schema = serializer.serialize_map(None)?;
        schema.serialize_entry("description", "Changes to the Deployments of the operator.")?;
        schema.serialize_entry("additionalProperties", &false)?;
        write_record(&SUBSCRIPTION_CONFIG, &mut schema)?;
        schema.end()
    }
}

fn proxy() -> Value {
    let members: Map<String, Value> = PROXY
        .into_iter()
        .map(|(member, variable, description)| {
            let description = format!("{description} Sets the operator's variable {variable}.");
            (member.to_owned(), json!({"description": description, "type": ["string", "null"], "minLength": 1}))
        })
        .collect();
    json!({
        "description": "The proxies for the operator's connections outside the cluster.",
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
    // The request has the install namespace; the format documents this rule, and `provision` checks it.
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

fn write_record<M: SerializeMap>(record: &Record, schema: &mut M) -> Result<(), M::Error> {
    schema.serialize_entry("type", "object")?;
    schema.serialize_entry("properties", &Fields(record.fields))?;
    let is_required = |field: &&Field| matches!(field.keep, Keep::Always | Keep::Required);
    let required: Vec<&str> = record.fields.iter().filter(is_required).map(|field| field.name).collect();
    if required.is_empty() { Ok(()) } else { schema.serialize_entry("required", &required) }
}

struct Fields(&'static [Field]);

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|field| (field.name, Of(&field.kind))))
    }
}

/// The schema of a type.
struct Of(&'static Type);

impl Serialize for Of {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut schema = serializer.serialize_map(None)?;
        match self.0 {
            Type::String | Type::Time | Type::Bytes => schema.serialize_entry("type", "string")?,
            Type::Bool => schema.serialize_entry("type", "boolean")?,
            Type::Int32 | Type::Int64 => schema.serialize_entry("type", "integer")?,
            Type::Float64 => schema.serialize_entry("type", "number")?,
            Type::Quantity => schema.serialize_entry("type", &["string", "number"])?,
            Type::IntOrString => schema.serialize_entry("type", &["string", "integer"])?,
            Type::Any => {}
            Type::SchemaOrBool => schema.serialize_entry("type", &["object", "boolean"])?,
            Type::SchemaOrList | Type::SchemaOrStrings => schema.serialize_entry("type", &["object", "array"])?,
            Type::List(item) => {
                schema.serialize_entry("type", "array")?;
                schema.serialize_entry("items", &Of(item))?;
            }
            Type::Map(value) => {
                schema.serialize_entry("type", "object")?;
                schema.serialize_entry("additionalProperties", &Of(value))?;
            }
            Type::Record(inner) => write_record(inner, &mut schema)?,
        }
        schema.end()
    }
}
