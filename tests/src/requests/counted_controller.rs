//! A controller whose requests are counted, on threads of its own.

use std::{cell::Cell, time::Duration};

use chandler_controller::WatchSelector;
use kube::Config;
use tokio::{runtime::Builder, sync::oneshot};
use tower::util::MapRequestLayer;

use crate::{
    World,
    in_process::{self, InProcess},
    requests::{
        processor::ProcessorTime,
        reconciles::Reconciles,
        recorder::{Counts, Recorder},
    },
    wait,
};

/// The name of all threads of the controller. The kernel cuts names after 15 bytes.
const THREAD: &str = "counted-control";

/// Longer than any measurement: the processor time of a thread that ended is lost.
const KEEP_THREADS: Duration = Duration::from_hours(10);

/// After how many polls without a new request the controller counts as idle.
const IDLE_POLLS: u32 = 10;

/// A running controller.
pub struct CountedController {
    recorder: Recorder,
    /// The prefix of the names of its BundleDeployments.
    run: String,
    /// The process of the API server, if there is one.
    server: Option<u32>,
    stop: oneshot::Sender<()>,
    thread: std::thread::JoinHandle<()>,
}

/// Everything that was counted so far.
#[derive(Clone, Default)]
pub struct Snapshot {
    /// The requests.
    pub requests: Counts,
    /// The reconciles that ended.
    pub reconciles: Reconciles,
    /// The processor time.
    pub processor: ProcessorTime,
}

impl CountedController {
    /// Starts the controller of this world without a watch selector, as most installations do: the API server must only have
    /// BundleDeployments of this world.
    pub fn start(world: &World) -> Self {
        in_process::note(Some(InProcess::RecordsRequests));
        let config = world.config();
        let options = chandler_controller::Options { watch_selector: WatchSelector::default(), ..world.options() };
        let recorder = Recorder::new(&options.system_namespace);
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name(THREAD.to_owned()).spawn({
            let recorder = recorder.clone();
            move || run(config, options, recorder, stopped)
        });
        let thread = thread.expect("a thread");
        Self { recorder, run: world.run().name().to_owned(), server: world.server_process(), stop, thread }
    }

    /// What was counted so far.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            requests: self.recorder.counts(),
            reconciles: Reconciles::of(&self.run),
            processor: ProcessorTime::of(THREAD, self.server),
        }
    }

    /// Waits until the controller has started and sends no more requests.
    pub async fn idle(&self) {
        let seen = Cell::new((0, 0));
        wait::eventually("the controller is idle", || async {
            let (before, times) = seen.get();
            let now = self.recorder.counts().values().sum::<u64>() + Reconciles::of(&self.run).total();
            seen.set((now, if now == before && self.has_started() { times + 1 } else { 0 }));
            times >= IDLE_POLLS
        })
        .await;
    }

    /// The process of the API server, if this one started it.
    pub fn server(&self) -> Option<u32> {
        self.server
    }

    /// Whether it watches BundleDeployments, which it does last.
    fn has_started(&self) -> bool {
        self.recorder.counts().keys().any(|kind| kind.verb == "watch" && kind.resource == "bundledeployments")
    }

    /// Stops the controller and waits until its threads have ended.
    pub async fn stop(self) {
        let Self { stop, thread, .. } = self;
        drop(stop);
        let joined = tokio::task::spawn_blocking(move || thread.join());
        let joined = tokio::time::timeout(wait::PATIENCE, joined).await.expect("the controller stops in time");
        assert!(joined.is_ok_and(|ended| ended.is_ok()), "the controller panicked");
    }
}

fn run(config: Config, options: chandler_controller::Options, recorder: Recorder, stopped: oneshot::Receiver<()>) {
    let runtime = Builder::new_multi_thread().thread_name(THREAD).thread_keep_alive(KEEP_THREADS).enable_all().build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(async {
        let recording = MapRequestLayer::new(move |request| recorder.record(request));
        let client = chandler_client::builder(config).expect("a usable configuration").with_layer(&recording).build();
        let shutdown = async move {
            let _ = stopped.await;
        };
        chandler_controller::run(client, options, shutdown).await.expect("the controller runs until it is stopped");
    });
    runtime.shutdown_background();
}
