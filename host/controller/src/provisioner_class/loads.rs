//! When the component of each class was last loaded.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use chandler_api::{Component, ProvisionerClass};
use kube::ResourceExt as _;
use parking_lot::Mutex;

use super::load::LoadOutcome;

/// The last successful load of each class.
#[derive(Default)]
pub(super) struct Loads(Mutex<HashMap<String, Load>>);

struct Load {
    /// The object that it was loaded for, in this generation.
    object: (Option<String>, Option<i64>),
    component: Component,
    since: Instant,
}

fn object(class: &ProvisionerClass) -> (Option<String>, Option<i64>) {
    (class.uid(), class.metadata.generation)
}

impl Loads {
    /// Notes the outcome of a load, or of the last one again.
    pub(super) fn note(&self, class: &ProvisionerClass, outcome: &LoadOutcome) {
        let (mut all, name) = (self.0.lock(), class.name_any());
        let LoadOutcome::Loaded(component) = outcome else {
            all.remove(&name);
            return;
        };
        let (object, component) = (object(class), component.clone());
        let known = all.get(&name).filter(|load| load.object == object && load.component == component);
        let since = known.map_or_else(Instant::now, |load| load.since);
        all.insert(name, Load { object, component, since });
    }

    /// The component of a class, if it was loaded for this spec within this time.
    pub(super) fn recent(&self, class: &ProvisionerClass, within: Duration) -> Option<Component> {
        let mut all = self.0.lock();
        let load = all.get(&class.name_any()).filter(|load| load.object == object(class))?;
        if load.since.elapsed() < within {
            return Some(load.component.clone());
        }
        all.remove(&class.name_any());
        None
    }

    /// Forgets a class.
    pub(super) fn forget(&self, name: &str) {
        self.0.lock().remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_counts_for_its_spec_and_for_a_while() {
        let (loads, hour) = (Loads::default(), Duration::from_hours(1));
        let class = |generation| {
            let mut class = ProvisionerClass::new("a", chandler_api::ProvisionerClassSpec::default());
            class.metadata.generation = Some(generation);
            class
        };
        let component = Component { digest: "sha256:1".to_owned(), ..Component::default() };
        loads.note(&class(1), &LoadOutcome::Loaded(component.clone()));
        assert_eq!(loads.recent(&class(1), hour), Some(component.clone()));
        assert_eq!(loads.recent(&class(2), hour), None, "another spec");
        assert_eq!(loads.recent(&class(1), Duration::ZERO), None, "it is due");
        loads.note(&class(1), &LoadOutcome::Loaded(component));
        loads.note(&class(1), &LoadOutcome::Loading);
        assert_eq!(loads.recent(&class(1), hour), None);
    }
}
