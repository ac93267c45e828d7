//! Values that are equal in all versions of a CRD.
//!
//! kube-apiserver validates its internal type, in which a schema, columns or subresources that are equal in all versions (with one
//! version always) are stored once, in `spec`.

use serde_json::Value;

use super::structural;
use crate::schema::{
    error::FieldError,
    fields::{list, text},
    path::FieldPath,
};

/// The parts that can be common, with their names in `spec`.
const PARTS: [(&str, &str); 4] = [
    ("schema", "validation"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
];

/// Which parts are equal in all versions of a CRD. Computed once: for each version anew, it would take a time that grows with the
/// square of their number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Common([bool; PARTS.len()]);

impl Common {
    /// Compares the versions.
    pub(super) fn of(spec: &Value) -> Self {
        Self(PARTS.map(|(part, _)| {
            let versions = list(spec, "versions");
            let mut of = versions.iter().map(|version| version.get(part).filter(|value| !value.is_null()));
            let first = of.next().flatten();
            of.all(|other| other == first)
        }))
    }

    fn parts(self) -> impl Iterator<Item = (&'static str, &'static str, bool)> {
        PARTS.into_iter().zip(self.0).map(|((part, name), common)| (part, name, common))
    }

    /// Whether a part is equal in all versions.
    pub(super) fn has(self, wanted: &str) -> bool {
        self.parts().any(|(part, _, common)| common && part == wanted)
    }

    /// Validates the parts that all versions agree in.
    pub(super) fn check(self, spec: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
        let Some(version) = list(spec, "versions").first() else { return };
        for (part, name, _) in self.parts().filter(|(_, _, common)| *common) {
            self::part(part, version, &path.field(name), errors);
        }
    }

    /// Validates the parts that are a version's own.
    pub(super) fn own_parts(self, version: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
        for (part, _, _) in self.parts().filter(|(_, _, common)| !common) {
            self::part(part, version, &path.field(part), errors);
        }
    }
}

fn part(part: &str, version: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    match part {
        "schema" => {
            if let Some(schema) = version.pointer("/schema/openAPIV3Schema").filter(|schema| !schema.is_null()) {
                structural::check(schema, &path.field("openAPIV3Schema"), errors);
            }
        }
        "subresources" => subresources(version, path, errors),
        "additionalPrinterColumns" => columns(version, path, errors),
        _ => selectable_fields(version, path, errors),
    }
}

fn simple_path(value: &str, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) -> bool {
    let simple = value.starts_with('.');
    if !simple {
        errors.push(FieldError::invalid(path, value, "must be a simple json path starting with ."));
    }
    simple
}

fn subresources(version: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let Some(scale) = version.pointer("/subresources/scale").filter(|scale| scale.is_object()) else { return };
    let path = path.field("scale");
    for (key, parent) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
        let value = text(scale, key);
        let path = path.field(key);
        if value.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else if simple_path(value, &path, errors) && !value.starts_with(parent) {
            let detail = format!("should be a json path under {}", parent.trim_end_matches('.'));
            errors.push(FieldError::invalid(&path, value, detail));
        }
    }
    let selector = text(scale, "labelSelectorPath");
    let path = path.field("labelSelectorPath");
    if !selector.is_empty()
        && simple_path(selector, &path, errors)
        && !selector.starts_with(".spec.")
        && !selector.starts_with(".status.")
    {
        errors.push(FieldError::invalid(&path, selector, "should be a json path under either .spec or .status"));
    }
}

fn columns(version: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    const TYPES: &[&str] = &["boolean", "date", "integer", "number", "string"];
    const FORMATS: &[&str] = &["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    for (index, column) in list(version, "additionalPrinterColumns").iter().enumerate() {
        let path = path.index(index);
        if text(column, "name").is_empty() {
            errors.push(FieldError::required(&path.field("name"), ""));
        }
        let found = text(column, "type");
        let detail = format!("must be one of {}", TYPES.join(","));
        if found.is_empty() {
            errors.push(FieldError::required(&path.field("type"), detail));
        } else if !TYPES.contains(&found) {
            errors.push(FieldError::invalid(&path.field("type"), found, detail));
        }
        let format = text(column, "format");
        if !format.is_empty() && !FORMATS.contains(&format) {
            let detail = format!("must be one of {}", FORMATS.join(","));
            errors.push(FieldError::invalid(&path.field("format"), format, detail));
        }
        let json_path = text(column, "jsonPath");
        let path = path.field("JSONPath");
        if json_path.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else {
            simple_path(json_path, &path, errors);
        }
    }
}

fn selectable_fields(version: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    const MOST: usize = 8;
    let fields = list(version, "selectableFields");
    let schema = version.pointer("/schema/openAPIV3Schema").unwrap_or(&Value::Null);
    let mut seen = std::collections::HashSet::new();
    for (index, field) in fields.iter().enumerate() {
        let item = path.index(index);
        let path = item.field("jsonPath");
        let json_path = text(field, "jsonPath");
        if json_path.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        let steps: Vec<&str> = json_path.split('.').skip(1).collect();
        let found = steps.iter().try_fold(schema, |schema, step| schema.get("properties")?.get(step));
        let Some(found) = found.filter(|_| json_path.starts_with('.')) else {
            let detail = "is an invalid path: does not refer to a valid field";
            errors.push(FieldError::invalid(&path, json_path, detail));
            continue;
        };
        if steps.first() == Some(&"metadata") {
            errors.push(FieldError::invalid(&path, json_path, "must not point to fields in metadata"));
        }
        if !matches!(text(found, "type"), "string" | "boolean" | "integer") {
            let detail = "must point to a field of type string, boolean or integer. \
                          Enum string fields and strings with formats are allowed.";
            errors.push(FieldError::invalid(&path, json_path, detail));
        }
        if !seen.insert(json_path) {
            errors.push(FieldError::duplicate(&path, json_path));
        }
    }
    if fields.len() > MOST {
        errors.push(FieldError::too_many(path, fields.len() as u64, MOST as u64));
    }
}
