//! The engine: all templates of a chart and its subcharts in one namespace, as Helm's package `engine` executes them.

mod files;
mod functions;
mod glob;
mod objects;
mod values;

use std::rc::Rc;

use chandler_go_template::{Error, Functions, Limit, Limits, Machine, Map, Str, Value};

pub use self::{
    files::Files,
    objects::{ApiVersions, Capabilities},
};
use crate::{chart::Chart, functions::Environment};

/// What templates know of the installation.
#[derive(Clone, Debug)]
pub struct Release {
    /// `.Release.Name`.
    pub name: String,
    /// `.Release.Namespace`.
    pub namespace: String,
    /// `.Release.Revision`, from 1.
    pub revision: i64,
    /// `.Release.IsUpgrade`; `.Release.IsInstall` is the opposite.
    pub upgrade: bool,
}

/// What a chart is rendered with.
#[derive(Debug)]
pub struct Input<'c> {
    /// The chart, with its subcharts that are enabled.
    pub chart: &'c Chart,
    /// The values of the chart, coalesced.
    pub values: Map,
    /// The installation.
    pub release: Release,
    /// The cluster.
    pub capabilities: Capabilities,
    /// Generated values.
    pub environment: Environment,
    /// What the execution may cost.
    pub limits: Limits,
}

/// Why a chart cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// A template fails, with Helm's text, which names file and line.
    #[error("{0}")]
    Template(String),
    /// A template calls a function that is not available: the text begins with the place.
    #[error("{0}")]
    Refused(String),
    /// A limit is exceeded, in the template of this path.
    #[error("{path}: {limit}")]
    Limit {
        /// The template.
        path: String,
        /// The limit.
        limit: Limit,
    },
}

/// A template with what it is executed with.
struct Entry {
    path: String,
    text: Str,
    /// The values: one map for all templates of a chart, which they may change.
    dot: Map,
    /// `.Template.BasePath`.
    base: String,
}

/// Renders all templates. Gives the output of each by its path, in the order of execution; partials (`_…`) have none.
pub fn render(input: Input<'_>) -> Result<Vec<(String, Str)>, RenderError> {
    let Input { chart, values, release, capabilities, environment, limits } = input;
    let shared = Map::new();
    shared.insert("Release", release.value());
    shared.insert("Capabilities", Value::Object(Rc::new(capabilities)));
    let mut entries = Vec::new();
    collect(chart, chart.name(), &Value::Map(values.named(VALUES)), (&shared, true), &mut entries);
    // Deeper ones first, so that the parent's definition of a template wins.
    entries.sort_by(|left, right| {
        let depth = |path: &str| path.matches('/').count();
        depth(&right.path).cmp(&depth(&left.path)).then_with(|| right.path.cmp(&left.path))
    });
    let mut machine =
        Machine::new(Rc::new(functions::All) as Rc<dyn Functions>, Rc::new(environment), limits).with_name("gotpl");
    for entry in &entries {
        machine.parse(&entry.path, &entry.text.text()).map_err(|error| parse_error(&entry.path, *error))?;
    }
    let mut rendered = Vec::new();
    for Entry { path, dot, base, .. } in &entries {
        if base_name(path).starts_with('_') {
            continue;
        }
        let template: Map = [("Name", path.as_str()), ("BasePath", base.as_str())].into_iter().collect();
        dot.insert("Template", Value::Map(template.named(VALUES)));
        let text =
            machine.execute(path, &Value::Map(dot.named(VALUES))).map_err(|error| execution_error(path, *error))?;
        rendered.push((path.clone(), without_no_value(&text)));
    }
    Ok(rendered)
}

const VALUES: &str = "chartutil.Values";

