//! Changes of the Secrets that Alerts use.

use std::sync::Arc;

use super::{delivery::Delivery, lanes::Lanes};
use crate::signals::{Signal, Subscriber};

/// Wakes the Alerts whose Secret changes: their status follows, and a delivery that failed is tried again.
pub(crate) struct SecretChanges {
    lanes: Arc<Lanes>,
    delivery: Arc<Delivery>,
}

impl SecretChanges {
    /// Wakes the Alerts of these lanes.
    pub(crate) fn new(lanes: &Arc<Lanes>, delivery: &Arc<Delivery>) -> Self {
        Self { lanes: Arc::clone(lanes), delivery: Arc::clone(delivery) }
    }
}

impl Subscriber for SecretChanges {
    fn receive(&self, signal: Signal<'_>) {
        let Signal::SecretChanged(secret) = signal else { return };
        self.lanes.secret_changed(secret).iter().for_each(|alert| self.delivery.request_reconcile(alert));
    }
}
