//! The clock that interrupts guests.
//!
//! It is stopped while no guest runs, so that an idle process is not woken a hundred times a second.

use std::{io, sync::Arc, thread, time::Duration};

use parking_lot::{Condvar, Mutex, MutexGuard};

/// How long a guest may run before it yields, and the precision of its time limit.
const TICK: Duration = Duration::from_millis(10);

/// A clock that ticks while at least one [`Ticking`] exists. Its thread ends when it is dropped.
pub(crate) struct Ticker {
    shared: Arc<Shared>,
}

/// Keeps the clock ticking.
pub(crate) struct Ticking {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The number of [`Ticking`] guards.
    needed: usize,
    ended: bool,
    /// Whether the thread is idle.
    waits: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Waits until the clock is needed; returns false once the clock was dropped.
    fn wait(&self) -> bool {
        let mut state = self.state();
        while state.needed == 0 && !state.ended {
            state.waits = true;
            self.changed.wait(&mut state);
        }
        state.waits = false;
        !state.ended
    }
}

impl Ticker {
    /// Starts a clock that calls `tick` on an operating system thread: async tasks do not run while guests occupy all
    /// threads.
    pub(crate) fn start(mut tick: impl FnMut() + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let clock = Arc::clone(&shared);
        let run = move || {
            while clock.wait() {
                thread::sleep(TICK);
                tick();
            }
        };
        thread::Builder::new().name("wasm-epochs".into()).spawn(run)?;
        Ok(Self { shared })
    }

    /// Keeps the clock ticking while the returned guard exists.
    pub(crate) fn tick(&self) -> Ticking {
        self.shared.state().needed += 1;
        self.shared.changed.notify_all();
        Ticking { shared: Arc::clone(&self.shared) }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.state().ended = true;
        self.shared.changed.notify_all();
    }
}

impl Drop for Ticking {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.needed = state.needed.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, RecvError};

    use super::*;

    #[test]
    fn it_ticks_only_while_it_is_needed() {
        let (sender, ticks) = mpsc::channel();
        let ticker = Ticker::start(move || sender.send(()).unwrap_or_default()).unwrap();
        let idle = |ticker: &Ticker| ticker.shared.state().waits;
        for _ in 0..2 {
            while !idle(&ticker) {
                thread::yield_now();
            }
            // The clock is stopped: any further tick is caused by the next guard.
            ticks.try_iter().for_each(drop);
            let (one, other) = (ticker.tick(), ticker.tick());
            assert_eq!(ticks.recv(), Ok(()));
            drop(one);
            while ticks.try_recv().is_ok() {}
            assert_eq!(ticks.recv(), Ok(()));
            drop(other);
        }
        drop(ticker);
        // The thread has ended and dropped its sender.
        ticks.try_iter().for_each(drop);
        while ticks.recv() != Err(RecvError) {}
    }
}
