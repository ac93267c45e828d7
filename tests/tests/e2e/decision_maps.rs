//! Decisions of other resolvers: an immutable ConfigMap of the system namespace with the annotation `resolveset.chandler.dev/set` becomes a set.

use std::fmt::Debug;

use chandler_api::{BundleDeployment, names::OWNER_NAME_LABEL};
use chandler_permissions::{Account, PolicyRule, roles};
use chandler_tests::{
    Cluster, World,
    bundles::{self, Bundle},
    wait,
    world::condition,
};
use k8s_openapi::api::{
    admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
    core::v1::ConfigMap,
    events::v1::Event,
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    PLAIN,
    admission_policies::policies,
    controller_rights::{controller, deployed},
    permissions::{account, apply, remove_cluster_roles},
    removals::Removals,
};

/// A resolver that writes decisions for one set.
pub(crate) struct Resolver {
    /// The set, which is named after the run.
    set: String,
    /// The account that installs it.
    account: Account,
    /// An image with one object.
    image: String,
    maps: Api<ConfigMap>,
}

impl Resolver {
    /// With an account that may do everything.
    pub(crate) async fn new(world: &World) -> Self {
        let account = account(world, "deployer").await;
        grant(world, &account, "deployer", vec![PolicyRule::everything(), PolicyRule::every_path()]).await;
        let bundle = Bundle::empty().with("manifests/note.yaml", &bundles::config_map("note", "a member"));
        let image = world.push(&bundle).await;
        Self { set: world.name(), account, image, maps: system_maps(world, &world.client) }
    }

    /// The BundleDeployment of the set.
    pub(crate) fn deployment(&self) -> String {
        format!("decidedset-{}", self.set)
    }

    fn member(&self, name: &str) -> String {
        format!("{}-{name}", self.set)
    }

    /// The manifest of a member, in a namespace of its own.
    fn manifest(&self, world: &World, name: &str, needs: &[&str]) -> String {
        let needs: Vec<String> = needs.iter().map(|need| self.member(need)).collect();
        let account = json!({"name": self.account.name, "namespace": self.account.namespace});
        let mut member = json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
            "metadata": {"name": self.member(name), "annotations": {"resolveset.chandler.dev/depends-on": needs.join(",")}},
            "spec": {"installNamespace": format!("{}-{name}", world.namespace), "provisionerClassName": PLAIN,
                     "serviceAccount": account, "source": {"type": "image", "image": {"ref": self.image}}},
        });
        world.mark(&mut member);
        member.to_string()
    }

    /// A decision with these members, each with what it needs.
    fn decision(&self, world: &World, number: &str, members: &[(&str, &[&str])]) -> Value {
        let data =
            members.iter().map(|(name, needs)| (format!("{name}.json"), json!(self.manifest(world, name, needs))));
        let mut map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "immutable": true, "data": data.collect::<serde_json::Map<_, _>>(),
            "metadata": {
                "name": format!("decision-{number}"), "namespace": world.system_namespace,
                "annotations": {
                    "resolveset.chandler.dev/set": self.set,
                    "resolveset.chandler.dev/number": number,
                    "resolveset.chandler.dev/service-account": format!("{}/{}", self.account.namespace, self.account.name),
                },
            },
        });
        world.mark(&mut map);
        map
    }

    pub(crate) async fn decide(&self, world: &World, number: &str, members: &[(&str, &[&str])]) {
        create(&self.maps, self.decision(world, number, members)).await.expect("it may be written");
    }

    pub(crate) async fn withdraw(&self, number: &str) {
        let name = format!("decision-{number}");
        self.maps.delete(&name, &DeleteParams::default()).await.expect("it may be deleted");
    }

    /// Waits until the set has this decision, and exactly these members, which are ready.
    pub(crate) async fn installed(&self, world: &World, number: &str, members: &[&str]) {
        let map = format!("decision-{number}");
        wait::until(&world.deployments(), &self.deployment(), "the decision", |it| {
            let maps = it.and_then(|it| it.spec.source.config_maps.as_deref()).unwrap_or_default();
            maps.iter().any(|source| source.config_map.name == map)
        })
        .await;
        world.ready(&self.deployment()).await;
        for member in members {
            world.ready(&self.member(member)).await;
        }
        let mut expected: Vec<String> = members.iter().map(|name| self.member(name)).collect();
        expected.sort();
        wait::eventually("the set has no other members", || async { self.members(world).await == expected }).await;
    }

    pub(crate) async fn members(&self, world: &World) -> Vec<String> {
        let selected = ListParams::default().labels(&format!("{OWNER_NAME_LABEL}={}", self.deployment()));
        let members = world.deployments().list(&selected).await.expect("BundleDeployments");
        members.iter().map(kube::ResourceExt::name_any).collect()
    }

    pub(crate) async fn gone(&self, world: &World) {
        wait::until(&world.deployments(), &self.deployment(), "gone", |it| it.is_none()).await;
        wait::until(&self.maps, &self.deployment(), "the note is gone", |map| map.is_none()).await;
        assert_eq!(self.members(world).await, [""; 0]);
    }

    /// Waits for an Event about a decision, and returns its text.
    async fn reported(&self, world: &World, number: &str, reason: &str) -> String {
        let events: Api<Event> = Api::namespaced(world.client.clone(), &world.system_namespace);
        let (name, found) = (format!("decision-{number}"), std::sync::Mutex::new(String::new()));
        wait::eventually(&format!("an Event {reason}"), || async {
            let all = events.list(&ListParams::default()).await.expect("Events").items.into_iter();
            let mut about = all.filter(|event| {
                let regarding = event.regarding.as_ref().and_then(|object| object.name.as_deref());
                regarding == Some(&name) && event.reason.as_deref() == Some(reason)
            });
            let note = about.next_back().and_then(|event| event.note);
            found.lock().expect("no test panicked").extend(note.iter().map(String::as_str));
            note.is_some()
        })
        .await;
        found.into_inner().expect("no test panicked")
    }

    async fn is_absent(&self, world: &World) -> bool {
        world.deployments().get_opt(&self.deployment()).await.expect("an answer").is_none()
    }
}

