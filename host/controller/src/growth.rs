//! How much content came into the cache since it was cleaned.
//!
//! A tenant may upload or publish distinct archives without end, each of which unpacks to much more than was sent. So the cache is not only
//! cleaned at an interval, but also when much was added.

use std::collections::HashSet;

use chandler_core::Digest;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The cache is cleaned after this part of its budget was added.
const PART: u64 = 8;
/// The most digests that are remembered. Content beyond that may count again.
const REMEMBERED: usize = 10_000;

/// The content that was added since the last cleanup.
#[derive(Default)]
pub(crate) struct Growth {
    added: Mutex<Added>,
    wake: Notify,
}

#[derive(Default)]
struct Added {
    bytes: u64,
    /// What was counted, also before the last cleanup: content that is only read again is nothing new.
    known: HashSet<Digest>,
}

impl Growth {
    /// Notes content that is in the cache, which has this budget in bytes.
    pub(crate) fn add(&self, content: &Digest, bytes: u64, budget: u64) {
        let mut added = self.added.lock();
        if added.known.contains(content) {
            return;
        }
        if added.known.len() >= REMEMBERED {
            added.known.clear();
        }
        added.known.insert(content.clone());
        added.bytes = added.bytes.saturating_add(bytes);
        if added.bytes > budget / PART {
            self.wake.notify_one();
        }
    }

    /// Waits until enough was added.
    pub(crate) async fn is_due(&self) {
        self.wake.notified().await;
    }

    /// Notes that the cache is cleaned now. Content that comes meanwhile counts for the next time.
    pub(crate) fn cleans(&self) {
        self.added.lock().bytes = 0;
    }

    /// The content that may be in the cache, to find out what a cleanup removed.
    pub(crate) fn known(&self) -> Vec<Digest> {
        self.added.lock().known.iter().cloned().collect()
    }

    /// Notes what a cleanup removed: it counts again if it comes again.
    pub(crate) fn removed(&self, content: &[Digest]) {
        let mut added = self.added.lock();
        for digest in content {
            added.known.remove(digest);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn a_part_of_the_budget_is_enough_and_the_same_content_counts_once() {
        let growth = Growth::default();
        let add = |number: u32| growth.add(&Digest::of(&number.to_be_bytes()), 100, 8000);
        let is_due = || growth.is_due().now_or_never().is_some();
        for _ in 0..3 {
            (0..10).for_each(add);
        }
        assert!(!is_due(), "it is exactly the part");
        add(10);
        assert!(is_due() && !is_due(), "once");
        growth.cleans();
        (0..20).for_each(add);
        assert!(!is_due(), "nine are new");
        (20..22).for_each(add);
        assert!(is_due());
        growth.cleans();
        growth.removed(&growth.known());
        (0..11).for_each(add);
        assert!(is_due(), "what was removed counts again");
    }
}
