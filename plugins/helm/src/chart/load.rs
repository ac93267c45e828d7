//! A chart from its files.

use std::{cmp::Ordering, collections::BTreeMap};

use chandler_go_template::Map;
use chandler_helmignore::{Rules, Steps};

use crate::yaml;

use super::{Chart, File, archive, metadata::Metadata, values};

/// Why a chart cannot be loaded: Helm's text, or a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LoadError(pub String);

/// What a chart may cost, with all of its subcharts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all files, those in archives unpacked.
    pub bytes: usize,
    /// Files, those in archives included.
    pub files: usize,
    /// Subcharts within subcharts.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 128 << 20, files: 20_000, depth: 20 }
    }
}

/// What is left of the limits.
pub(super) struct Budget {
    limits: Limits,
    bytes: usize,
    files: usize,
}

impl Budget {
    pub(super) fn bytes_left(&self) -> usize {
        self.limits.bytes.saturating_sub(self.bytes)
    }

    /// Counts a file.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), String> {
        self.bytes = self.bytes.saturating_add(bytes);
        self.files += 1;
        if self.bytes > self.limits.bytes {
            return Err(format!("the chart has more than {} bytes", self.limits.bytes));
        }
        if self.files > self.limits.files {
            return Err(format!("the chart has more than {} files", self.limits.files));
        }
        Ok(())
    }
}

/// Loads a chart from the files of its directory, with paths relative to it, in any order. `.helmignore` is obeyed.
///
/// # Errors
/// What Helm refuses as well, with its text, and what exceeds a limit.
pub fn load(files: Vec<File>, limits: Limits) -> Result<Chart, LoadError> {
    let mut budget = Budget { limits, bytes: 0, files: 0 };
    directory(files, &mut budget).map_err(LoadError)
}

/// Loads a chart from an archive, `.tgz`.
///
/// # Errors
/// As of [`load`].
pub fn load_archive(bytes: &[u8], limits: Limits) -> Result<Chart, LoadError> {
    let mut budget = Budget { limits, bytes: 0, files: 0 };
    archive::files(bytes, &mut budget).and_then(|files| chart(files, &mut budget, 0)).map_err(LoadError)
}

fn directory(mut files: Vec<File>, budget: &mut Budget) -> Result<Chart, String> {
    let rules = files.iter().find(|file| file.name == chandler_helmignore::FILE).map(|file| file.text().into_owned());
    let rules = Rules::parse(&rules.unwrap_or_default()).map_err(|error| error.to_string())?;
    // The sandbox limits the time.
    let mut steps = Steps::unlimited();
    files.retain(|file| !rules.leave_out_file(&file.name, &mut steps).unwrap_or_default());
    files.sort_by(|one, other| walk_order(&one.name, &other.name));
    for file in &mut files {
        budget.take(file.data.len())?;
        if let Some(data) = file.data.strip_prefix(b"\xef\xbb\xbf") {
            file.data = data.into();
        }
    }
    chart(files, budget, 0)
}

/// The order in which a walk through directories finds files.
fn walk_order(one: &str, other: &str) -> Ordering {
    one.split('/').cmp(other.split('/'))
}

