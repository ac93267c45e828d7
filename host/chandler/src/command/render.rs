//! `chandler render`.

use chandler_core::{Release, Target};
use serde_json::Value;

use crate::{
    CommandError, diagnostics,
    output::{self, Format},
    provision::Chosen,
    rendering::Rendering,
    terminal::Terminal,
    text::count,
};

/// Print the objects that a bundle becomes
///
/// The same code in the same sandbox as in the controller, so the objects are those that the controller applies, in the
/// order in which it applies them. No cluster is needed, and no network unless BUNDLE is an image.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The objects on standard output, in either format fit for `kubectl apply -f -`.
  Findings, with file, line and column, and a summary line on standard error.

Exit codes: 0 rendered (perhaps with warnings), 1 refused, 2 wrong usage

Examples:
  chandler render ./my-operator
  For one namespace, with a configuration:
    chandler render ./my-operator --namespace tenant --config values.yaml
  An image, as JSON:
    chandler render quay.io/example/my-operator-bundle:v1.2.0 -o json
  What an upgrade would change:
    diff <(chandler render ./v1 --name my-operator) <(chandler render ./v2 --name my-operator)
  With a provisioner of your own:
    chandler render ./bundle --provisioner ./target/my-provisioner.wasm")]
pub struct Render {
    /// Which bundle, and how.
    #[command(flatten)]
    pub rendering: Rendering,

    /// The form of the output
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Yaml)]
    pub output: Format,
}

impl Render {
    /// Renders it.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let opened = self.rendering.open().await?;
        let sources = opened.sources();
        let release = opened.release().await?;
        let objects: Vec<Value> = release.objects().iter().map(|object| Value::Object(object.value.clone())).collect();
        output::print(&output::write(&objects, self.output)?)?;
        let findings: Vec<_> = opened.oddities().chain(release.findings()).cloned().collect();
        terminal.write(diagnostics::render(&diagnostics::findings(&findings, &sources), terminal));
        terminal.line(summary(&opened.chosen, &release, &opened.request.target));
        Ok(())
    }
}

/// What was rendered, in a line.
fn summary(chosen: &Chosen, release: &Release, target: &Target) -> String {
    let objects = release.objects();
    let stages = objects.iter().map(|object| object.stage).collect::<std::collections::BTreeSet<_>>().len();
    let format = chosen.format.as_deref().map(|format| format!(" ({format})")).unwrap_or_default();
    format!(
        "{} in {} for {} in namespace {}, by {}{format}, release {}",
        count(objects.len(), "object"),
        count(stages, "stage"),
        target.name,
        target.namespace,
        chosen.name,
        release.digest(),
    )
}
