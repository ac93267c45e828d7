//! `cargo xtask documentation`.
//!
//! `cargo doc` checks all dependencies first, which takes minutes, although the tests have compiled them. `cargo test --doc` starts rustdoc with
//! what the tests have compiled. Here it starts this program instead, which notes the arguments; then rustdoc builds the documentation with them.

use std::{
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use anyhow::{Context as _, bail};

use crate::command::{self, SHARED, cargo};

/// Names the directory of the notes when this program runs as rustdoc.
const NOTES: &str = "CHANDLER_RUSTDOC_NOTES";
/// Arguments of rustdoc that select its tests, and the number of values after each.
const ABOUT_TESTS: [(&str, usize); 3] = [("--test", 0), ("--test-run-directory", 1), ("--test-args", 1)];

/// Build the documentation of all crates; a warning is an error
#[derive(clap::Args)]
pub(crate) struct Documentation {}

impl Documentation {
    pub(crate) fn run() -> anyhow::Result<()> {
        let notes = tempfile::tempdir()?;
        let mut test = cargo(["test", "--quiet", "--doc"]);
        let noting = test.args(SHARED).env("RUSTDOC", env::current_exe()?).env(NOTES, notes.path());
        command::run(noting)?;
        let mut crates = Vec::new();
        for entry in fs::read_dir(notes.path())? {
            crates.push(read(&fs::read(entry?.path())?)?);
        }
        if crates.is_empty() {
            bail!("{noting:?} started no rustdoc");
        }
        document_all(&crates)?;
        // It has no library, so it has no tests of its documentation.
        command::run(
            cargo(["doc", "--quiet", "--locked", "--no-deps", "--package", "xtask"]).env("RUSTDOCFLAGS", "-D warnings"),
        )
    }
}

/// The directory of the notes, if this program runs as rustdoc.
pub(crate) fn notes() -> Option<PathBuf> {
    env::var_os(NOTES).map(PathBuf::from)
}

/// Notes the arguments, the environment and the working directory of this process.
pub(crate) fn note(directory: &Path) -> anyhow::Result<()> {
    let mut parts = vec![text(env::current_dir()?.as_os_str())?];
    // The environment has what cargo sets for the crate.
    for (name, value) in env::vars_os().filter(|(name, _)| name != NOTES && name != "RUSTDOC") {
        parts.push(format!("{}={}", text(&name)?, text(&value)?));
    }
    parts.push(String::new());
    for argument in env::args_os().skip(1) {
        parts.push(text(&argument)?);
    }
    let (mut file, _) = tempfile::NamedTempFile::new_in(directory)?.keep()?;
    file.write_all(parts.join("\0").as_bytes())?;
    Ok(())
}

fn text(text: &std::ffi::OsStr) -> anyhow::Result<String> {
    text.to_str().map(str::to_owned).with_context(|| format!("{} is not valid UTF-8", text.display()))
}

/// How cargo starts rustdoc for a crate.
#[derive(Debug, PartialEq, Eq)]
struct Noted {
    directory: String,
    environment: Vec<(String, String)>,
    arguments: Vec<String>,
}

fn read(note: &[u8]) -> anyhow::Result<Noted> {
    let mut parts = str::from_utf8(note)?.split('\0').map(str::to_owned);
    let directory = parts.next().unwrap_or_default();
    let variables = parts.by_ref().take_while(|part| !part.is_empty());
    let environment =
        variables.filter_map(|it| it.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())));
    let environment = environment.collect();
    Ok(Noted { directory, environment, arguments: without_tests(parts) })
}

/// The arguments without those about tests.
fn without_tests(arguments: impl IntoIterator<Item = String>) -> Vec<String> {
    let (mut kept, mut arguments) = (Vec::new(), arguments.into_iter());
    while let Some(argument) = arguments.next() {
        match ABOUT_TESTS.iter().find(|(name, _)| *name == argument) {
            Some((_, values)) => arguments.by_ref().take(*values).for_each(drop),
            None => kept.push(argument),
        }
    }
    kept
}

/// Documents all crates, as many at once as there are processors. All are documented, whatever fails.
fn document_all(crates: &[Noted]) -> anyhow::Result<()> {
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let target = command::target_directory().join("doc");
    let document = || {
        while let Some(noted) = crates.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = command::run(&mut rustdoc(noted, &target)) {
                eprintln!("{error:#}");
                failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    let processors = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..processors).for_each(|_| drop(scope.spawn(document))));
    match failed.into_inner() {
        0 => Ok(()),
        failed => bail!("the documentation of {failed} crates has warnings or errors"),
    }
}

fn rustdoc(noted: &Noted, target: &Path) -> Command {
    let mut rustdoc = Command::new(env::var_os("RUSTDOC").unwrap_or_else(|| "rustdoc".into()));
    rustdoc.current_dir(&noted.directory).args(&noted.arguments).args(["--deny", "warnings", "--out-dir"]).arg(target);
    rustdoc.env_clear().envs(noted.environment.iter().map(|(name, value)| (name, value)));
    rustdoc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_about_tests_are_left_out() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let given =
            words("--crate-name a --test src/lib.rs --test-run-directory /a --extern a=b.rlib --warn=missing_docs");
        assert_eq!(without_tests(given), words("--crate-name a src/lib.rs --extern a=b.rlib --warn=missing_docs"));
    }

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let note = "/here\0A=1=2\0B=\0\0--test\0src/lib.rs\0--cfg\0feature=\"a b\"";
        let environment = [("A", "1=2"), ("B", "")].map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let arguments = ["src/lib.rs", "--cfg", "feature=\"a b\""].map(str::to_owned).to_vec();
        assert_eq!(read(note.as_bytes()).unwrap(), Noted { directory: "/here".to_owned(), environment, arguments });
    }

    #[test]
    fn rustdoc_refuses_a_broken_link() {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("lib.rs");
        let document = |text: &str| {
            fs::write(&source, text).unwrap();
            let arguments = ["--crate-name", "a", "--test", "lib.rs", "--test-run-directory", "/"];
            let noted = Noted {
                directory: directory.path().display().to_string(),
                environment: env::vars().collect(),
                arguments: without_tests(arguments.map(str::to_owned)),
            };
            document_all(&[noted])
        };
        assert!(document("//! About [`String`].").is_ok());
        assert!(document("//! About [`Strung`].").is_err());
    }
}
