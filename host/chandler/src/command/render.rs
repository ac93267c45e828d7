//! `chandler render`.

use std::{path::PathBuf, sync::Arc};

use chandler_core::{Release, Request, Target};
use chandler_engine::Limits;
use serde_json::Value;

use crate::{
    CommandError, cache,
    configuration::Configuration,
    diagnostics::{self, Sources},
    naming,
    output::{self, Format},
    provision::{self, Chosen},
    source::{self, Origin, RegistryOptions},
    terminal::Terminal,
    text::count,
    values,
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
    /// A directory, an archive (.tar, .tar.gz, .tgz) or the reference of an image
    #[arg(value_name = "BUNDLE")]
    pub bundle: String,

    /// A built-in class or the file of a component [default: the first class that recognises the bundle]
    #[arg(long, value_name = "CLASS|FILE.wasm")]
    pub provisioner: Option<String>,

    /// The namespace to install into [default: NAME-system]
    #[arg(long, value_name = "NAMESPACE", value_parser = values::dns_label)]
    pub namespace: Option<String>,

    /// The name of the BundleDeployment [default: made from BUNDLE]
    #[arg(long, value_name = "NAME", value_parser = values::deployment_name)]
    pub name: Option<String>,

    /// The configuration, YAML or JSON; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// The version of Kubernetes to render for, such as `1.36` [default: none, as without a cluster]
    #[arg(long, value_name = "VERSION", value_parser = values::kubernetes_version)]
    pub kubernetes_version: Option<String>,

    /// The form of the output
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Yaml)]
    pub output: Format,

    /// How the registry of an image is spoken to.
    #[command(flatten, next_help_heading = "Images")]
    pub registry: RegistryOptions,

    /// Where unpacked bundles and compiled components are kept
    /// [default: $XDG_CACHE_HOME/chandler, else ~/.cache/chandler]
    #[arg(long, value_name = "DIR", env = "CHANDLER_CACHE_DIRECTORY", hide_env_values = true)]
    pub cache_directory: Option<PathBuf>,
}

impl Render {
    /// Renders it.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let origin = Origin::parse(&self.bundle)?;
        let configuration = self.config.as_deref().map(Configuration::read).transpose()?;
        let cache = cache::directory(self.cache_directory.as_deref())?;
        let provisioners = provision::provisioners(&cache)?;
        let bundle = source::open(&origin, &cache, &self.registry).await?;
        let chosen = match &self.provisioner {
            Some(name) => provision::named(&provisioners, name).await?,
            None => provision::detected(&provisioners, &bundle.content).await?,
        };
        let sources = Sources {
            content: Some(bundle.content.as_ref()),
            directory: bundle.directory.as_ref(),
            configuration: configuration.as_ref().map(Configuration::named),
        };
        let request = self.request(configuration.as_ref());
        let release = chosen
            .provisioner
            .provision(&request, Arc::clone(&bundle.content), &Limits::default())
            .await
            .map_err(|error| provision::call_failed(&chosen.name, &error, &sources))?;
        let objects: Vec<Value> = release.objects().iter().map(|object| Value::Object(object.value.clone())).collect();
        output::print(&output::write(&objects, self.output)?)?;
        let odd = configuration.iter().flat_map(|configuration| &configuration.warnings);
        let findings: Vec<_> = odd.chain(release.findings()).cloned().collect();
        terminal.write(diagnostics::render(&diagnostics::findings(&findings, &sources), terminal));
        terminal.line(summary(&chosen, &release, &request.target));
        Ok(())
    }

    fn request(&self, configuration: Option<&Configuration>) -> Request {
        let name = self.name.clone().unwrap_or_else(|| naming::deployment(&self.bundle));
        let namespace = self.namespace.clone().unwrap_or_else(|| naming::namespace(&name));
        Request {
            config: configuration.map(|configuration| configuration.value.clone()).unwrap_or_default(),
            target: Target {
                name,
                namespace,
                kubernetes_version: self.kubernetes_version.clone().unwrap_or_default(),
                api_kinds: Vec::new(),
            },
        }
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
