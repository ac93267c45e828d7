//! How the command connects to registries.

use std::path::PathBuf;

use crate::read::registry_settings::RegistryOptions;

/// The heading in the help. Each argument sets it: `next_help_heading` would also apply to the arguments that follow.
const HEADING: &str = "Images";

/// How the command connects to the registry of an image.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct RegistryArguments {
    /// Use HTTP for this registry, or allow URLs with http:// on this server (host or host:port). Repeatable. Loopback addresses need not
    /// be listed, except for a registry without TLS that asks for credentials
    #[arg(long = "plain-http-registry", value_name = "HOST", help_heading = HEADING)]
    pub plain_http_registries: Vec<String>,

    /// File with registry credentials [default: podman's and docker's files, such as ~/.docker/config.json]
    #[arg(long, value_name = "FILE", env = "REGISTRY_AUTH_FILE", hide_env_values = true, help_heading = HEADING)]
    pub registry_config: Option<PathBuf>,

    /// File with mirrors, blocked and insecure registries [default: ~/.config/containers/registries.conf, else
    /// /etc/containers/registries.conf, and their drop-in files]
    #[arg(long, value_name = "FILE", env = "CONTAINERS_REGISTRIES_CONF", hide_env_values = true, help_heading = HEADING)]
    pub registries_conf: Option<PathBuf>,
}

impl RegistryArguments {
    /// The options.
    pub fn options(&self) -> RegistryOptions {
        RegistryOptions {
            plain_http_registries: self.plain_http_registries.clone(),
            registry_config: self.registry_config.clone(),
            registries_conf: self.registries_conf.clone(),
        }
    }
}
