//! What every Kubernetes API server does: the embedded control plane, and unchanged any other.
//!
//! The cases are written from Kubernetes' documented behaviour. One server serves the whole run (see [`chandler_tests::cluster`]
//! for where it comes from); each case has a namespace and API groups of its own, so that cases run side by side and on a
//! cluster that others use too. A case that needs what the server has not (a controller manager, kubectl on the PATH) says so
//! and is ignored. Where the embedded control plane is known to do otherwise, the case is marked `differs`: there it has to
//! fail, so that the mark goes when the difference does.
//!
//! Names are `file::section::case`; `cargo test -p chandler-tests --test apiserver -- 3.07` runs one section, `watch::` one file.
//!
//! | section | what must hold |
//! |---|---|
//! | 2 | what kubectl asks for |
//! | 3.01 | resource versions grow; an update from an old one is a conflict |
//! | 3.02 | a write that changes nothing is no write |
//! | 3.03 | `generation` counts changes of the specification |
//! | 3.04 | status and the rest are written apart |
//! | 3.05 | preconditions, generated names, dry runs, field validation |
//! | 3.06 | failures say reason, code and causes |
//! | 3.07 | apply: ownership, removal by omission, conflicts, force |
//! | 3.08 | apply and patches: types of lists and maps |
//! | 3.09 | apply creates, refuses what makes no sense, takes over from client-side apply |
//! | 3.10 | a watch delivers each change once and in order, and expires with 410 |
//! | 3.11 | bookmarks and streaming lists |
//! | 3.12 | selectors, in lists and watches |
//! | 3.13 | pages show one moment |
//! | 3.14 | finalizers |
//! | 3.15 | owners and garbage collection |
//! | 3.16 | namespaces end with their content |
//! | 3.17 | CRDs come and go |
//! | 3.18 | structural schemas, rules, versions |
//! | 3.20 | discovery, OpenAPI, health |
//! | 3.21 | who may do what |
//! | 3.22 | Events, Leases, defaults of built-in kinds |
//! | 3.24 | tables and metadata alone |
//! | 4 | what stand-ins for API servers are known to get wrong |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a case that cannot go on fails"
)]

mod access;
mod apply;
mod cli;
mod crds;
mod deletion;
mod patch;
mod properties;
mod server;
mod support;
mod watch;
mod writes;

use std::{process::ExitCode, sync::Arc};

use libtest_mimic::Arguments;
use support::{Case, case, server::Run};

/// Cases wait for the server more than they compute.
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
        server::cases(),
        properties::cases(),
        cli::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
