//! `.Chart` and `.Capabilities`.

use std::{any::Any, rc::Rc};

use chandler_template::{FunctionError, List, Map, Object, Type, Value};

/// A struct whose fields are plain values.
#[derive(Debug)]
struct Fields {
    type_name: &'static str,
    kind: &'static str,
    fields: Vec<(&'static str, Value)>,
    /// As JSON and YAML have it.
    data: Map,
}

impl Fields {
    fn object(type_name: &'static str, kind: &'static str, fields: Vec<(&'static str, Value)>) -> Value {
        let data = fields.iter().map(|(name, value)| (*name, value.clone())).collect();
        Value::Object(Rc::new(Self { type_name, kind, fields, data }))
    }
}

impl Object for Fields {
    fn type_name(&self) -> &str {
        self.type_name
    }

    fn kind(&self) -> &'static str {
        self.kind
    }

    fn field(&self, name: &str) -> Option<Value> {
        self.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value.clone())
    }

    fn data(&self) -> Value {
        Value::Map(self.data.clone())
    }

    fn fields(&self) -> Option<Vec<(&'static str, Value)>> {
        Some(self.fields.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// `.Chart`: `Chart.yaml` under the names of Go's struct, and whether it is the chart that is installed.
#[derive(Debug)]
pub(super) struct Chart(Fields);

/// The fields, their keys in `Chart.yaml`, and what they are.
const FIELDS: [(&str, &str, Kind); 17] = [
    ("Name", "name", Kind::Text),
    ("Home", "home", Kind::Text),
    ("Sources", "sources", Kind::Texts),
    ("Version", "version", Kind::Text),
    ("Description", "description", Kind::Text),
    ("Keywords", "keywords", Kind::Texts),
    ("Maintainers", "maintainers", Kind::Structs(MAINTAINER)),
    ("Icon", "icon", Kind::Text),
    ("APIVersion", "apiVersion", Kind::Text),
    ("Condition", "condition", Kind::Text),
    ("Tags", "tags", Kind::Text),
    ("AppVersion", "appVersion", Kind::Text),
    ("Deprecated", "deprecated", Kind::Truth),
    ("Annotations", "annotations", Kind::Table),
    ("KubeVersion", "kubeVersion", Kind::Text),
    ("Dependencies", "dependencies", Kind::Structs(DEPENDENCY)),
    ("Type", "type", Kind::Text),
];

const MAINTAINER: (&str, &[(&str, &str, Kind)]) =
    ("*chart.Maintainer", &[("Name", "name", Kind::Text), ("Email", "email", Kind::Text), ("URL", "url", Kind::Text)]);

const DEPENDENCY: (&str, &[(&str, &str, Kind)]) = (
    "*chart.Dependency",
    &[
        ("Name", "name", Kind::Text),
        ("Version", "version", Kind::Text),
        ("Repository", "repository", Kind::Text),
        ("Condition", "condition", Kind::Text),
        ("Tags", "tags", Kind::Texts),
        ("Enabled", "enabled", Kind::Truth),
        ("Alias", "alias", Kind::Text),
    ],
);

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Truth,
    Texts,
    Table,
    Structs((&'static str, &'static [(&'static str, &'static str, Kind)])),
}

impl Kind {
    /// A value of `Chart.yaml` in the type of the field.
    fn value(self, value: Option<Value>) -> Value {
        match (self, value) {
            (Self::Text, Some(Value::String(text))) => Value::String(text),
            (Self::Text, _) => Value::from(""),
            (Self::Truth, value) => Value::Bool(matches!(value, Some(Value::Bool(true)))),
            (Self::Texts, Some(Value::List(list))) => Value::strings(list.items().iter().filter_map(Value::as_string).cloned()),
            (Self::Texts, _) => Value::strings::<&str>([]),
            (Self::Table, value) => {
                let table = Map::of(chandler_template::Element::String);
                for (key, value) in value.as_ref().and_then(Value::as_map).map(Map::entries).unwrap_or_default() {
                    table.insert(key, Self::Text.value(Some(value)));
                }
                Value::Map(table)
            }
            (Self::Structs((name, fields)), Some(Value::List(list))) => {
                let item = |item: &Value| struct_of(name, "ptr", fields, item.as_map().unwrap_or(&Map::new()));
                Value::List(List::of(chandler_template::Element::Object(name), list.items().iter().map(item).collect()))
            }
            (Self::Structs((name, _)), _) => Value::List(List::of(chandler_template::Element::Object(name), Vec::new())),
        }
    }
}

fn struct_of(name: &'static str, kind: &'static str, fields: &[(&'static str, &'static str, Kind)], map: &Map) -> Value {
    let values = fields.iter().map(|(field, key, kind)| (*field, kind.value(map.get(key)))).collect();
    let data = Map::new();
    for (key, value) in map.entries() {
        data.insert(key, value);
    }
    Value::Object(Rc::new(Fields { type_name: name, kind, fields: values, data }))
}

impl Chart {
    /// The metadata of a chart under its name, which may be an alias.
    pub(super) fn new(metadata: &Map, name: &str, root: bool) -> Self {
        let mut fields: Vec<_> = FIELDS.iter().map(|(field, key, kind)| (*field, kind.value(metadata.get(key)))).collect();
        if let Some((_, value)) = fields.first_mut() {
            *value = Value::from(name);
        }
        fields.push(("IsRoot", Value::Bool(root)));
        let data = Map::new();
        for (key, value) in metadata.entries() {
            data.insert(key, value);
        }
        data.insert("name", Value::from(name));
        data.insert("IsRoot", Value::Bool(root));
        Self(Fields { type_name: "struct { chart.Metadata; IsRoot bool }", kind: "struct", fields, data })
    }
}

impl Object for Chart {
    fn type_name(&self) -> &str {
        self.0.type_name
    }

    fn field(&self, name: &str) -> Option<Value> {
        self.0.field(name)
    }

    fn data(&self) -> Value {
        self.0.data()
    }

    fn fields(&self) -> Option<Vec<(&'static str, Value)>> {
        self.0.fields()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// What templates know of the cluster.
#[derive(Clone, Debug)]
pub struct Capabilities {
    /// The version of Kubernetes, such as `v1.33.0`.
    pub kubernetes: String,
    /// Groups with versions, and kinds in these: `apps/v1`, `apps/v1/Deployment`.
    pub api_versions: ApiVersions,
}

impl Capabilities {
    fn kube_version(&self) -> KubeVersion {
        let mut parts = self.kubernetes.trim_start_matches('v').split(['.', '-', '+']);
        let mut part = || Value::from(parts.next().unwrap_or_default());
        KubeVersion(vec![("Version", Value::from(self.kubernetes.as_str())), ("Major", part()), ("Minor", part())])
    }
}

/// The version of Helm whose behaviour this is.
pub(super) const HELM: &str = "v3.21";

impl Object for Capabilities {
    fn type_name(&self) -> &'static str {
        "*chartutil.Capabilities"
    }

    fn kind(&self) -> &'static str {
        "ptr"
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "KubeVersion" => Some(Value::Object(Rc::new(self.kube_version()))),
            "APIVersions" => Some(Value::Object(Rc::new(self.api_versions.clone()))),
            "HelmVersion" => Some(Fields::object(
                "version.BuildInfo",
                "struct",
                vec![
                    ("Version", Value::from(HELM)),
                    ("GitCommit", Value::from("")),
                    ("GitTreeState", Value::from("")),
                    ("GoVersion", Value::from("go1.26.6")),
                ],
            )),
            _ => None,
        }
    }

    fn data(&self) -> Value {
        let entry = |name| (name, self.field(name).unwrap_or_default());
        Value::Map([entry("KubeVersion"), entry("APIVersions"), entry("HelmVersion")].into_iter().collect::<Map>())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[derive(Debug)]
struct KubeVersion(Vec<(&'static str, Value)>);

impl Object for KubeVersion {
    fn type_name(&self) -> &'static str {
        "chartutil.KubeVersion"
    }

    fn field(&self, name: &str) -> Option<Value> {
        self.0.iter().find(|(field, _)| *field == name).map(|(_, value)| value.clone())
    }

    fn has_method(&self, name: &str) -> bool {
        matches!(name, "GitVersion" | "String")
    }

    fn method(&self, name: &str, _: &[Value]) -> Option<Result<Value, FunctionError>> {
        self.has_method(name).then(|| Ok(self.field("Version").unwrap_or_default()))
    }

    fn string(&self) -> Option<String> {
        self.field("Version").map(|version| version.as_string().map(ToString::to_string).unwrap_or_default())
    }

    fn data(&self) -> Value {
        Value::Map(self.0.iter().map(|(name, value)| (*name, value.clone())).collect::<Map>())
    }

    fn fields(&self) -> Option<Vec<(&'static str, Value)>> {
        Some(self.0.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// `.Capabilities.APIVersions`.
#[derive(Clone, Debug)]
pub struct ApiVersions(Rc<Vec<String>>);

impl ApiVersions {
    /// These groups with versions, and kinds in these.
    pub fn new(versions: Vec<String>) -> Self {
        Self(Rc::new(versions))
    }
}

impl Object for ApiVersions {
    fn type_name(&self) -> &'static str {
        "chartutil.VersionSet"
    }

    fn kind(&self) -> &'static str {
        "slice"
    }

    fn field(&self, _: &str) -> Option<Value> {
        None
    }

    fn parameters(&self, name: &str) -> &'static [Type] {
        if name == "Has" { &[Type::String] } else { &[] }
    }

    fn has_method(&self, name: &str) -> bool {
        name == "Has"
    }

    fn method(&self, name: &str, arguments: &[Value]) -> Option<Result<Value, FunctionError>> {
        let wanted = arguments.first().and_then(Value::as_string)?;
        (name == "Has").then(|| Ok(Value::Bool(self.0.iter().any(|version| *wanted == **version))))
    }

    fn data(&self) -> Value {
        Value::strings(self.0.iter().map(String::as_str))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
