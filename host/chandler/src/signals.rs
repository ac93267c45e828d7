//! The signals that stop a command, or change the level of its log.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::view::error::FailureKind;

/// SIGINT (Ctrl-C) and SIGTERM (which a kubelet sends).
pub struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// Starts to listen. From now on these signals no longer end the process.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next signal.
    pub async fn received(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// SIGUSR1 and SIGUSR2, which change the level of the log.
pub struct LevelSignals {
    raise: Signal,
    restore: Signal,
}

/// What a signal asks of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelChange {
    /// More lines.
    Raise,
    /// The lines of the start.
    Restore,
}

impl LevelSignals {
    /// Starts to listen. From now on these signals no longer end the process.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { raise: signal(SignalKind::user_defined1())?, restore: signal(SignalKind::user_defined2())? })
    }

    /// Waits for the next signal.
    pub async fn received(&mut self) -> LevelChange {
        tokio::select! {
            _ = self.raise.recv() => LevelChange::Raise,
            _ = self.restore.recv() => LevelChange::Restore,
        }
    }
}

/// Waits for a signal, and from then on lets the next one end the process. Dropped before that, it lets the signals end the process as
/// well, although they would be ignored by default once something has listened.
pub async fn interruption() {
    let Ok(mut signals) = StopSignals::listen() else { return std::future::pending().await };
    let guard = Guard;
    signals.received().await;
    drop(guard);
}

/// The result of this work, or `None` if a signal comes first. Signals are listened to before the work begins: after the first line that
/// it prints, a signal is answered.
pub async fn unless_interrupted<T>(work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = interruption() => None,
        done = work => Some(done),
    }
}

/// Ends the process at the next signal after it is dropped.
struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        tokio::spawn(async {
            if let Ok(mut signals) = StopSignals::listen() {
                signals.received().await;
                std::process::exit(FailureKind::Interrupted.exit_code().into());
            }
        });
    }
}
