//! Runs other programs.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The cargo target directory.
pub(crate) fn target_directory() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |directory| root().join(directory))
}

/// `cargo` with these arguments, in the root of the workspace, and with the environment of a shell.
pub(crate) fn cargo<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments);
    for (name, _) in env::vars_os().filter(|(name, _)| describes_package(name)) {
        command.env_remove(name);
    }
    command
}

/// Whether cargo sets this variable for the program of a package that it runs, here xtask. The build script of ring runs again when one of them
/// changes, and then most crates are compiled again: `cargo xtask test` and `cargo test` would compile the same crates in turn.
fn describes_package(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    ["CARGO_MANIFEST_", "CARGO_PKG_"].iter().any(|prefix| name.starts_with(prefix))
}

/// What the demo and the tests are built with, as arguments of cargo. All use these, so that shared crates are compiled once: the features
/// are the ones that the whole workspace selects, and jemalloc is left out, which takes a minute to compile.
pub(crate) const SHARED: [&str; 5] =
    ["--locked", "--workspace", "--no-default-features", "--features", "chandler/dev,chandler-properties/sandbox"];

/// Like [`SHARED`], but without the feature `dev`: for the command that a cluster runs. chandler-packages would select the feature.
pub(crate) const CLUSTER: [&str; 7] = [
    "--locked",
    "--workspace",
    "--exclude",
    "chandler-packages",
    "--no-default-features",
    "--features",
    "chandler-properties/sandbox",
];

/// A program of the workspace, after building it like the tests.
pub(crate) fn program(name: &str) -> anyhow::Result<Command> {
    // A test is built with it, since cargo selects the features of dev-dependencies only for tests.
    run(cargo(["build", "--quiet"]).args(SHARED).args(["--bin", name, "--test", "documentation"]))?;
    let file = target_directory().join("debug").join(name).with_extension(env::consts::EXE_EXTENSION);
    let mut command = Command::new(file);
    command.current_dir(root());
    Ok(command)
}

/// Runs a command; the error has its command line.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let text = format!("{command:?}");
    let status = command.status().with_context(|| format!("failed to start {text}"))?;
    if !status.success() {
        bail!("{text} ended with {status}");
    }
    Ok(())
}

/// The trimmed standard output of a command.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let text = format!("{command:?}");
    let output = command.output().with_context(|| format!("failed to start {text}"))?;
    if !output.status.success() {
        bail!("{text} ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// The trimmed output of the compiler that cargo uses.
pub(crate) fn rustc_output(arguments: &[&str]) -> anyhow::Result<String> {
    output(Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).current_dir(root()).args(arguments))
}

/// A compiler.
pub(crate) struct Rustc {
    /// What it prints for `--version`.
    pub(crate) version: String,
    /// Its commit, a hash.
    pub(crate) commit: String,
    /// The target that it compiles for if none is named.
    pub(crate) host: String,
}

/// The compiler that cargo uses.
pub(crate) fn rustc_version() -> anyhow::Result<Rustc> {
    let text = rustc_output(&["-vV"])?;
    let field = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        value.map(str::to_owned).with_context(|| format!("`rustc -vV` has no line {name}"))
    };
    Ok(Rustc {
        version: text.lines().next().unwrap_or_default().to_owned(),
        commit: field("commit-hash")?,
        host: field("host")?,
    })
}

/// A program of this workspace for a test. Cargo builds it before it runs the tests of the workspace; built by a test, it would be compiled
/// again, since cargo sets other variables there.
#[cfg(test)]
pub(crate) fn tested(name: &str) -> PathBuf {
    let built = target_directory().join("debug").join(name);
    if built.is_file() { built } else { PathBuf::from(program(name).unwrap().get_program()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_runs_with_the_environment_of_a_shell() {
        assert!(env::var_os("CARGO_PKG_NAME").is_some(), "cargo sets it for this test");
        let command = cargo(["build"]);
        for name in ["CARGO_PKG_NAME", "CARGO_PKG_VERSION_PRE", "CARGO_MANIFEST_DIR"] {
            assert!(command.get_envs().any(|(removed, value)| removed == name && value.is_none()), "{name}");
        }
        assert!(!describes_package("CARGO_TARGET_DIR".as_ref()));
    }
}
