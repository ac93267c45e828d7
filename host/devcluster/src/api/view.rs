//! Objects in the requested version and representation.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::Value;
use time::OffsetDateTime;

use super::Target;
use crate::{
    convert,
    registry::Resource,
    request::negotiate::Representation,
    store::{
        Object,
        object::{render, without_type},
    },
    table,
};

/// A stored object as a resource serves it: converted, and for a changed CRD with the defaults of its present schema.
pub fn served<'a>(resource: &Resource, object: &'a Object) -> Cow<'a, Value> {
    if is_as_stored(resource, object) {
        return object.peek();
    }
    let mut value = convert::to_served(resource, &object.peek());
    if let Some(custom) = &resource.custom {
        if !custom.preserve_unknown_fields {
            chandler_devcluster_apimachinery::schema::prune(resource.schema(), &mut value);
        }
        chandler_devcluster_apimachinery::schema::default(resource.schema(), &mut value);
    }
    Cow::Owned(value)
}

fn is_as_stored(resource: &Resource, object: &Object) -> bool {
    let changed = resource.custom.as_ref().is_some_and(|custom| custom.default_on_read);
    !changed && convert::is_identity(resource, object.api_version())
}

/// An object as JSON of one version.
pub fn object_json(resource: &Resource, object: &Object) -> Bytes {
    if is_as_stored(resource, object) { object.json() } else { render(&served(resource, object)) }
}

/// An object as an item of a list: built-in kinds leave their type out, as kube-apiserver does.
pub fn item_json(resource: &Resource, object: &Object) -> Bytes {
    match (resource.custom.is_some(), is_as_stored(resource, object)) {
        (true, _) => object_json(resource, object),
        (false, true) => object.item_json(),
        (false, false) => without_type(&served(resource, object)),
    }
}

/// One object in the representation that a request asks for; tables show ages at `now`.
pub fn represent(target: &Target, object: &Object, now: OffsetDateTime) -> Bytes {
    let resource = &target.resource;
    match target.representation {
        Representation::Object => object_json(resource, object),
        Representation::PartialMetadata => render(&convert::partial_metadata(&served(resource, object))),
        Representation::Table { beta, include } => {
            let rows = [served(resource, object)];
            let rows = rows.iter().map(AsRef::as_ref);
            let list = table::ListMetadata { resource_version: object.revision().to_string(), ..Default::default() };
            render(&table::render(resource, rows, &list, include, beta, true, now))
        }
    }
}
