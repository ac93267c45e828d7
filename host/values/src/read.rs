//! Reads the objects that references name, each once.

use std::collections::BTreeMap;

use chandler_api::{ValuesInUse, ValuesKind, ValuesReference};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client, core::ObjectMeta};

/// Which state of an object: an object that is deleted and created again has another UID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Its UID.
    pub uid: String,
    /// Its resource version.
    pub resource_version: String,
}

impl Version {
    /// The version of an object with this metadata.
    pub fn of(metadata: &ObjectMeta) -> Self {
        Self {
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
        }
    }
}

/// The versions of objects by kind and name; none for one that does not exist.
pub type Versions = BTreeMap<(ValuesKind, String), Option<Version>>;

/// The objects that references name. It has no `Debug`: it holds Secrets.
#[derive(Clone, Default)]
pub struct Objects(pub(crate) BTreeMap<(ValuesKind, String), Option<Object>>);

/// One object.
#[derive(Clone)]
pub(crate) struct Object {
    pub(crate) metadata: ObjectMeta,
    pub(crate) keys: BTreeMap<String, Vec<u8>>,
}

/// The API server did not return an object.
#[derive(Debug, thiserror::Error)]
#[error("failed to read {kind} {namespace}/{name}")]
pub struct ReadError {
    /// The kind.
    pub kind: ValuesKind,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The error.
    #[source]
    pub error: Box<kube::Error>,
}

impl ReadError {
    /// Whether the client lacks the permission.
    pub fn is_forbidden(&self) -> bool {
        matches!(self.error.as_ref(), kube::Error::Api(status) if status.is_forbidden())
    }
}

/// Reads the objects that references name in this namespace.
pub async fn read(client: &Client, namespace: &str, references: &[ValuesReference]) -> Result<Objects, ReadError> {
    let mut objects = Objects::default();
    for reference in references {
        let id = (reference.kind, reference.name.clone());
        if objects.0.contains_key(&id) {
            continue;
        }
        let object = match reference.kind {
            ValuesKind::ConfigMap => config_map(client, namespace, &reference.name).await,
            ValuesKind::Secret => secret(client, namespace, &reference.name).await,
        };
        let object = object.map_err(|error| ReadError {
            kind: reference.kind,
            namespace: namespace.to_owned(),
            name: reference.name.clone(),
            error: Box::new(error),
        })?;
        objects.0.insert(id, object);
    }
    Ok(objects)
}

async fn config_map(client: &Client, namespace: &str, name: &str) -> kube::Result<Option<Object>> {
    let map = Api::<ConfigMap>::namespaced(client.clone(), namespace).get_opt(name).await?;
    Ok(map.map(|map| {
        let text = map.data.unwrap_or_default().into_iter().map(|(key, text)| (key, text.into_bytes()));
        let binary = map.binary_data.unwrap_or_default().into_iter().map(|(key, bytes)| (key, bytes.0));
        Object { metadata: map.metadata, keys: text.chain(binary).collect() }
    }))
}

async fn secret(client: &Client, namespace: &str, name: &str) -> kube::Result<Option<Object>> {
    let secret = Api::<Secret>::namespaced(client.clone(), namespace).get_opt(name).await?;
    Ok(secret.map(|secret| {
        let keys = secret.data.unwrap_or_default().into_iter().map(|(key, bytes)| (key, bytes.0));
        Object { metadata: secret.metadata, keys: keys.collect() }
    }))
}

impl Objects {
    /// The versions of the objects.
    pub fn versions(&self) -> Versions {
        let version = |object: &Object| Version::of(&object.metadata);
        self.0.iter().map(|(id, object)| (id.clone(), object.as_ref().map(version))).collect()
    }

    /// What a revision records of the objects.
    pub(crate) fn in_use(&self) -> Vec<ValuesInUse> {
        let versions = self.versions().into_iter();
        versions
            .map(|((kind, name), version)| {
                let (uid, resource_version) = version.map(|version| (version.uid, version.resource_version)).unzip();
                ValuesInUse { kind, name, uid, resource_version }
            })
            .collect()
    }

    /// Drops the objects that `may` rejects: they count as missing.
    pub fn retain(&mut self, may: impl Fn(&ObjectMeta) -> bool) {
        for object in self.0.values_mut() {
            if object.as_ref().is_some_and(|object| !may(&object.metadata)) {
                *object = None;
            }
        }
    }
}
