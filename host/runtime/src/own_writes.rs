//! What a reconciler wrote to the objects that it reconciles.
//!
//! The watch delivers these writes like any other client's, usually later than the response. So an event that only echoes an own write
//! triggers no reconcile, and a reconcile never uses a cached object that is older than the last own write to it.
//!
//! The response to an own write may have other changes too, if another client changed the object just before. It is compared with
//! the object that the reconcile has seen, and if anything else differs, its event counts as another client's. Events that arrive
//! during a reconcile are held back until it ends, since the response may arrive after its event.

use std::{
    cmp::Ordering,
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use chandler_core::resource_version;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, ResourceExt as _};
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::Guarded;

/// How many own writes of one object are awaited from the watch.
const AWAITED: usize = 16;
/// How many events of one object are held back.
const HELD_BACK: usize = 64;

/// The own writes of the objects of one kind, which is cluster-scoped. Clones share their content.
pub struct OwnWrites<K>(Arc<Mutex<HashMap<String, Object<K>>>>);

struct Object<K> {
    /// The response to the last write, until the cache holds it.
    newest: Option<Arc<Guarded<K>>>,
    /// The versions of own writes whose events are still to come.
    awaited: VecDeque<String>,
    /// The versions of events that came during the reconcile.
    held_back: Vec<String>,
    /// The object as the reconcile in progress has seen it; `None` between reconciles.
    seen: Option<Arc<K>>,
}

/// A reconcile in progress. Dropping it ends the reconcile and calls the function if events of other clients were held back.
pub(crate) struct InProgress<K, F: FnOnce()> {
    writes: OwnWrites<K>,
    name: String,
    wake: Option<F>,
}

impl<K> Clone for OwnWrites<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K> Default for OwnWrites<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K> Default for Object<K> {
    fn default() -> Self {
        Self { newest: None, awaited: VecDeque::new(), held_back: Vec::new(), seen: None }
    }
}

impl<K, F: FnOnce()> Drop for InProgress<K, F> {
    fn drop(&mut self) {
        if self.writes.end(&self.name)
            && let Some(wake) = self.wake.take()
        {
            wake();
        }
    }
}

impl<K> OwnWrites<K> {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Object<K>>> {
        self.0.lock()
    }

    /// Ends a reconcile. Returns whether an event of another client was held back.
    fn end(&self, name: &str) -> bool {
        let mut all = self.all();
        let Some(object) = all.get_mut(name) else { return false };
        object.seen = None;
        let wakes = !std::mem::take(&mut object.held_back).is_empty();
        if object.is_forgettable() {
            all.remove(name);
        }
        wakes
    }

    /// Forgets an object that is gone.
    pub(crate) fn forget(&self, name: &str) {
        let mut all = self.all();
        if let Some(object) = all.get_mut(name) {
            (object.newest, object.awaited) = (None, VecDeque::new());
            if object.is_forgettable() {
                all.remove(name);
            }
        }
    }

    /// Forgets all objects except these and those that are being reconciled.
    pub(crate) fn retain(&self, exists: impl Fn(&str) -> bool) {
        self.all().retain(|name, object| object.seen.is_some() || exists(name));
    }
}

impl<K> Object<K> {
    fn is_forgettable(&self) -> bool {
        self.newest.is_none() && self.awaited.is_empty() && self.seen.is_none()
    }
}

impl<K: Resource<DynamicType = ()> + Clone> OwnWrites<K> {
    /// The newest known state of an object: the cached one, or the response to an own write that the cache does not hold yet.
    pub fn newest(&self, cached: Arc<Guarded<K>>) -> Arc<Guarded<K>> {
        let (name, mut all) = (cached.name_any(), self.all());
        let Some(object) = all.get_mut(&name) else { return cached };
        if let Some(written) = object.newest.take().filter(|written| is_newer(written.meta(), cached.meta())) {
            return Arc::clone(object.newest.insert(written));
        }
        if object.is_forgettable() {
            all.remove(&name);
        }
        cached
    }

    /// Begins a reconcile of this object. `wake` requests another one.
    pub(crate) fn begin<F: FnOnce()>(&self, object: &K, wake: F) -> InProgress<K, F> {
        let name = object.name_any();
        self.all().entry(name.clone()).or_default().seen = Some(Arc::new(object.clone()));
        InProgress { writes: self.clone(), name, wake: Some(wake) }
    }

