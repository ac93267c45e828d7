//! `chandler plugin dev`.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use super::run;
use crate::{
    CommandError,
    arguments::{format::DataFormat, plugin_call::CallArguments},
    read::{fingerprint::Fingerprint, plugin_call},
    view::{
        terminal::Terminal,
        text::{count, one_line},
    },
};

/// How often files are looked at.
const INTERVAL: Duration = Duration::from_millis(300);

/// Build a provisioner and call it, again each time a file is saved
///
/// Runs the build command, calls the component with the bundle, and prints what `chandler plugin run` prints; then waits until a file of
/// the sources, the bundle or the configuration, or the component, changes. A build or a call that fails ends nothing. To see the objects in
/// a cluster, run `chandler dev --provisioner COMPONENT --bundle BUNDLE` beside it: it installs the component each time it is written.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  A report for each call on standard output; the output of the build and what changed on standard
  error. Ctrl-C ends the command.

Exit codes: 0 ended, 1 failed, 2 wrong usage

Examples:
  In Rust, with the Makefile that `chandler plugin new` writes:
    chandler plugin dev sail.wasm cases/labels/bundle --source src --build make
  Without a build: call it when another tool writes the component:
    chandler plugin dev sail.wasm ./bundle")]
pub struct Dev {
    /// The component, the bundle and the request.
    #[command(flatten)]
    pub call: CallArguments,

    /// Directory or file with sources. Repeatable; hidden files and the directories target, node_modules and __pycache__ do not count
    #[arg(long = "source", value_name = "PATH", requires = "build")]
    pub sources: Vec<PathBuf>,

    /// Command that builds the component, which a shell runs in this directory
    #[arg(long, value_name = "COMMAND", requires = "sources")]
    pub build: Option<String>,
}

impl Dev {
    /// Builds and calls until the process ends.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let component = Path::new(&self.call.component);
        if self.build.is_none() && !component.is_file() {
            return Err(CommandError::usage(format!("{} is not a file", one_line(&self.call.component)))
                .hint("--build COMMAND and --source DIR build it"));
        }
        let mut built: Option<Fingerprint> = None;
        // A component of an earlier build is not called as if it were of this one.
        let mut is_built = true;
        loop {
            // Taken before each step: a file that is saved meanwhile counts as changed.
            let sources = self.sources();
            let is_changed = built.as_ref() != Some(&sources);
            built = Some(sources);
            if is_changed {
                is_built = self.built(terminal);
            }
            let called = self.called();
            if is_built && let Err(error) = self.call().await {
                terminal.line(error.explained());
            }
            let files = count(called.files().saturating_add(built.as_ref().map_or(0, Fingerprint::files)), "file");
            terminal.line(format!("waiting for a change of {files}"));
            while Some(&self.sources()) == built.as_ref() && self.called() == called {
                tokio::time::sleep(INTERVAL).await;
            }
        }
    }

    fn sources(&self) -> Fingerprint {
        // The build writes the component, which may be among the sources.
        Fingerprint::of(self.sources.iter().map(PathBuf::as_path)).without(Path::new(&self.call.component))
    }

    /// What a call reads: the component, the bundle and the files with the configuration.
    fn called(&self) -> Fingerprint {
        let files = &self.call.request.configuration.files;
        let named = [self.call.component.as_str(), self.call.bundle.as_str()].map(Path::new);
        Fingerprint::of(named.into_iter().chain(files.iter().map(PathBuf::as_path)))
    }

    /// Runs the build, and returns whether it succeeded.
    fn built(&self, terminal: &Terminal) -> bool {
        let Some(build) = &self.build else { return true };
        terminal.line(format!("building: {}", one_line(build)));
        let mut command = Command::new("sh");
        // Standard output is for reports.
        command.args(["-c", build]).stdin(Stdio::null()).stdout(std::io::stderr());
        match command.status() {
            Ok(status) if status.success() => true,
            Ok(status) => {
                terminal.line(format!("the build failed: {status}"));
                false
            }
            Err(error) => {
                terminal.line(format!("the build could not be started: {error}"));
                false
            }
        }
    }

    async fn call(&self) -> Result<(), CommandError> {
        let opened = plugin_call::open(&self.call.options()).await?;
        // The report has the error of the call.
        run::report(&opened, &self.call.bundle, DataFormat::Text).await.map(drop)
    }
}
