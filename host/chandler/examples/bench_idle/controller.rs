//! The controller in a separate process.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use crate::Error;

/// The log message for each call of a provisioner that returned a release.
const RENDERED: &str = "rendered";

/// The maximum number of warnings that are printed.
const MAX_WARNINGS: usize = 5;

/// A running controller.
pub(crate) struct Controller {
    child: Child,
    id: u32,
    rendered: Arc<AtomicU64>,
}

/// The `chandler` binary that cargo built with this program.
pub(crate) fn beside_this_program() -> Result<PathBuf, Error> {
    let here = std::env::current_exe()?;
    let directory = here.parent().and_then(Path::parent).ok_or("this program lies in no directory")?;
    Ok(directory.join("chandler"))
}

impl Controller {
    pub(crate) fn start(program: &Path, arguments: &[(&str, String)]) -> Result<Self, Error> {
        let mut command = Command::new(program);
        command.arg("controller").args(arguments.iter().map(|(name, value)| format!("{name}={value}")));
        let command = command.stdin(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
        let id = child.id().ok_or("the controller has ended")?;
        let log = child.stderr.take().ok_or("the controller has no output")?;
        let rendered = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&rendered);
        tokio::spawn(async move {
            let mut warnings = 0;
            let mut lines = BufReader::new(log).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                if line.contains(RENDERED) {
                    counter.fetch_add(1, Ordering::Relaxed);
                } else if (line.contains("WARN") || line.contains("ERROR")) && warnings < MAX_WARNINGS {
                    warnings += 1;
                    println!("  {}", line.chars().take(200).collect::<String>());
                }
            }
        });
        Ok(Self { child, id, rendered })
    }

    /// The number of provisioner calls that returned a release.
    pub(crate) fn rendered(&self) -> u64 {
        self.rendered.load(Ordering::Relaxed)
    }

    /// A file in `/proc` about the process.
    pub(crate) fn file(&self, name: &str) -> Result<String, Error> {
        Ok(fs::read_to_string(format!("/proc/{}/{name}", self.id))?)
    }

    /// Resets the peak of the resident memory (`proc_pid_clear_refs(5)`).
    pub(crate) fn forget_peak(&self) -> Result<(), Error> {
        Ok(fs::write(format!("/proc/{}/clear_refs", self.id), "5")?)
    }

    /// Fails if the process has ended.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        match self.child.try_wait()? {
            Some(status) => Err(format!("the controller has ended: {status}").into()),
            None => Ok(()),
        }
    }

    pub(crate) async fn stop(mut self) -> Result<(), Error> {
        Command::new("kill").args(["-TERM", &self.id.to_string()]).status().await?;
        self.child.wait().await?;
        Ok(())
    }
}
