//! Bounds the memory of work in progress: work that needs more than is free waits, and holds nothing in memory meanwhile.
//!
//! A share is held for as long as the data that it counts is in memory. It has no time limit: reconciles take longer on a slow API server,
//! and if shares ended before them, memory would grow exactly then. A reconcile that waits for an API server or a webhook that never answers
//! does not block other namespaces, since one namespace gets half of the memory; nor does it block other accounts of its namespace that need at most
//! a quarter of that, since one account gets three quarters.

use std::{
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use chandler_turns::{Permit, Requester, Turns};
use futures::FutureExt as _;
use parking_lot::Mutex;

/// The smallest share, in KiB: a reconcile with a tiny payload still has requests and answers in memory.
const LEAST_KIB: usize = 256;

/// How long work waits before the log says so.
const LONG: Duration = Duration::from_secs(10);

/// At most one such line is logged in this time, however much work waits.
const REPORTED_EVERY: Duration = Duration::from_mins(1);

/// Memory that large values share. Clones share it, too.
#[derive(Clone, Debug)]
pub struct Capacity {
    /// What the memory is for, as the log names it.
    purpose: &'static str,
    turns: Turns,
    kib: usize,
    /// How much one account may have, in KiB.
    most: usize,
    /// When the log last said that work waits.
    reported: Arc<Mutex<Option<Instant>>>,
}

/// A part of the memory, which is free again when this is dropped.
#[derive(Debug)]
pub struct Share(Permit);

impl Capacity {
    /// So many bytes. The requesters of one namespace get at most half of them, and one account three quarters of that half. `purpose` describes them in the log.
    pub fn new(purpose: &'static str, bytes: usize) -> Self {
        let kib = (bytes >> 10).max(2 * LEAST_KIB);
        let (namespace, account) = (kib / 2, (kib / 8 * 3).max(LEAST_KIB));
        Self { purpose, turns: Turns::with_most(kib, namespace, account), kib, most: account, reported: Arc::default() }
    }

    /// Waits for so many bytes, and at least a quarter of a mebibyte. A request for more than an account's share gets the whole share.
    /// `None` during shutdown.
    pub async fn acquire(&self, requester: &Requester, bytes: usize) -> Option<Share> {
        let kib = self.kib(bytes);
        let mut acquiring = pin!(self.turns.acquire_many(requester, kib));
        if let Some(permit) = acquiring.as_mut().now_or_never() {
            return permit.map(Share);
        }
        loop {
            match tokio::time::timeout(LONG, &mut acquiring).await {
                Ok(permit) => return permit.map(Share),
                Err(_) => self.report(requester, kib, Instant::now()),
            }
        }
    }

    /// Logs that work waits, unless another line of the last minute does.
    fn report(&self, requester: &Requester, kib: usize, now: Instant) {
        let mut reported = self.reported.lock();
        if reported.is_some_and(|at| now.duration_since(at) < REPORTED_EVERY) {
            return;
        }
        *reported = Some(now);
        tracing::info!(
            purpose = self.purpose,
            namespace = %requester.namespace(),
            needed_kib = kib,
            free_kib = self.turns.available(),
            total_kib = self.kib,
            waiting = self.turns.waiting(),
            "work waits for memory that other work uses"
        );
    }

    /// So many more bytes than these shares have, if they are free; nothing if these suffice.
    ///
    /// # Errors
    ///
    /// Not enough is free, or other requesters are first. The caller must then return its shares and wait without them: two callers that
    /// kept their shares while they wait for more would wait for each other.
    pub fn more(&self, requester: &Requester, shares: &[Share], bytes: usize) -> Result<Option<Share>, NotFree> {
        let held: usize = shares.iter().map(|share| share.0.count()).sum();
        let missing = self.kib(bytes).saturating_sub(held);
        if missing == 0 {
            return Ok(None);
        }
        self.turns.try_acquire_many(requester, missing).map(|permit| Some(Share(permit))).ok_or(NotFree)
    }

    /// How many bytes are free.
    pub fn available(&self) -> usize {
        self.turns.available() << 10
    }

    /// How many requests wait.
    pub fn waiting(&self) -> usize {
        self.turns.waiting()
    }

    /// Ends all waits: the controller is shutting down.
    pub fn close(&self) {
        self.turns.close();
    }

    fn kib(&self, bytes: usize) -> usize {
        bytes.div_ceil(1024).clamp(LEAST_KIB, self.most)
    }
}

/// So much memory is not free now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotFree;

#[cfg(test)]
mod tests {
    use std::io;

    use futures::poll;

    use super::*;

    const MIB: usize = 1 << 20;

    fn requester(namespace: &str) -> Requester {
        Requester::new(namespace, "x")
    }

    #[tokio::test]
    async fn a_share_is_grown_only_by_what_is_free() {
        let capacity = Capacity::new("tests", 16 * MIB);
        let a = requester("a");
        let mut shares = vec![capacity.acquire(&a, MIB).now_or_never().flatten().unwrap()];
        assert!(matches!(capacity.more(&a, &shares, MIB / 2), Ok(None)), "it has enough");
        shares.extend(capacity.more(&a, &shares, 3 * MIB).unwrap());
        assert_eq!(capacity.available(), 13 * MIB);
        let other = capacity.acquire(&a, 3 * MIB).now_or_never().flatten().unwrap();
        assert_eq!(capacity.more(&a, &shares, 4 * MIB).err(), Some(NotFree));
        drop(other);
        shares.extend(capacity.more(&a, &shares, 100 * MIB).unwrap());
        assert_eq!(capacity.available(), 10 * MIB, "all that an account may have");
        drop(shares);
        assert_eq!(capacity.available(), 16 * MIB);
    }

    #[tokio::test]
    async fn what_one_namespace_holds_leaves_room_to_others() {
        let capacity = Capacity::new("tests", 16 * MIB);
        let (a, b) = (requester("a"), requester("b"));
        let held: Vec<_> = (0..1000).map_while(|_| capacity.acquire(&a, 0).now_or_never().flatten()).collect();
        assert_eq!((held.len(), capacity.available()), (24, 10 * MIB));
        let c = Requester::new("a", "another account");
        let more: Vec<_> = (0..1000).map_while(|_| capacity.acquire(&c, 0).now_or_never().flatten()).collect();
        assert_eq!((more.len(), capacity.available()), (8, 8 * MIB));
        assert!(capacity.acquire(&b, 8 * MIB).now_or_never().flatten().is_some());
    }

    #[test]
    fn nothing_waits_during_shutdown() {
        let capacity = Capacity::new("tests", MIB);
        let a = requester("a");
        let held = capacity.acquire(&a, MIB).now_or_never().flatten();
        capacity.close();
        assert!(held.is_some());
        assert!(capacity.acquire(&a, MIB).now_or_never().expect("it does not wait").is_none());
    }

    #[tokio::test]
    async fn the_log_says_once_a_minute_that_work_waits() {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        let _guard = tracing::subscriber::set_default(subscriber);
        let capacity = Capacity::new("tests", MIB);
        let a = requester("tenant");
        let _held = capacity.acquire(&a, MIB).await;
        let mut waits = pin!(capacity.acquire(&a, MIB));
        assert!(poll!(&mut waits).is_pending());
        let begin = Instant::now();
        for seconds in [10, 15, 69, 70, 100] {
            capacity.clone().report(&a, 512, begin + Duration::from_secs(seconds));
        }
        let text = log.text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        let expected = r#"purpose="tests" namespace=tenant needed_kib=512 free_kib=640 total_kib=1024 waiting=1"#;
        assert!(lines.iter().all(|line| line.contains("work waits for memory") && line.contains(expected)), "{text}");
    }

    /// What was logged.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Log {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().clone()).unwrap()
        }
    }

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
}
