//! A bundle to render, and the request to its provisioner.

use std::path::PathBuf;

use super::{configuration::ConfigurationArguments, registry::RegistryArguments, values};
use crate::read::rendering::BundleOptions;

/// Which bundle is rendered, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct BundleArguments {
    /// A directory, an archive (.tar, .tar.gz, .tgz, .tar.zst, .zip), the URL of an archive or a git repository, a chart in
    /// a Helm repository (helm+URL?chart=NAME&version=VERSION), or an image reference
    #[arg(value_name = "BUNDLE")]
    pub bundle: String,

    /// A built-in provisioner class, a ProvisionerClass of the cluster, or a component file [default: the first built-in class that
    /// detects the format of the bundle]
    #[arg(long, value_name = "CLASS|FILE.wasm")]
    pub provisioner: Option<String>,

    /// The request to the provisioner.
    #[command(flatten)]
    pub request: RequestArguments,

    /// Where the bundle is fetched from and unpacked.
    #[command(flatten)]
    pub fetch: FetchArguments,
}

/// The request to a provisioner.
#[derive(Clone, Debug, clap::Args)]
pub struct RequestArguments {
    /// Namespace to install into [default: NAME-system]
    #[arg(short, long, value_name = "NAMESPACE", value_parser = values::dns_label)]
    pub namespace: Option<String>,

    /// Name of the BundleDeployment [default: derived from BUNDLE]
    #[arg(long, value_name = "NAME", value_parser = values::deployment_name)]
    pub name: Option<String>,

    /// The configuration.
    #[command(flatten)]
    pub configuration: ConfigurationArguments,

    /// Kubernetes version to render for, such as `1.36` [default: none; the provisioner gets no version]
    #[arg(long, value_name = "VERSION", value_parser = values::kubernetes_version)]
    pub kubernetes_version: Option<String>,
}

/// How a bundle is fetched, and where it is unpacked.
#[derive(Clone, Debug, clap::Args)]
pub struct FetchArguments {
    /// How the command connects to the registry of an image.
    #[command(flatten)]
    pub registry: RegistryArguments,

    /// Directory for unpacked bundles and compiled components
    /// [default: $XDG_CACHE_HOME/chandler, else ~/.cache/chandler]
    #[arg(long, value_name = "DIR", env = "CHANDLER_CACHE_DIRECTORY", hide_env_values = true)]
    pub cache_directory: Option<PathBuf>,
}

impl FetchArguments {
    /// The options for the bundle of a BundleDeployment.
    pub fn of_deployment(&self) -> BundleOptions {
        BundleOptions::of_deployment(self.registry.options(), self.cache_directory.clone())
    }
}

impl BundleArguments {
    /// The options.
    pub fn options(&self) -> BundleOptions {
        self.request.options(&self.bundle, self.provisioner.as_deref(), &self.fetch)
    }
}

impl RequestArguments {
    /// The options for a bundle and a provisioner.
    pub fn options(&self, bundle: &str, provisioner: Option<&str>, fetch: &FetchArguments) -> BundleOptions {
        BundleOptions {
            bundle: bundle.to_owned(),
            provisioner: provisioner.map(str::to_owned),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            configuration: self.configuration.options(),
            kubernetes_version: self.kubernetes_version.clone(),
            registry: fetch.registry.options(),
            cache_directory: fetch.cache_directory.clone(),
        }
    }
}
