//! Requirements of tests that not every machine meets, and how tests skip without them.
//!
//! A test that cannot run prints why and passes, so that a fresh checkout passes. If `CHANDLER_TESTS_SKIP` is `never`, as in
//! `.ci/run`, it fails instead, so that no test is skipped unnoticed.

#![expect(clippy::print_stdout, reason = "what is skipped is printed")]

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// The variable that forbids skipping tests.
const SKIP: &str = "CHANDLER_TESTS_SKIP";

/// The variable with the name of a program that this machine cannot have.
const WITHOUT: &str = "CHANDLER_TESTS_WITHOUT";

/// The file or directory with this name in the shared fixtures, beside the checkout. If the machine has no shared fixtures, prints
/// that and returns `None`, also where tests may not be skipped if `CHANDLER_TESTS_WITHOUT` lists `fixtures`.
///
/// # Panics
///
/// If the machine has no shared fixtures and tests may not be skipped, or if it has shared fixtures, but not this one: a test with a
/// misspelled path would never run.
pub fn fixture(name: &str) -> Option<PathBuf> {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("."));
    let shared = env::var_os("FIXTURES").map_or(checkout.join("../shared/fixtures"), PathBuf::from);
    if !shared.is_dir() {
        if !is_waived("fixtures") {
            skip(&format!("there is no {}", shared.display()));
        }
        return None;
    }
    let path = shared.join(name);
    assert!(path.exists(), "the shared fixtures lack {}", path.display());
    Some(path)
}

/// The program `git http-backend`. Prints the reason for skipping if there is none.
///
/// # Panics
///
/// If there is none and tests may not be skipped.
pub fn git_http_backend() -> Option<PathBuf> {
    let run = Command::new("git").arg("--exec-path").output().ok().filter(|output| output.status.success());
    let directory = run.and_then(|output| String::from_utf8(output.stdout).ok());
    let backend = directory.map(|directory| Path::new(directory.trim()).join("git-http-backend"));
    let backend = backend.filter(|path| path.is_file());
    if backend.is_none() {
        skip("there is no git with git http-backend (on Debian: apt-get install git)");
    }
    backend
}

/// The program sshd, by its full path: it starts itself again, and refuses another. Prints the reason for skipping if there is none, or
/// no ssh-keygen.
///
/// # Panics
///
/// If there is none and tests may not be skipped.
pub fn sshd() -> Option<PathBuf> {
    let directories = ["/usr/sbin", "/usr/local/sbin", "/sbin", "/usr/bin"];
    let found = directories.iter().map(|directory| Path::new(directory).join("sshd")).find(|path| path.is_file());
    // It fails without a file, and runs nevertheless.
    let keygen = Command::new("ssh-keygen").arg("-l").args(["-f", "/nonexistent"]).output();
    let found = found.filter(|_| keygen.is_ok());
    if found.is_none() {
        skip("there is no sshd (on Debian: apt-get install openssh-server)");
        return None;
    }
    // The start script of the package makes it, and no container runs that.
    let id = Command::new("id").arg("-u").output().ok();
    if id.is_some_and(|id| id.stdout == b"0\n") && !Path::new("/run/sshd").is_dir() {
        skip("sshd of root needs a directory (mkdir /run/sshd)");
        return None;
    }
    found
}

/// Whether `CHANDLER_TESTS_WITHOUT` lists a program that this machine need not have. Prints that.
fn is_waived(program: &str) -> bool {
    let without = env::var(WITHOUT).unwrap_or_default();
    let is_waived = without.split(',').any(|waived| waived == program);
    if is_waived {
        println!("skipped: {WITHOUT} lists {program}");
    }
    is_waived
}

/// The program promtool of Prometheus. Prints the reason for skipping if there is none, also where tests may not be skipped if `CHANDLER_TESTS_WITHOUT`
/// lists it.
///
/// # Panics
///
/// If there is none and tests may not be skipped.
pub fn promtool() -> Option<PathBuf> {
    on_path("promtool", "--version", "there is no promtool on the PATH (on Debian: apt-get install prometheus)")
}

