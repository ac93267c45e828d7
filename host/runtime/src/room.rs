//! The memory that the cached objects of a kind take together.
//!
//! Anyone who may create objects of a kind decides how many and how large. Small objects are always cached. Larger ones share a limit, and
//! each gets at most a quarter of the memory that is left, so that a few do not keep others out.

use std::collections::{HashMap, HashSet};

use kube::{Resource, ResourceExt as _, runtime::watcher::Event};

use crate::guard::{Guarded, mebibytes};

/// The memory up to which an object is small, in bytes, as `chandler_client::Estimate` counts it: about 40 KiB of JSON. A BundleDeployment with ten
/// revisions takes less than half of it.
const SMALL: usize = 512 << 10;
/// The memory of all larger objects, in bytes.
const TOTAL: usize = 192 << 20;
/// The part of the memory left that one object may take.
const SHARE: usize = 4;

/// The larger objects of a kind.
#[derive(Default)]
pub(crate) struct Room {
    /// The memory of each by its name, in bytes.
    larger: HashMap<String, usize>,
    /// The names in the list that the watch delivers.
    listed: HashSet<String>,
}

impl Room {
    /// Notes an event of the watch of a kind in the whole cluster, and refuses its object if no room is left for it.
    pub(crate) fn take<K: Resource<DynamicType = ()>>(&mut self, event: &mut Event<Guarded<K>>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(object) => {
                self.admit(object);
                self.listed.insert(object.name_any());
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                self.larger.retain(|name, _| listed.contains(name));
            }
            Event::Apply(object) => self.admit(object),
            Event::Delete(object) => {
                self.larger.remove(&object.name_any());
            }
        }
    }

    fn admit<K: Resource<DynamicType = ()>>(&mut self, object: &mut Guarded<K>) {
        let (name, memory) = (object.name_any(), object.memory());
        let before = self.larger.remove(&name).unwrap_or_default();
        if memory <= SMALL {
            return;
        }
        let others: usize = self.larger.values().sum();
        // An object that has its room keeps it.
        if memory > before && memory > TOTAL.saturating_sub(others) / SHARE {
            let (memory, others, limit, small) = (mebibytes(memory), mebibytes(others), mebibytes(TOTAL), SMALL >> 10);
            object.refuse(format!(
                "it would take {memory} MiB of memory, and the larger objects of its kind take {others} MiB of {limit} already: move large values, \
                 such as a configuration, into ConfigMaps or Secrets (an object of up to {small} KiB of memory always has room), or delete other \
                 objects and request a reconcile"
            ));
            return;
        }
        self.larger.insert(name, memory);
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    /// An object that takes about this many KiB of memory.
    fn object(name: &str, kibibytes: usize) -> Guarded<ConfigMap> {
        // A text counts twice.
        let text = "a".repeat(kibibytes << 9);
        let object = json!({"metadata": {"name": name}, "data": {"a": text}});
        serde_json::from_value(object).expect("an object")
    }

    /// Whether the object is cached.
    fn apply(room: &mut Room, object: Guarded<ConfigMap>) -> bool {
        let mut event = Event::Apply(object);
        room.take(&mut event);
        matches!(event, Event::Apply(object) if object.0.is_ok())
    }

    #[test]
    fn larger_objects_share_a_limit_and_small_ones_always_have_room() {
        let mut room = Room::default();
        let admitted = (0..100).filter(|number| apply(&mut room, object(&number.to_string(), 7 << 10))).count();
        let sum: usize = room.larger.values().sum();
        assert!((10..30).contains(&admitted) && sum <= TOTAL, "{admitted} {sum}");
        assert!((0..100).all(|number| apply(&mut room, object(&format!("small-{number}"), 400))));
        assert_eq!(room.larger.len(), admitted, "only larger ones count");
        assert!(apply(&mut room, object("other", 1 << 10)), "others have a quarter of what is left");
    }

    #[test]
    fn an_object_keeps_its_room_and_a_deleted_one_frees_it() {
        let mut room = Room::default();
        let mut number = 0;
        while apply(&mut room, object(&number.to_string(), 4 << 10)) {
            number += 1;
        }
        assert!(apply(&mut room, object("0", 4 << 10)), "it had room before");
        assert!(!apply(&mut room, object("0", 6 << 10)), "it grows");
        assert!(apply(&mut room, object("1", 1)));
        assert_eq!(room.larger.len(), number - 2);
        room.take(&mut Event::Delete(object("2", 4 << 10)));
        assert_eq!(room.larger.len(), number - 3);
        assert!(apply(&mut room, object("new", 4 << 10)));
    }

    #[test]
    fn an_object_that_a_list_lacks_frees_its_room() {
        let mut room = Room::default();
        assert!(apply(&mut room, object("a", 600)) && apply(&mut room, object("b", 600)));
        for mut event in [Event::Init, Event::InitApply(object("b", 600)), Event::InitDone] {
            room.take(&mut event);
        }
        assert_eq!(room.larger.keys().collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn the_message_says_what_helps() {
        let mut room = Room { larger: [("other".to_owned(), TOTAL - (1 << 20))].into(), ..Room::default() };
        let mut event = Event::Apply(object("a", 600));
        room.take(&mut event);
        let Event::Apply(object) = event else { panic!("the event stays what it is") };
        let invalid = object.0.expect_err("no room is left");
        assert_eq!(invalid.metadata.name.as_deref(), Some("a"));
        insta::assert_snapshot!(invalid.error, @"it would take 1 MiB of memory, and the larger objects of its kind take 191 MiB of 192 already: move large values, such as a configuration, into ConfigMaps or Secrets (an object of up to 512 KiB of memory always has room), or delete other objects and request a reconcile");
    }
}
