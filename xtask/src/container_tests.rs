//! `cargo xtask test --container`: the end-to-end tests, with their controllers in containers.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::Path,
};

use anyhow::Context as _;

use crate::{
    command::{self, SHARED, cargo},
    dist::unpacked,
    test,
};

/// The variable that names the directory of the unpacked image, as tests/src/container.rs reads it.
const DIRECTORY: &str = "CHANDLER_E2E_CONTAINER";
/// The variable that names the report, as tests/src/in_process.rs reads it.
const REPORT: &str = "CHANDLER_E2E_REPORT";

/// Unpacks the image, runs the tests, and prints how their controllers ran.
pub(crate) fn run(layout: Option<&Path>, names: &[String]) -> anyhow::Result<()> {
    let directory = command::target_directory().join("container-tests");
    if directory.exists() {
        fs::remove_dir_all(&directory).with_context(|| format!("failed to remove {}", directory.display()))?;
    }
    fs::create_dir_all(&directory).with_context(|| format!("failed to create {}", directory.display()))?;
    if let Some(layout) = layout {
        unpacked::layout(&command::root().join(layout), &directory)?;
    } else {
        let chandler = command::program("chandler")?;
        unpacked::of_tests(Path::new(chandler.get_program()), &directory)?;
    }
    let report = directory.join("report");
    let mut tests = if is_shared() {
        // On one server, tests take turns, which they can only do within a process.
        let mut tests = cargo(["test", "--no-fail-fast"]);
        tests.args(SHARED).args(["--test", "e2e", "--"]).args(names).env("RUST_TEST_THREADS", test::threads());
        tests
    } else {
        let mut tests = cargo(["nextest", "run", "--cargo-quiet"]);
        tests.args(SHARED).args(["--test-threads", &test::threads(), "-E", &selection(names)]);
        tests
    };
    let ended = command::run(tests.env(DIRECTORY, &directory).env(REPORT, &report));
    let report = fs::read_to_string(&report).unwrap_or_default();
    eprint!("{}", Report::parse(&report).text());
    ended
}

/// Whether the environment names one API server for all tests.
fn is_shared() -> bool {
    ["KUBECONFIG", "KUBEBUILDER_ASSETS"].iter().any(|name| env::var_os(name).is_some())
}

/// The tests whose names contain one of these, or all.
fn selection(names: &[String]) -> String {
    let all = "package(chandler-tests) & binary(=e2e)";
    let parts: Vec<String> = names.iter().map(|name| format!("test(~{name})")).collect();
    if parts.is_empty() { all.to_owned() } else { format!("{all} & ({})", parts.join(" | ")) }
}

/// How the controllers of tests ran.
#[derive(Debug, Default, PartialEq, Eq)]
struct Report<'a> {
    /// Tests that started a container.
    contained: BTreeSet<&'a str>,
    /// Tests with a controller in their process, by the reason.
    in_process: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

impl<'a> Report<'a> {
    /// Parses lines with a test and how one of its controllers ran.
    fn parse(text: &'a str) -> Self {
        let mut report = Self::default();
        for (test, how) in text.lines().filter_map(|line| line.split_once('\t')) {
            match how.strip_prefix("in process: ") {
                None => {
                    report.contained.insert(test);
                }
                Some(reason) => {
                    report.in_process.entry(reason).or_default().insert(test);
                }
            }
        }
        report
    }

    fn text(&self) -> String {
        let others: BTreeSet<&str> = self.in_process.values().flatten().copied().collect();
        let both = self.contained.intersection(&others).count();
        let mut lines = vec![format!(
            "{} tests ran their controllers in containers, {} of them also one in their process; {} ran theirs only in their process:",
            self.contained.len(),
            both,
            others.len() - both
        )];
        for (reason, tests) in &self.in_process {
            lines.push(format!("  {reason} ({})", tests.len()));
            lines.extend(tests.iter().map(|test| format!("    {test}")));
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_counts_tests_and_names_those_without_a_container() {
        let text = "a::one\tcontainer\na::one\tcontainer\nb::two\tcontainer\nb::two\tin process: it waits\nc::three\tin process: it waits\n";
        let expected = "\
2 tests ran their controllers in containers, 1 of them also one in their process; 1 ran theirs only in their process:
  it waits (2)
    b::two
    c::three
";
        assert_eq!(Report::parse(text).text(), expected);
    }

    #[test]
    fn names_select_end_to_end_tests() {
        assert_eq!(selection(&[]), "package(chandler-tests) & binary(=e2e)");
        let names = ["drift::".to_owned(), "upgrade".to_owned()];
        let expected = "package(chandler-tests) & binary(=e2e) & (test(~drift::) | test(~upgrade))";
        assert_eq!(selection(&names), expected);
    }
}
