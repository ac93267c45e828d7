//! The embedded API server, and what an administrator does with it.

use std::{fs, path::PathBuf, process::Stdio};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_devcluster::{DevCluster, Options};
use k8s_openapi::api::{authentication::v1::TokenRequest, core::v1::ServiceAccount};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
    core::{GroupVersionKind, TypeMeta},
};
use serde_json::Value;

use crate::command;

/// A name that is in the certificate of the server.
pub(super) const NAME: &str = "kubernetes.default.svc";

pub(super) struct ApiServer {
    chandler: PathBuf,
    cluster: DevCluster,
    kubeconfig: tempfile::NamedTempFile,
    cache: tempfile::TempDir,
}

impl ApiServer {
    /// Starts it. The administrator uses this command.
    pub(super) async fn start(chandler: PathBuf) -> Self {
        let cluster = DevCluster::start(Options::default()).await.unwrap();
        let kubeconfig = tempfile::NamedTempFile::new().unwrap();
        fs::write(kubeconfig.path(), cluster.kubeconfig()).unwrap();
        Self { chandler, cluster, kubeconfig, cache: tempfile::tempdir().unwrap() }
    }

    /// What a Pod of the controller gets to reach it.
    pub(super) async fn as_seen_by_pods(&self) -> chandler_test_container::ApiServer {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.cluster.client(), "chandler-system");
        let request = TokenRequest::default();
        let issued = accounts.create_token_request("chandler", &PostParams::default(), &request).await.unwrap();
        let config: Value = serde_saphyr::from_str(&self.cluster.kubeconfig()).unwrap();
        let authority = config["clusters"][0]["cluster"]["certificate-authority-data"].as_str().unwrap();
        chandler_test_container::ApiServer {
            host: NAME.to_owned(),
            port: self.cluster.url().rsplit_once(':').unwrap().1.parse().unwrap(),
            address: None,
            authority: String::from_utf8(STANDARD.decode(authority).unwrap()).unwrap(),
            token: issued.status.unwrap().token,
        }
    }

    /// Applies the objects of a file of the project.
    pub(super) async fn apply_file(&self, name: &str) {
        self.apply_text(&fs::read_to_string(command::root().join(name)).unwrap()).await;
    }

    /// Applies objects, as `kubectl apply` would.
    pub(super) async fn apply_text(&self, text: &str) {
        let objects: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
        for object in objects.into_iter().filter(|object| !object.is_null()) {
            let types: TypeMeta = serde_json::from_value(object.clone()).unwrap();
            let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(&types).unwrap());
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
            let api: Api<DynamicObject> = match text("/metadata/namespace") {
                Some(namespace) => Api::namespaced_with(self.cluster.client(), namespace, &resource),
                None => Api::all_with(self.cluster.client(), &resource),
            };
            let name = text("/metadata/name").unwrap();
            let applied = api.patch(name, &PatchParams::apply("test").force(), &Patch::Apply(&object)).await;
            applied.unwrap_or_else(|error| panic!("{object}: {error}"));
        }
    }

    /// Runs a command of the tests' `chandler` as the administrator, and returns what it prints.
    pub(super) async fn chandler(&self, arguments: &[&str]) -> String {
        let mut command = tokio::process::Command::new(&self.chandler);
        command.current_dir(command::root()).args(arguments).env("KUBECONFIG", self.kubeconfig.path());
        command.env("CHANDLER_CACHE_DIRECTORY", self.cache.path()).stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await.unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}
