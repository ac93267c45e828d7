//! What this machine sets for registries, in the files that podman and docker read.

use std::{env, path::PathBuf};

use chandler_content::RegistrySettings;
use chandler_registries::Registries;

use crate::{CommandError, arguments::registry::RegistryArguments};

/// Where the settings of the machine are.
const SYSTEM: &str = "/etc/containers";
/// The certificates for registries that docker reads.
const DOCKER_CERTIFICATES: &str = "/etc/docker/certs.d";

/// The settings of the file that the arguments name, or else of this user or this machine.
///
/// # Errors
/// A file is refused, or the one that the arguments name does not exist.
pub fn of(arguments: &RegistryArguments) -> Result<RegistrySettings, CommandError> {
    let user = env::home_dir().map(|home| home.join(".config/containers"));
    let directories: Vec<PathBuf> = user.into_iter().chain([PathBuf::from(SYSTEM)]).collect();
    let below = |name: &str| directories.iter().map(|directory| directory.join(name)).collect::<Vec<_>>();
    let read = if let Some(file) = &arguments.registries_conf {
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
