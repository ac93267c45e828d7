//! Mistakes of newcomers. Each message says what is wrong, where, and what to do, in plain words.
//!
//! A table for each area; each row runs the binary, against real servers on a loopback address. [`Messages`] checks what holds for
//! every message, and the snapshots show the messages to the reader.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Stdio,
};

use crate::support;

mod bundles;
mod clusters;
mod deployments;
mod images;
mod servers;
mod usage;

/// What no message contains: names and debug output of Rust, and codes of the operating system.
const RUST: &[&str] = &[
    "Status {",
    "Error {",
    "Error(",
    "Some(",
    "Err(",
    "Ok(",
    "Custom {",
    "Kind(",
    "ApiError",
    "ServiceError",
    "HyperError",
    "UnknownIssuer",
    "BadSignature",
    "NotValidForName",
    "CaUsedAsEndEntity",
    "CertificateExpired",
    "(os error",
    "panicked",
    "kube::",
    "std::",
];

/// How a line starts that says what to do.
const HELP: &[&str] = &["hint: ", "help: ", "tip: ", "For more information, try", "- "];

/// One mistake.
struct Mistake {
    /// What the user did.
    name: &'static str,
    /// The arguments of the command.
    arguments: Vec<String>,
    /// Standard input.
    input: &'static str,
    /// Words that say what is wrong.
    what: &'static str,
    /// Words that say where.
    place: String,
    /// Words that say what to do.
    help: &'static str,
}

/// A row of a table: what the user did, the arguments, and words of the message: what, where, and what to do.
fn mistake<A: AsRef<str>>(
    name: &'static str,
    arguments: &[A],
    what: &'static str,
    place: impl Into<String>,
    help: &'static str,
) -> Mistake {
    let arguments = arguments.iter().map(|argument| argument.as_ref().to_owned()).collect();
    Mistake { name, arguments, input: "", what, place: place.into(), help }
}

impl Mistake {
    fn with_input(self, input: &'static str) -> Self {
        Self { input, ..self }
    }
}

/// A home directory with files of mistakes, and the messages so far.
struct Messages {
    home: tempfile::TempDir,
    /// Texts that differ from run to run, and their placeholders in the snapshot.
    names: BTreeMap<String, &'static str>,
    shown: String,
    wrong: Vec<String>,
}

impl Messages {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let names = BTreeMap::from([
            (home.path().to_str().unwrap().to_owned(), "HOME"),
            (support::cache().to_str().unwrap().to_owned(), "CACHE"),
        ]);
        Self { home, names, shown: String::new(), wrong: Vec::new() }
    }

    /// Replaces a text in the snapshot.
    fn name(&mut self, text: impl Into<String>, name: &'static str) {
        self.names.insert(text.into(), name);
    }

    /// A path in the home directory.
    fn path(&self, name: &str) -> String {
        self.home.path().join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file, and returns its path.
    fn file(&self, name: &str, text: &str) -> String {
        let path = PathBuf::from(self.path(name));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Writes files into a directory, and returns its path.
    fn directory(&self, name: &str, files: &[(&str, &str)]) -> String {
        fs::create_dir_all(self.path(name)).unwrap();
        for (file, text) in files {
            self.file(&format!("{name}/{file}"), text);
        }
        self.path(name)
    }

    /// Runs the command, and returns its exit code and all of its output.
    fn run(&self, arguments: &[String], input: &str) -> (Option<i32>, String) {
        let mut child = support::command(&support::cache())
            .args(arguments)
            .env("HOME", self.home.path())
            .env("NO_COLOR", "1")
            .env_remove("KUBECONFIG")
            .env_remove("REGISTRY_AUTH_FILE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that does not read its input closes the pipe.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        (output.status.code(), text)
    }

    /// Makes these mistakes, and checks the messages.
    fn check(&mut self, mistakes: Vec<Mistake>) {
        for mistake in mistakes {
            let (code, text) = self.run(&mistake.arguments, mistake.input);
            if !matches!(code, Some(1..=3 | 7 | 8)) {
                self.wrong.push(format!("{}: exits with {code:?}", mistake.name));
            }
            self.examine(&mistake, &text);
        }
    }

    /// Checks one message.
    fn examine(&mut self, mistake: &Mistake, text: &str) {
        let Mistake { name, what, place, help, .. } = mistake;
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for (missing, wanted) in [("what", *what), ("where", place.as_str()), ("what to do", *help)] {
            if !flat.contains(wanted) {
                self.wrong.push(format!("{name}: does not say {missing} ({wanted:?})"));
            }
        }
        if !text.lines().any(|line| HELP.iter().any(|start| line.trim_start().starts_with(start))) {
            self.wrong.push(format!("{name}: has no line with help"));
        }
        self.wrong.extend(RUST.iter().filter(|rust| text.contains(*rust)).map(|rust| format!("{name}: has {rust:?}")));
        let (longest_first, mut shown) = (self.names.iter().rev(), text.trim().to_owned());
        for (text, name) in longest_first {
            shown = shown.replace(text, name);
        }
        // The rest of such a line is from the C library, and differs with the DNS of the machine.
        let lines = shown.lines().map(|line| line.split_once(" failed to lookup").map_or(line, |(line, _)| line));
        let shown = lines.collect::<Vec<_>>().join("\n");
        self.shown.extend(["### ", name, "\n", &without_digests(&shown), "\n\n"]);
    }

    /// All messages. Panics if one is not as it should be.
    fn finish(self) -> String {
        assert!(self.wrong.is_empty(), "{}\n\n{}", self.wrong.join("\n"), self.shown);
        self.shown
    }
}

/// Digests without their digits.
fn without_digests(text: &str) -> String {
    let mut parts = text.split("sha256:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |shown, part| {
        let digits = part.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(part.len());
        format!("{shown}sha256:…{}", &part[digits..])
    })
}

/// A copy of a directory.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
