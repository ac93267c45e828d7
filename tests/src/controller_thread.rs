//! A controller on its own thread, which crashes at a chosen [`CrashPoint`] as a killed process would.
//!
//! The thread has its own runtime, so nothing of the controller survives a crash: connections, watches and reconciles are
//! dropped at their current await points. Only work on other threads, such as writing a file, still completes.

use chandler_controller::Options;
use kube::Config;
use tokio::{runtime::Builder, sync::oneshot};
use tracing::{Event, Metadata, Subscriber, span};

use crate::{
    crash_point::{Activity, CrashInjector, CrashPoint},
    in_process::{self, InProcess},
    interruption::Interruption,
    wait::PATIENCE,
};

/// A running controller.
pub struct ControllerThread {
    injector: CrashInjector,
    stop: Option<oneshot::Sender<()>>,
    thread: std::thread::JoinHandle<()>,
}

impl ControllerThread {
    /// Starts a controller that crashes at this point.
    pub fn start(config: Config, options: Options, crash_point: CrashPoint) -> Self {
        Self::start_with(config, options, crash_point, &Interruption::of("/bundledeployments"))
    }

    /// Starts a controller that crashes at this point, and whose requests the interruption blocks while it is active.
    pub fn start_with(config: Config, options: Options, crash_point: CrashPoint, interruption: &Interruption) -> Self {
        in_process::note(Some(match (&options.leader_election, crash_point) {
            (Some(_), _) => InProcess::Lease,
            (None, CrashPoint::Never) => InProcess::Observes,
            (None, _) => InProcess::Crashes,
        }));
        let injector = CrashInjector::new(crash_point);
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn({
            let (injector, interruption) = (injector.clone(), interruption.clone());
            move || run(config, options, &injector, &interruption, stopped)
        });
        Self { injector, stop: Some(stop), thread }
    }

    /// Completes when the controller has crashed or was killed.
    pub async fn crashed(&self) {
        self.injector.crashed().await;
    }

    /// What the controller did so far.
    pub fn activity(&self) -> Activity {
        self.injector.activity()
    }

    /// Crashes the controller now, and waits until its thread has ended.
    pub async fn kill(self) -> Activity {
        self.injector.crash();
        self.join().await
    }

    /// Shuts the controller down, and waits until its thread has ended.
    pub async fn stop(mut self) -> Activity {
        drop(self.stop.take());
        self.join().await
    }

    async fn join(self) -> Activity {
        let Self { injector, thread, stop } = self;
        let joined = tokio::task::spawn_blocking(move || thread.join());
        let joined = tokio::time::timeout(PATIENCE, joined).await.expect("the controller stops in time");
        assert!(joined.is_ok_and(|ended| ended.is_ok()), "the controller panicked");
        drop(stop);
        injector.activity()
    }
}

fn run(
    config: Config,
    options: Options,
    injector: &CrashInjector,
    interruption: &Interruption,
    stopped: oneshot::Receiver<()>,
) {
    let _guard = tracing::subscriber::set_default(ProvisionerCalls(injector.clone()));
    // On a single thread, every task is at an await point whenever the thread has nothing to do.
    let runtime = Builder::new_current_thread()
        .enable_all()
        .on_thread_park({
            let injector = injector.clone();
            move || injector.record_idle()
        })
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let builder = chandler_client::builder(config).expect("a usable configuration");
        let client = builder.with_layer(injector).with_layer(interruption).build();
        let shutdown = async move {
            let _ = stopped.await;
        };
        tokio::select! {
            biased;
            () = injector.crashed() => {}
            ended = chandler_controller::run(client, options, shutdown) => ended.expect("the controller runs until it is stopped"),
        }
    });
    runtime.shutdown_background();
}

/// Counts provisioner calls: each one opens a span.
///
/// It stores no spans. Threads with another subscriber enter them, and the registry of `tracing_subscriber` would look for them
/// there.
struct ProvisionerCalls(CrashInjector);

impl Subscriber for ProvisionerCalls {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.name() == "provisioner"
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        self.0.record_provisioner_call();
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
