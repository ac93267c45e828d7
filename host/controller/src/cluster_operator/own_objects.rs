//! The ClusterOperators of this controller, as its watch and its writes show them.

use std::{cmp::Ordering, collections::BTreeMap, mem};

use chandler_api::{ClusterOperator, ClusterOperatorStatus};
use chandler_core::resource_version;
use chandler_resolution::cluster_operators::{Names, continued};
use kube::{ResourceExt as _, runtime::watcher::Event};

/// The ClusterOperators with the names of this controller.
#[derive(Default)]
pub(super) struct OwnObjects {
    names: Names,
    live: BTreeMap<String, ClusterOperator>,
    /// The ClusterOperators of a list that is not complete yet.
    listed: BTreeMap<String, ClusterOperator>,
    is_ready: bool,
    /// The status that was written last.
    written: BTreeMap<String, ClusterOperatorStatus>,
}

impl OwnObjects {
    pub(super) fn new(names: Names) -> Self {
        Self { names, ..Self::default() }
    }

    /// Whether the watch has delivered a complete list.
    pub(super) fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Notes an event. Returns whether one of the ClusterOperators changed.
    pub(super) fn take(&mut self, event: Event<ClusterOperator>) -> bool {
        match event {
            Event::Init => {
                self.listed.clear();
                false
            }
            Event::InitApply(object) => {
                if self.names.includes(&object.name_any()) {
                    self.listed.insert(object.name_any(), object);
                }
                false
            }
            Event::InitDone => {
                self.live = mem::take(&mut self.listed);
                self.is_ready = true;
                true
            }
            Event::Apply(object) => self.names.includes(&object.name_any()) && self.note(object),
            Event::Delete(object) => self.live.remove(&object.name_any()).is_some(),
        }
    }

    /// Notes a state of an object, if it is not older than the one that is known.
    fn note(&mut self, object: ClusterOperator) -> bool {
        let name = object.name_any();
        let is_stale = self.live.get(&name).is_some_and(|known| {
            let (known_at, at) =
                (known.resource_version().unwrap_or_default(), object.resource_version().unwrap_or_default());
            let order = resource_version::compare(&at, &known_at);
            known.uid() == object.uid() && matches!(order, Some(Ordering::Less | Ordering::Equal))
        });
        if !is_stale {
            self.live.insert(name, object);
        }
        !is_stale
    }

    /// Notes the response to an own write, and the status that was to be written.
    pub(super) fn wrote(&mut self, object: ClusterOperator, status: &ClusterOperatorStatus) {
        self.written.insert(object.name_any(), status.clone());
        self.note(object);
    }

    /// Notes that a status is already as wanted.
    pub(super) fn agrees(&mut self, name: &str, status: &ClusterOperatorStatus) {
        if self.written.get(name) != Some(status) {
            self.written.insert(name.to_owned(), status.clone());
        }
    }

    /// Forgets a ClusterOperator that was deleted.
    pub(super) fn deleted(&mut self, name: &str) {
        self.live.remove(name);
        self.written.remove(name);
    }

    pub(super) fn live(&self, name: &str) -> Option<&ClusterOperator> {
        self.live.get(name)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &ClusterOperator> {
        self.live.values()
    }

    /// Whether another client changed what was written last, and nothing else has to be written.
    pub(super) fn is_repair(&self, name: &str, wanted: &ClusterOperatorStatus) -> bool {
        self.written.contains_key(name) && self.before(name).as_ref() == Some(wanted)
    }

    /// The status to continue from: the one that was written last, since an edit by another client does not change what is reported.
    pub(super) fn before(&self, name: &str) -> Option<ClusterOperatorStatus> {
        let live = self.live.get(name).and_then(|object| object.status.clone());
        match (self.written.get(name), live) {
            (Some(written), live) => Some(continued(written, &live.unwrap_or_default())),
            (None, live) => live,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str, version: &str, status: &ClusterOperatorStatus) -> ClusterOperator {
        let metadata = json!({"name": name, "uid": "u", "resourceVersion": version});
        serde_json::from_value(json!({"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator",
            "metadata": metadata, "spec": {}, "status": status}))
        .unwrap()
    }

    fn status(conditions: &[(&str, &str)]) -> ClusterOperatorStatus {
        let condition = |(kind, status): &(&str, &str)| json!({"type": kind, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let conditions: Vec<_> = conditions.iter().map(condition).collect();
        serde_json::from_value(json!({"conditions": conditions})).unwrap()
    }

    #[test]
    fn the_echo_of_an_own_write_is_no_change_and_an_edit_is_one() {
        let names = Names::default();
        let (own, mut own_objects) = (names.aggregated(), OwnObjects::new(names));
        assert!(
            !own_objects.take(Event::Init) && !own_objects.take(Event::InitApply(object("etcd", "1", &status(&[]))))
        );
        assert!(!own_objects.is_ready() && own_objects.take(Event::InitDone) && own_objects.is_ready());
        assert!(!own_objects.take(Event::Apply(object("etcd", "2", &status(&[])))), "it is not ours");
        assert_eq!(own_objects.all().count(), 0);

        let mine = status(&[("Available", "True")]);
        own_objects.wrote(object(&own, "7", &mine), &mine);
        for version in ["6", "7"] {
            assert!(!own_objects.take(Event::Apply(object(&own, version, &status(&[])))), "{version} is old");
        }
        let edited = status(&[("Available", "False"), ("Curious", "True")]);
        assert!(own_objects.take(Event::Apply(object(&own, "8", &edited))));
        let before = own_objects.before(&own).unwrap();
        assert_eq!(before, status(&[("Available", "True"), ("Curious", "True")]), "what others add stays");
        assert!(own_objects.is_repair(&own, &before) && !own_objects.is_repair(&own, &mine));
        assert!(own_objects.take(Event::Delete(object(&own, "9", &edited))));
        assert_eq!(
            (own_objects.live(&own), own_objects.before(&own)),
            (None, Some(mine)),
            "it is created again as it was"
        );
    }
}
