//! `chandler render`.

use std::path::PathBuf;

use crate::{CommandError, arguments, output::Format, terminal::Terminal};

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
    #[arg(long, value_name = "NAMESPACE", value_parser = arguments::dns_label)]
    pub namespace: Option<String>,

    /// The name of the BundleDeployment [default: made from BUNDLE]
    #[arg(long, value_name = "NAME", value_parser = arguments::deployment_name)]
    pub name: Option<String>,

    /// The configuration, YAML or JSON; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// The version of Kubernetes to render for, such as `1.36` [default: none, as without a cluster]
    #[arg(long, value_name = "VERSION", value_parser = arguments::kubernetes_version)]
    pub kubernetes_version: Option<String>,

    /// The form of the output
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Yaml)]
    pub output: Format,

    /// Speak HTTP with the registry of the image
    #[arg(long)]
    pub plain_http: bool,

    /// Where unpacked bundles and compiled components are kept
    /// [default: $XDG_CACHE_HOME/chandler, else ~/.cache/chandler]
    #[arg(long, value_name = "DIR", env = "CHANDLER_CACHE_DIRECTORY", hide_env_values = true)]
    pub cache_directory: Option<PathBuf>,
}

impl Render {
    /// Renders it.
    pub async fn run(&self, _terminal: &Terminal) -> Result<(), CommandError> {
        Ok(())
    }
}
