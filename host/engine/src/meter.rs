//! The time that a guest uses: what its thread computes for it, and what it waits for itself.
//!
//! A machine that has no time for a thread takes none of the guest's: only wall time passes, for which there is a second, generous limit.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use chandler_turns::processor_time;
use parking_lot::{Mutex, MutexGuard};
use rustix::time::{ClockId, clock_gettime};
use tokio::time::{Sleep, sleep};

use crate::host::Fault;

/// How many times the time limit of a call may pass on the wall before the machine counts as too busy.
const WALL: u32 = 30;

/// The clocks of a meter.
#[derive(Clone, Copy)]
pub(crate) struct Clocks {
    /// The CPU time of the calling thread.
    pub(crate) thread: fn() -> Duration,
    /// The time on the wall.
    pub(crate) wall: fn() -> Duration,
}

impl Clocks {
    /// The clocks of the operating system.
    pub(crate) const SYSTEM: Self =
        Self { thread: processor_time, wall: || clock_gettime(ClockId::Monotonic).try_into().unwrap_or_default() };
}

/// What one call has used.
pub(crate) struct Meter {
    clocks: Clocks,
    limit: Duration,
    /// Nanoseconds that were computed or waited until the last poll ended.
    used: AtomicU64,
    /// The thread's time when the poll began that runs now.
    since: AtomicU64,
    /// Whether the guest was interrupted and can continue: it waits for a processor, and for nothing else.
    is_ready: AtomicBool,
}

impl Meter {
    pub(crate) fn new(limit: Duration, clocks: Clocks) -> Arc<Self> {
        let (used, since, is_ready) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
        Arc::new(Self { clocks, limit, used, since, is_ready })
    }

    /// How much wall time a call may take.
    pub(crate) fn wall(&self) -> Duration {
        self.limit.saturating_mul(WALL)
    }

    /// Whether a running guest may continue after it yielded to others. Called on the thread of the guest.
    pub(crate) fn interrupted(&self) -> Result<(), Fault> {
        let running = nanos((self.clocks.thread)()).saturating_sub(self.since.load(Ordering::Relaxed));
        if self.used().saturating_add(Duration::from_nanos(running)) >= self.limit {
            return Err(Fault::TimedOut);
        }
        self.is_ready.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// What was computed and waited until the last poll ended.
    pub(crate) fn used(&self) -> Duration {
        Duration::from_nanos(self.used.load(Ordering::Relaxed))
    }

    fn add(&self, time: Duration) {
        self.used.fetch_add(nanos(time), Ordering::Relaxed);
    }

    fn begin(&self) {
        self.is_ready.store(false, Ordering::Relaxed);
        self.since.store(nanos((self.clocks.thread)()), Ordering::Relaxed);
    }

    fn end(&self) {
        self.add((self.clocks.thread)().saturating_sub(Duration::from_nanos(self.since.load(Ordering::Relaxed))));
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Runs a guest within the limit of its meter. A wait of the guest, for a clock or the validation of a configuration, counts from its
/// beginning until the guest is woken; the wait for a processor does not.
pub(crate) struct Metered<'a, T> {
    guest: Pin<Box<dyn Future<Output = T> + Send + 'a>>,
    meter: Arc<Meter>,
    /// What the guest waits for since then.
    waits: Option<Waits>,
}

struct Waits {
    since: Duration,
    /// Wakes the guest at the limit.
    _end: Pin<Box<Sleep>>,
    woken: Arc<Woken>,
}

impl<'a, T> Metered<'a, T> {
    pub(crate) fn new(guest: impl Future<Output = T> + Send + 'a, meter: Arc<Meter>) -> Self {
        Self { guest: Box::pin(guest), meter, waits: None }
    }
}

impl<T> Future for Metered<'_, T> {
    type Output = Result<T, Fault>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(waits) = self.waits.take() {
            let until = waits.woken.at().unwrap_or_else(self.meter.clocks.wall);
            self.meter.add(until.saturating_sub(waits.since));
            if self.meter.used() >= self.meter.limit {
                return Poll::Ready(Err(Fault::TimedOut));
            }
        }
        let woken =
            Arc::new(Woken { waker: context.waker().clone(), wall: self.meter.clocks.wall, at: Mutex::new(None) });
        self.meter.begin();
        let polled = self.guest.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::clone(&woken))));
        self.meter.end();
        if let Poll::Ready(result) = polled {
            return Poll::Ready(Ok(result));
        }
        if self.meter.is_ready.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        let mut end = Box::pin(sleep(self.meter.limit.saturating_sub(self.meter.used())));
        if end.as_mut().poll(context).is_ready() {
            context.waker().wake_by_ref();
        }
        self.waits = Some(Waits { since: (self.meter.clocks.wall)(), _end: end, woken });
        Poll::Pending
    }
}

