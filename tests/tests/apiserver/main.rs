//! The conformance suite: what every Kubernetes API server does. It runs on the embedded control plane and, unchanged, on any other.
//!
//! The cases are written from Kubernetes' documented behaviour. One server serves the whole run (see [`chandler_tests::cluster`]
//! for where it comes from). Each case has its own namespace and API groups, so that cases run in parallel and on a
//! shared cluster. A case that needs something the server lacks (a controller manager, kubectl on the PATH) is ignored, with the
//! reason. If the embedded control plane is known to behave differently, the case is marked `differs`: there it must fail, so that
//! the mark is removed together with the difference.
//!
//! Names are `file::section::case`; `cargo test -p chandler-tests --test apiserver -- 3.07` runs one section, `watch::` one file.
//!
//! | section | what must hold |
//! |---|---|
//! | 2 | what kubectl needs |
//! | 3.01 | resource versions grow; an update from an old one is a conflict |
//! | 3.02 | a write without changes does not count as a write |
//! | 3.03 | `generation` counts changes of the specification |
//! | 3.04 | status and spec are written separately |
//! | 3.05 | preconditions, generated names, dry runs, field validation |
//! | 3.06 | failures report reason, code and causes |
//! | 3.07 | apply: ownership, removal by omission, conflicts, force |
//! | 3.08 | apply and patches: types of lists and maps |
//! | 3.09 | apply creates objects, rejects invalid requests, and takes over from client-side apply |
//! | 3.10 | a watch delivers each change once and in order, and expires with 410 |
//! | 3.11 | bookmarks and streaming lists |
//! | 3.12 | selectors, in lists and watches |
//! | 3.13 | pages show one snapshot |
//! | 3.14 | finalizers |
//! | 3.15 | owners and garbage collection |
//! | 3.16 | namespaces are deleted with their content |
//! | 3.17 | the lifecycle of CRDs |
//! | 3.18 | structural schemas, rules, versions |
//! | 3.20 | discovery, OpenAPI, health |
//! | 3.21 | authentication and authorization |
//! | 3.22 | Events, Leases, defaults of built-in kinds |
//! | 3.23 | admission policies |
//! | 3.24 | tables and partial metadata |
//! | 4 | what API server replacements are known to get wrong |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a failed precondition of a case panics"
)]

mod access;
mod apply;
mod cli;
mod crds;
mod deletion;
mod patch;
mod policies;
mod properties;
mod server;
mod support;
mod watch;
mod writes;

use std::{process::ExitCode, sync::Arc};

use libtest_mimic::Arguments;
use support::{Case, case, server::Run};

/// More threads than cores: cases mostly wait for the server.
const THREADS: usize = 16;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(THREADS);
    case::keep_panics();
    let run = Arc::new(Run::new());
    let trials = all().into_iter().map(|case| case.into_trial(&run)).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if let Some(run) = Arc::into_inner(run) {
        run.finish();
    }
    conclusion.exit_code()
}

fn all() -> Vec<Case> {
    [
        writes::cases(),
        apply::cases(),
        patch::cases(),
        watch::cases(),
        deletion::cases(),
        crds::cases(),
        access::cases(),
        policies::cases(),
        server::cases(),
        properties::cases(),
        cli::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
