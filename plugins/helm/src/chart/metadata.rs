//! `Chart.yaml` and `requirements.yaml`.

use std::collections::HashSet;

use chandler_go_template::{Element, List, Map, Value};
use chandler_versions::Version;
use chandler_yaml::{Kind, Node};

use crate::yaml::{
    self,
    decode::{mistyped, mistyped_field, text},
};

/// What `Chart.yaml` says.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "the fields have the names of Chart.yaml")]
pub struct Metadata {
    pub name: String,
    pub home: String,
    pub sources: Vec<String>,
    pub version: String,
    pub description: String,
    pub keywords: Vec<String>,
    pub maintainers: Vec<Maintainer>,
    pub icon: String,
    pub api_version: String,
    pub condition: String,
    pub tags: String,
    pub app_version: String,
    pub deprecated: bool,
    pub annotations: Vec<(String, String)>,
    pub kube_version: String,
    /// The declared dependencies. `None` if the chart declares none; its subcharts' dependencies are not processed then.
    pub dependencies: Option<Vec<Dependency>>,
    /// `application`, `library`, or empty.
    pub kind: String,
}

/// Who maintains a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields have the names of Chart.yaml")]
pub struct Maintainer {
    pub name: String,
    pub email: String,
    pub url: String,
}

/// A declared dependency.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "the fields have the names of Chart.yaml")]
pub struct Dependency {
    pub name: String,
    pub version: String,
    pub repository: String,
    pub condition: String,
    pub tags: Vec<String>,
    pub enabled: bool,
    pub imports: Vec<Import>,
    pub alias: String,
}

/// Values that a chart takes over from a dependency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Import {
    /// What the dependency exports under a name, as values of the chart itself.
    Export(String),
    /// The values at one path as those at another.
    Path {
        /// The path in the dependency.
        child: String,
        /// The path in the chart; `.` is all of it.
        parent: String,
    },
}

