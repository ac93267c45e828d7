//! Whose the objects of one watch were when they were last seen. Pure.
//!
//! An object that changes hands is told of with its new owner alone, and one that goes while a watch is interrupted is not told of
//! at all. Whoever loses an object has to hear of it, too.

use std::{collections::HashMap, sync::Arc};

use chandler_api::names::OWNER_NAME_LABEL;
use kube::{api::ObjectMeta, runtime::watcher::Event};

/// Namespace and name; the namespace is empty for objects that live in none.
type Key = (String, String);

/// The owners of the objects of one watch.
#[derive(Default)]
pub(super) struct Seen {
    owners: HashMap<Key, Arc<str>>,
    /// Those of the list that is being read, while one is.
    listed: HashMap<Key, Arc<str>>,
}

impl Seen {
    /// Notes an event, and tells the names of the owners that it concerns.
    pub(super) fn concerned<K>(&mut self, event: &Event<K>, metadata: impl Fn(&K) -> &ObjectMeta) -> Vec<Arc<str>> {
        match event {
            Event::Init => {
                // A list that was interrupted is begun again.
                self.owners.extend(self.listed.drain());
                Vec::new()
            }
            Event::InitApply(object) => {
                let (key, owner) = identity(metadata(object));
                let before = self.owners.remove(&key);
                let concerned = both(before, owner.clone());
                self.listed.extend(owner.map(|owner| (key, owner)));
                concerned
            }
            Event::InitDone => {
                let gone = std::mem::replace(&mut self.owners, std::mem::take(&mut self.listed));
                let mut concerned: Vec<Arc<str>> = gone.into_values().collect();
                concerned.sort();
                concerned.dedup();
                concerned
            }
            Event::Apply(object) => {
                let (key, owner) = identity(metadata(object));
                let before = match &owner {
                    Some(owner) => self.owners.insert(key, Arc::clone(owner)),
                    None => self.owners.remove(&key),
                };
                both(before, owner)
            }
            Event::Delete(object) => {
                let (key, owner) = identity(metadata(object));
                both(self.owners.remove(&key), owner)
            }
        }
    }
}

fn identity(metadata: &ObjectMeta) -> (Key, Option<Arc<str>>) {
    let key = (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default());
    let owner = metadata.labels.as_ref().and_then(|labels| labels.get(OWNER_NAME_LABEL));
    (key, owner.map(|owner| Arc::from(owner.as_str())))
}

fn both(before: Option<Arc<str>>, now: Option<Arc<str>>) -> Vec<Arc<str>> {
    let before = before.filter(|before| Some(before) != now.as_ref());
    before.into_iter().chain(now).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str, owner: Option<&str>) -> ObjectMeta {
        let labels = owner.map(|owner| [(OWNER_NAME_LABEL.to_owned(), owner.to_owned())].into());
        ObjectMeta { name: Some(name.to_owned()), labels, ..ObjectMeta::default() }
    }

    #[test]
    fn whoever_had_an_object_hears_of_it_too() {
        let mut seen = Seen::default();
        for (event, want) in [
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
            // The watch was interrupted: y is somebody else's now, and z is gone.
            (Event::Init, ""),
            (Event::InitApply(object("y", Some("b"))), "a b"),
            (Event::Init, ""),
            (Event::InitDone, "b d"),
            (Event::Delete(object("z", Some("d"))), "d"),
        ] {
            let told = format!("{event:?}");
            assert_eq!(seen.concerned(&event, |object| object).join(" "), want, "{told}");
        }
    }
}
