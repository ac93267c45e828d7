//! The clock by which guests are interrupted.
//!
//! It stands still while no guest runs: a process that has nothing to do is not woken a hundred times a second.

use std::{
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

/// How long a guest may run before it makes room for others, and how exactly its time limit holds.
const TICK: Duration = Duration::from_millis(10);

/// A clock that ticks while somebody needs it; ends when it is dropped.
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
    /// How many need it.
    needed: usize,
    ended: bool,
    /// Whether the thread waits until it is needed.
    waits: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the clock is needed; false once it has ended.
    fn wait(&self) -> bool {
        let mut state = self.state();
        while state.needed == 0 && !state.ended {
            state.waits = true;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waits = false;
        !state.ended
    }
}

impl Ticker {
    /// Starts a clock that does this at each tick, on a thread of the operating system: tasks do not run while guests keep
    /// all threads busy.
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

    /// Has the clock tick for as long as the value lives.
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
            // It waits and cannot tick: whatever comes from here on comes because it is needed.
            ticks.try_iter().for_each(drop);
            let (one, other) = (ticker.tick(), ticker.tick());
            assert_eq!(ticks.recv(), Ok(()));
            drop(one);
            while ticks.try_recv().is_ok() {}
            assert_eq!(ticks.recv(), Ok(()));
            drop(other);
        }
        drop(ticker);
        // The thread has ended, and the sender with it.
        ticks.try_iter().for_each(drop);
        while ticks.recv() != Err(RecvError) {}
    }
}
