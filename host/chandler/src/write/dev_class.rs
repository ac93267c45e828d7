//! A ProvisionerClass for a component file (`chandler dev --provisioner FILE`), which follows the file.

use std::{
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use chandler_api::{ProvisionerClass, ProvisionerClassSpec, UpdatePolicy};
use chandler_devregistry::Registry;
use chandler_engine::EngineOptions;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};

use super::control_plane::FIELD_MANAGER;
use crate::{
    CommandError,
    read::{file, naming},
    view::progress::Progress,
};

/// How often the file is looked at.
const INTERVAL: Duration = Duration::from_secs(1);

/// A component file and the class that is made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentFile {
    /// The file.
    pub path: PathBuf,
    /// The name of the class, which is the name of the file.
    pub class: String,
}

impl ComponentFile {
    /// The component file that `--provisioner` names; none for the name of a class.
    pub fn of(name: &str) -> Option<Self> {
        let path = Path::new(name);
        let is_file = name.contains('/') || path.extension().is_some_and(|extension| extension == "wasm");
        is_file.then(|| Self { path: path.to_owned(), class: naming::deployment(name) })
    }

    /// Pushes the file to the registry and creates or updates the class.
    pub async fn publish(&self, client: &Client, registry: &Registry) -> Result<(), CommandError> {
        let path = self.path.display();
        let wasm = file::read(&self.path, EngineOptions::default().component_bytes)
            .map_err(|error| CommandError::usage(format!("failed to read the provisioner {path}")).because(&error))?;
        let repository = format!("provisioners/{}", self.class);
        let pushed = registry
            .push_component(&repository, "latest", wasm)
            .map_err(|error| CommandError::failed(format!("failed to push {path} to the registry")).because(&error))?;
        let spec = ProvisionerClassSpec {
            image: format!("{}/{repository}@{}", registry.host(), pushed.digest),
            // A rebuilt file is to be seen at once.
            update_policy: Some(UpdatePolicy::Automatic),
            ..ProvisionerClassSpec::default()
        };
        let class = ProvisionerClass::new(&self.class, spec);
        let classes: Api<ProvisionerClass> = Api::all(client.clone());
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        classes.patch(&self.class, &parameters, &Patch::Apply(&class)).await.map(drop).map_err(|error| {
            CommandError::failed(format!("failed to apply ProvisionerClass {}", self.class)).because(&error)
        })
    }

    /// When the file was written, or `None` while a build replaces it.
    pub fn written(&self) -> Option<SystemTime> {
        std::fs::metadata(&self.path).and_then(|metadata| metadata.modified()).ok()
    }

    /// Publishes the file again each time it was written. Never ends.
    pub async fn follow(&self, client: &Client, registry: &Registry, progress: &Progress, since: Option<SystemTime>) {
        let mut last = since;
        loop {
            tokio::time::sleep(INTERVAL).await;
            let written = self.written();
            if written.is_none() || written == last {
                continue;
            }
            last = written;
            match self.publish(client, registry).await {
                Ok(()) => progress.report("provisioner", &format!("{} was rebuilt", self.path.display())),
                // A build may still write the file; it is read again when it changes.
                Err(error) => progress.report("provisioner", &error.to_string()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_or_a_wasm_file_is_a_component() {
        let of = |name: &str| ComponentFile::of(name).map(|file| file.class);
        assert_eq!(of("./My_Format.wasm").as_deref(), Some("my-format"));
        assert_eq!(of("helm.wasm").as_deref(), Some("helm"));
        assert_eq!(of("core-rukpak-io-plain"), None);
    }
}
