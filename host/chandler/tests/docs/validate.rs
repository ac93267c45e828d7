//! Validates examples in YAML and JSON against the types of their kinds. Unknown fields are problems, as for `kubectl apply`.

use std::fs;

use chandler_devcluster_apimachinery::schema::{
    Builtins, CustomResourceDefinition, ErrorType, GroupVersionKind, Schema, prune, unknown_field_messages, validate,
};
use serde_json::{Map, Value, json};

use crate::page::{self, Action, Block};

/// The types that examples have.
pub(crate) struct Schemas {
    custom: Vec<(GroupVersionKind, Schema)>,
}

impl Schemas {
    /// The types of Chandler, of Kubernetes, and of the bundles in the tutorial.
    pub(crate) fn new() -> Self {
        let tutorial = page::root().join("docs/tutorial/harbour-0.1.0/manifests/berths.crd.yaml");
        let texts = [chandler_api::crds_yaml().unwrap(), fs::read_to_string(tutorial).unwrap()];
        let mut custom = Vec::new();
        for object in texts.iter().flat_map(|text| documents(text).unwrap()) {
            for version in CustomResourceDefinition::parse(&object).unwrap().versions {
                custom.push((version.resource.group_version_kind, version.resource.schema));
            }
        }
        Self { custom }
    }

    /// What is wrong with a block.
    pub(crate) fn problems(&self, block: &Block) -> Vec<String> {
        let objects = match (&block.action, block.language.as_str()) {
            (Ok(Action::Validate(_) | Action::Parse(_) | Action::Show), "yaml" | "json") => documents(&block.text),
            _ => return Vec::new(),
        };
        let problems = match (&block.action, objects) {
            (_, Err(error)) => vec![error],
            (Ok(Action::Validate(of)), Ok(objects)) => {
                objects.into_iter().flat_map(|object| self.object_problems(of, object)).collect()
            }
            _ => Vec::new(),
        };
        problems.into_iter().map(|problem| format!("{}: {problem}", block.place)).collect()
    }

    fn object_problems(&self, of: &str, object: Value) -> Vec<String> {
        let (kind, is_part, mut object) = if object.get("kind").is_some() {
            let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            (GroupVersionKind::from_api_version(&text("apiVersion"), text("kind")), false, object)
        } else {
            let (kind, path) = of.split_once('.').unwrap_or((of, ""));
            let whole = path.split('.').filter(|name| !name.is_empty()).rev().fold(object, |inner, name| {
                let mut outer = Map::new();
                outer.insert(name.to_owned(), inner);
                Value::Object(outer)
            });
            let Some(known) = self.named(kind) else { return vec![format!("no kind {kind:?} is known")] };
            (known, true, whole)
        };
        let Some(schema) = self.schema(&kind) else {
            return vec![format!("{} {} is not known: add `parsed:` and the reason", kind.api_version(), kind.kind)];
        };
        if is_part {
            object["apiVersion"] = json!(kind.api_version());
            object["kind"] = json!(kind.kind);
        }
        let mut problems: Vec<String> = validate(&schema, &object, None)
            .into_iter()
            // Rules may use fields that a part does not show.
            .filter(|error| {
                !is_part || error.error_type == ErrorType::TypeInvalid || error.error_type == ErrorType::NotSupported
            })
            .map(|error| format!("{}: {}", error.field, error.message()))
            .collect();
        problems.extend(unknown_field_messages(&prune(&schema, &mut object)));
        problems
    }

    fn named(&self, kind: &str) -> Option<GroupVersionKind> {
        let builtin = Builtins::get().resources().iter().map(|resource| &resource.group_version_kind);
        self.custom.iter().map(|(known, _)| known).chain(builtin).find(|known| known.kind == kind).cloned()
    }

    fn schema(&self, kind: &GroupVersionKind) -> Option<Schema> {
        let custom = self.custom.iter().find(|(known, _)| known == kind).map(|(_, schema)| schema);
        custom.or_else(|| Builtins::get().kind(kind).map(|resource| &resource.schema)).cloned()
    }
}

/// The documents of YAML or JSON text.
fn documents(text: &str) -> Result<Vec<Value>, String> {
    let limits = chandler_yaml::Limits::default();
    let documents = chandler_yaml::parse(text.as_bytes(), &limits).map_err(|error| error.to_string())?;
    documents
        .iter()
        .map(|document| chandler_yaml::from_node(&document.root).map_err(|error| error.to_string()))
        .collect()
}

#[test]
fn unknown_fields_and_wrong_types_are_problems() {
    let schemas = Schemas::new();
    let found = |text: &str| {
        documents(text)
            .unwrap()
            .into_iter()
            .flat_map(|object| schemas.object_problems("BundleDeployment", object))
            .count()
    };
    assert_eq!(found("spec: {suspend: true}"), 0);
    assert_eq!(found("spec: {suspended: true}"), 1);
    assert_eq!(found("spec: {suspend: 'yes'}"), 1);
    assert_eq!(found("spec: {approval: Perhaps}"), 1);
    assert_eq!(found("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndatum: {}"), 1);
    assert_eq!(found("apiVersion: harbour.example.com/v1alpha1\nkind: Berth\nmetadata: {name: a}\nspec: {}"), 1);
    assert_eq!(found("apiVersion: example.com/v1\nkind: Unknown"), 1);
}
