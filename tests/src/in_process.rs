//! Why a controller runs in the process of its test, although `cargo xtask test --container` asks for containers.

use std::{env, fmt, fs::File, io::Write as _, path::Path, thread};

/// The variable that names the file in which tests note how their controllers run.
pub const REPORT: &str = "CHANDLER_E2E_REPORT";

/// Why a controller cannot be a program of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InProcess {
    /// It crashes at one of its requests, or where its thread becomes idle.
    Crashes,
    /// It is paused at one of its requests, or loses its connections there.
    Pauses,
    /// The test counts or records its requests in its client.
    RecordsRequests,
    /// The test holds, changes or answers its requests in its client.
    ChangesRequests,
    /// It has a user agent of its own.
    UserAgent,
    /// The test watches what happens inside: log events, spans, processor time, the value that it returns.
    Observes,
    /// The timing of its Lease is short, which no flag sets.
    Lease,
    /// This option has no flag, since an administrator has no reason to set it, or a flag that reads another form of it.
    Option(&'static str),
    /// It deletes what a test left.
    CleansUp,
}

impl fmt::Display for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crashes => f.write_str("it crashes at a chosen point"),
            Self::Pauses => f.write_str("it is paused at a chosen request"),
            Self::RecordsRequests => f.write_str("the test records its requests"),
            Self::ChangesRequests => f.write_str("the test changes its requests or their answers"),
            Self::UserAgent => f.write_str("it has a user agent of its own"),
            Self::Observes => f.write_str("the test observes it from inside"),
            Self::Lease => f.write_str("its Lease has a short timing"),
            Self::Option(name) => write!(f, "the option {name} has no flag"),
            Self::CleansUp => f.write_str("it cleans up after a failure"),
        }
    }
}

/// Notes how a controller of this test runs, if a report is wanted: in a container, or in this process with the reason.
pub fn note(reason: Option<InProcess>) {
    let Some(report) = env::var_os(REPORT) else { return };
    let test = thread::current().name().unwrap_or("unknown").to_owned();
    let how = reason.map_or_else(|| "container".to_owned(), |reason| format!("in process: {reason}"));
    eprintln!("{how}");
    // One write of a short line, so that lines of other processes stay whole.
    let written = File::options().create(true).append(true).open(Path::new(&report));
    let written = written.and_then(|mut file| file.write_all(format!("{test}\t{how}\n").as_bytes()));
    written.unwrap_or_else(|error| panic!("failed to write {}: {error}", report.display()));
}
