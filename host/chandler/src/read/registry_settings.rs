//! What this machine sets for registries, in the files that podman and docker read.

use std::{env, path::PathBuf};

use chandler_content::RegistrySettings;
use chandler_registries::Registries;

use crate::CommandError;

/// Where the settings of the machine are.
const SYSTEM: &str = "/etc/containers";
/// The certificates for registries that docker reads.
const DOCKER_CERTIFICATES: &str = "/etc/docker/certs.d";

/// How registries are reached, where this differs from the settings of the user and the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistryOptions {
    /// Registries and servers that are asked without TLS, as `host` or `host:port`.
    pub plain_http_registries: Vec<String>,
    /// The file with registry credentials; `None` for the default files of podman and docker.
    pub registry_config: Option<PathBuf>,
    /// The `registries.conf`; `None` for the default files.
    pub registries_conf: Option<PathBuf>,
}

/// The settings of the file that the options name, or else of this user or this machine.
///
/// # Errors
/// A file is refused, or the one that the options name does not exist.
pub fn of(options: &RegistryOptions) -> Result<RegistrySettings, CommandError> {
    let user = env::home_dir().map(|home| home.join(".config/containers"));
    let directories: Vec<PathBuf> = user.into_iter().chain([PathBuf::from(SYSTEM)]).collect();
    let below = |name: &str| directories.iter().map(|directory| directory.join(name)).collect::<Vec<_>>();
    let read = if let Some(file) = &options.registries_conf {
        Registries::read(Some(file), &[])
    } else {
        let file = below("registries.conf").into_iter().find(|file| file.exists());
        // The user's files come last, and take precedence.
        let drop_ins: Vec<_> = below("registries.conf.d").into_iter().rev().collect();
        Registries::read(file.as_deref(), &drop_ins)
    };
    let registries = read.map_err(|error| {
        CommandError::failed("failed to read the settings for registries").because(&error).hint(
            "see `man containers-registries.conf`; --registries-conf names another file, and /dev/null one without settings",
        )
    })?;
    let certificates = below("certs.d").into_iter().chain([PathBuf::from(DOCKER_CERTIFICATES)]).collect();
    Ok(RegistrySettings::new(registries, certificates))
}
