//! A watch on the BundleDeployments of the soak.

use std::time::Duration;

use chandler_api::BundleDeployment;
use chandler_tests::{World, run, world::condition};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::runtime::{reflector, watcher};
use tokio::sync::watch;

/// How long a step may take before the soak fails.
const PATIENCE: Duration = Duration::from_mins(5);

/// The observed state of a BundleDeployment.
#[derive(Clone, Copy)]
pub(crate) struct Observed {
    pub(crate) generation: i64,
    pub(crate) ready: bool,
}

/// A watch with a cache of the BundleDeployments.
#[derive(Clone)]
pub(crate) struct DeploymentWatch {
    store: reflector::Store<BundleDeployment>,
    changed: watch::Receiver<u64>,
}

impl DeploymentWatch {
    pub(crate) fn start(world: &World) -> Self {
        let (store, writer) = reflector::store();
        let (sender, changed) = watch::channel(0);
        let labels = watcher::Config::default().labels(&run::selector([world.run()]).to_string());
        let events = reflector::reflector(writer, watcher(world.deployments(), labels));
        tokio::spawn(async move {
            let mut events = events.boxed();
            while events.try_next().await.is_ok() {
                sender.send_modify(|count| *count += 1);
            }
        });
        Self { store, changed }
    }

    /// The reason and the message of the condition Ready; empty before there is one.
    pub(crate) fn ready(&self, name: &str) -> String {
        let deployment = self.store.get(&reflector::ObjectRef::new(name));
        let ready = deployment.as_deref().and_then(|deployment| condition(deployment, "Ready"));
        ready.map(|it| format!("{}: {}", it.reason, it.message)).unwrap_or_default()
    }

    pub(crate) async fn until(&self, name: &str, wanted: impl Fn(Option<Observed>) -> bool) {
        let mut changed = self.changed.clone();
        let key = reflector::ObjectRef::new(name);
        let found = || {
            self.store.get(&key).map(|deployment| {
                let generation = deployment.metadata.generation.unwrap_or_default();
                let ready = condition(&deployment, "Ready");
                let ready = ready.is_some_and(|it| it.status == "True" && it.observed_generation == Some(generation));
                Observed { generation, ready }
            })
        };
        let wait = changed.wait_for(|_| wanted(found()));
        if tokio::time::timeout(PATIENCE, wait).await.is_err() {
            let deployment = self.store.get(&key);
            let conditions =
                deployment.and_then(|deployment| deployment.status.clone()).map(|status| status.conditions);
            panic!("{name} did not reach the expected state within {PATIENCE:?}: {conditions:#?}");
        }
    }
}
