//! The calls of the components of classes: which components are quarantined, and figures for the status of the class.
//!
//! Losing them costs calls: a component that is quarantined is called again. A release that comes from the cache counts as rendered, so that
//! a restart does not forget that a component works.

use std::{
    collections::{BTreeSet, HashMap},
    time::{Duration, Instant},
};

use chandler_api::{ClassCalls, conditions::whole_seconds};
use chandler_core::{Digest, Object};
use chandler_decisions::{
    class_calls::Figures,
    quarantine::{Admission, Call, Quarantine},
};
use k8s_openapi::jiff::Timestamp;
use parking_lot::Mutex;

/// How many components are remembered. The one that was not called for the longest time is forgotten.
const COMPONENTS: usize = 64;

/// The calls of all components, by digest.
pub(crate) struct Calls {
    origin: Instant,
    /// The time of day at the origin.
    began: Timestamp,
    all: Mutex<HashMap<Digest, ComponentCalls>>,
}

/// The calls of a component.
#[derive(Default)]
struct ComponentCalls {
    quarantine: Quarantine,
    figures: Figures,
    last: Duration,
}

/// A component is quarantined. Other tenants' bundles are part of the cause, so that the message has no details.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the component of ProvisionerClass {class} is not called until {until}: it crashed or exceeded its limits for several tenants, and \
     rendered no bundle. It is called again then, with another component in spec.image of the class, or after `chandler reconcile \
     provisionerclass/{class}`"
)]
pub(crate) struct Quarantined {
    pub(crate) class: String,
    /// When the quarantine ends.
    pub(crate) until: Timestamp,
    /// How long that is from now.
    pub(crate) left: Duration,
}

/// A call that may begin. Dropped without a result, it counts as one that did not take place.
pub(crate) struct Pass<'a> {
    calls: &'a Calls,
    component: &'a Digest,
    call: Call<'a>,
    /// Whether the component is quarantined.
    is_trial: bool,
    is_open: bool,
}

impl Default for Calls {
    fn default() -> Self {
        Self { origin: Instant::now(), began: Timestamp::now(), all: Mutex::default() }
    }
}

impl Calls {
    /// Whether a component of a class may be called.
    pub(crate) fn admit<'a>(
        &'a self,
        class: &str,
        component: &'a Digest,
        call: Call<'a>,
    ) -> Result<Pass<'a>, Quarantined> {
        let now = self.origin.elapsed();
        let admission = self.with(component, |calls| calls.quarantine.admit(call, now));
        match admission {
            Admission::Refused(until) => Err(self.report(class, until, now)),
            Admission::Free | Admission::Trial => {
                Ok(Pass { calls: self, component, call, is_trial: admission == Admission::Trial, is_open: true })
            }
        }
    }

    /// Notes that a component rendered a bundle earlier. Returns the BundleDeployments that waited for that.
    pub(crate) fn rendered(&self, component: &Digest, call: Call<'_>) -> BTreeSet<String> {
        self.with(component, |calls| calls.quarantine.rendered(call))
    }

    /// Whether a component that a class has in use is quarantined.
    pub(crate) fn quarantined(&self, class: &str, component: &Digest) -> Option<Quarantined> {
        let now = self.origin.elapsed();
        let until = self.all.lock().get(component)?.quarantine.until(now)?;
        Some(self.report(class, until, now))
    }

    /// Ends the quarantine of a component. Returns the BundleDeployments that waited for that.
    pub(crate) fn release(&self, component: &Digest) -> BTreeSet<String> {
        self.all.lock().get_mut(component).map(|calls| calls.quarantine.release()).unwrap_or_default()
    }

    /// The figures of a component; `None` if it was not called.
    pub(crate) fn figures(&self, component: &Digest) -> Option<ClassCalls> {
        self.all.lock().get(component)?.figures.report(component.as_str(), whole_seconds(Timestamp::now()))
    }

    /// Forgets a BundleDeployment.
    pub(crate) fn forget(&self, deployment: &str) {
        self.all.lock().values_mut().for_each(|calls| calls.quarantine.forget(deployment));
    }

    /// A quarantine until this time. The time of day is computed from the origin, so that it does not change with each look.
    fn report(&self, class: &str, until: Duration, now: Duration) -> Quarantined {
        let seconds = i64::try_from(until.as_secs()).unwrap_or(i64::MAX).saturating_add(1);
        let end = self.began.as_second().saturating_add(seconds);
        let end = Timestamp::from_second(end).unwrap_or(self.began);
        Quarantined { class: class.to_owned(), until: end, left: until.saturating_sub(now) }
    }

    fn with<T>(&self, component: &Digest, f: impl FnOnce(&mut ComponentCalls) -> T) -> T {
        let mut all = self.all.lock();
        if !all.contains_key(component) && all.len() >= COMPONENTS {
            let oldest = all.iter().min_by_key(|(_, calls)| calls.last).map(|(digest, _)| digest.clone());
            oldest.map(|digest| all.remove(&digest));
        }
        let calls = all.entry(component.clone()).or_default();
        calls.last = self.origin.elapsed();
        f(calls)
    }
}

