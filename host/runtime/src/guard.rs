//! Decodes objects so that one that does not match its Rust type cannot end the watch of its kind.

use std::fmt::Debug;

use kube::{
    Resource, ResourceExt as _,
    core::{DeserializeGuard, error_boundary::InvalidObject},
};

/// An object of kind `K`, or its metadata and the error where it could not be decoded, for instance because a newer version of
/// the CRD accepted it.
pub type Guarded<K> = DeserializeGuard<K>;

/// The decoded object. This is the one place that reports an object that could not be decoded; the caller handles what follows
/// from it.
pub fn decode<K>(guarded: &Guarded<K>) -> Result<&K, &InvalidObject>
where
    K: Resource<DynamicType = ()> + Debug,
{
    guarded.0.as_ref().inspect_err(|invalid| {
        let (kind, name) = (K::kind(&()), guarded.name_any());
        tracing::warn!(%kind, name, error = %invalid.error, "failed to decode the object");
    })
}
