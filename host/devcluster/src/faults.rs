//! Failures on demand, for tests of clients.

use std::sync::{Mutex, PoisonError};

/// What is made to happen to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// 409 Conflict, nothing is written.
    Conflict,
    /// 410 Gone.
    Gone,
    /// 429 with this `Retry-After`, in seconds.
    TooManyRequests(u64),
    /// 500, nothing is written.
    InternalError,
    /// The request takes effect, the client sees 500.
    InternalErrorAfterWrite,
    /// A watch ends at once.
    DropWatch,
}

/// A failure that waits for its request.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The request method, e.g. `PATCH`; `WATCH` for watches; `None` matches each.
    pub method: Option<String>,
    /// The path must contain this.
    pub path_contains: String,
    /// How often it strikes.
    pub times: u32,
    /// What happens.
    pub effect: Effect,
}

/// The failures that wait.
#[derive(Debug, Default)]
pub struct Faults(Mutex<Vec<Fault>>);

impl Faults {
    /// Adds one.
    pub fn add(&self, fault: Fault) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(fault);
    }

    /// Takes the effect for a request, if one waits for it.
    pub fn strike(&self, method: &str, path: &str) -> Option<Effect> {
        let mut faults = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let matches = |fault: &Fault| {
            fault.method.as_deref().is_none_or(|wanted| wanted == method) && path.contains(&fault.path_contains)
        };
        let fault = faults.iter_mut().find(|fault| fault.times > 0 && matches(fault))?;
        fault.times -= 1;
        let effect = fault.effect;
        faults.retain(|fault| fault.times > 0);
        Some(effect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_strikes_as_often_as_it_says() {
        let faults = Faults::default();
        faults.add(Fault {
            method: Some("PATCH".into()),
            path_contains: "deployments".into(),
            times: 2,
            effect: Effect::Conflict,
        });
        assert_eq!(faults.strike("GET", "/apis/apps/v1/deployments"), None);
        assert_eq!(faults.strike("PATCH", "/api/v1/pods"), None);
        for expected in [Some(Effect::Conflict), Some(Effect::Conflict), None] {
            assert_eq!(faults.strike("PATCH", "/apis/apps/v1/deployments"), expected);
        }
    }
}
