//! ConfigMaps of the system namespace, each of which holds a directory of the bundle.

use std::collections::BTreeMap;

use chandler_api::{BundleSource, ConfigMapSource};
use chandler_content::{FileSet, Tree};
use k8s_openapi::api::core::v1::ConfigMap;

use crate::{Environment, InvalidSource, SourceError, SourceKind};

/// A list of ConfigMaps.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigMaps {
    maps: Vec<ConfigMapSource>,
}

/// ConfigMaps with what they held. The API server serves no earlier content of an object, so the pin holds the content.
#[derive(Clone, Debug, PartialEq)]
pub struct PinnedConfigMaps(Vec<PinnedConfigMap>);

/// A ConfigMap at one version.
#[derive(Clone, Debug, PartialEq)]
struct PinnedConfigMap {
    source: ConfigMapSource,
    resource_version: Option<String>,
    files: BTreeMap<String, Vec<u8>>,
}

/// Why a ConfigMap is not used. A change of the ConfigMap may help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigMapError {
    /// The API server did not return it.
    #[error("get configmap {object}: {message}")]
    Read {
        /// The namespace and the name.
        object: String,
        /// The error.
        message: String,
    },
    /// It does not exist, or the BundleDeployment may not name it. The message does not distinguish these cases, so that a
    /// BundleDeployment cannot probe for ConfigMaps.
    #[error(
        "get configmap {object}: configmaps {name:?} not found, or its annotation {annotation} does not name {grantee}, or \
         chandler.dev/serviceaccounts not its ServiceAccount"
    )]
    NotGranted {
        /// The namespace and the name.
        object: String,
        /// The name.
        name: String,
        /// The annotation that grants the use.
        annotation: &'static str,
        /// The object that names it.
        grantee: String,
    },
    /// Its content may change while it is read.
    #[error("configmap {name:?} is not immutable: set immutable: true on {object}")]
    Mutable {
        /// The namespace and the name.
        object: String,
        /// The name.
        name: String,
    },
}

impl SourceKind for ConfigMaps {
    const TYPE: &'static str = BundleSource::CONFIG_MAPS;
    type Spec = Vec<ConfigMapSource>;
    type Pin = PinnedConfigMaps;
    type Access = ();

    fn parse(spec: &Vec<ConfigMapSource>) -> Result<Self, InvalidSource> {
        Ok(Self { maps: spec.clone() })
    }

    fn describe(spec: &Vec<ConfigMapSource>) -> String {
        let names: Vec<&str> = spec.iter().map(|map| map.config_map.name.as_str()).collect();
        format!("ConfigMaps {}", names.join(", "))
    }

    /// Immutable ConfigMaps do not move. One that is deleted and created again is seen by the watch on ConfigMaps.
    fn can_move(&self) -> bool {
        false
    }

    async fn access(&self, _: Environment<'_>) -> Result<(), SourceError> {
        Ok(())
    }

    async fn resolve(&self, (): &(), environment: Environment<'_>) -> Result<PinnedConfigMaps, SourceError> {
        let system = environment.system;
        let mut pinned = Vec::new();
        for source in &self.maps {
            let name = &source.config_map.name;
            let map = system
                .config_map(name)
                .await
                .map_err(|message| ConfigMapError::Read { object: system.object(name), message })?;
            pinned.push(pin(source, map, environment)?);
        }
        Ok(PinnedConfigMaps(pinned))
    }

    async fn fetch(pin: PinnedConfigMaps, (): &(), environment: Environment<'_>) -> Result<Tree, SourceError> {
        let sets = pin.0.into_iter().map(|map| FileSet {
            source: map.source.config_map.name,
            directory: map.source.path.unwrap_or_default(),
            files: map.files,
        });
        Ok(environment.images.store().import_files(sets.collect()).await?)
    }

    fn to_api(pin: &PinnedConfigMaps) -> BundleSource {
        BundleSource::config_maps(pin.0.iter().map(|map| map.source.clone()).collect())
    }
}

fn pin(
    source: &ConfigMapSource,
    map: Option<ConfigMap>,
    environment: Environment<'_>,
) -> Result<PinnedConfigMap, ConfigMapError> {
    let Environment { system, grantee, account, .. } = environment;
    let name = source.config_map.name.clone();
    let object = system.object(&name);
    let Some(map) = map.filter(|map| grantee.may_name(account, &map.metadata, false)) else {
        let (annotation, grantee) = (grantee.annotation(), grantee.to_string());
        return Err(ConfigMapError::NotGranted { object, name, annotation, grantee });
    };
    if map.immutable != Some(true) {
        return Err(ConfigMapError::Mutable { object, name });
    }
    let text = map.data.unwrap_or_default().into_iter().map(|(key, text)| (key, text.into_bytes()));
    let binary = map.binary_data.unwrap_or_default().into_iter().map(|(key, bytes)| (key, bytes.0));
    Ok(PinnedConfigMap {
        source: source.clone(),
        resource_version: map.metadata.resource_version,
        files: text.chain(binary).collect(),
    })
}
