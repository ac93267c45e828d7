//! The objects of one resource in all their kept versions.

use std::{
    collections::{BTreeMap, btree_map::Range},
    ops::Bound,
    sync::Arc,
};

use tokio::sync::watch;

use crate::store::{Key, Object, Page, PageRequest};

/// One version of an object.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    /// The written object; for a deletion the last state, with the revision of the deletion.
    pub(crate) object: Arc<Object>,
    pub(crate) deleted: bool,
    /// When it ends by itself, in seconds since 1970.
    pub(crate) expires: Option<i64>,
}

impl Version {
    pub(crate) fn revision(&self) -> u64 {
        self.object.revision()
    }

    /// The object, if this is not a deletion.
    pub(crate) fn present(&self) -> Option<&Arc<Object>> {
        (!self.deleted).then_some(&self.object)
    }
}

/// The versions of one object. Most have one.
#[derive(Debug)]
pub(crate) struct Versions {
    /// In order.
    older: Vec<Version>,
    latest: Version,
}

impl Versions {
    pub(crate) fn new(latest: Version) -> Self {
        Self { older: Vec::new(), latest }
    }

    pub(crate) fn push(&mut self, version: Version) {
        self.older.push(std::mem::replace(&mut self.latest, version));
    }

    pub(crate) fn latest(&self) -> &Version {
        &self.latest
    }

    /// The version that a list at a revision shows.
    fn at(&self, revision: u64) -> Option<&Version> {
        if self.latest.revision() <= revision {
            return Some(&self.latest);
        }
        self.older.iter().rev().find(|version| version.revision() <= revision)
    }

    /// The version with exactly this revision and the one before it.
    pub(crate) fn change(&self, revision: u64) -> Option<(&Version, Option<&Version>)> {
        if self.latest.revision() == revision {
            return Some((&self.latest, self.older.last()));
        }
        let index = self.older.binary_search_by_key(&revision, Version::revision).ok()?;
        Some((self.older.get(index)?, index.checked_sub(1).and_then(|before| self.older.get(before))))
    }

    /// Forgets versions that only revisions before this one show; returns the bytes of superseded ones that went, and whether
    /// anything is left.
    fn compact(&mut self, revision: u64) -> (usize, bool) {
        let gone = if self.latest.revision() <= revision {
            self.older.len()
        } else {
            // The newest version at or before the compaction is still what a later revision shows.
            self.older.iter().rposition(|version| version.revision() <= revision).unwrap_or(0)
        };
        let bytes = self.older.drain(..gone).map(|version| superseded_bytes(&version)).sum();
        self.older.shrink_to_fit();
        (bytes, !(self.older.is_empty() && self.latest.deleted && self.latest.revision() <= revision))
    }

    fn drop_parsed(&mut self) {
        for version in self.older.iter_mut().chain(std::iter::once(&mut self.latest)) {
            if let Some(unparsed) = version.object.unparsed() {
                version.object = Arc::new(unparsed);
            }
        }
    }
}

/// How much a version counts once there is a newer one.
pub(crate) fn superseded_bytes(version: &Version) -> usize {
    version.object.size()
}

type Objects = BTreeMap<Box<str>, Versions>;

/// The objects of one resource.
#[derive(Debug)]
pub(crate) struct Table {
    /// By namespace and name.
    namespaces: BTreeMap<Box<str>, Objects>,
    /// Tells the revisions of changes.
    pub(crate) changed: watch::Sender<u64>,
}

impl Default for Table {
    fn default() -> Self {
        Self { namespaces: BTreeMap::new(), changed: watch::Sender::new(0) }
    }
}

impl Table {
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<&Versions> {
        self.namespaces.get(namespace)?.get(name)
    }

    /// Adds the newest version of an object; returns the one that it supersedes.
    pub(crate) fn push(&mut self, namespace: &str, name: &str, version: Version) -> Option<&Version> {
        if let Some(versions) = self.namespaces.get_mut(namespace).and_then(|objects| objects.get_mut(name)) {
            versions.push(version);
        } else {
            let objects = self.namespaces.entry(namespace.into()).or_default();
            objects.insert(name.into(), Versions::new(version));
        }
        self.get(namespace, name)?.older.last()
    }

    /// Forgets what only revisions before this one show; returns the bytes of superseded versions that went.
    pub(crate) fn compact(&mut self, revision: u64) -> usize {
        let mut bytes = 0;
        self.namespaces.retain(|_, objects| {
            objects.retain(|_, versions| {
                let (gone, is_left) = versions.compact(revision);
                bytes += gone;
                is_left
            });
            !objects.is_empty()
        });
        bytes
    }

    /// Forgets all objects.
    pub(crate) fn clear(&mut self) {
        self.namespaces.clear();
    }

    pub(crate) fn drop_parsed(&mut self) {
        self.namespaces.values_mut().flat_map(BTreeMap::values_mut).for_each(Versions::drop_parsed);
    }

    /// Appends the objects that a revision shows.
    pub(crate) fn collect(
        &self,
        resource: &Arc<str>,
        namespace: Option<&str>,
        revision: u64,
        into: &mut Vec<(Key, Arc<Object>)>,
    ) {
        for (namespace, objects) in self.range(namespace, None) {
            for (name, versions) in objects {
                if let Some(object) = versions.at(revision).and_then(Version::present) {
                    into.push((Key::new(Arc::clone(resource), &**namespace, &**name), Arc::clone(object)));
                }
            }
        }
    }

    /// A part of the objects that a revision shows.
    pub(crate) fn page(
        &self,
        resource: &Arc<str>,
        namespace: Option<&str>,
        revision: u64,
        request: PageRequest<'_>,
    ) -> Page {
        let mut page = Page { objects: Vec::new(), revision, remaining: 0 };
        let limit = request.limit.unwrap_or(usize::MAX);
        for (namespace, objects) in self.range(namespace, request.after.map(|(namespace, _)| namespace)) {
            let names = match request.after {
                Some((after, name)) if after == &**namespace => {
                    objects.range::<str, _>((Bound::Excluded(name), Bound::Unbounded))
                }
                _ => objects.range::<str, _>(..),
            };
            for (name, versions) in names {
                let Some(object) = versions.at(revision).and_then(Version::present) else { continue };
                if page.objects.len() < limit {
                    let key = Key::new(Arc::clone(resource), &**namespace, &**name);
                    page.objects.push((key, Arc::clone(object)));
                } else {
                    page.remaining += 1;
                }
            }
        }
        page
    }

    /// The namespaces of a scope, from one on.
    fn range(&self, namespace: Option<&str>, from: Option<&str>) -> Range<'_, Box<str>, Objects> {
        let only = namespace.map(|namespace| (Bound::Included(namespace), Bound::Included(namespace)));
        let from = from.map_or(Bound::Unbounded, Bound::Included);
        self.namespaces.range::<str, _>(only.unwrap_or((from, Bound::Unbounded)))
    }
}
