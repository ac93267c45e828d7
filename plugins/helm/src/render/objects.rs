//! `.Chart` and `.Capabilities`.

use std::{any::Any, cell::LazyCell, fmt, rc::Rc};

use chandler_go_template::{Element, FunctionError, List, Map, Object, Type, Value};

use crate::chart;

/// A struct whose fields are plain values.
#[derive(Debug)]
struct Fields {
    type_name: &'static str,
    kind: &'static str,
    values: Vec<(&'static str, Value)>,
    /// As JSON and YAML have it.
    data: Map,
}

impl Fields {
    fn object(type_name: &'static str, kind: &'static str, fields: Vec<(&'static str, Value)>) -> Value {
        let data = fields.iter().map(|(name, value)| (*name, value.clone())).collect();
        Value::Object(Rc::new(Self { type_name, kind, values: fields, data }))
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
        self.values.iter().find(|(field, _)| *field == name).map(|(_, value)| value.clone())
    }

    fn data(&self) -> Value {
        Value::Map(self.data.clone())
    }

    fn fields(&self) -> Option<Vec<(&'static str, Value)>> {
        Some(self.values.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// `.Chart`: what `Chart.yaml` says, and whether it is the chart that is installed.
#[derive(Debug)]
pub(super) struct Metadata(Fields);

/// A struct whose fields have other names in JSON, where the empty ones are left out.
fn structure(type_name: &'static str, kind: &'static str, fields: &[(&'static str, &'static str, Value)]) -> Fields {
    let data = Map::new();
    for (_, key, value) in fields.iter().filter(|(_, _, value)| value.truth()) {
        data.insert(*key, value.clone());
    }
    Fields { type_name, kind, values: fields.iter().map(|(name, _, value)| (*name, value.clone())).collect(), data }
}

fn structures(type_name: &'static str, items: impl Iterator<Item = Fields>) -> Value {
    Value::List(List::of(Element::Object(type_name), items.map(|item| Value::Object(Rc::new(item))).collect()))
}

fn texts(texts: &[String]) -> Value {
    Value::strings(texts.iter().map(String::as_str))
}

fn maintainer(maintainer: &chart::Maintainer) -> Fields {
    let fields = [
        ("Name", "name", maintainer.name.as_str().into()),
        ("Email", "email", maintainer.email.as_str().into()),
        ("URL", "url", maintainer.url.as_str().into()),
    ];
    structure("chart.Maintainer", "ptr", &fields)
}

fn dependency(dependency: &chart::Dependency) -> Fields {
    let fields = [
        ("Name", "name", dependency.name.as_str().into()),
        ("Version", "version", dependency.version.as_str().into()),
        ("Repository", "repository", dependency.repository.as_str().into()),
        ("Condition", "condition", dependency.condition.as_str().into()),
        ("Tags", "tags", texts(&dependency.tags)),
        ("Enabled", "enabled", dependency.enabled.into()),
        ("Alias", "alias", dependency.alias.as_str().into()),
    ];
    structure("chart.Dependency", "ptr", &fields)
}

impl Metadata {
    pub(super) fn new(metadata: &chart::Metadata, root: bool) -> Self {
        let annotations = Map::of(Element::String);
        for (key, value) in &metadata.annotations {
            annotations.insert(key.as_str(), value.as_str());
        }
        let dependencies = metadata.dependencies.iter().flatten().map(dependency);
        let fields = [
            ("Name", "name", metadata.name.as_str().into()),
            ("Home", "home", metadata.home.as_str().into()),
            ("Sources", "sources", texts(&metadata.sources)),
            ("Version", "version", metadata.version.as_str().into()),
            ("Description", "description", metadata.description.as_str().into()),
            ("Keywords", "keywords", texts(&metadata.keywords)),
            (
                "Maintainers",
                "maintainers",
                structures("*chart.Maintainer", metadata.maintainers.iter().map(maintainer)),
            ),
            ("Icon", "icon", metadata.icon.as_str().into()),
            ("APIVersion", "apiVersion", metadata.api_version.as_str().into()),
            ("Condition", "condition", metadata.condition.as_str().into()),
            ("Tags", "tags", metadata.tags.as_str().into()),
            ("AppVersion", "appVersion", metadata.app_version.as_str().into()),
            ("Deprecated", "deprecated", metadata.deprecated.into()),
            ("Annotations", "annotations", annotations.into()),
            ("KubeVersion", "kubeVersion", metadata.kube_version.as_str().into()),
            ("Dependencies", "dependencies", structures("*chart.Dependency", dependencies)),
            ("Type", "type", metadata.kind.as_str().into()),
            ("IsRoot", "IsRoot", root.into()),
        ];
        let fields = structure("struct { chart.Metadata; IsRoot bool }", "struct", &fields);
        fields.data.insert("IsRoot", root);
        Self(fields)
    }
}

impl Object for Metadata {
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
    /// The version as `vMAJOR.MINOR.PATCH`, which ranges are compared with.
    pub fn normalized(&self) -> String {
        let mut parts = self.parts();
        let mut part = || parts.next().filter(|part| !part.is_empty()).unwrap_or("0");
        format!("v{}.{}.{}", part(), part(), part())
    }

    /// The numbers of the version; what a provider appends does not belong to them.
    fn parts(&self) -> impl Iterator<Item = &str> {
        self.kubernetes.trim_start_matches('v').split(['-', '+']).next().unwrap_or_default().split('.')
    }

    fn kube_version(&self) -> KubeVersion {
        let mut parts = self.parts();
        let mut part = || Value::from(parts.next().unwrap_or_default());
        let fields = vec![("Version", Value::from(self.kubernetes.as_str())), ("Major", part()), ("Minor", part())];
        KubeVersion { fields, normalized: self.normalized() }
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
struct KubeVersion {
    fields: Vec<(&'static str, Value)>,
    normalized: String,
}

impl Object for KubeVersion {
    fn type_name(&self) -> &'static str {
        "chartutil.KubeVersion"
    }

    fn field(&self, name: &str) -> Option<Value> {
        self.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value.clone())
    }

    fn has_method(&self, name: &str) -> bool {
        matches!(name, "GitVersion" | "String")
    }

    fn method(&self, name: &str, _: &[Value]) -> Option<Result<Value, FunctionError>> {
        self.has_method(name).then(|| Ok(self.field("Version").unwrap_or_default()))
    }

    fn addressed_string(&self) -> Option<String> {
        Some(self.normalized.clone())
    }

    fn data(&self) -> Value {
        Value::Map(self.fields.iter().map(|(name, value)| (*name, value.clone())).collect::<Map>())
    }

    fn fields(&self) -> Option<Vec<(&'static str, Value)>> {
        Some(self.fields.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Gives what a cluster serves.
type Served = Box<dyn FnOnce() -> Vec<String>>;

/// `.Capabilities.APIVersions`.
#[derive(Clone)]
pub struct ApiVersions(Rc<LazyCell<Vec<String>, Served>>);

impl ApiVersions {
    /// These groups with versions, and kinds in these.
    pub fn new(versions: Vec<String>) -> Self {
        Self::lazy(move || versions)
    }

    /// What a function gives, which is called when a template asks.
    pub fn lazy(versions: impl FnOnce() -> Vec<String> + 'static) -> Self {
        Self(Rc::new(LazyCell::new(Box::new(versions))))
    }
}

impl fmt::Debug for ApiVersions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("ApiVersions").finish()
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
