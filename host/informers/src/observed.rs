//! An object as the watch delivers it.

use std::borrow::Cow;

use kube::{
    Resource,
    api::{ApiResource, ObjectMeta},
    core::DynamicObject,
};
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::Value;

use crate::{
    claims::Claims,
    store::{Id, Seen},
};

/// An object of any kind: the metadata that the watch needs, and its JSON.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    /// Name, namespace, UID, resource version and labels only.
    metadata: ObjectMeta,
    /// What shows whom the object belongs to.
    claims: Claims,
    json: Vec<u8>,
}

impl<'de> Deserialize<'de> for Observed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::of(&Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl Resource for Observed {
    type DynamicType = ApiResource;
    type Scope = <DynamicObject as Resource>::Scope;

    fn kind(kind: &ApiResource) -> Cow<'_, str> {
        kind.kind.as_str().into()
    }

    fn group(kind: &ApiResource) -> Cow<'_, str> {
        kind.group.as_str().into()
    }

    fn version(kind: &ApiResource) -> Cow<'_, str> {
        kind.version.as_str().into()
    }

    fn api_version(kind: &ApiResource) -> Cow<'_, str> {
        kind.api_version.as_str().into()
    }

    fn plural(kind: &ApiResource) -> Cow<'_, str> {
        kind.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl Observed {
    fn of(object: &Value) -> serde_json::Result<Self> {
        Ok(Self { metadata: metadata(object), claims: Claims::of(object), json: serde_json::to_vec(object)? })
    }

    /// The object with the label values that the store needs.
    pub(crate) fn seen(self, labels: &Labels) -> Seen {
        let Self { metadata, claims, json } = self;
        let label = |name: &str| metadata.labels.as_ref().and_then(|labels| labels.get(name)).cloned();
        Seen {
            set: label(labels.set),
            owner: label(labels.owner),
            id: Id { namespace: metadata.namespace, name: metadata.name.unwrap_or_default() },
            uid: metadata.uid.unwrap_or_default(),
            version: metadata.resource_version.unwrap_or_default(),
            claims,
            json,
        }
    }
}

/// The labels of managed objects.
#[derive(Clone, Copy, Debug)]
pub struct Labels {
    /// The label with the set that an object belongs to. Only objects with this label are watched.
    pub set: &'static str,
    /// The label with the name of the owner.
    pub owner: &'static str,
}

/// An object that the API server returned.
pub(crate) fn seen(object: &Value, labels: &Labels) -> Option<Seen> {
    Some(Observed::of(object).ok()?.seen(labels))
}

fn metadata(object: &Value) -> ObjectMeta {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    let labels = labels.map(|labels| {
        let labels = labels.iter().filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        labels.collect()
    });
    ObjectMeta {
        name: text("/metadata/name"),
        namespace: text("/metadata/namespace").filter(|namespace| !namespace.is_empty()),
        uid: text("/metadata/uid"),
        resource_version: text("/metadata/resourceVersion"),
        labels,
        ..ObjectMeta::default()
    }
}