/// A program that a machine need not have, if it runs with this argument. Prints the reason for skipping if it does not.
fn on_path(program: &str, argument: &str, reason: &str) -> Option<PathBuf> {
    if is_waived(program) {
        return None;
    }
    let works = Command::new(program).arg(argument).output().is_ok_and(|output| output.status.success());
    if !works {
        skip(reason);
    }
    works.then(|| PathBuf::from(program))
}

/// The program docker-registry. Prints the reason for skipping if there is none, also where tests may not be skipped if
/// `CHANDLER_TESTS_WITHOUT` lists it.
///
/// # Panics
///
/// If there is none and tests may not be skipped.
pub fn docker_registry() -> Option<PathBuf> {
    let reason = "docker-registry is not on the PATH (on Debian: apt-get download docker-registry)";
    on_path("docker-registry", "--version", reason)
}

/// Whether this machine has the programs tar and xz. Prints the reason for skipping if it has not.
///
/// # Panics
///
/// If it has not and tests may not be skipped.
pub fn xz() -> bool {
    let works =
        |program: &str| Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    let works = works("tar") && works("xz");
    if !works {
        skip("the programs tar and xz are missing (on Debian: apt-get install tar xz-utils)");
    }
    works
}

/// The program helm. Prints the reason for skipping if there is none, also where tests may not be skipped if `CHANDLER_TESTS_WITHOUT` lists it:
/// the chart is also rendered without it.
///
/// # Panics
///
/// If there is none and tests may not be skipped.
pub fn helm() -> Option<PathBuf> {
    on_path("helm", "version", "helm is not on the PATH (https://helm.sh/docs/intro/install)")
}

/// The program runc, if this process may run containers with it. Prints the reason for skipping if not, also where tests may not be skipped
/// if `CHANDLER_TESTS_WITHOUT` lists it: a machine need not have it.
///
/// # Panics
///
/// If there is none and tests may not be skipped.
pub fn runc() -> Option<PathBuf> {
    let runc = on_path("runc", "--version", "there is no runc on the PATH (on Debian: apt-get install runc)")?;
    let id = Command::new("id").arg("-u").output().ok();
    if id.is_none_or(|id| id.stdout != b"0\n") {
        skip("only root may run the container of this test");
        return None;
    }
    Some(runc)
}

/// Prints why a test is skipped.
fn skip(reason: &str) {
    assert!(env::var_os(SKIP).is_none_or(|skip| skip != "never"), "{reason}, and {SKIP}=never");
    println!("skipped: {reason}");
}

/// Whether kubectl is on the `PATH`. Prints the reason for skipping if it is not.
///
/// # Panics
///
/// If there is no kubectl and tests may not be skipped.
pub fn kubectl() -> bool {
    static WORKS: OnceLock<bool> = OnceLock::new();
    let works = *WORKS.get_or_init(|| {
        let run = Command::new("kubectl").args(["version", "--client"]).output();
        run.is_ok_and(|output| output.status.success())
    });
    if !works {
        skip("there is no kubectl on the PATH (on Debian: apt-get install kubernetes-client)");
    }
    works
}

#[cfg(test)]
mod tests {
    use std::{env, process::Command};

    use super::{SKIP, WITHOUT, fixture};

    /// Is run by the other test, in processes with other variables.
    #[test]
    #[ignore = "another test runs it"]
    fn a_fixture_is_needed() {
        assert!(fixture("any").is_none());
    }

    #[test]
    fn without_fixtures_a_test_fails_where_tests_may_not_be_skipped() {
        let passes = |skip: &str, without: &str| {
            let mut run = Command::new(env::current_exe().unwrap());
            run.args(["--ignored", "--exact", "needs::tests::a_fixture_is_needed"]);
            run.env("FIXTURES", "/nonexistent").env(SKIP, skip).env(WITHOUT, without);
            let output = run.output().unwrap();
            assert!(String::from_utf8_lossy(&output.stdout).contains("running 1 test"));
            output.status.success()
        };
        assert!(!passes("never", ""));
        assert!(!passes("never", "helm"));
        assert!(passes("never", "helm,fixtures"));
        assert!(passes("", ""));
    }
}