/// What Go prints for nil is left out, wherever it comes from.
fn without_no_value(text: &Str) -> Str {
    const MARK: &[u8] = b"<no value>";
    let bytes = text.as_bytes();
    let mut out: Vec<u8> = Vec::new();
    let mut kept = 0;
    let mut at = 0;
    while let Some(rest) = bytes.get(at..) {
        let Some(found) = rest.iter().position(|byte| *byte == b'<') else { break };
        at += found;
        if bytes.get(at..).is_some_and(|rest| rest.starts_with(MARK)) {
            out.extend_from_slice(bytes.get(kept..at).unwrap_or_default());
            at += MARK.len();
            kept = at;
        } else {
            at += 1;
        }
    }
    if kept == 0 {
        return text.clone();
    }
    out.extend_from_slice(bytes.get(kept..).unwrap_or_default());
    out.into()
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Collects the templates of a chart and its subcharts, and gives what the parent knows of it.
fn collect(chart: &Chart, path: &str, values: &Value, (shared, root): (&Map, bool), entries: &mut Vec<Entry>) -> Map {
    let dot = Map::new();
    for (key, value) in shared.entries() {
        dot.insert(key, value);
    }
    dot.insert("Chart", Value::Object(Rc::new(objects::Metadata::new(&chart.metadata, root))));
    dot.insert(
        "Files",
        Value::Object(Rc::new(Files::new(chart.files.iter().map(|file| (file.name.clone(), (&*file.data).into()))))),
    );
    dot.insert("Values", values.clone());
    let subcharts = Map::new();
    for subchart in &chart.dependencies {
        let own = table(values, subchart.name()).unwrap_or_else(|| Map::new().named(VALUES));
        let path = format!("{path}/charts/{}", subchart.name());
        let inside = collect(subchart, &path, &Value::Map(own), (shared, false), entries);
        subcharts.insert(subchart.name(), Value::Map(inside));
    }
    dot.insert("Subcharts", Value::Map(subcharts));
    for template in &chart.templates {
        if chart.is_library() && !base_name(&template.name).starts_with('_') {
            continue;
        }
        entries.push(Entry {
            path: format!("{path}/{}", template.name),
            text: (&*template.data).into(),
            dot: dot.clone(),
            base: format!("{path}/templates"),
        });
    }
    dot
}

/// The table of a subchart in the values of its parent, under its name; a point in a name leads into a table, as in Helm.
fn table(values: &Value, name: &str) -> Option<Map> {
    let mut table = values.as_map()?.clone();
    for part in name.split('.') {
        table = table.get(part)?.as_map()?.clone();
    }
    Some(table.named(VALUES))
}

impl Release {
    fn value(&self) -> Value {
        Value::Map(
            [
                ("Name", Value::from(self.name.as_str())),
                ("Namespace", Value::from(self.namespace.as_str())),
                ("IsUpgrade", Value::Bool(self.upgrade)),
                ("IsInstall", Value::Bool(!self.upgrade)),
                ("Revision", Value::int(self.revision)),
                ("Service", Value::from("Helm")),
            ]
            .into_iter()
            .collect::<Map>(),
        )
    }
}

/// A text of a parse error as Helm shortens it.
fn parse_error(path: &str, error: Error) -> RenderError {
    let text = match error {
        Error::Limit(limit) => return RenderError::Limit { path: path.to_owned(), limit },
        error => error.to_string(),
    };
    let parts: Vec<&str> = text.split(": ").collect();
    RenderError::Template(match parts.as_slice() {
        [_, place, .., message] => format!("parse error at ({place}): {message}"),
        _ => format!("parse error in ({path}): {text}"),
    })
}

/// A text of an execution error as Helm shortens it: of `fail` and `required`, only the message.
fn execution_error(path: &str, error: Error) -> RenderError {
    if let Error::Limit(limit) = error {
        return RenderError::Limit { path: path.to_owned(), limit };
    }
    let text = error.to_string();
    let mut parts = text.splitn(3, ": ");
    if let (Some(_), Some(place), Some(rest)) = (parts.next(), parts.next(), parts.next()) {
        if let Some(refused) = refused(&error) {
            return RenderError::Refused(format!("{place}: {refused}"));
        }
        if let Some(message) = rest.find(functions::START).zip(rest.rfind(functions::END)) {
            let message = rest.get(message.0 + functions::START.len()..message.1).unwrap_or_default();
            return RenderError::Template(format!("execution error at ({place}): {message}"));
        }
    }
    RenderError::Template(text)
}

/// The refusal of a function, wherever it was called.
fn refused(error: &Error) -> Option<String> {
    use chandler_go_template::{Cause, FunctionError};
    match error {
        Error::Execution { cause: Cause::Function { error: function, .. }, .. } => match function {
            FunctionError::Refused { .. } => Some(function.to_string()),
            FunctionError::Template(inner) => refused(inner),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests;
