//! `chandler render`.

use chandler_core::{Release, Target};
use serde_json::Value;

use crate::{
    CommandError,
    arguments::{bundle::BundleArguments, connection::Connection},
    read::{classes::ClusterClasses, provisioner::ChosenProvisioner, release_check, rendering},
    view::{
        diagnostics,
        output::{self, Format},
        terminal::Terminal,
        text::count,
    },
};

/// Render a bundle, and print its objects
///
/// Runs the provisioner in the same sandbox as the controller, and prints the objects of the release, in the order in which the
/// controller applies them. The output lacks what the controller adds: its labels, annotations and owner references, serving certificates
/// with their Secrets and CA bundles, generated values, and the namespace of namespaced objects without one. No cluster is required
/// unless --provisioner names a class that is not built in, and no network unless BUNDLE is an image or a URL.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The objects on standard output; `kubectl apply -f -` accepts both formats.
  Errors and warnings with their location, the probes, and a summary on standard error.

Exit codes: 0 rendered, perhaps with warnings; 1 failed; 2 wrong usage

Examples:
  chandler render ./my-operator
  With a namespace and a configuration:
    chandler render ./my-operator --namespace tenant --config values.yaml
  An image, as JSON:
    chandler render quay.io/example/my-operator-bundle:v1.2.0 -o json
  An archive of a web server:
    chandler render https://example.com/my-operator-1.2.tgz
  Compare two versions of a bundle:
    diff <(chandler render ./v1 --name my-operator) <(chandler render ./v2 --name my-operator)
  With a provisioner of your own:
    chandler render ./bundle --provisioner ./target/my-provisioner.wasm
  With a ProvisionerClass of the cluster, its component and its configuration:
    chandler render ./bundle --provisioner helm")]
pub struct Render {
    /// The bundle, and how to render it.
    #[command(flatten)]
    pub bundle: BundleArguments,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Yaml)]
    pub output: Format,

    /// The cluster that a class is in that is not built in.
    #[command(flatten)]
    pub connection: Connection,
}

impl Render {
    /// Renders the bundle.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let mut opened =
            rendering::open(&self.bundle.options(), ClusterClasses::At(&self.connection.options())).await?;
        let unrecognised = opened.recognise().await?;
        let sources = opened.sources();
        let release = opened.release().await?;
        let refused = release_check::probes(&release);
        if !refused.is_empty() {
            let failed = CommandError::failed("the controller refuses probes of the release");
            return Err(failed.with_findings(diagnostics::findings(&refused, &sources)));
        }
        let objects: Vec<Value> = release.objects().iter().map(|object| Value::Object(object.value.clone())).collect();
        output::print(&output::write(&objects, self.output)?)?;
        let given = opened.configuration_warnings().chain(release.findings());
        let findings: Vec<_> = unrecognised.iter().chain(given).cloned().collect();
        terminal.write(diagnostics::render(&diagnostics::findings(&findings, &sources), terminal));
        for probe in release.probes() {
            terminal.line(format!("probe: {}", release_check::probe(probe)));
        }
        terminal.line(summary(&opened.chosen, &release, &opened.request.target));
        Ok(())
    }
}

/// The number of objects, the target and the provisioner, on one line.
fn summary(chosen: &ChosenProvisioner, release: &Release, target: &Target) -> String {
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
