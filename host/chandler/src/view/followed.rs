//! Objects that commands follow until they are ready or need an action.

use std::time::Duration;

use chandler_api::{ReportingKind, Resolution};

use super::{
    error::CommandError,
    progress::seconds,
    progress_reporter::RolloutState,
    reported::{Reported, ReportedStatus},
    resolution_progress,
};

/// An object whose state is in its status.
pub trait Followed {
    /// Its kind.
    const KIND: ReportingKind;

    /// The state.
    fn state(&self) -> RolloutState;

    /// The line about an object that is ready, which took this time.
    ///
    /// # Errors
    /// It is ready only with earlier content.
    fn ready(&self, elapsed: Duration) -> Result<String, CommandError>;
}

impl<K: Reported> Followed for K {
    const KIND: ReportingKind = <K as Reported>::KIND;

    fn state(&self) -> RolloutState {
        ReportedStatus::new(self).state()
    }

    fn ready(&self, _: Duration) -> Result<String, CommandError> {
        let status = ReportedStatus::new(self);
        let shown = format!("{} {}", status.kind, status.name);
        if status.uses_earlier_content() {
            let failed = CommandError::failed(format!("{shown}: {}", status.message()));
            return Err(status.next_steps.into_iter().fold(failed, CommandError::hint));
        }
        Ok(format!("{shown} is ready: {}", status.message()))
    }
}

impl Followed for Resolution {
    const KIND: ReportingKind = ReportingKind::Resolution;

    fn state(&self) -> RolloutState {
        resolution_progress::state(self)
    }

    fn ready(&self, elapsed: Duration) -> Result<String, CommandError> {
        let name = self.metadata.name.as_deref().unwrap_or_default();
        Ok(format!("Resolution {name} is complete and healthy after {}", seconds(elapsed)))
    }
}
