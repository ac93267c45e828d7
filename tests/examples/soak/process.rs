//! The controller process and its resource usage.

use std::{
    env, fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use chandler_tests::{World, wait};
use parking_lot::Mutex;

/// The controller in its own process, with its peak resource usage.
pub(crate) struct Process {
    child: Child,
    peak: Arc<Mutex<Usage>>,
    _directory: tempfile::TempDir,
}

/// The resource usage of a process.
#[derive(Clone, Copy, Default)]
pub(crate) struct Usage {
    mebibytes: u64,
    pub(crate) threads: u64,
    files: u64,
    /// The CPU time since its start.
    cpu_seconds: u64,
}

impl Process {
    pub(crate) fn start(world: &World) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let kubeconfig = directory.path().join("kubeconfig");
        let text = world.kubeconfig().expect("a cluster of this process");
        fs::write(&kubeconfig, text).expect("a file");
        let options = world.options();
        let program = PathBuf::from(env::var_os("CHANDLER").expect("CHANDLER names the command"));
        let child = Command::new(program)
            .args(["controller", "--allow-unsigned", "--system-namespace", &options.system_namespace])
            .arg("--watch-selector")
            .arg(options.watch_selector.to_string())
            .arg("--cache-directory")
            .arg(directory.path().join("cache"))
            .args(["--content-address", "127.0.0.1:0"])
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .stdout(Stdio::null())
            .stderr(fs::File::create(env::temp_dir().join("chandler-soak.log")).expect("a log"))
            .spawn()
            .expect("the controller starts");
        let peak = Arc::new(Mutex::new(Usage::default()));
        let (id, all) = (child.id(), Arc::downgrade(&peak));
        tokio::spawn(async move {
            let mut samples = tokio::time::interval(Duration::from_millis(200));
            while let (Some(peak), Some(now)) = (all.upgrade(), Usage::of(id)) {
                {
                    let mut peak = peak.lock();
                    peak.mebibytes = peak.mebibytes.max(now.mebibytes);
                    peak.threads = peak.threads.max(now.threads);
                    peak.files = peak.files.max(now.files);
                }
                drop(peak);
                samples.tick().await;
            }
        });
        Self { child, peak, _directory: directory }
    }

    pub(crate) fn report(&self, when: &str) -> Usage {
        let now = Usage::of(self.child.id()).expect("the controller runs");
        let peak = std::mem::take(&mut *self.peak.lock());
        let cluster = cpu_seconds(std::process::id()).unwrap_or_default();
        println!(
            "controller, {when}: {} MiB (at most {}), {} threads ({}), {} files ({}), {} s of CPU time; the cluster {cluster} s",
            now.mebibytes, peak.mebibytes, now.threads, peak.threads, now.files, peak.files, now.cpu_seconds
        );
        now
    }

    /// Waits until the process has no more threads than this.
    pub(crate) async fn settle(&self, threads: u64) {
        let id = self.child.id();
        let settled = || async { Usage::of(id).is_some_and(|now| now.threads <= threads) };
        wait::eventually("the extra threads have ended", settled).await;
    }
}

impl Usage {
    fn of(process: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let number = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        };
        let files = fs::read_dir(format!("/proc/{process}/fd")).ok()?.count() as u64;
        Some(Self {
            cpu_seconds: cpu_seconds(process)?,
            mebibytes: number("VmRSS:")? / 1024,
            threads: number("Threads:")?,
            files,
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The CPU time of a process in user and kernel mode, in seconds. Linux counts hundredths of a second (proc(5)).
fn cpu_seconds(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_name, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11).map_while(|field| field.parse::<u64>().ok());
    Some((times.next()? + times.next()?) / 100)
}
