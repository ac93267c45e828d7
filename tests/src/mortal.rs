//! A controller that dies as a process does: at a chosen place, without being asked, and with everything that it was doing.
//!
//! It has a thread and a runtime of its own, so that nothing of it outlives it: connections, watches and reconciles are
//! dropped where they stand. Only what other threads are doing at that moment, such as writing a file, comes to its end.

use chandler_controller::Options;
use kube::{Config, client::ClientBuilder};
use tokio::{runtime::Builder, sync::oneshot};
use tracing::{Event, Metadata, Subscriber, span};

use crate::{
    interruption::Interruption,
    lifeline::{Cut, Life, Lifeline},
    wait::PATIENCE,
};

/// A running controller.
pub struct Mortal {
    lifeline: Lifeline,
    stop: Option<oneshot::Sender<()>>,
    thread: std::thread::JoinHandle<()>,
}

impl Mortal {
    /// Starts one that dies at this cut.
    pub fn start(config: Config, options: Options, cut: Cut) -> Self {
        Self::start_with(config, options, cut, &Interruption::of("/bundledeployments"))
    }

    /// Starts one that dies at this cut, and that loses sight of a kind while that is interrupted.
    pub fn start_with(config: Config, options: Options, cut: Cut, interruption: &Interruption) -> Self {
        let lifeline = Lifeline::new(cut);
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn({
            let (lifeline, interruption) = (lifeline.clone(), interruption.clone());
            move || live(config, options, &lifeline, &interruption, stopped)
        });
        Self { lifeline, stop: Some(stop), thread }
    }

    /// Ready when it is dead.
    pub async fn ended(&self) {
        self.lifeline.ended().await;
    }

    /// What it did so far.
    pub fn life(&self) -> Life {
        self.lifeline.life()
    }

    /// Kills it.
    pub async fn kill(self) -> Life {
        self.lifeline.end();
        self.join().await
    }

    /// Asks it to stop, and waits until it has.
    pub async fn stop(mut self) -> Life {
        drop(self.stop.take());
        self.join().await
    }

    async fn join(self) -> Life {
        let Self { lifeline, thread, stop } = self;
        let joined = tokio::task::spawn_blocking(move || thread.join());
        let joined = tokio::time::timeout(PATIENCE, joined).await.expect("the controller ends");
        assert!(joined.is_ok_and(|ended| ended.is_ok()), "the controller panicked");
        drop(stop);
        lifeline.life()
    }
}

fn live(
    config: Config,
    options: Options,
    lifeline: &Lifeline,
    interruption: &Interruption,
    stopped: oneshot::Receiver<()>,
) {
    let _guard = tracing::subscriber::set_default(Calls(lifeline.clone()));
    // On one thread every task stands at an await point whenever that thread has nothing to do.
    let runtime = Builder::new_current_thread()
        .enable_all()
        .on_thread_park({
            let lifeline = lifeline.clone();
            move || lifeline.wait()
        })
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let builder = ClientBuilder::try_from(config).expect("a usable configuration");
        let client = builder.with_layer(lifeline).with_layer(interruption).build();
        let shutdown = async move {
            let _ = stopped.await;
        };
        tokio::select! {
            biased;
            () = lifeline.ended() => {}
            ended = chandler_controller::run(client, options, shutdown) => ended.expect("the controller runs until it is stopped"),
        }
    });
    runtime.shutdown_background();
}

/// Counts the calls of provisioners, of which each is a span.
///
/// It keeps no spans: they are entered on threads that have another subscriber, and the registry of `tracing_subscriber` would look
/// for them there.
struct Calls(Lifeline);

impl Subscriber for Calls {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.name() == "provisioner"
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        self.0.call_provisioner();
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
