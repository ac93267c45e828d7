//! The namespace of the controller, for commands that read the content of a BundleDeployment or a Catalog.

use super::values;

/// Where the ConfigMaps with files are.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SystemNamespaceArguments {
    /// Namespace of the controller, for a BundleDeployment or a Catalog whose files are in ConfigMaps
    #[arg(long, value_name = "NAMESPACE", default_value = "chandler-system", env = "CHANDLER_SYSTEM_NAMESPACE", hide_env_values = true,
          value_parser = values::dns_label)]
    pub system_namespace: String,
}
