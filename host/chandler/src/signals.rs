//! Being told to stop.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that mean "stop": SIGINT (Ctrl-C) and SIGTERM (what Kubernetes sends).
pub struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// Listens from now on. The process no longer ends by itself when one of them comes.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for one of them.
    pub async fn received(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
