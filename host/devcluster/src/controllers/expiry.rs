//! Deletes expired objects.

use std::{sync::Arc, time::Duration};

use crate::api::Api;

/// How long it takes at the most to notice that something has got a time to live.
const LOOK: Duration = Duration::from_mins(1);

/// Works until dropped.
pub async fn run(api: Arc<Api>) {
    loop {
        let now = api.clock.now().unix_timestamp();
        let expired = api.store.expire(now);
        if expired > 0 {
            tracing::debug!(expired, "deleted what has expired");
        }
        let next = api.store.next_expiry().map(|next| Duration::from_secs(next.saturating_sub(now).unsigned_abs()));
        api.clock.sleep(next.map_or(LOOK, |next| next.min(LOOK))).await;
    }
}