/// Notes when a guest that waits is woken.
struct Woken {
    waker: Waker,
    wall: fn() -> Duration,
    at: Mutex<Option<Duration>>,
}

impl Woken {
    fn at(&self) -> Option<Duration> {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Duration>> {
        self.at.lock()
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.lock().get_or_insert_with(self.wall);
        self.waker.wake_by_ref();
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, future::poll_fn};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);
    const DAY: u64 = 24 * 3_600;

    thread_local! {
        /// The CPU time and the wall time of the thread, as a test sets them.
        static COMPUTED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
        static PASSED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    const FAKE: Clocks = Clocks { thread: || COMPUTED.get(), wall: || PASSED.get() };

    fn compute(seconds: u64) {
        COMPUTED.set(COMPUTED.get() + Duration::from_secs(seconds));
        pass(seconds);
    }

    /// Time passes in which nothing is computed.
    fn pass(seconds: u64) {
        PASSED.set(PASSED.get() + Duration::from_secs(seconds));
    }

    /// A guest that computes so many seconds, and lets others run after each.
    async fn computing(meter: Arc<Meter>, seconds: u64) -> Result<(), Fault> {
        for _ in 0..seconds {
            compute(1);
            meter.interrupted()?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// A guest that waits until it was woken once.
    async fn waiting() -> Result<(), Fault> {
        let mut polled = false;
        poll_fn(|context| {
            WAKER.set(Some(context.waker().clone()));
            if std::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        Ok(())
    }

    thread_local! {
        static WAKER: Cell<Option<Waker>> = const { Cell::new(None) };
    }

    fn is_timeout(result: &Result<Result<(), Fault>, Fault>) -> bool {
        matches!(result, Ok(Err(Fault::TimedOut)) | Err(Fault::TimedOut))
    }

    type Guest<'a> = Metered<'a, Result<(), Fault>>;

    async fn poll_once(guest: &mut Guest<'_>) -> Poll<Result<Result<(), Fault>, Fault>> {
        poll_fn(|context| Poll::Ready(Pin::new(&mut *guest).poll(context))).await
    }

    #[tokio::test]
    async fn a_guest_may_compute_until_its_limit() {
        for (seconds, times_out) in [(9, false), (10, true), (1_000, true)] {
            let meter = Meter::new(LIMIT, FAKE);
            let result = Metered::new(computing(Arc::clone(&meter), seconds), meter).await;
            assert_eq!(is_timeout(&result), times_out, "{seconds}");
        }
    }

    #[tokio::test]
    async fn neither_the_wait_for_a_processor_nor_what_its_thread_computes_for_others_counts() {
        for starve in [pass as fn(u64), compute] {
            let meter = Meter::new(LIMIT, FAKE);
            let mut guest = Metered::new(computing(Arc::clone(&meter), 9), Arc::clone(&meter));
            let mut result = poll_once(&mut guest).await;
            while result.is_pending() {
                starve(DAY);
                result = poll_once(&mut guest).await;
            }
            assert!(matches!(result, Poll::Ready(result) if !is_timeout(&result)));
            assert_eq!(meter.used(), Duration::from_secs(9));
        }
    }

    #[tokio::test]
    async fn what_a_guest_waits_for_counts_until_it_is_woken() {
        let start = async || {
            let meter = Meter::new(LIMIT, FAKE);
            let mut guest = Metered::new(waiting(), Arc::clone(&meter));
            assert!(poll_once(&mut guest).await.is_pending());
            (guest, meter)
        };
        let (mut guest, _) = start().await;
        pass(DAY);
        assert!(matches!(poll_once(&mut guest).await, Poll::Ready(result) if is_timeout(&result)));
        // Woken in time, and run late.
        let (mut guest, meter) = start().await;
        pass(1);
        WAKER.take().unwrap().wake();
        pass(DAY);
        assert!(matches!(poll_once(&mut guest).await, Poll::Ready(result) if !is_timeout(&result)));
        assert_eq!(meter.used(), Duration::from_secs(1));
    }
}