fn chart(files: Vec<File>, budget: &mut Budget, depth: usize) -> Result<Chart, String> {
    if depth > budget.limits.depth {
        return Err(format!("subcharts are nested more than {} levels deep", budget.limits.depth));
    }
    let mut metadata: Option<Metadata> = None;
    for file in files.iter().filter(|file| file.name == "Chart.yaml") {
        let metadata = metadata.get_or_insert_with(Metadata::default);
        metadata.read(&file.text()).map_err(|error| format!("cannot load Chart.yaml: {error}"))?;
        if metadata.api_version.is_empty() {
            "v1".clone_into(&mut metadata.api_version);
        }
    }
    let mut chart = Chart {
        metadata: Metadata::default(),
        values: Map::new(),
        schema: None,
        templates: Vec::new(),
        files: Vec::new(),
        dependencies: Vec::new(),
        warnings: Vec::new(),
    };
    let mut subcharts: BTreeMap<String, Vec<File>> = BTreeMap::new();
    for file in files {
        let first_version =
            |metadata: &Option<Metadata>| metadata.as_ref().is_some_and(|metadata| metadata.api_version == "v1");
        match file.name.as_str() {
            "Chart.yaml" | "Chart.lock" => {}
            "values.yaml" => {
                chart.values =
                    read_values(&file.text()).map_err(|error| format!("cannot load values.yaml: {error}"))?;
            }
            "values.schema.json" => chart.schema = Some(file.data),
            "requirements.yaml" => {
                let metadata = metadata.get_or_insert_with(Metadata::default);
                if metadata.api_version != "v1" {
                    chart.warnings.push(
                        "Warning: Dependencies are handled in Chart.yaml since apiVersion \"v2\". We recommend migrating dependencies to Chart.yaml."
                            .to_owned(),
                    );
                }
                metadata.read(&file.text()).map_err(|error| format!("cannot load requirements.yaml: {error}"))?;
                if metadata.api_version == "v1" {
                    chart.files.push(file);
                }
            }
            "requirements.lock" => {
                if first_version(&metadata) {
                    chart.files.push(file);
                }
            }
            name if name.starts_with("templates/") => chart.templates.push(file),
            name if name.starts_with("charts/") => {
                let inner = name.strip_prefix("charts/").unwrap_or_default();
                if ends_in(inner, ".prov") {
                    chart.files.push(file);
                    continue;
                }
                let subchart = inner.split('/').next().unwrap_or_default().to_owned();
                let inner = File { name: inner.to_owned(), data: file.data };
                subcharts.entry(subchart).or_default().push(inner);
            }
            _ => chart.files.push(file),
        }
    }
    chart.metadata = metadata.ok_or("Chart.yaml file is missing")?;
    chart.metadata.validate()?;
    for (name, files) in subcharts {
        if name.starts_with(['_', '.']) {
            continue;
        }
        let loaded = subchart(&name, files, budget, depth, chart.name()).map_err(|error| {
            if error.starts_with("error unpacking subchart tar") {
                error
            } else {
                format!("error unpacking subchart {name} in {}: {error}", chart.name())
            }
        })?;
        chart.dependencies.push(loaded);
    }
    Ok(chart)
}

/// Whether a name has this ending, with small letters only, as Go compares names.
fn ends_in(name: &str, ending: &str) -> bool {
    name.ends_with(ending)
}

fn subchart(name: &str, files: Vec<File>, budget: &mut Budget, depth: usize, parent: &str) -> Result<Chart, String> {
    if ends_in(name, ".tgz") {
        let Some(file) = files.first().filter(|file| file.name == name) else {
            let found = files.first().map_or("", |file| file.name.as_str());
            return Err(format!("error unpacking subchart tar in {parent}: expected {name}, got {found}"));
        };
        let inner = archive::files(&file.data, budget)?;
        return chart(inner, budget, depth + 1);
    }
    // A file directly in `charts/` belongs to no chart.
    let inner = files
        .into_iter()
        .filter_map(|file| {
            file.name.split_once('/').map(|(_, inner)| inner.to_owned()).map(|name| File { name, data: file.data })
        })
        .collect();
    chart(inner, budget, depth + 1)
}

/// The values of a file: its documents, later ones over earlier ones.
///
/// # Errors
/// Helm's text: a file that is not YAML, or whose documents are not maps.
pub(super) fn read_values(text: &str) -> Result<Map, String> {
    let documents = yaml::documents(text).map_err(|error| format!("cannot unmarshal yaml document: {error}"))?;
    let mut all = Map::new();
    for document in &documents {
        match yaml::value(&document.root) {
            chandler_go_template::Value::Map(map) => all = values::merge(&all, &map),
            _ => {
                return Err("cannot unmarshal yaml document: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal a value that is not an object into Go value of type map[string]interface {}".to_owned());
            }
        }
    }
    Ok(all)
}
