//! What a test needs of the machine that not every machine has.
//!
//! A test that cannot run says why and passes, so that the tests of a fresh checkout are green. Where `CHANDLER_TESTS_SKIP` is
//! `never`, as in `.ci/run`, it fails instead: a test that nobody runs protects nobody.

#![expect(clippy::print_stdout, reason = "what is skipped is printed")]

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// The variable that says that no test may be skipped.
const SKIP: &str = "CHANDLER_TESTS_SKIP";

/// The file or directory of this name among the shared fixtures, which lie beside the checkout; none, with a printed reason, where
/// the machine has no shared fixtures.
///
/// # Panics
///
/// Where the machine has shared fixtures, but not this one: a test with a misspelled path would never run.
pub fn fixture(name: &str) -> Option<PathBuf> {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("."));
    let shared = env::var_os("FIXTURES").map_or(checkout.join("../shared/fixtures"), PathBuf::from);
    if !shared.is_dir() {
        println!("skipped: there is no {}", shared.display());
        return None;
    }
    let path = shared.join(name);
    assert!(path.exists(), "there are shared fixtures, but no {}", path.display());
    Some(path)
}

/// Whether there is a kubectl on the `PATH`; where there is none, the reason is printed.
///
/// # Panics
///
/// Where there is none and nothing may be skipped.
pub fn kubectl() -> bool {
    static WORKS: OnceLock<bool> = OnceLock::new();
    let works = *WORKS.get_or_init(|| {
        let run = Command::new("kubectl").args(["version", "--client"]).output();
        run.is_ok_and(|output| output.status.success())
    });
    if !works {
        let reason = "there is no kubectl on the PATH (on Debian: apt-get install kubernetes-client)";
        assert!(env::var_os(SKIP).is_none_or(|skip| skip != "never"), "{reason}, and {SKIP}=never");
        println!("skipped: {reason}");
    }
    works
}