impl Pass<'_> {
    /// The call rendered these objects. Returns the BundleDeployments that waited for that.
    pub(crate) fn rendered(mut self, objects: &[Object], time: Duration, has_schema: bool) -> BTreeSet<String> {
        self.is_open = false;
        let kinds = objects.iter().map(|object| (object.key.kind.as_str(), object.key.group.as_str()));
        self.calls.with(self.component, |calls| {
            calls.figures.rendered(kinds, time, has_schema);
            calls.quarantine.rendered(self.call)
        })
    }

    /// The component crashed, or exceeded a limit. An error if it is quarantined, and this call could have ended that.
    pub(crate) fn failed(mut self, class: &str, time: Duration) -> Result<(), Quarantined> {
        self.is_open = false;
        let now = self.calls.origin.elapsed();
        let until = self.calls.with(self.component, |calls| {
            calls.figures.failed(time);
            calls.quarantine.failed(self.call, now)
        });
        match until.filter(|_| self.is_trial) {
            Some(until) => Err(self.calls.report(class, until, now)),
            None => Ok(()),
        }
    }

    /// The component said whether it recognises content, which says nothing about what it renders.
    pub(crate) fn looked(mut self) {
        self.is_open = false;
        self.calls.with(self.component, |calls| calls.quarantine.looked(self.call));
    }

    /// The component crashed, or exceeded a limit, when it was to look at content. The figures are about calls that render.
    pub(crate) fn failed_to_look(mut self) {
        self.is_open = false;
        let now = self.calls.origin.elapsed();
        self.calls.with(self.component, |calls| calls.quarantine.failed(self.call, now));
    }

    /// The component refused the bundle.
    pub(crate) fn refused(self, time: Duration) {
        self.calls.with(self.component, |calls| calls.figures.refused(time));
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        // A call that began before the quarantine says nothing about the trial of its namespace.
        if self.is_open && self.is_trial {
            self.calls.with(self.component, |calls| calls.quarantine.ended(self.call));
        }
    }
}

#[cfg(test)]
mod tests {
    use chandler_decisions::quarantine::Purpose;

    use super::*;

    #[test]
    fn a_component_that_crashes_when_it_looks_at_content_is_quarantined() {
        let (calls, component, inputs) = (Calls::default(), Digest::of(b"component"), Digest::of(b"inputs"));
        let look = |name| Call { deployment: name, requester: name, inputs: &inputs, purpose: Purpose::Detect };
        calls.admit("sail", &component, look("calm")).unwrap().looked();
        for name in ["north", "south", "east"] {
            assert_eq!(calls.quarantined("sail", &component), None);
            calls.admit("sail", &component, look(name)).unwrap().failed_to_look();
        }
        assert!(calls.quarantined("sail", &component).is_some());
        assert!(calls.admit("sail", &component, look("north")).is_err());
        calls.admit("sail", &component, look("calm")).unwrap().looked();
        calls.admit("sail", &component, Call { purpose: Purpose::Render, ..look("calm") }).map(drop).unwrap();
        assert_eq!(calls.figures(&component), None);
    }

    #[test]
    fn a_dropped_pass_is_no_call_and_the_message_of_a_quarantine_stays() {
        let (calls, component, inputs) = (Calls::default(), Digest::of(b"component"), Digest::of(b"inputs"));
        let call = |name| Call { deployment: name, requester: name, inputs: &inputs, purpose: Purpose::Render };
        for name in ["north", "south", "east"] {
            let pass = calls.admit("sail", &component, call(name)).unwrap();
            pass.failed("sail", Duration::from_millis(1)).unwrap();
        }
        let first = calls.quarantined("sail", &component).unwrap();
        assert_eq!(
            calls.admit("sail", &component, call("north")).map(drop).unwrap_err().to_string(),
            first.to_string()
        );
        drop(calls.admit("sail", &component, call("west")).unwrap());
        let trial = calls.admit("sail", &component, call("west")).unwrap();
        let refused = trial.failed("sail", Duration::from_millis(1)).unwrap_err();
        assert_eq!((refused.until, refused.class.as_str()), (first.until, "sail"));
        assert!(calls.admit("sail", &component, call("west")).is_err(), "it had its call");
        assert_eq!(calls.quarantined("sail", &Digest::of(b"other")), None);
        assert_eq!(calls.release(&component), ["north", "west"].map(str::to_owned).into());
        assert_eq!(calls.quarantined("sail", &component), None);
        assert_eq!(calls.figures(&component).unwrap().failed, 4);
    }

    #[test]
    fn the_component_that_was_not_called_for_the_longest_time_is_forgotten() {
        let (calls, inputs) = (Calls::default(), Digest::of(b"inputs"));
        let call = Call { deployment: "a", requester: "a", inputs: &inputs, purpose: Purpose::Render };
        for number in 0..1000_u32 {
            calls.admit("sail", &Digest::of(&number.to_be_bytes()), call).unwrap().refused(Duration::ZERO);
        }
        assert_eq!(calls.all.lock().len(), COMPONENTS);
        assert!(calls.figures(&Digest::of(&999_u32.to_be_bytes())).is_some());
    }
}
