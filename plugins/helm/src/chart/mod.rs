//! Charts: their files, metadata, subcharts and values.
//!
//! | module | holds |
//! |---|---|
//! | `load` | a chart from its files, with subcharts as directories and archives |
//! | `archive` | reading `.tgz` |
//! | `metadata` | `Chart.yaml` and `requirements.yaml` |
//! | [`values`] | merging values, with globals and nulls |
//! | [`dependencies`] | conditions, tags, aliases and imported values |

mod archive;
pub mod dependencies;
mod load;
mod metadata;
pub mod values;

use std::rc::Rc;

use chandler_go_template::Map;

pub use chandler_helmignore::matches as path_matches;
pub use load::{Limits, LoadError, load, load_archive};
pub use metadata::{Dependency, Import, Maintainer, Metadata};

/// A file of a chart.
#[derive(Clone, PartialEq, Eq)]
pub struct File {
    /// Its path relative to the chart, with strokes.
    pub name: String,
    /// Its bytes, without a byte order mark.
    pub data: Rc<[u8]>,
}

impl File {
    /// A file.
    pub fn new(name: impl Into<String>, data: impl Into<Rc<[u8]>>) -> Self {
        Self { name: name.into(), data: data.into() }
    }

    /// Its text; bytes that are not UTF-8 become U+FFFD.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.data)
    }
}

impl std::fmt::Debug for File {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} ({} bytes)", self.name, self.data.len())
    }
}

/// A chart with its subcharts.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What `Chart.yaml` says.
    pub metadata: Metadata,
    /// Its default values. Shared: copy them before a change.
    pub values: Map,
    /// The schema of its values, `values.schema.json`.
    pub schema: Option<Rc<[u8]>>,
    /// The files below `templates/`.
    pub templates: Vec<File>,
    /// All other files, including those below `crds/`; what `.Files` shows.
    pub files: Vec<File>,
    /// Its subcharts.
    pub dependencies: Vec<Chart>,
    /// Remarks that Helm logs.
    pub warnings: Vec<String>,
}

/// A file of `crds/`.
#[derive(Clone, Debug)]
pub struct Crd {
    /// Its path from the outermost chart: `CHART/charts/SUB/crds/x.yaml`.
    pub path: String,
    /// The file.
    pub file: File,
}

impl Chart {
    /// The name; an alias, if a dependency gives one.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Whether it only holds templates for other charts.
    pub fn is_library(&self) -> bool {
        self.metadata.kind == "library"
    }

    /// The files of `crds/`, of this chart and then of its subcharts.
    pub fn crds(&self) -> Vec<Crd> {
        let mut all = Vec::new();
        self.collect_crds(self.name(), &mut all);
        all
    }

    fn collect_crds(&self, path: &str, all: &mut Vec<Crd>) {
        let is_manifest = |name: &str| [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end));
        for file in self.files.iter().filter(|file| file.name.starts_with("crds/") && is_manifest(&file.name)) {
            all.push(Crd { path: format!("{path}/{}", file.name), file: file.clone() });
        }
        for chart in &self.dependencies {
            chart.collect_crds(&format!("{path}/charts/{}", chart.name()), all);
        }
    }
}

#[cfg(test)]
mod tests;
