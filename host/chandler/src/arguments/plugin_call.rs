//! A component, and the bundle that it is called with.

use std::path::PathBuf;

use super::{configuration::ConfigurationArguments, registry::RegistryArguments, values};
use crate::read::{plugin_call::CallOptions, rendering::BundleOptions};

/// A component, a bundle, and the request.
#[derive(Clone, Debug, clap::Args)]
pub struct CallArguments {
    /// The component: a file, or a built-in class
    #[arg(value_name = "COMPONENT")]
    pub component: String,

    /// A directory, an archive (.tar, .tar.gz, .tgz, .tar.zst, .zip), the URL of an archive or a git repository, or an image reference
    #[arg(value_name = "BUNDLE")]
    pub bundle: String,

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

    /// Kind that the cluster serves, as GROUP/VERSION/KIND or, for the core group, VERSION/KIND. Repeatable [default: none; the
    /// provisioner gets no kinds]
    #[arg(long = "api-kind", value_name = "KIND")]
    pub api_kinds: Vec<String>,

    /// How the command connects to the registry of an image.
    #[command(flatten)]
    pub registry: RegistryArguments,

    /// Directory for unpacked bundles and compiled components
    /// [default: $XDG_CACHE_HOME/chandler, else ~/.cache/chandler]
    #[arg(long, value_name = "DIR", env = "CHANDLER_CACHE_DIRECTORY", hide_env_values = true)]
    pub cache_directory: Option<PathBuf>,
}

impl CallArguments {
    /// The options.
    pub fn options(&self) -> CallOptions {
        CallOptions {
            bundle: BundleOptions {
                bundle: self.bundle.clone(),
                provisioner: Some(self.component.clone()),
                namespace: self.namespace.clone(),
                name: self.name.clone(),
                configuration: self.configuration.options(),
                kubernetes_version: self.kubernetes_version.clone(),
                registry: self.registry.options(),
                cache_directory: self.cache_directory.clone(),
            },
            api_kinds: self.api_kinds.clone(),
        }
    }
}
