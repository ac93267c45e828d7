//! The policy that is in force.

use std::sync::Arc;

use chandler_api::PlatformPolicy;
use chandler_resolution::platform::{InForce, InvalidPolicy, Policy};
use chandler_runtime::{Cache, Reflector};
use kube::{Resource as _, ResourceExt as _, runtime::reflector::ObjectRef};
use parking_lot::Mutex;

/// A PlatformPolicy that may not decode.
pub(super) type Guarded = chandler_runtime::Guarded<PlatformPolicy>;

/// The PlatformPolicy that this controller reads.
pub(crate) struct Policies {
    objects: Cache<Guarded>,
    name: String,
    read: Mutex<Option<(Version, Arc<InForce>)>>,
    /// The version for which the others were last woken.
    announced: Mutex<Option<Version>>,
}

/// What changes with the contents of a policy; `None` if there is none.
type Version = Option<(Option<String>, Option<i64>, bool)>;

impl Policies {
    /// Reads the policy with this name.
    pub(crate) fn new(reflector: &Reflector<PlatformPolicy>, name: &str) -> Self {
        let (objects, name) = (reflector.cache(), name.to_owned());
        Self { objects, name, read: Mutex::default(), announced: Mutex::default() }
    }

    /// Waits for the first list: before it, everything would seem to be allowed. False means that the controller is stopping.
    pub(crate) async fn ready(&self) -> bool {
        self.objects.ready().await
    }

    /// The policy as the watch last delivered it. A policy that cannot be decoded is invalid.
    pub(crate) fn in_force(&self) -> Arc<InForce> {
        let object = self.object();
        let version = version(object.as_deref());
        let mut known = self.read.lock();
        if let Some((_, in_force)) = known.as_ref().filter(|(known, _)| *known == version) {
            return Arc::clone(in_force);
        }
        let in_force = Arc::new(match object.as_deref().map(|guarded| guarded.0.as_ref()) {
            None => Ok(None),
            Some(Ok(policy)) => Policy::read(policy).map(Some),
            Some(Err(invalid)) => {
                let what = format!("it cannot be decoded: {}", invalid.error);
                Err(InvalidPolicy { policy: self.name.clone(), what })
            }
        });
        *known = Some((version, Arc::clone(&in_force)));
        in_force
    }

    /// Whether the policy has changed since the last call.
    pub(super) fn take_changed(&self) -> bool {
        let now = version(self.object().as_deref());
        let mut announced = self.announced.lock();
        announced.replace(now.clone()) != Some(now)
    }

    fn object(&self) -> Option<Arc<Guarded>> {
        self.objects.get(&ObjectRef::new(&self.name))
    }
}

fn version(guarded: Option<&Guarded>) -> Version {
    guarded.map(|guarded| (guarded.uid(), guarded.meta().generation, guarded.0.is_ok()))
}
