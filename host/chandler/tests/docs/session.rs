//! Runs the commands of a page in one shell, as a reader does.

use std::{
    env,
    fmt::Write as _,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::fs::symlink,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    compare,
    console::{self, Step},
    page::{self, Action, Block, Page},
};

/// The longest wait for the next line of output.
const PATIENCE: Duration = Duration::from_mins(3);
/// What the shell prints after each command, before its exit code.
const MARK: &str = "=== the exit code is ";

/// Runs the blocks of a page in their order, and returns what is different from the page.
pub(crate) fn run(page: &Page) -> Vec<String> {
    let mut session = Session::start();
    let mut problems = Vec::new();
    for block in &page.blocks {
        match &block.action {
            Ok(Action::Run) => problems.extend(session.run(page, block)),
            Ok(Action::Background) => problems.extend(session.start_in_background(page, block)),
            _ => {}
        }
    }
    problems
}

/// A shell in a copy of the checkout, and what it started.
struct Session {
    shell: Process,
    background: Vec<Process>,
    directory: TempDir,
}

impl Session {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let checkout = checkout(directory.path());
        let mut shell = Process::start(&mut command(&checkout, directory.path(), &["--norc", "--noprofile"]));
        shell.send("exec 2>&1\n");
        Self { shell, background: Vec::new(), directory }
    }

    fn run(&mut self, page: &Page, block: &Block) -> Vec<String> {
        let steps = console::steps(&block.text);
        steps.iter().filter_map(|step| self.step(step).map(|found| problem(page, block, step, &found))).collect()
    }

    /// Runs one command. Returns its output unless it is the one shown.
    fn step(&mut self, step: &Step) -> Option<String> {
        // The command does not read what the shell reads.
        self.shell.send(&format!("{{ {}\n}} </dev/null; printf '\\n{MARK}%s\\n' $?\n", step.command));
        let mut lines: Vec<String> = Vec::new();
        let exit = loop {
            match self.shell.line() {
                Some(line) if line.starts_with(MARK) => break line[MARK.len()..].parse().ok(),
                Some(line) => lines.push(line),
                None => {
                    lines.push("(no further output)".to_owned());
                    break None;
                }
            }
        };
        let is_shown = exit == Some(step.exit) && compare::matches(&step.output, &lines);
        (!is_shown).then(|| format!("{}\n[exit code {exit:?}]", lines.join("\n").trim_end()))
    }

    /// Starts a command and waits until it has printed what is shown.
    fn start_in_background(&mut self, page: &Page, block: &Block) -> Option<String> {
        let steps = console::steps(&block.text);
        let step = steps.first().expect("a block has a command");
        let checkout = self.directory.path().join("chandler");
        let directory = self.directory.path();
        let script = format!("cd docs/tutorial; exec 2>&1; exec {}", step.command);
        let process = Process::start(&mut command(&checkout, directory, &["-c", &script]));
        let mut lines = Vec::new();
        while !compare::matches(&step.output, &lines) {
            let Some(line) = process.line() else {
                return Some(problem(page, block, step, &lines.join("\n")));
            };
            lines.push(line);
        }
        self.background.push(process);
        None
    }
}

fn problem(page: &Page, block: &Block, step: &Step, found: &str) -> String {
    let mut text = format!("{}:{}: $ {}\n--- shown\n", page.name, block.line + step.line + 1, step.command);
    for line in &step.output {
        let _ = writeln!(text, "{line}");
    }
    let _ = write!(text, "--- found\n{found}\n");
    text
}

/// A directory like the checkout: with a copy of the tutorial, which commands may change, and links to the rest.
fn checkout(directory: &Path) -> std::path::PathBuf {
    let (root, copy) = (page::root(), directory.join("chandler"));
    fs::create_dir_all(copy.join("docs")).unwrap();
    for name in ["deploy", "tests", "README.md"] {
        symlink(root.join(name), copy.join(name)).unwrap();
    }
    copy_all(&root.join("docs/tutorial"), &copy.join("docs/tutorial"));
    // What `cargo xtask` built of the reader's own provisioner.
    let component = root.join("target/plugins/test/lamps.wasm");
    if component.exists() {
        fs::copy(component, copy.join("docs/tutorial/lamps.component.wasm")).unwrap();
    }
    copy
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, target) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if path.is_dir() {
            copy_all(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// A shell with the `chandler` under test, and nothing of the user's configuration.
fn command(checkout: &Path, home: &Path, arguments: &[&str]) -> Command {
    let binary = Path::new(env!("CARGO_BIN_EXE_chandler"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), env::var("PATH").unwrap());
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("chandler-cache");
    // The compiled code is shared with the other tests (`empty_cache` in tests/src/world.rs), of which one may create the link at the same time.
    let shared = env::current_exe().unwrap().parent().unwrap().join("code-of-tests");
    fs::create_dir_all(&shared).unwrap();
    fs::create_dir_all(&cache).unwrap();
    let _ = symlink(shared, cache.join("code"));
    let mut command = Command::new("bash");
    command.args(arguments).current_dir(checkout).env("PATH", path).env("HOME", home);
    command
        .env("CHANDLER_CACHE_DIRECTORY", cache)
        .env_remove("KUBECONFIG")
        .env_remove("RUST_LOG")
        .env("LC_ALL", "C.UTF-8");
    command
}

/// A process with pipes. Dropping it ends it.
struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    fn start(command: &mut Command) -> Self {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = piped.spawn().expect("there is a bash");
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, lines }
    }

    fn send(&mut self, text: &str) {
        self.child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// The next line; `None` at the end, or if there is none for a long time.
    fn line(&self) -> Option<String> {
        self.lines.recv_timeout(PATIENCE).ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let id = self.child.id().to_string();
        // It may have ended.
        let _ = Command::new("kill").args(["-TERM", &id]).stderr(Stdio::null()).status();
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
