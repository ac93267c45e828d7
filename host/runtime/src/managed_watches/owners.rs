//! The owners of the objects of one watch, as last observed. Pure.
//!
//! An event of an object that changed its owner names only the new owner, and an object that is deleted while the watch is
//! interrupted has no event at all. The previous owner must be reconciled in both cases.

use std::{collections::HashMap, sync::Arc};

use kube::{api::ObjectMeta, runtime::watcher::Event};

/// Namespace and name; the namespace is empty for cluster-scoped objects.
type Key = (String, String);

/// The owner of each object of one watch.
pub(super) struct ObservedOwners {
    /// The label that names the owner of an object.
    label: &'static str,
    owners: HashMap<Key, Arc<str>>,
    /// The objects of the list in progress, while there is one.
    listed: HashMap<Key, Arc<str>>,
}

impl ObservedOwners {
    /// No objects; `label` names the owner of an object.
    pub(super) fn new(label: &'static str) -> Self {
        Self { label, owners: HashMap::new(), listed: HashMap::new() }
    }

    /// Records an event. Returns the owners to reconcile.
    pub(super) fn affected<K>(&mut self, event: &Event<K>, metadata: impl Fn(&K) -> &ObjectMeta) -> Vec<Arc<str>> {
        match event {
            Event::Init => {
                // An interrupted list starts over.
                self.owners.extend(self.listed.drain());
                Vec::new()
            }
            Event::InitApply(object) => {
                let (key, owner) = self.identity(metadata(object));
                let before = self.owners.remove(&key);
                let affected = both(before, owner.clone());
                self.listed.extend(owner.map(|owner| (key, owner)));
                affected
            }
            Event::InitDone => {
                let deleted = std::mem::replace(&mut self.owners, std::mem::take(&mut self.listed));
                let mut affected: Vec<Arc<str>> = deleted.into_values().collect();
                affected.sort();
                affected.dedup();
                affected
            }
            Event::Apply(object) => {
                let (key, owner) = self.identity(metadata(object));
                let before = match &owner {
                    Some(owner) => self.owners.insert(key, Arc::clone(owner)),
                    None => self.owners.remove(&key),
                };
                both(before, owner)
            }
            Event::Delete(object) => {
                let (key, owner) = self.identity(metadata(object));
                both(self.owners.remove(&key), owner)
            }
        }
    }

    fn identity(&self, metadata: &ObjectMeta) -> (Key, Option<Arc<str>>) {
        let key = (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default());
        let owner = metadata.labels.as_ref().and_then(|labels| labels.get(self.label));
        (key, owner.map(|owner| Arc::from(owner.as_str())))
    }
}

fn both(before: Option<Arc<str>>, now: Option<Arc<str>>) -> Vec<Arc<str>> {
    let before = before.filter(|before| Some(before) != now.as_ref());
    before.into_iter().chain(now).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABEL: &str = "example.com/owner";

    fn object(name: &str, owner: Option<&str>) -> ObjectMeta {
        let labels = owner.map(|owner| [(LABEL.to_owned(), owner.to_owned())].into());
        ObjectMeta { name: Some(name.to_owned()), labels, ..ObjectMeta::default() }
    }

    #[test]
    fn the_previous_owner_is_reconciled_too() {
        let mut owners = ObservedOwners::new(LABEL);
        for (event, expected) in [
            (Event::Init, ""),
            (Event::InitApply(object("x", Some("a"))), "a"),
            (Event::InitApply(object("y", Some("a"))), "a"),
            (Event::InitDone, ""),
            (Event::Apply(object("x", Some("a"))), "a"),
            (Event::Apply(object("x", Some("b"))), "a b"),
            (Event::Delete(object("x", Some("c"))), "b c"),
            (Event::Delete(object("unknown", Some("c"))), "c"),
            (Event::Apply(object("y", None)), "a"),
            (Event::Apply(object("y", Some("a"))), "a"),
            (Event::Apply(object("z", Some("d"))), "d"),
            // The watch was interrupted: y has another owner now, and z was deleted.
            (Event::Init, ""),
            (Event::InitApply(object("y", Some("b"))), "a b"),
            (Event::Init, ""),
            (Event::InitDone, "b d"),
            (Event::Delete(object("z", Some("d"))), "d"),
        ] {
            let description = format!("{event:?}");
            assert_eq!(owners.affected(&event, |object| object).join(" "), expected, "{description}");
        }
    }
}