impl Metadata {
    /// Reads a file into the metadata; what it does not name stays. The error is Helm's text.
    pub(super) fn read(&mut self, text: &str) -> Result<(), String> {
        let documents = yaml::documents(text).map_err(|error| error.to_string())?;
        let Some(document) = documents.first() else { return Ok(()) };
        let Kind::Mapping(mapping) = &document.root.kind else {
            return Err(mistyped(&document.root, "Go value of type chart.Metadata"));
        };
        for entry in mapping {
            let value = &entry.value;
            let place = format!("Metadata.{}", entry.key);
            match entry.key.to_ascii_lowercase().as_str() {
                "name" => read_text(&mut self.name, value, &place)?,
                "home" => read_text(&mut self.home, value, &place)?,
                "version" => read_text(&mut self.version, value, &place)?,
                "description" => read_text(&mut self.description, value, &place)?,
                "icon" => read_text(&mut self.icon, value, &place)?,
                "apiversion" => read_text(&mut self.api_version, value, &place)?,
                "condition" => read_text(&mut self.condition, value, &place)?,
                "tags" => read_text(&mut self.tags, value, &place)?,
                "appversion" => read_text(&mut self.app_version, value, &place)?,
                "kubeversion" => read_text(&mut self.kube_version, value, &place)?,
                "type" => read_text(&mut self.kind, value, &place)?,
                "sources" => self.sources = texts(value, &place)?,
                "keywords" => self.keywords = texts(value, &place)?,
                "deprecated" => match &value.kind {
                    Kind::Bool(deprecated) => self.deprecated = *deprecated,
                    Kind::Null => {}
                    _ => return Err(mistyped_field(value, &place, "bool")),
                },
                "annotations" => {
                    self.annotations.clear();
                    for (key, value) in entries(value, &place)? {
                        let mut text = String::new();
                        read_text(&mut text, value, &place)?;
                        self.annotations.push((key.to_owned(), text));
                    }
                }
                "maintainers" => {
                    self.maintainers = items(value, &place)?.map(maintainer).collect::<Result<_, _>>()?;
                }
                "dependencies" => {
                    let read = items(value, &place)?.map(dependency).collect::<Result<Vec<_>, _>>()?;
                    self.dependencies = (!value.is_null()).then_some(read);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks the metadata, as Helm does before anything else.
    pub(super) fn validate(&self) -> Result<(), String> {
        let refuse = |what: String| Err(format!("validation: {what}"));
        if self.api_version.is_empty() {
            return refuse("chart.metadata.apiVersion is required".to_owned());
        }
        if self.name.is_empty() {
            return refuse("chart.metadata.name is required".to_owned());
        }
        if self.name.contains('/') || self.name == "." || self.name == ".." {
            return refuse(format!("chart.metadata.name {:?} is invalid", self.name));
        }
        if self.version.is_empty() {
            return refuse("chart.metadata.version is required".to_owned());
        }
        if Version::parse(&self.version).is_err() {
            return refuse(format!("chart.metadata.version {:?} is invalid", self.version));
        }
        if !matches!(self.kind.as_str(), "" | "application" | "library") {
            return refuse("chart.metadata.type must be application or library".to_owned());
        }
        let mut names = HashSet::new();
        for dependency in self.dependencies.iter().flatten() {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
            if !dependency.alias.bytes().all(allowed) {
                return refuse(format!("dependency {:?} has disallowed characters in the alias", dependency.name));
            }
            let key = if dependency.alias.is_empty() { &dependency.name } else { &dependency.alias };
            if !names.insert(key) {
                return refuse(format!("more than one dependency with name or alias {key:?}"));
            }
        }
        Ok(())
    }

    /// The fields under their names in templates, in Helm's order.
    pub fn fields(&self) -> Vec<(&'static str, Value)> {
        let text = |text: &String| Value::from(text.as_str());
        let annotations = Map::of(Element::String);
        for (key, value) in &self.annotations {
            annotations.insert(key.as_str(), value.as_str());
        }
        let maintainers = self.maintainers.iter().map(|maintainer| {
            let fields = [("Name", &maintainer.name), ("Email", &maintainer.email), ("URL", &maintainer.url)];
            Value::Map(fields.into_iter().map(|(key, value)| (key, value.as_str())).collect())
        });
        let dependencies = self.dependencies.iter().flatten().map(|dependency| {
            Value::Map(
                [
                    ("Name", text(&dependency.name)),
                    ("Version", text(&dependency.version)),
                    ("Repository", text(&dependency.repository)),
                    ("Condition", text(&dependency.condition)),
                    ("Tags", Value::strings(dependency.tags.iter().map(String::as_str))),
                    ("Enabled", Value::Bool(dependency.enabled)),
                    ("Alias", text(&dependency.alias)),
                ]
                .into_iter()
                .collect(),
            )
        });
        vec![
            ("Name", text(&self.name)),
            ("Home", text(&self.home)),
            ("Sources", Value::strings(self.sources.iter().map(String::as_str))),
            ("Version", text(&self.version)),
            ("Description", text(&self.description)),
            ("Keywords", Value::strings(self.keywords.iter().map(String::as_str))),
            ("Maintainers", Value::List(List::new(maintainers.collect()))),
            ("Icon", text(&self.icon)),
            ("APIVersion", text(&self.api_version)),
            ("Condition", text(&self.condition)),
            ("Tags", text(&self.tags)),
            ("AppVersion", text(&self.app_version)),
            ("Deprecated", Value::Bool(self.deprecated)),
            ("Annotations", Value::Map(annotations)),
            ("KubeVersion", text(&self.kube_version)),
            ("Dependencies", Value::List(List::new(dependencies.collect()))),
            ("Type", text(&self.kind)),
        ]
    }
}

/// A scalar as text; null leaves it as it is.
fn read_text(to: &mut String, node: &Node, place: &str) -> Result<(), String> {
    if let Some(text) = text(node, place)? {
        *to = text;
    }
    Ok(())
}

fn items<'a>(node: &'a Node, place: &str) -> Result<std::slice::Iter<'a, Node>, String> {
    match &node.kind {
        Kind::Null => Ok([].iter()),
        Kind::Sequence(items) => Ok(items.iter()),
        _ => Err(mistyped_field(node, place, "[]string")),
    }
}

fn texts(node: &Node, place: &str) -> Result<Vec<String>, String> {
    items(node, place)?
        .map(|item| {
            let mut text = String::new();
            read_text(&mut text, item, place)?;
            Ok(text)
        })
        .collect()
}

fn entries<'a>(node: &'a Node, place: &str) -> Result<Vec<(&'a str, &'a Node)>, String> {
    match &node.kind {
        Kind::Null => Ok(Vec::new()),
        Kind::Mapping(mapping) => Ok(mapping.iter().map(|entry| (&*entry.key, &entry.value)).collect()),
        _ => Err(mistyped_field(node, place, "map[string]string")),
    }
}

fn maintainer(node: &Node) -> Result<Maintainer, String> {
    if node.is_null() {
        return Err("validation: maintainers must not contain empty or null nodes".to_owned());
    }
    let mut maintainer = Maintainer::default();
    for (key, value) in entries(node, "Metadata.maintainers")? {
        match key.to_ascii_lowercase().as_str() {
            "name" => read_text(&mut maintainer.name, value, "Maintainer.name")?,
            "email" => read_text(&mut maintainer.email, value, "Maintainer.email")?,
            "url" => read_text(&mut maintainer.url, value, "Maintainer.url")?,
            _ => {}
        }
    }
    Ok(maintainer)
}

fn dependency(node: &Node) -> Result<Dependency, String> {
    if node.is_null() {
        return Err("validation: dependencies must not contain empty or null nodes".to_owned());
    }
    let mut dependency = Dependency::default();
    for (key, value) in entries(node, "Metadata.dependencies")? {
        match key.to_ascii_lowercase().as_str() {
            "name" => read_text(&mut dependency.name, value, "Dependency.name")?,
            "version" => read_text(&mut dependency.version, value, "Dependency.version")?,
            "repository" => read_text(&mut dependency.repository, value, "Dependency.repository")?,
            "condition" => read_text(&mut dependency.condition, value, "Dependency.condition")?,
            "alias" => read_text(&mut dependency.alias, value, "Dependency.alias")?,
            "tags" => dependency.tags = texts(value, "Dependency.tags")?,
            "import-values" => {
                dependency.imports = items(value, "Dependency.import-values")?.filter_map(import).collect();
            }
            _ => {}
        }
    }
    Ok(dependency)
}

fn import(node: &Node) -> Option<Import> {
    match &node.kind {
        Kind::String(name) => Some(Import::Export(name.to_string())),
        Kind::Mapping(mapping) => {
            let path = |key: &str| {
                let value = mapping.get(key).map_or(Value::Nil, yaml::value);
                crate::functions::display(&value).text().into_owned()
            };
            Some(Import::Path { child: path("child"), parent: path("parent") })
        }
        _ => None,
    }
}
