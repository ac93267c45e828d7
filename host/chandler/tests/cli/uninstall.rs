//! `chandler uninstall`: the whole installation of `chandler manifests`, with its admission policies, and a controller that has its account.
//! The control plane is the test's own, since its CRDs are deleted.

use chandler_api::{Catalog, PlatformOperator};
use chandler_controller::{Election, Options, WatchSelector, options::LEASE};
use chandler_manifests::{Profile, Settings};
use chandler_tests::{Cluster, World, content_service, wait};
use k8s_openapi::{
    api::{
        admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
        apps::v1::Deployment,
        core::v1::{ConfigMap, Namespace},
        rbac::v1::ClusterRole,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::{GroupVersionKind, TypeMeta},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::{sync::oneshot, task::JoinHandle};

use crate::{
    commands::{OLD, Session},
    interruptions::interrupted,
    resolutions::add_catalog,
    support::Outcome,
};

/// An installation on a control plane of its own.
pub(crate) struct Installation {
    pub(crate) session: Session,
    stop: Option<oneshot::Sender<()>>,
    running: Option<JoinHandle<()>>,
}

impl Installation {
    /// `None` on a cluster that others use: this test would uninstall their controller.
    pub(crate) async fn start() -> Option<Self> {
        let cluster = Cluster::acquire().await;
        if !cluster.is_embedded() {
            eprintln!("skipped: only a control plane of its own can lose its CRDs");
            return None;
        }
        let session = Session::on(World::without_controller(cluster).await);
        let mut settings = Settings::of(Profile::Standalone);
        settings.set(&format!("namespace={}", session.world.system_namespace)).unwrap();
        settings.set("permissions=cluster-admin").unwrap();
        for object in chandler_manifests::objects(&settings).unwrap() {
            apply(&session.world.client, &object).await;
        }
        let mut installation = Self { session, stop: None, running: None };
        installation.start_controller().await;
        Some(installation)
    }

    /// The controller with its account, as in its Pod.
    pub(crate) async fn start_controller(&mut self) {
        let world = &self.session.world;
        let token = content_service::token(world, &world.system_namespace, "chandler").await;
        let mut config = world.config();
        config.auth_info = kube::config::AuthInfo { token: Some(token.into()), ..kube::config::AuthInfo::default() };
        let client = Client::try_from(config).unwrap();
        let connect = client.clone();
        let election =
            Election::new(move || Ok(connect.clone()), &world.system_namespace, LEASE, "chandler-0".to_owned());
        let options =
            Options { watch_selector: WatchSelector::default(), leader_election: Some(election), ..world.options() };
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async move {
            let _ = stopped.await;
        };
        let running = tokio::spawn(async move { chandler_controller::run(client, options, shutdown).await.unwrap() });
        (self.stop, self.running) = (Some(stop), Some(running));
    }

    pub(crate) async fn stop_controller(&mut self) {
        let _ = self.stop.take().unwrap().send(());
        self.running.take().unwrap().await.unwrap();
    }

    /// Runs a command, and stops the controller once its Deployment is deleted, as a kubelet does.
    pub(crate) async fn run_to_the_end(&mut self, arguments: &[&str]) -> Outcome {
        let world = &self.session.world;
        let deployments: Api<Deployment> = Api::namespaced(world.client.clone(), &world.system_namespace);
        let (stop, running) = (self.stop.take().unwrap(), self.running.take().unwrap());
        let kubelet = async {
            wait::until(&deployments, "chandler", "gone", |deployment| deployment.is_none()).await;
            let _ = stop.send(());
            running.await.unwrap();
        };
        let (outcome, ()) = tokio::join!(self.session.run(arguments), kubelet);
        outcome
    }

    /// Everything of Chandler is gone, and a second run says so.
    async fn assert_gone(&self) {
        let (client, namespace) = (&self.session.world.client, self.session.world.system_namespace.as_str());
        let is_ours = |name: &String| name.starts_with("chandler");
        assert_eq!(names::<ClusterRole>(client).await.into_iter().filter(is_ours).collect::<Vec<_>>(), [""; 0]);
        assert_eq!(names::<ValidatingAdmissionPolicy>(client).await, [""; 0]);
        assert_eq!(names::<ValidatingAdmissionPolicyBinding>(client).await, [""; 0]);
        let crds = names::<CustomResourceDefinition>(client).await;
        let crds: Vec<_> = crds.into_iter().filter(|name| chandler_api::OwnKind::is_crd(name)).collect();
        assert_eq!(crds, [""; 0]);
        assert!(!names::<Namespace>(client).await.contains(&namespace.to_owned()));
        let again = self.session.run(&["uninstall", "--delete-installed", "--yes"]).await;
        assert_eq!(again.code, Some(0), "{}", again.stderr);
        assert!(again.stderr.contains("Chandler is not installed on this cluster"), "{}", again.stderr);
    }

    async fn installed(&self) -> Vec<ConfigMap> {
        let maps: Api<ConfigMap> = Api::namespaced(self.session.world.client.clone(), &self.session.world.namespace);
        let all = maps.list(&ListParams::default()).await.unwrap().items;
        all.into_iter().filter(|map| map.name_any().starts_with("harbour-operator")).collect()
    }
}

pub(crate) async fn apply(client: &Client, object: &Value) {
    let types: TypeMeta = serde_json::from_value(object.clone()).unwrap();
    let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(&types).unwrap());
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let name = object["metadata"]["name"].as_str().unwrap();
    api.patch(name, &PatchParams::apply("test").force(), &Patch::Apply(object)).await.unwrap();
}

async fn names<K>(client: &Client) -> Vec<String>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let all = Api::<K>::all(client.clone()).list(&ListParams::default()).await.unwrap().items;
    all.iter().map(kube::ResourceExt::name_any).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_deleted_while_the_controller_works_and_then_the_controller() {
    let Some(mut installation) = Installation::start().await else { return };
    let session = &installation.session;
    let name = session.world.name();
    let installed = session.install(&name, OLD, &[]).await;
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    // What a catalog installs would come back if it was deleted first.
    let (package, operator) = (format!("{}-tide", session.world.run()), format!("{}-mesh", session.world.run()));
    add_catalog(session, &package).await;
    let spec = json!({"package": {"name": package}, "installNamespace": session.world.namespace});
    let _: PlatformOperator = session.world.create(json!({"metadata": {"name": operator}, "spec": spec})).await;
    session.data(&["status", &format!("platformoperator/{operator}"), "--watch", "--timeout", "2m"]).await;

    for (arguments, code, words) in [
        (&["uninstall", "--yes"][..], 2, "--keep-installed"),
        (&["uninstall", "--keep-installed", "--delete-installed"], 2, "cannot be used with"),
        (&["uninstall", &name, "--crds", "Delete", "--yes"], 2, &*format!("`chandler delete {name}`")),
        (&["uninstall", &name, "--keep-installed"], 2, &*format!("`chandler delete {name}`")),
        (&["uninstall", "--delete-installed", "--without-controller"], 2, "cannot be used with"),
        (&["uninstall", "--keep-installed", "--without-controller", "--yes"], 8, "chandler-0 holds the Lease"),
        (&["uninstall", "--delete-installed", "--dry-run"], 0, "nothing was deleted"),
        (
            &["uninstall", "--delete-installed", "--system-namespace", "kube-system", "--yes"],
            8,
            "belongs to the cluster",
        ),
        (
            &["uninstall", "--delete-installed", "--cluster-lease-namespace", "A", "--yes"],
            2,
            "--cluster-lease-namespace",
        ),
    ] {
        let outcome = session.run(arguments).await;
        assert_eq!(outcome.code, Some(code), "{arguments:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(words), "{arguments:?}: {}", outcome.stderr);
    }
    let preview = session.data(&["uninstall", "--delete-installed", "--dry-run"]).await;
    for line in [
        format!("- delete BundleDeployment.core.rukpak.io {name}"),
        "    - delete ConfigMap ".to_owned(),
        format!("- delete PlatformOperator.platform.openshift.io {operator}"),
        format!("- delete Deployment.apps {}/chandler", session.world.system_namespace),
        "- delete CustomResourceDefinition.apiextensions.k8s.io bundledeployments.core.rukpak.io".to_owned(),
        format!("- delete Secret {}/record-", session.world.system_namespace),
    ] {
        assert!(preview.contains(&line), "no {line:?} in {preview}");
    }
    assert_eq!(installation.installed().await.len(), 2, "nothing was deleted");

    let outcome = installation.run_to_the_end(&["uninstall", "--delete-installed", "--yes", "--timeout", "4m"]).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(outcome.stderr.ends_with("uninstalled\n"), "{}", outcome.stderr);
    assert!(installation.installed().await.is_empty());
    installation.assert_gone().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_others_is_refused_or_stays() {
    let Some(mut installation) = Installation::start().await else { return };
    let (session, client) = (&installation.session, installation.session.world.client.clone());
    let system = session.world.system_namespace.clone();
    // An account of this name shows nothing.
    let (shop, account) = (format!("{}-shop", session.world.run()), "chandler");
    apply(&client, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": shop}})).await;
    apply(
        &client,
        &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": shop}}),
    )
    .await;
    // A role of another product with the name of one of Chandler's.
    let roles: Api<ClusterRole> = Api::all(client.clone());
    roles.delete("chandler-view", &DeleteParams::background()).await.unwrap();
    let candles = json!([{"apiGroups": ["candles.example.com"], "resources": ["candles"], "verbs": ["get"]}]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "chandler-view"}, "rules": candles});
    apply(&client, &role).await;
    // Other software beside the controller.
    let template = json!({"metadata": {"labels": {"app": "quay"}}, "spec": {"containers": [{"name": "quay", "image": "registry.invalid/quay:v1"}]}});
    let spec = json!({"replicas": 0, "selector": {"matchLabels": {"app": "quay"}}, "template": template});
    let quay = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "quay", "namespace": system}, "spec": spec});
    apply(&client, &quay).await;

    for (arguments, words) in [
        (
            &["uninstall", "--delete-installed", "--system-namespace", &shop, "--yes"][..],
            format!("Chandler is not installed in namespace {shop}"),
        ),
        (&["uninstall", "--delete-installed", "--dry-run"], format!("Deployment.apps {system}/quay")),
        (&["uninstall", "--keep-installed", "--yes"], "`--keep-namespace` keeps the namespace".to_owned()),
    ] {
        let refused = session.run(arguments).await;
        assert_eq!(refused.code, Some(8), "{arguments:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(&words), "{arguments:?}: {}", refused.stderr);
    }
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), &system);
    assert!(deployments.get("chandler").await.is_ok(), "nothing was deleted");
    let arguments = ["uninstall", "--delete-installed", "--keep-namespace", "--yes", "--timeout", "4m"];
    let outcome = installation.run_to_the_end(&arguments).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let line = "  keep ClusterRole.rbac.authorization.k8s.io chandler-view, which is not Chandler's\n";
    assert!(outcome.stdout.contains(line), "{}", outcome.stdout);
    assert!(deployments.get("quay").await.is_ok() && roles.get("chandler-view").await.is_ok());
    let ours = names::<ClusterRole>(&client).await.into_iter().filter(|name| name.starts_with("chandler"));
    assert_eq!(ours.collect::<Vec<_>>(), ["chandler-view"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn installed_software_stays_without_the_labels_of_chandler() {
    let Some(mut installation) = Installation::start().await else { return };
    let name = installation.session.world.name();
    let installed = installation.session.install(&name, OLD, &[]).await;
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    let before: Vec<_> = installation.installed().await.iter().map(kube::ResourceExt::uid).collect();

    let arguments = ["uninstall", "--keep-installed", "--yes", "--timeout", "4m"];
    let outcome = installation.run_to_the_end(&arguments).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let after = installation.installed().await;
    assert_eq!(after.iter().map(kube::ResourceExt::uid).collect::<Vec<_>>(), before);
    for map in after {
        assert!(
            map.owner_references().is_empty() && !map.labels().contains_key("core.rukpak.io/owner-name"),
            "{map:?}"
        );
    }
    let harbours = names::<CustomResourceDefinition>(&installation.session.world.client).await;
    assert!(!harbours.is_empty(), "the CRDs of bundles stay");
    installation.assert_gone().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn finalizers_of_a_controller_that_is_gone_have_a_way_out() {
    let Some(mut installation) = Installation::start().await else { return };
    let name = installation.session.world.name();
    let installed = installation.session.install(&name, OLD, &[]).await;
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    let before: Vec<_> = installation.installed().await.iter().map(kube::ResourceExt::uid).collect();
    installation.stop_controller().await;
    // It waits for the controller.
    let deployments = installation.session.world.deployments();
    deployments.delete(&name, &DeleteParams::background()).await.unwrap();

    let session = &installation.session;
    for installed in ["--keep-installed", "--delete-installed"] {
        let refused = session.run(&["uninstall", installed, "--yes"]).await;
        assert_eq!(refused.code, Some(8), "{}", refused.stderr);
        for words in ["no controller removes the finalizers", "--keep-installed --without-controller"] {
            assert!(refused.stderr.contains(words), "{}", refused.stderr);
        }
    }
    let arguments = ["uninstall", "--keep-installed", "--without-controller", "--yes", "--timeout", "4m"];
    let outcome = session.run(&arguments).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("      keep ConfigMap "), "what stays is listed: {}", outcome.stdout);
    let after = installation.installed().await;
    assert_eq!(after.iter().map(kube::ResourceExt::uid).collect::<Vec<_>>(), before);
    assert!(after.iter().all(|map| map.owner_references().is_empty()));
    installation.assert_gone().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_uninstallation_refuses_new_objects_and_continues() {
    let Some(mut installation) = Installation::start().await else { return };
    let name = installation.session.world.name();
    let catalogs: Api<Catalog> = Api::all(installation.session.world.client.clone());
    let catalog = |finalizers: Value| -> Catalog {
        serde_json::from_value(json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "Catalog",
            "metadata": {"name": name, "finalizers": finalizers},
            "spec": {"source": {"type": "image", "image": {"ref": "registry.invalid/catalog:v1"}}}}))
        .unwrap()
    };
    catalogs.create(&PostParams::default(), &catalog(json!(["example.com/mine"]))).await.unwrap();
    let arguments = ["uninstall", "--delete-installed", "--keep-namespace", "--yes"];
    let until = format!("waiting       Catalog {name}: held by");
    let rest = interrupted(&installation.session, &arguments, &until).await;
    for part in [
        "the deletions that were requested continue in the cluster",
        "it was waiting for: Catalog",
        "held by the finalizers example.com/mine, which other software removes",
        "`chandler uninstall --delete-installed --keep-namespace",
    ] {
        assert!(rest.contains(part), "{part:?} is not in {rest}");
    }
    let mut other = catalog(Value::Null);
    other.metadata.name = Some(format!("{name}-other"));
    let refused = catalogs.create(&PostParams::default(), &other).await.unwrap_err().to_string();
    assert!(refused.contains("Chandler is being uninstalled"), "{refused}");
    let late = installation.session.run(&[&arguments[..], &["--timeout", "1s"]].concat()).await;
    assert_eq!(late.code, Some(3), "{}", late.stderr);

    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    catalogs.patch(&name, &PatchParams::default(), &free).await.unwrap();
    let outcome = installation.run_to_the_end(&arguments).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let world = &installation.session.world;
    assert!(names::<Namespace>(&world.client).await.contains(&world.system_namespace), "it was to be kept");
}