    /// Whether the event of a change, which the cache already holds, must trigger a reconcile now.
    pub(crate) fn wakes(&self, changed: &ObjectMeta) -> bool {
        let name = changed.name.as_deref().unwrap_or_default();
        let version = changed.resource_version.as_deref().unwrap_or_default();
        let mut all = self.all();
        let Some(object) = all.get_mut(name) else { return true };
        object.newest = object.newest.take().filter(|written| is_newer(written.meta(), changed));
        let is_own = object.awaited.iter().position(|own| own == version);
        if let Some(position) = is_own {
            // Events come in order, so no more events of earlier writes will come.
            object.awaited.drain(..=position);
        } else if object.seen.is_some() && object.held_back.len() < HELD_BACK {
            object.held_back.push(version.to_owned());
        }
        let wakes = is_own.is_none() && object.seen.is_none();
        if object.is_forgettable() {
            all.remove(name);
        }
        wakes
    }
}

impl<K: Resource<DynamicType = ()> + Clone + Serialize> OwnWrites<K> {
    /// Notes the response to a write of the status.
    pub fn status(&self, written: K, intended: &impl Serialize) {
        let stored = serde_json::to_value(&written).ok().and_then(|mut value| value.get_mut("status").map(Value::take));
        let as_intended = serde_json::to_value(intended).is_ok_and(|intended| stored == Some(intended));
        self.note(written, |object| {
            object.remove("status");
            as_intended
        });
    }

    /// Notes the response to a write of the finalizers.
    pub fn finalizers(&self, written: K) {
        self.note(written, |object| {
            metadata(object).map(|metadata| metadata.remove("finalizers"));
            true
        });
    }

    /// Notes the response to a write of the labels and annotations with this prefix, and of this finalizer.
    pub fn marks(&self, written: K, prefix: &str, finalizer: &str) {
        self.note(written, |object| {
            let Some(metadata) = metadata(object) else { return false };
            if let Some(Value::Array(finalizers)) = metadata.get_mut("finalizers") {
                finalizers.retain(|other| other != finalizer);
                if finalizers.is_empty() {
                    metadata.remove("finalizers");
                }
            }
            for marks in ["labels", "annotations"] {
                let Some(Value::Object(all)) = metadata.get_mut(marks) else { continue };
                all.retain(|name, _| !name.starts_with(prefix));
                if all.is_empty() {
                    metadata.remove(marks);
                }
            }
            true
        });
    }

    /// Notes the response to a write. `without` removes what was written, and returns whether the write may be one that carries
    /// nothing else.
    fn note(&self, written: K, without: impl Fn(&mut Map<String, Value>) -> bool) {
        let (name, version) = (written.name_any(), written.resource_version().unwrap_or_default());
        let mut all = self.all();
        let object = all.entry(name).or_default();
        let seen = object.seen.clone();
        if seen
            .as_ref()
            .is_some_and(|seen| seen.uid() == written.uid() && seen.resource_version() == written.resource_version())
        {
            // Nothing changed, so there is no event.
            return;
        }
        let rest = |object: &K| {
            let mut value = serde_json::to_value(object).ok()?;
            let object = value.as_object_mut()?;
            let metadata = metadata(object)?;
            metadata.remove("managedFields");
            metadata.remove("resourceVersion");
            without(object).then_some(value)
        };
        let before = seen.as_deref().and_then(&rest);
        if before.is_some() && before == rest(&written) {
            if let Some(position) = object.held_back.iter().position(|held| *held == version) {
                object.held_back.remove(position);
            } else {
                object.awaited.push_back(version);
                if object.awaited.len() > AWAITED {
                    object.awaited.pop_front();
                }
            }
        }
        let written = Arc::new(written);
        if object.seen.is_some() {
            object.seen = Some(Arc::clone(&written));
        }
        let is_newest = object.newest.as_ref().is_none_or(|newest| !is_newer(newest.meta(), written.meta()));
        if is_newest {
            object.newest = Some(Arc::new(Guarded::written(K::clone(&written))));
        }
    }
}

/// Whether an object that was written is known to be newer than another state of it.
fn is_newer(written: &ObjectMeta, other: &ObjectMeta) -> bool {
    let version = |metadata: &ObjectMeta| metadata.resource_version.clone().unwrap_or_default();
    written.uid == other.uid && resource_version::compare(&version(written), &version(other)) == Some(Ordering::Greater)
}

fn metadata(object: &mut Map<String, Value>) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata")?.as_object_mut()
}

#[cfg(test)]
mod tests;