fn system_maps(world: &World, client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), &world.system_namespace)
}

async fn create(maps: &Api<ConfigMap>, map: Value) -> kube::Result<ConfigMap> {
    let map: ConfigMap = serde_json::from_value(map).expect("a ConfigMap");
    maps.create(&PostParams::default(), &map).await
}

async fn grant(world: &World, account: &Account, name: &str, rules: Vec<PolicyRule>) {
    apply(world, &roles(&[(None, rules)].into(), account, &format!("{}-{name}", world.name()))).await;
}

/// The namespaces of members.
pub(crate) async fn namespaces(world: &World, members: &[&str]) {
    for member in members {
        let name = format!("{}-{member}", world.namespace);
        apply(world, &[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_of_another_resolver_is_installed_changed_and_removed() {
    let world = World::new().await;
    let resolver = Resolver::new(&world).await;
    namespaces(&world, &["app", "base", "extra"]).await;
    resolver.decide(&world, "1", &[("app", &["base"]), ("base", &[])]).await;
    resolver.installed(&world, "1", &["app", "base"]).await;
    let report = resolver.reported(&world, "1", "Decided").await;
    assert!(report.contains(&format!("`chandler explain {}`", resolver.deployment())), "{report}");
    let set = world.deployments().get(&resolver.deployment()).await.expect("the set");
    let account = set.spec.service_account.expect("an account");
    assert_eq!((account.name, account.namespace), ("deployer".to_owned(), Some(world.namespace.clone())));

    // The number decides, not the order in which they are written.
    resolver.decide(&world, "10", &[("base", &[]), ("extra", &["base"])]).await;
    resolver.installed(&world, "10", &["base", "extra"]).await;
    resolver.decide(&world, "9", &[("app", &[])]).await;
    resolver.withdraw("1").await;
    resolver.installed(&world, "10", &["base", "extra"]).await;
    resolver.withdraw("10").await;
    resolver.installed(&world, "9", &["app"]).await;

    // A set that is deleted by another user is created again.
    world.deployments().delete(&resolver.deployment(), &DeleteParams::default()).await.expect("it exists");
    wait::until(&world.deployments(), &resolver.deployment(), "created again", |it| {
        it.is_some_and(|it| it.uid() != set.metadata.uid)
    })
    .await;
    resolver.installed(&world, "9", &["app"]).await;
    resolver.withdraw("9").await;
    resolver.gone(&world).await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_option_a_decision_installs_nothing() {
    let mut world = World::without_controller(Cluster::acquire().await).await;
    world.start_controller_changed(|options| options.decisions_from_config_maps = false);
    let resolver = Resolver::new(&world).await;
    namespaces(&world, &["app"]).await;
    resolver.decide(&world, "1", &[("app", &[])]).await;
    let report = resolver.reported(&world, "1", "DecisionRefused").await;
    assert!(report.contains("start it with --decisions-from-config-maps"), "{report}");
    assert!(resolver.is_absent(&world).await);
    resolver.withdraw("1").await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_a_withdrawn_decision_are_removed_before_what_they_depend_on() {
    let mut world = World::new().await;
    let resolver = Resolver::new(&world).await;
    namespaces(&world, &["app", "base"]).await;
    resolver.decide(&world, "1", &[("app", &["base"]), ("base", &[])]).await;
    resolver.installed(&world, "1", &["app", "base"]).await;
    // The controller notices it although it did not run.
    world.stop_controller().await;
    resolver.withdraw("1").await;
    world.start_controller();
    let removals = Removals::watch(&world, &resolver.deployment(), 2).await;
    removals.assert_before(&resolver.member("app"), &resolver.member("base"));
    resolver.gone(&world).await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_decision_is_reported_on_its_config_map_and_installs_nothing() {
    let world = World::new().await;
    let resolver = Resolver::new(&world).await;
    namespaces(&world, &["app"]).await;
    for (number, annotation, message) in [
        ("1", "number", "resolveset.chandler.dev/number is missing"),
        ("2", "service-account", "resolveset.chandler.dev/service-account is missing"),
    ] {
        let mut map = resolver.decision(&world, number, &[("app", &[])]);
        let annotations = map["metadata"]["annotations"].as_object_mut().expect("annotations");
        annotations.remove(&format!("resolveset.chandler.dev/{annotation}"));
        create(&resolver.maps, map).await.expect("it may be written");
        let report = resolver.reported(&world, number, "DecisionRefused").await;
        assert!(report.contains(message), "{report}");
    }
    let mut map = resolver.decision(&world, "3", &[("app", &[])]);
    map["immutable"] = json!(false);
    create(&resolver.maps, map).await.expect("it may be written");
    let report = resolver.reported(&world, "3", "DecisionRefused").await;
    assert!(report.contains("kubectl patch configmap decision-3"), "{report}");
    assert!(resolver.is_absent(&world).await);

    let freeze = Patch::Merge(json!({"immutable": true}));
    resolver.maps.patch("decision-3", &PatchParams::default(), &freeze).await.expect("it may be changed");
    resolver.installed(&world, "3", &["app"]).await;
    // While a decision is refused, what is installed stays.
    resolver.withdraw("3").await;
    let mut map = resolver.decision(&world, "3", &[]);
    map["metadata"]["annotations"]["resolveset.chandler.dev/service-account"] = json!("deployer");
    map["metadata"]["name"] = json!("decision-4");
    create(&resolver.maps, map).await.expect("it may be written");
    let report = resolver.reported(&world, "4", "DecisionRefused").await;
    assert!(report.contains("write NAMESPACE/NAME"), "{report}");
    for number in ["1", "2", "4"] {
        resolver.withdraw(number).await;
    }
    resolver.gone(&world).await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_is_missing_or_lacks_permissions_installs_nothing() {
    let world = World::new().await;
    let mut resolver = Resolver::new(&world).await;
    namespaces(&world, &["app"]).await;
    resolver.account.name = "missing".to_owned();
    resolver.decide(&world, "1", &[("app", &[])]).await;
    let refused = world.condition(&resolver.deployment(), "Ready", "False", "ServiceAccountNotFound").await;
    let message = &condition(&refused, "Ready").expect("Ready").message;
    assert!(message.contains(&format!("{}/missing does not exist", world.namespace)), "{message}");

    resolver.account = account(&world, "weak").await;
    resolver.decide(&world, "2", &[("app", &[])]).await;
    world.condition(&resolver.deployment(), "Ready", "False", "PermissionsMissing").await;
    assert_eq!(resolver.members(&world).await, [""; 0]);

    // It may write BundleDeployments, but a member cannot have the permissions of another account, or of the controller.
    let all = ["get", "list", "watch", "create", "patch", "update", "delete"];
    let rules = json!([
        {"apiGroups": ["core.rukpak.io"], "resources": ["bundledeployments"], "verbs": all},
        {"apiGroups": ["core.rukpak.io"], "resources": ["bundledeployments/finalizers"], "verbs": ["update"]},
    ]);
    grant(&world, &resolver.account, "weak", serde_json::from_value(rules).expect("rules")).await;
    for (number, account) in [("3", json!({"name": "deployer", "namespace": world.namespace})), ("4", Value::Null)] {
        let mut map = resolver.decision(&world, number, &[]);
        let mut member: Value =
            serde_json::from_str(&resolver.manifest(&world, "app", &[])).expect("the manifest of a member");
        member["spec"]["serviceAccount"] = account;
        map["data"]["app.json"] = json!(member.to_string());
        create(&resolver.maps, map).await.expect("it may be written");
        wait::until(&world.deployments(), &resolver.deployment(), "refused", |it| {
            let Some(ready) = it.and_then(|it| condition(it, "Ready")) else { return false };
            let is_current = ready.observed_generation == it.and_then(|it| it.metadata.generation);
            is_current && ready.reason == "PermissionsMissing" && it.is_some_and(|it| names(it, number))
        })
        .await;
        assert_eq!(resolver.members(&world).await, [""; 0]);
    }
    for number in ["1", "2", "3", "4"] {
        resolver.withdraw(number).await;
    }
    resolver.gone(&world).await;
    world.finish().await;
}

/// Whether the source of a set is the decision with this number.
fn names(deployment: &BundleDeployment, number: &str) -> bool {
    let maps = deployment.spec.source.config_maps.as_deref().unwrap_or_default();
    maps.iter().any(|source| source.config_map.name == format!("decision-{number}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_content_is_reported_and_what_is_installed_stays() {
    let world = World::new().await;
    let resolver = Resolver::new(&world).await;
    namespaces(&world, &["app"]).await;
    resolver.decide(&world, "1", &[("app", &[])]).await;
    resolver.installed(&world, "1", &["app"]).await;
    let before = world.deployments().get(&resolver.member("app")).await.expect("a member").uid();
    for (number, content, message) in [
        ("2", "kind: [", "app.yaml"),
        ("3", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", "want BundleDeployment"),
        ("4", "", "the set has no member"),
    ] {
        let mut map = resolver.decision(&world, number, &[]);
        map["data"]["app.yaml"] = json!(content);
        create(&resolver.maps, map).await.expect("it may be written");
        wait::until(&world.deployments(), &resolver.deployment(), "refused", |it| {
            let Some(found) = it.and_then(|it| condition(it, "Progressing")) else { return false };
            let is_current = found.observed_generation == it.and_then(|it| it.metadata.generation);
            is_current && found.reason == "InvalidContent" && found.message.contains(message)
        })
        .await;
    }
    let after = world.deployments().get(&resolver.member("app")).await.expect("a member").uid();
    assert_eq!(after, before);
    for number in ["2", "3", "4"] {
        resolver.withdraw(number).await;
    }
    resolver.installed(&world, "1", &["app"]).await;
    resolver.withdraw("1").await;
    resolver.gone(&world).await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_deployment_of_another_origin_is_neither_taken_over_nor_deleted() {
    let world = World::new().await;
    let resolver = Resolver::new(&world).await;
    let before = world.deploy(&resolver.deployment(), PLAIN, &resolver.image).await;
    world.ready(&resolver.deployment()).await;
    resolver.decide(&world, "1", &[("app", &[])]).await;
    let report = resolver.reported(&world, "1", "DecisionRefused").await;
    assert!(report.contains(&format!("`chandler delete {}`", resolver.deployment())), "{report}");
    resolver.withdraw("1").await;
    // A later decision is handled after the deletion of the first one.
    resolver.decide(&world, "2", &[("app", &[])]).await;
    resolver.reported(&world, "2", "DecisionRefused").await;
    let after = world.deployments().get(&resolver.deployment()).await.expect("it stays");
    assert_eq!(
        (after.uid(), &after.spec, after.metadata.deletion_timestamp.is_some()),
        (before.uid(), &before.spec, false)
    );

    // Once it is out of the way, the set is installed.
    namespaces(&world, &["app"]).await;
    world.deployments().delete(&resolver.deployment(), &DeleteParams::default()).await.expect("it exists");
    resolver.installed(&world, "2", &["app"]).await;
    resolver.withdraw("2").await;
    resolver.gone(&world).await;
    world.finish().await;
}

/// The message of an admission policy.
fn denied<T: Debug>(result: kube::Result<T>) -> String {
    match result {
        Err(kube::Error::Api(status)) if status.code == 403 => status.message,
        other => panic!("{other:?} is not a denial"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_shipped_policies_only_who_may_decide_and_impersonate_the_account_feeds_a_set() {
    let mut world = World::without_controller(Cluster::acquire().await).await;
    apply(&world, &deployed(&world, "rbac.yaml")).await;
    let policies = policies(&world);
    apply(&world, &policies).await;
    let resolver = Resolver::new(&world).await;
    namespaces(&world, &["app"]).await;
    let acts = json!([{"apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": ["deployer"],
                       "verbs": ["get", "impersonate"]}]);
    let decides = |set: &str| {
        json!([{"apiGroups": ["core.rukpak.io"], "resources": ["bundledeployments"],
                "resourceNames": [format!("decidedset-{set}")], "verbs": ["decide"]}])
    };
    let writes = json!([{"apiGroups": [""], "resources": ["configmaps"],
                         "verbs": ["get", "list", "create", "update", "patch", "delete"]}]);
    let rules = |rules: &Value| serde_json::from_value::<Vec<PolicyRule>>(rules.clone()).expect("rules");
    // Each may write ConfigMaps; `mallory` may not decide this set, `half` may not impersonate, and `full` may do both.
    let mut clients = Vec::new();
    for (name, more) in [
        ("mallory", vec![rules(&acts), rules(&decides("another"))]),
        ("half", vec![rules(&decides(&resolver.set))]),
        ("full", vec![rules(&acts), rules(&decides(&resolver.set))]),
    ] {
        let user = account(&world, name).await;
        grant(&world, &user, name, [vec![rules(&writes)], more].concat().concat()).await;
        clients.push(chandler_rollout::impersonating(&world.client, &user).expect("a client"));
    }
    let chandler = Account { namespace: world.system_namespace.clone(), name: "chandler".to_owned() };
    grant(&world, &chandler, "chandler", rules(&acts)).await;
    let client = controller(&world).await;
    wait::eventually("the permissions apply", || async {
        Api::<BundleDeployment>::all(client.clone()).list(&ListParams::default()).await.is_ok()
    })
    .await;
    world.start_controller_deployed(|_| {}).await;

    let [mallory, half, full] = [0, 1, 2].map(|index: usize| system_maps(&world, &clients[index]));
    let decision = || resolver.decision(&world, "1", &[("app", &[])]);
    wait::eventually("the policies are in force", || async {
        // Until then the request is accepted, so nothing is stored.
        let map: ConfigMap = serde_json::from_value(decision()).expect("a ConfigMap");
        let refused = mallory.create(&PostParams { dry_run: true, ..PostParams::default() }, &map).await;
        matches!(refused, Err(kube::Error::Api(status)) if status.message.contains("may not decide"))
    })
    .await;
    assert!(denied(create(&mallory, decision()).await).contains("may not decide"));
    assert!(denied(create(&half, decision()).await).contains("may not impersonate ServiceAccount"));
    assert!(resolver.is_absent(&world).await);
    wait::eventually("the decision is accepted", || async { create(&full, decision()).await.is_ok() }).await;
    resolver.installed(&world, "1", &["app"]).await;
    resolver.reported(&world, "1", "Decided").await;

    // Other users can neither change nor remove a decision or the controller's notes about it.
    let relabel = Patch::Merge(json!({"metadata": {"annotations": {"resolveset.chandler.dev/number": "7"}}}));
    let changed = full.patch("decision-1", &PatchParams::default(), &relabel).await;
    assert!(denied(changed).contains("cannot be added, changed or removed"));
    assert!(denied(mallory.delete("decision-1", &DeleteParams::default()).await).contains("may not decide"));
    let note = mallory.delete(&resolver.deployment(), &DeleteParams::default()).await;
    assert!(denied(note).contains("only the Chandler controller may write"));
    full.delete("decision-1", &DeleteParams::default()).await.expect("it may be deleted although the set names it");
    resolver.gone(&world).await;

    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(world.client.clone());
    let all: Api<ValidatingAdmissionPolicy> = Api::all(world.client.clone());
    for name in policies.iter().filter_map(|policy| policy["metadata"]["name"].as_str()) {
        let _ = bindings.delete(name, &DeleteParams::default()).await;
        let _ = all.delete(name, &DeleteParams::default()).await;
    }
    let granted = ["mallory", "half", "full", "chandler"].map(|name| format!("{}-{name}", world.name()));
    remove_cluster_roles(&world, &granted.each_ref().map(String::as_str)).await;
    world.finish().await;
}
