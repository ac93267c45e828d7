//! Processor time, by the names of threads.

use std::{cell::Cell, fs, path::Path};

use crate::wait;

/// After how many polls without processor time the API server counts as idle.
const IDLE_POLLS: u32 = 10;

/// How much processor time an idle API server takes between two polls: no more than one tick of the kernel's clock.
const IDLE_SECONDS: f64 = 0.015;

/// Processor time in seconds, in user mode and in the kernel. Zero where there is no `/proc`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessorTime {
    /// The threads of the controller.
    pub controller: f64,
    /// Everything else in this process: the embedded API server, the registry, and the client that changes BundleDeployments.
    pub others: f64,
    /// The API server, if it is a process that this one started.
    pub server: Option<f64>,
}

impl ProcessorTime {
    /// The time so far. The controller is all threads with this name; threads that have ended count as others. `server` is the process
    /// of the API server.
    pub fn of(controller_thread: &str, server: Option<u32>) -> Self {
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let times = tasks.filter_map(|task| read(&task.path().join("stat")));
        let controller = times.filter(|(name, _)| name == controller_thread).map(|(_, seconds)| seconds).sum();
        let all = read(Path::new("/proc/self/stat")).map_or(0.0, |(_, seconds)| seconds);
        Self { controller, others: (all - controller).max(0.0), server: server.and_then(process_seconds) }
    }

    /// The time since an earlier measurement.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            controller: (self.controller - before.controller).max(0.0),
            others: (self.others - before.others).max(0.0),
            server: self.server.map(|server| (server - before.server.unwrap_or_default()).max(0.0)),
        }
    }
}

/// Waits until the API server in this process has ended what the last step began, such as publishing the schemas of new CRDs:
/// otherwise it would slow the next step down. Without a process there is nothing to wait for.
pub async fn server_idle(server: Option<u32>) {
    let seen = Cell::new((f64::INFINITY, 0));
    wait::eventually("the API server is idle", || async {
        let (before, times) = seen.get();
        let Some(now) = server.and_then(process_seconds) else { return true };
        seen.set((now, if now - before <= IDLE_SECONDS { times + 1 } else { 0 }));
        times >= IDLE_POLLS
    })
    .await;
}

fn process_seconds(process: u32) -> Option<f64> {
    read(Path::new(&format!("/proc/{process}/stat"))).map(|(_, seconds)| seconds)
}

/// The name and the processor time of a thread or process (`proc_pid_stat(5)`).
fn read(file: &Path) -> Option<(String, f64)> {
    let text = fs::read_to_string(file).ok()?;
    let (before, fields) = text.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let ticks: u32 = fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u32>().ok()).sum();
    // USER_HZ is 100 on every platform that Linux has today.
    Some((name.to_owned(), f64::from(ticks) / 100.0))
}
