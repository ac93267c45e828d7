//! CustomResourceDefinitions.

mod common;
mod object;
pub(crate) mod root;
mod structural;

pub use object::validate_crd;
use serde_json::Value;

use crate::schema::{
    model::Schema,
    parse::SchemaError,
    resources::{GroupVersionKind, ResourceType, Scale},
};

/// A CustomResourceDefinition, read.
#[derive(Debug, Clone)]
pub struct CustomResourceDefinition {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Kind of a list of objects.
    pub list_kind: String,
    /// Name in URLs.
    pub plural: String,
    /// Name of one object.
    pub singular: String,
    /// Abbreviations.
    pub short_names: Vec<String>,
    /// Groups of resources such as `all`.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether `spec.preserveUnknownFields` switches pruning off.
    pub preserve_unknown_fields: bool,
    /// The versions, in the order of the CRD.
    pub versions: Vec<CustomResourceVersion>,
}

/// One version of a custom resource.
#[derive(Debug, Clone)]
pub struct CustomResourceVersion {
    /// Name, e.g. `v1alpha1`.
    pub name: String,
    /// Whether it has an endpoint.
    pub served: bool,
    /// Whether objects are stored in it.
    pub storage: bool,
    /// Whether using it earns a warning.
    pub deprecated: bool,
    /// The text of that warning, when the CRD states one.
    pub deprecation_warning: Option<String>,
    /// Columns of tables, without `Name` and `Age` that every table has when none are stated.
    pub printer_columns: Vec<PrinterColumn>,
    /// JSON paths that field selectors may name, e.g. `.spec.color`.
    pub selectable_fields: Vec<String>,
    /// The resource in this version, with its type.
    pub resource: ResourceType,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrinterColumn {
    /// Heading.
    pub name: String,
    /// OpenAPI type: `integer`, `number`, `string`, `boolean` or `date`.
    pub column_type: String,
    /// OpenAPI format.
    pub format: String,
    /// Description.
    pub description: String,
    /// Columns with a priority above 0 show in wide output only.
    pub priority: i64,
    /// Simple JSON path, e.g. `.spec.replicas`.
    pub json_path: String,
}

impl CustomResourceDefinition {
    /// Parses a CRD object that [`validate_crd`] accepted; absent fields take their defaults.
    ///
    /// # Errors
    /// When the schema of a version cannot be read.
    pub fn parse(object: &Value) -> Result<Self, SchemaError> {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let names = spec.get("names").unwrap_or(&Value::Null);
        let kind = text(names, "kind");
        let or = |given: String, default: String| if given.is_empty() { default } else { given };
        let mut crd = Self {
            group: text(spec, "group"),
            list_kind: or(text(names, "listKind"), format!("{kind}List")),
            plural: text(names, "plural"),
            singular: or(text(names, "singular"), kind.to_lowercase()),
            short_names: texts(names, "shortNames"),
            categories: texts(names, "categories"),
            namespaced: text(spec, "scope") == "Namespaced",
            preserve_unknown_fields: flag(spec, "preserveUnknownFields"),
            versions: Vec::new(),
            kind,
        };
        let versions = spec.get("versions").and_then(Value::as_array).into_iter().flatten();
        crd.versions = versions.map(|version| crd.version(version)).collect::<Result<_, _>>()?;
        Ok(crd)
    }

    /// The version in which objects are stored.
    pub fn storage_version(&self) -> Option<&CustomResourceVersion> {
        self.versions.iter().find(|version| version.storage)
    }

    fn version(&self, version: &Value) -> Result<CustomResourceVersion, SchemaError> {
        let name = text(version, "name");
        let schema = match version.pointer("/schema/openAPIV3Schema") {
            Some(schema) => root::read(schema)?,
            None => Schema::deduced(),
        };
        let columns = version.get("additionalPrinterColumns").and_then(Value::as_array).into_iter().flatten();
        let selectable = version.get("selectableFields").and_then(Value::as_array).into_iter().flatten();
        Ok(CustomResourceVersion {
            served: flag(version, "served"),
            storage: flag(version, "storage"),
            deprecated: flag(version, "deprecated"),
            deprecation_warning: version.get("deprecationWarning").and_then(Value::as_str).map(str::to_owned),
            printer_columns: columns.map(printer_column).collect(),
            selectable_fields: selectable.map(|field| text(field, "jsonPath")).collect(),
            resource: ResourceType {
                group_version_kind: GroupVersionKind::new(&self.group, &name, &self.kind),
                plural: self.plural.clone(),
                singular: self.singular.clone(),
                short_names: self.short_names.clone(),
                categories: self.categories.clone(),
                namespaced: self.namespaced,
                status: version.pointer("/subresources/status").is_some_and(|status| !status.is_null()),
                scale: version.pointer("/subresources/scale").filter(|scale| scale.is_object()).map(|scale| Scale {
                    spec_replicas: text(scale, "specReplicasPath"),
                    status_replicas: text(scale, "statusReplicasPath"),
                    label_selector: scale.get("labelSelectorPath").and_then(Value::as_str).map(str::to_owned),
                }),
                subresources: Vec::new(),
                virtual_resource: false,
                schema,
                definition: definition_name(&self.group, &name, &self.kind),
            },
            name,
        })
    }
}

/// The name of a custom type in OpenAPI documents: `com.example.v1.Foo` for group `example.com`.
fn definition_name(group: &str, version: &str, kind: &str) -> String {
    let mut parts: Vec<&str> = group.split('.').rev().collect();
    parts.extend([version, kind]);
    parts.join(".")
}

fn printer_column(column: &Value) -> PrinterColumn {
    PrinterColumn {
        name: text(column, "name"),
        column_type: text(column, "type"),
        format: text(column, "format"),
        description: text(column, "description"),
        priority: column.get("priority").and_then(Value::as_i64).unwrap_or(0),
        json_path: text(column, "jsonPath"),
    }
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn texts(value: &Value, key: &str) -> Vec<String> {
    let values = value.get(key).and_then(Value::as_array).into_iter().flatten();
    values.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn flag(value: &Value, key: &str) -> bool {
    value.get(key) == Some(&Value::Bool(true))
}
