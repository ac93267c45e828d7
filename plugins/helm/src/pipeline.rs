//! From the files of a chart and the values of a user to manifests and hooks, in the steps of `helm template`.

use std::collections::BTreeMap;

use chandler_go_template::{Limits, Map};

use crate::{
    chart::{self, Chart, Crd, File, dependencies, values},
    functions::Environment,
    manifest::{self, Documents},
    render::{self, Capabilities, Input, Release, RenderError},
    schema,
};

/// What is rendered, and for whom.
#[derive(Debug)]
pub struct Request {
    /// The files of the chart's directory.
    pub files: Vec<File>,
    /// The values of the user. Of several, the later ones win.
    pub values: Vec<Map>,
    /// The installation.
    pub release: Release,
    /// The cluster.
    pub capabilities: Capabilities,
    /// Generated values.
    pub environment: Environment,
    /// What the templates may cost.
    pub limits: Limits,
}

/// What a chart renders to.
#[derive(Debug)]
pub struct Rendered {
    /// The chart, with the subcharts that are enabled.
    pub chart: Chart,
    /// The files of `crds/`.
    pub crds: Vec<Crd>,
    /// The manifests, the hooks and the notes.
    pub documents: Documents,
    /// What Helm logs.
    pub warnings: Vec<String>,
}

/// The step that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Reading the chart.
    Load,
    /// The chart is a library.
    Installable,
    /// Conditions, tags, aliases and imported values of subcharts.
    Dependencies,
    /// Coalescing the values, and their schema.
    Values,
    /// The chart does not support the version of Kubernetes.
    KubeVersion,
    /// The templates.
    Render,
    /// The documents that the templates give.
    Manifests,
}

/// Why a chart cannot be rendered.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The step.
    pub stage: Stage,
    /// Helm's text.
    pub message: String,
    /// Whether the chart needs what this renderer does not give, or more than it gives; Helm may render it.
    pub refused: bool,
}

/// Renders a chart.
///
/// # Errors
/// What Helm refuses as well, with its text, what needs a function that is not available, and what exceeds a limit.
pub fn render(request: Request) -> Result<Rendered, Failure> {
    let Request { files, values: given, release, capabilities, environment, limits } = request;
    let failure = |stage, message| Failure { stage, message, refused: false };
    let mut chart =
        chart::load(files, chart::Limits::default()).map_err(|error| failure(Stage::Load, error.to_string()))?;
    if !matches!(chart.metadata.kind.as_str(), "" | "application") {
        return Err(failure(Stage::Installable, format!("{} charts are not installable", chart.metadata.kind)));
    }
    let given = given.iter().fold(Map::new(), |base, over| values::merge(&base, over));
    dependencies::process(&mut chart, &given).map_err(|message| failure(Stage::Dependencies, message))?;
    let values = values::coalesce(&chart, &given).map_err(|message| failure(Stage::Values, message))?;
    schema::check(&chart, &values).map_err(|message| failure(Stage::Values, message))?;
    let (range, version) = (&chart.metadata.kube_version, &capabilities.normalized());
    if !range.is_empty() && !dependencies::is_compatible(range, version) {
        let message = format!("chart requires kubeVersion: {range} which is incompatible with Kubernetes {version}");
        return Err(failure(Stage::KubeVersion, message));
    }
    let input = Input { chart: &chart, values, release, capabilities, environment, limits };
    let rendered = render::render(input).map_err(|error| Failure {
        stage: Stage::Render,
        refused: !matches!(error, RenderError::Template(_)),
        message: error.to_string(),
    })?;
    let rendered: BTreeMap<String, String> =
        rendered.into_iter().map(|(path, text)| (path, text.to_string())).collect();
    let documents =
        manifest::documents(chart.name(), rendered).map_err(|error| failure(Stage::Manifests, error.to_string()))?;
    let warnings = chart.warnings.iter().chain(&documents.warnings).cloned().collect();
    Ok(Rendered { crds: chart.crds(), chart, documents, warnings })
}
