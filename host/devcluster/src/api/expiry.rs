//! Objects with a limited lifetime.

use std::sync::Arc;

use serde_json::Value;

use super::Api;
use crate::store::{Expected, Key, Mismatch, Object};

/// The table of Events of both groups.
const EVENTS: &str = "events";
/// How long an Event lives after it was written last, in seconds (kube-apiserver's `--event-ttl`).
const EVENT_SECONDS: i64 = 3600;

impl Api {
    /// Stores an object; an Event for an hour.
    pub(super) fn store(&self, key: Key, expected: Expected, value: Value) -> Result<Arc<Object>, Mismatch> {
        if &*key.resource == EVENTS {
            let expires = self.clock.now().unix_timestamp().saturating_add(EVENT_SECONDS);
            return self.store.put_until(key, expected, value, expires);
        }
        self.store.put(key, expected, value)
    }
}
