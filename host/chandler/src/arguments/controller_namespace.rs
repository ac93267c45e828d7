//! The namespace of the controller, for commands that say whether it runs.

use super::values;

/// Where the Lease of the controller is.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ControllerNamespaceArguments {
    /// Namespace of the controller, whose Lease shows whether it runs
    #[arg(long, value_name = "NAMESPACE", default_value = "chandler-system", env = "CHANDLER_SYSTEM_NAMESPACE", hide_env_values = true,
          value_parser = values::dns_label)]
    pub system_namespace: String,
}
