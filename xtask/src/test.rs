//! `cargo xtask test`.

use std::{env, path::PathBuf, process::Command, thread};

use anyhow::bail;

use crate::{
    command::{self, CLUSTER, SHARED, cargo},
    container_tests, guests,
};

/// The variable of Rust's test harness.
const THREADS: &str = "RUST_TEST_THREADS";

/// An end-to-end test that uses all first-party components. It runs before the others, so that they find compiled code in the target
/// directory: the processes that start first would each compile the same components, several times in tests with several controllers, and take
/// so much processor time that others wait for longer than they have patience.
const FIRST_PARTY: &str = "resolutions::a_wish_becomes_a_set_that_pivots_rolls_back_and_goes_without_a_trace";

/// Build the guests and run all tests.
#[derive(clap::Args)]
pub(crate) struct Test {
    /// Only the end-to-end tests, and start the controllers with runc from an image, as the Deployment of deploy/controller.yaml does (only
    /// root)
    #[arg(long)]
    container: bool,

    /// The image, as a layout of `cargo xtask dist`. Without it, the image has the `chandler` of the tests
    #[arg(long, value_name = "DIR", requires = "container")]
    image: Option<PathBuf>,

    /// Instead of all tests: arguments of `cargo test`, for example --package chandler-tests. With --container: parts of names of tests
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Test {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        guests::build_all()?;
        if self.container {
            return container_tests::run(self.image.as_deref(), &self.arguments);
        }
        if !self.arguments.is_empty() {
            return command::run(cargo(["test", "--locked"]).args(self.arguments).env(THREADS, threads()));
        }
        // All of them run, so that one run shows all failures.
        let failed: Vec<String> = suites()
            .iter_mut()
            .filter_map(|suite| command::run(suite).err())
            .map(|error| format!("{error:#}"))
            .collect();
        if failed.is_empty() { Ok(()) } else { bail!("tests failed:\n{}", failed.join("\n")) }
    }
}

/// Compiles all that the tests run, the examples, which no test runs, and the command as a cluster runs it.
pub(crate) fn compile() -> anyhow::Result<()> {
    guests::build_all()?;
    // Without --all-targets, which compiles examples as tests: the tests would compile them again as programs.
    command::run(cargo(["test", "--quiet", "--no-run"]).args(SHARED))?;
    // A test is built with it, since cargo selects the features of dev-dependencies only for tests: with others, it would compile
    // dependencies once more.
    let mut cluster = cargo(["test", "--quiet", "--no-run"]);
    command::run(cluster.args(CLUSTER).args(["--bin", "chandler", "--test", "documentation"]))
}

/// The commands that run all tests.
fn suites() -> Vec<Command> {
    let mut suites = Vec::new();
    // On a server of these, tests take turns, which they can only do within a process.
    let is_shared = ["KUBECONFIG", "KUBEBUILDER_ASSETS"].iter().any(|name| env::var_os(name).is_some());
    if !is_shared && command::output(&mut cargo(["nextest", "--version"])).is_ok() {
        // The conformance suite has one server for all of its cases, so they need one process.
        let mut tests = cargo(["nextest", "run", "--cargo-quiet"]);
        tests.args(SHARED).args(["--test-threads", &threads(), "-E", "not binary(=apiserver)"]);
        let mut conformance = cargo(["test", "--quiet"]);
        conformance.args(SHARED).args(["--test", "apiserver"]);
        let mut documentation = cargo(["test", "--quiet"]);
        documentation.args(SHARED).args(["--no-fail-fast", "--doc"]);
        let mut components = cargo(["nextest", "run", "--cargo-quiet"]);
        components.args(SHARED).args(["-E", &format!("package(chandler-tests) & test(={FIRST_PARTY})")]);
        // The longest list of results comes last, where it is read.
        suites.extend([documentation, conformance, components, tests]);
    } else {
        let mut tests = cargo(["test", "--no-fail-fast"]);
        tests.args(SHARED).env(THREADS, threads());
        suites.push(tests);
    }
    suites
}

/// How many tests run at once: more than there are processors, since end-to-end tests often wait, for watches, backoffs and debounces.
pub(crate) fn threads() -> String {
    env::var(THREADS).unwrap_or_else(|_| {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        (3 * processors).to_string()
    })
}
