//! Attacks that are not BundleDeployments with a hostile source: Resolutions over a knotted catalog, and uploads that drip.

use std::{collections::BTreeSet, fmt::Write as _, sync::Arc, time::Duration};

use chandler_api::{Catalog, ConditionType, Resolution, find_condition};
use chandler_tests::{World, bundles::Bundle, content_service, wait};
use k8s_openapi::api::{
    core::v1::ServiceAccount,
    rbac::v1::{ClusterRole, ClusterRoleBinding},
};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::sleep};

use crate::{drip::Drips, namespace};

/// Their names on the command line.
pub(crate) const NAMES: [&str; 2] = ["resolutions", "uploads"];

/// The packages of the catalog, and the versions of each. Each version excludes most versions of its neighbours.
const PACKAGES: usize = 40;
const VERSIONS: usize = 40;
/// How many Resolutions there are, and how long each stays as it is.
const RESOLUTIONS: usize = 10;
const BETWEEN_EDITS: Duration = Duration::from_secs(2);
/// How many uploads are tried at once.
const UPLOADS: usize = 16;

/// These attacks, under way.
pub(crate) struct Beside {
    tasks: JoinSet<()>,
    resolutions: Vec<String>,
    drips: Option<Drips>,
}

impl Beside {
    /// Starts those whose names are in `only`, or all.
    pub(crate) async fn start(world: &Arc<World>, only: &[String]) -> Self {
        let wanted = |name: &str| only.is_empty() || only.iter().any(|it| it == name);
        let mut all = Self { tasks: JoinSet::new(), resolutions: Vec::new(), drips: None };
        if wanted(NAMES[0]) {
            all.resolutions(world).await;
        }
        if wanted(NAMES[1]) {
            all.uploads(world).await;
        }
        all
    }

    async fn resolutions(&mut self, world: &Arc<World>) {
        let image = Bundle::empty().with("configs/catalog.yaml", &knot());
        let labels = [("operators.operatorframework.io.index.configs.v1".to_owned(), "/configs".to_owned())].into();
        let pushed = world.registry.push_bundle_directory("catalogs/knot", "latest", image.path(), &labels).await;
        let source = json!({"type": "image", "image": {"ref": pushed.expect("the registry takes it").reference}});
        let name = format!("{}-knot", world.run());
        let _: Catalog = world.create(json!({"metadata": {"name": name}, "spec": {"source": source}})).await;
        for index in 0..RESOLUTIONS {
            let name = format!("{}-knot-{index}", world.run());
            let output = json!({"type": "ResolveSet", "resolveSet": {"installNamespace": namespace(world, 200_000 + index).await}});
            let spec = json!({"packages": wishes(index), "output": output});
            let _: Resolution = world.create(json!({"metadata": {"name": name}, "spec": spec})).await;
            self.resolutions.push(name.clone());
            let resolutions: Api<Resolution> = Api::all(world.client.clone());
            self.tasks.spawn(async move {
                for round in 1.. {
                    sleep(BETWEEN_EDITS).await;
                    let patch = Patch::Merge(json!({"spec": {"packages": wishes(index + round)}}));
                    resolutions.patch(&name, &PatchParams::default(), &patch).await.expect("a spec");
                }
            });
        }
    }

    async fn uploads(&mut self, world: &Arc<World>) {
        let namespace = namespace(world, 300_000).await;
        let name = format!("{}-dripping", world.name());
        let metadata = json!({"name": name, "namespace": namespace});
        let account: ServiceAccount = serde_json::from_value(json!({"metadata": metadata})).expect("an account");
        let accounts: Api<ServiceAccount> = Api::namespaced(world.client.clone(), &namespace);
        accounts.create(&kube::api::PostParams::default(), &account).await.expect("an account");
        let rules = json!([{"apiGroups": ["core.rukpak.io"], "resources": ["bundledeployments"],
                            "verbs": ["update", "installWithControllerRights"]}]);
        let _: ClusterRole = world.create(json!({"metadata": {"name": name}, "rules": rules})).await;
        let group = "rbac.authorization.k8s.io";
        let _: ClusterRoleBinding = world
            .create(json!({
                "metadata": {"name": name}, "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
            }))
            .await;
        let spec = json!({
            "installNamespace": namespace, "provisionerClassName": chandler_api::names::PLAIN_CLASS,
            "source": {"type": "upload", "upload": {}},
        });
        world.apply(&name, spec).await;
        let announced = content_service::announced(world, "announced", |_| true).await;
        let token = content_service::token(world, &namespace, &name).await;
        self.drips = Some(Drips::start(UPLOADS, &announced, &token, &name));
    }

    /// Ends them, and deletes their Resolutions.
    pub(crate) async fn stop(mut self, world: &World) {
        self.tasks.shutdown().await;
        if let Some(drips) = self.drips {
            let ended = tokio::task::spawn_blocking(|| drips.stop()).await.expect("no client panics");
            println!("  uploads: the server ended {ended}");
        }
        let resolutions: Api<Resolution> = Api::all(world.client.clone());
        let mut reached = BTreeSet::new();
        for name in &self.resolutions {
            let resolution = resolutions.get(name).await.expect("the Resolution exists");
            let conditions = resolution.status.map(|status| status.conditions).unwrap_or_default();
            let ready = find_condition(&conditions, ConditionType::Ready);
            let ready = ready.map(|it| format!("{}: {:.160}", it.reason, it.message)).unwrap_or_default();
            reached.insert(format!("  resolutions: {ready}"));
            resolutions.delete(name, &DeleteParams::default()).await.expect("the Resolution exists");
        }
        for line in reached {
            println!("{line}");
        }
        for name in &self.resolutions {
            wait::until(&resolutions, name, "gone", |resolution| resolution.is_none()).await;
        }
    }
}

/// All packages, one of them in a range that moves.
fn wishes(round: usize) -> Value {
    let wish = |package: usize| {
        let range = if package == round % PACKAGES { format!(">=1.{}.0", round % VERSIONS) } else { String::new() };
        json!({"name": format!("knot-{package}"), "version": range})
    };
    (0..PACKAGES).map(wish).collect()
}

/// A catalog whose packages need each other in narrow ranges.
fn knot() -> String {
    let mut documents = String::new();
    for package in 0..PACKAGES {
        let mut entries = Vec::new();
        for version in 0..VERSIONS {
            // A channel has one head.
            let before = version.checked_sub(1).map(|before| format!(", replaces: knot-{package}.v1.{before}.0"));
            entries.push(format!("{{name: knot-{package}.v1.{version}.0{}}}", before.unwrap_or_default()));
            let needs: Vec<String> = (1..4)
                .map(|step| {
                    let (other, from) = ((package + step) % PACKAGES, (version * step + package) % VERSIONS);
                    format!(
                        "{{type: olm.package.required, value: {{packageName: knot-{other}, versionRange: '>=1.{from}.0 <1.{}.0'}}}}",
                        from + 2
                    )
                })
                .collect();
            let _ = write!(
                documents,
                "---\nschema: olm.bundle\npackage: knot-{package}\nname: knot-{package}.v1.{version}.0\nimage: \
                 registry.invalid/knot-{package}:v{version}\nproperties: [{{type: olm.package, value: {{packageName: \
                 knot-{package}, version: 1.{version}.0}}}}, {}]\n",
                needs.join(", ")
            );
        }
        let _ = write!(
            documents,
            "---\nschema: olm.package\nname: knot-{package}\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: \
             knot-{package}\nname: stable\nentries: [{}]\n",
            entries.join(", ")
        );
    }
    documents
}
