//! The server of the run, and its capabilities.

use std::sync::{Arc, Mutex, OnceLock};

use chandler_tests::Cluster;
use serde_json::Value;
use tokio::{runtime::Runtime, sync::OnceCell};

use super::{Http, objects};

/// One run of the suite: a server that starts when the first case needs it.
pub(crate) struct Run {
    runtime: Runtime,
    server: OnceLock<Arc<Server>>,
}

impl Run {
    pub(crate) fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        Self { runtime, server: OnceLock::new() }
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub(crate) fn server(&self) -> Arc<Server> {
        Arc::clone(self.server.get_or_init(|| Arc::new(self.runtime.block_on(Server::start()))))
    }

    /// Deletes the shared objects and stops the server.
    pub(crate) fn finish(self) {
        if let Some(server) = self.server.into_inner() {
            self.runtime.block_on(server.clean_up());
        }
    }
}

/// The server that all cases run on.
pub(crate) struct Server {
    cluster: Cluster,
    config: kube::Config,
    http: Http,
    /// Makes the names of this run differ from other runs on the same cluster.
    run: chandler_tests::Run,
    widgets: OnceCell<()>,
    /// Paths to delete when the run is over.
    leftovers: Mutex<Vec<String>>,
}

impl Server {
    async fn start() -> Self {
        let cluster = Cluster::acquire().await;
        let config = cluster.config();
        let http = Http::new(&config);
        let run = chandler_tests::Run::new();
        Self { cluster, config, http, run, widgets: OnceCell::new(), leftovers: Mutex::default() }
    }

    /// Whether garbage is collected and namespaces are emptied.
    pub(crate) fn has_controllers(&self) -> bool {
        self.cluster.has_controllers()
    }

    pub(crate) fn is_embedded(&self) -> bool {
        self.cluster.is_embedded()
    }

    /// Requests as the administrator.
    pub(crate) fn http(&self) -> &Http {
        &self.http
    }

    /// The administrator's client configuration, from which cases derive the configurations of other users.
    pub(crate) fn config(&self) -> kube::Config {
        self.config.clone()
    }

    /// A kubeconfig for kubectl; `None` if the environment already names one.
    pub(crate) fn kubeconfig(&self) -> Option<String> {
        self.cluster.kubeconfig()
    }

    pub(crate) fn unique(&self) -> &str {
        self.run.name()
    }

    /// Adds the label of the run to an object with its name, so that a later run deletes it if this one is killed.
    pub(crate) fn mark(&self, mut object: Value) -> Value {
        self.run.mark(&mut object);
        object
    }

    /// The group of the CRD that most cases share.
    pub(crate) fn shared_group(&self) -> String {
        format!("shared-{}.conformance.example.com", self.run)
    }

    /// Installs the shared CRD, unless it is installed already.
    pub(crate) async fn share_widgets(&self) {
        let share = || async {
            objects::establish(&self.http, &self.mark(objects::widgets(&self.shared_group()))).await;
        };
        self.widgets.get_or_init(share).await;
    }

    pub(super) fn remove_at_the_end(&self, path: String) {
        self.leftovers.lock().unwrap().push(path);
    }

    async fn clean_up(&self) {
        let paths = std::mem::take(&mut *self.leftovers.lock().unwrap());
        for path in paths {
            let _ = self.http.delete(&path).await;
        }
        if self.widgets.initialized() {
            let crd = format!("{}/widgets.{}", objects::CRDS, self.shared_group());
            let _ = self.http.delete(&crd).await;
        }
    }
}
