//! Whether the controller is alive and ready, for the probes of the kubelet.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;

/// What the controller is doing. Each one but [`Phase::Stopping`] can follow any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It reads its options and opens its caches.
    Starting,
    /// Another controller holds the Lease. This one takes over if that one stops.
    Standby,
    /// It holds the Lease, and reads the first lists of the objects that it reconciles.
    Listing,
    /// It reconciles.
    Reconciling,
    /// It was asked to stop, and finishes the reconciles in progress.
    Stopping,
}

impl Phase {
    /// Whether a rollout of the Deployment may continue with the next replica.
    pub fn is_ready(self) -> bool {
        match self {
            Self::Standby | Self::Reconciling => true,
            Self::Starting | Self::Listing | Self::Stopping => false,
        }
    }

    /// Whether it holds the Lease, as far as it knows.
    pub fn is_leader(self) -> bool {
        matches!(self, Self::Listing | Self::Reconciling)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Starting => "the controller starts",
            Self::Standby => "another controller holds the Lease; this one waits for it",
            Self::Listing => "the controller reads its objects for the first time",
            Self::Reconciling => "the controller reconciles",
            Self::Stopping => "the controller stops",
        })
    }
}

/// What the controller is doing, as it says. Clones share it.
#[derive(Clone, Debug)]
pub struct Health(Arc<Mutex<Phase>>);

impl Default for Health {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Phase::Starting)))
    }
}

impl Health {
    /// What the controller is doing.
    pub fn phase(&self) -> Phase {
        *self.0.lock()
    }

    /// Notes what the controller is doing. A controller that stops does nothing else afterwards.
    pub fn note(&self, phase: Phase) {
        let mut current = self.0.lock();
        if *current != Phase::Stopping {
            *current = phase;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_is_ready_once_it_can_do_its_part() {
        let health = Health::default();
        let mut seen = Vec::new();
        for phase in [Phase::Starting, Phase::Standby, Phase::Listing, Phase::Reconciling, Phase::Stopping] {
            health.note(phase);
            let now = health.phase();
            seen.push((now, now.is_ready(), now.is_leader()));
        }
        assert_eq!(
            seen,
            [
                (Phase::Starting, false, false),
                (Phase::Standby, true, false),
                (Phase::Listing, false, true),
                (Phase::Reconciling, true, true),
                (Phase::Stopping, false, false),
            ]
        );
        health.clone().note(Phase::Reconciling);
        assert_eq!(health.phase(), Phase::Stopping);
    }
}
