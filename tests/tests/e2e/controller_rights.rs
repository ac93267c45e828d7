//! The controller with exactly the permissions of `deploy/rbac.yaml`: they suffice, and each of them is used.

use std::{
    collections::BTreeSet,
    net::Ipv4Addr,
    sync::{Arc, Mutex},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_api::{ConditionType, find_condition};
use chandler_controller::{
    ContentOptions, Election, ServiceOptions,
    options::{INSTALLATIONS_NAMESPACE, LEASE},
};
use chandler_permissions::{Attributes, PolicyRule, ResourceAttributes, cover::break_down, role::Role, roles};
use chandler_tests::{
    Cluster, ContentClient, InProcess, World, bundles::Bundle, content_service, deploy, wait, world::condition,
};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, Secret},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    client::Body,
};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::{
    PLAIN, catalogs, leader_election,
    permissions::{apply, spec},
};

/// A request that the controller sent with its own permissions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Made {
    verb: String,
    group: String,
    resource: String,
    namespace: String,
    name: String,
}

impl Made {
    /// The access of a request; none for what every user may do, such as discovery.
    fn of(request: &http::Request<Body>) -> Option<Self> {
        let path: Vec<&str> = request.uri().path().trim_matches('/').split('/').collect();
        let (group, rest) = match path.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            rest => ("", rest),
        };
        let (resource, name) = match rest {
            [resource] => ((*resource).to_owned(), ""),
            [resource, name] => ((*resource).to_owned(), *name),
            [resource, name, subresource] => (format!("{resource}/{subresource}"), *name),
            _ => return None,
        };
        let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let verb = match request.method().as_str() {
            "GET" if watches => "watch",
            "GET" if name.is_empty() => "list",
            "GET" => "get",
            "POST" => "create",
            "PATCH" => "patch",
            "PUT" => "update",
            "DELETE" => "delete",
            other => other,
        };
        let own = str::to_owned;
        Some(Self { verb: own(verb), group: own(group), resource, namespace: own(namespace), name: own(name) })
    }

    fn is_allowed_by(&self, rule: &PolicyRule) -> bool {
        let (resource, subresource) = self.resource.split_once('/').unwrap_or((&self.resource, ""));
        rule.allows(&Attributes::Resource(ResourceAttributes {
            verb: self.verb.clone(),
            group: self.group.clone(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            version: String::new(),
        }))
    }
}

/// A client that records its requests with its own permissions, and which of them were denied.
fn recording(client: &Client, made: &Arc<Mutex<BTreeSet<Made>>>, refused: &Arc<Mutex<BTreeSet<Made>>>) -> Client {
    let (inner, made, refused) = (client.clone(), Arc::clone(made), Arc::clone(refused));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let own = !request.headers().contains_key("impersonate-user");
        let what = Made::of(&request).filter(|_| own);
        made.lock().expect("no other thread panics").extend(what.clone());
        let (inner, refused) = (inner.clone(), Arc::clone(&refused));
        async move {
            let response = inner.send(request).await?;
            if response.status() == http::StatusCode::FORBIDDEN {
                refused.lock().expect("no other thread panics").extend(what);
            }
            Ok::<_, kube::Error>(response)
        }
    });
    Client::new(service, "default")
}

/// The name of the Lease that installations have in common. On a shared cluster a controller may be installed.
fn installations_lease(world: &World) -> String {
    format!("{}-chandler-controller", world.namespace)
}

/// The objects of a file of `deploy/`, with names of this test.
pub(crate) fn deployed(world: &World, file: &str) -> Vec<Value> {
    let text = deploy::text(file).replace("[chandler-controller]", &format!("[{}]", installations_lease(world)));
    deploy::read(world.run(), &text)
}

/// A client with the controller's ServiceAccount.
pub(crate) async fn controller(world: &World) -> Client {
    let token = content_service::token(world, &world.system_namespace, "chandler").await;
    let mut config = world.config();
    config.auth_info = kube::config::AuthInfo { token: Some(token.into()), ..kube::config::AuthInfo::default() };
    Client::try_from(config).expect("a client")
}

/// A bundle for which the controller needs all its read permissions: it binds existing roles and aggregates ClusterRoles.
fn demanding(world: &World) -> Bundle {
    let namespace = &world.namespace;
    let binding = |name: &str, kind: &str, role: &str| {
        format!(
            "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{name: {name}}}\n\
             roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {kind}, name: {role}}}\n\
             subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: Group, name: keepers}}]\n"
        )
    };
    let whole = format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {namespace}-whole}}\n\
         aggregationRule: {{clusterRoleSelectors: [{{matchLabels: {{part: {namespace}}}}}]}}\n"
    );
    let text = format!("{whole}{}{}", binding("local", "Role", "present"), binding("wide", "ClusterRole", "view"));
    Bundle::empty().with("manifests/roles.yaml", &text)
}

fn rules_of(objects: &[Value]) -> Vec<PolicyRule> {
    objects.iter().flat_map(|object| Role::read(object).rules).collect()
}

/// Permissions whose use this test does not see.
const NOT_SEEN: &[&str] = &[
    // An Event is updated only if it recurs within minutes.
    r#"{APIGroups:["events.k8s.io"], Resources:["events"], Verbs:["patch"]}"#,
    // The BundleDeployment comes from the watch. It is read only where its newest state matters, or where it cannot be decoded.
    r#"{APIGroups:["core.rukpak.io"], Resources:["bundledeployments"], Verbs:["get"]}"#,
    // Applying the ConfigMap is a patch. The API server checks this, too, if the ConfigMap does not exist.
    r#"{APIGroups:[""], Resources:["configmaps"], ResourceNames:["chandler-content"], Verbs:["create"]}"#,
    // A replica that waits for the leader watches its Lease. There is one replica here.
    r#"{APIGroups:["coordination.k8s.io"], Resources:["leases"], Verbs:["watch"]}"#,
    // No request uses it directly: the API server checks it for a request header.
    r#"{APIGroups:[""], Resources:["serviceaccounts"], ResourceNames:["deployer"], Verbs:["impersonate"]}"#,
];

/// Waits until the set of a Resolution has its member, has the same decision confirmed for another spec, and deletes it.
async fn resolve(world: &World, name: &str, package: &str) {
    let resolutions: Api<chandler_api::Resolution> = Api::all(world.client.clone());
    wait::until(&world.deployments(), package, "created", |member| member.is_some()).await;
    let spec = kube::api::Patch::Merge(json!({"spec": {"prereleases": true}}));
    let patched = resolutions.patch(name, &kube::api::PatchParams::default(), &spec).await.expect("the object exists");
    wait::until(&resolutions, name, "reconciled", |resolution| {
        let observed = resolution.and_then(|it| it.status.as_ref()).and_then(|status| status.observed_generation);
        observed == patched.metadata.generation
    })
    .await;
    resolutions.delete(name, &kube::api::DeleteParams::default()).await.expect("the object exists");
    wait::until(&resolutions, name, "gone", |resolution| resolution.is_none()).await;
}

/// Waits until the checks refuse the package of a PlatformOperator, for which the controller itself has no permissions, and deletes it.
async fn want(world: &World, name: &str, package: &str) {
    let operators: Api<chandler_api::PlatformOperator> = Api::all(world.client.clone());
    let spec = json!({"package": {"name": package}});
    let _: chandler_api::PlatformOperator = world.create(json!({"metadata": {"name": name}, "spec": spec})).await;
    wait::until(&operators, name, "refused", |operator| {
        let status = operator.and_then(|it| it.status.as_ref());
        let installed = status.and_then(|it| find_condition(&it.conditions, ConditionType::Installed));
        installed.is_some_and(|it| it.reason == "InstallFailed" && it.message.contains("configmaps"))
    })
    .await;
    operators.delete(name, &kube::api::DeleteParams::default()).await.expect("the object exists");
    wait::until(&operators, name, "gone", |operator| operator.is_none()).await;
}

#[tokio::test]
async fn the_controller_has_exactly_the_permissions_it_needs() {
    let mut world = World::without_controller(Cluster::acquire().await).await;
    let name = world.name();
    let rights = deployed(&world, "rbac.yaml");
    apply(&world, &rights).await;
    let mut content = deployed(&world, "content.yaml");
    apply(&world, &content).await;
    content.retain(|object| !object["metadata"]["name"].as_str().is_some_and(|name| name.ends_with("-reader")));
    let tenant = deployed(&world, "rbac-service-account.yaml");
    apply(&world, &tenant).await;
    let deployer = chandler_permissions::Account { namespace: world.namespace.clone(), name: "deployer".to_owned() };
    let wide = vec![PolicyRule::everything(), PolicyRule::every_path()];
    apply(&world, &roles(&[(None, wide)].into(), &deployer, &name)).await;

    // A class, a catalog, a pull secret, and a bundle in a ConfigMap.
    let host = world.registry.host();
    let auths = json!({"auths": {host.clone(): {"auth": STANDARD.encode("user:password")}}}).to_string();
    apply(
        &world,
        &[
            json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
            "metadata": {"name": "pull", "namespace": world.system_namespace},
            "data": {".dockerconfigjson": STANDARD.encode(auths)}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "immutable": true,
            "metadata": {"name": "bell", "namespace": world.system_namespace},
            "data": {"bell.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: bell}\nstringData: {tone: low}\n"}}),
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": "present", "namespace": world.namespace},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
        ],
    )
    .await;
    let classes: Api<chandler_api::ProvisionerClass> = Api::all(world.client.clone());
    let image = json!({"image": format!("{host}/none:v1"), "deletion": {"whileInUse": "Wait"}});
    let class = json!({"metadata": {"name": name}, "spec": image});
    let _: chandler_api::ProvisionerClass = world.create(class).await;
    let source = json!({"type": "image", "image": {"ref": format!("{host}/none:v1")}});
    let _: chandler_api::Catalog = world.create(json!({"metadata": {"name": name}, "spec": {"source": source}})).await;

    let package = format!("{name}-package");
    let note = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n";
    let bundle = world.push(&Bundle::empty().with("manifests/note.yaml", note)).await;
    let documents = catalogs::package(&package, &["1.0.0"]);
    let documents = documents.replace(&format!("registry.invalid/{package}:v1.0.0"), &bundle);
    let reference = catalogs::push(&world.registry, &[("a.yaml", &documents)]).await;
    let source = json!({"type": "image", "image": {"ref": reference}});
    let other = format!("{name}-ready");
    let _: chandler_api::Catalog = world.create(json!({"metadata": {"name": other}, "spec": {"source": source}})).await;
    let set = json!({"installNamespace": world.namespace, "serviceAccount": {"name": "deployer"}});
    let wish = json!({"packages": [{"name": package}], "output": {"type": "ResolveSet", "resolveSet": set},
                      "catalogs": {"matchLabels": {"olm.operatorframework.io/metadata.name": other}}});
    let _: chandler_api::Resolution = world.create(json!({"metadata": {"name": name}, "spec": wish})).await;

    let policy = json!({"metadata": {"name": world.platform()}, "spec": {"packages": [{"name": package}]}});
    let _: chandler_api::PlatformPolicy = world.create(policy).await;
    let hook =
        json!({"type": "github", "secretRef": {"name": "pull"}, "resources": [{"kind": "Catalog", "name": "*"}]});
    let _: chandler_api::Receiver = world.create(json!({"metadata": {"name": name}, "spec": hook})).await;
    let provider = json!({"type": "Slack", "secretRef": {"name": "missing"}});
    let alert = json!({"metadata": {"name": name}, "spec": {"provider": provider}});
    let _: chandler_api::Alert = world.create(alert).await;

    let (made, refused) = (Arc::default(), Arc::default());
    let client = recording(&controller(&world).await, &made, &refused);
    let own = client.clone();
    let election = Election::new(move || Ok(own.clone()), &world.system_namespace, LEASE, name.clone())
        .with_timing(leader_election::SHORT)
        .among_installations(INSTALLATIONS_NAMESPACE, &installations_lease(&world), &world.system_namespace);
    world.start_controller_with(InProcess::RecordsRequests, client, |options| {
        options.leader_election = Some(election);
        options.content = Some(ContentOptions::at((Ipv4Addr::LOCALHOST, 0).into()));
        let (address, service) = ((Ipv4Addr::LOCALHOST, 0).into(), "chandler-receiver".to_owned());
        options.receiver = Some(ServiceOptions { address, service, tls_secret: None });
    });
    let announced = content_service::announced(&world, "announced", |_| true).await;
    let token = content_service::token(&world, &world.system_namespace, "chandler").await;
    let answer = ContentClient::new(&announced, Some(token)).get("/bundles/none.tgz", &[]).await;
    assert_eq!(answer.status, http::StatusCode::FORBIDDEN, "{}", answer.text());
    let mut images = spec(&world, PLAIN, &world.push(&demanding(&world)).await, "deployer");
    images["source"]["image"]["pullSecret"] = json!("pull");
    world.apply(&name, images).await;
    let bell = format!("{name}-bell");
    let mut maps = spec(&world, PLAIN, "", "deployer");
    maps["source"] =
        json!({"type": "configMaps", "configMaps": [{"configMap": {"name": "bell"}, "path": "manifests"}]});
    world.apply(&bell, maps).await;
    world.ready(&name).await;
    world.ready(&bell).await;
    wait::until(&classes, &name, "reconciled", |class| class.is_some_and(|class| class.status.is_some())).await;
    let catalogs: Api<chandler_api::Catalog> = Api::all(world.client.clone());
    let is_reconciled = |catalog: Option<&chandler_api::Catalog>| {
        catalog.and_then(|catalog| catalog.status.as_ref()).is_some_and(|status| !status.conditions.is_empty())
    };
    wait::until(&catalogs, &name, "reconciled", is_reconciled).await;
    let policies: Api<chandler_api::PlatformPolicy> = Api::all(world.client.clone());
    wait::until(&policies, &world.platform(), "accepted", |policy| {
        let status = policy.and_then(|policy| policy.status.as_ref());
        let accepted = status.and_then(|it| find_condition(&it.conditions, ConditionType::Accepted));
        accepted.is_some_and(|accepted| accepted.status == "True")
    })
    .await;
    let receivers: Api<chandler_api::Receiver> = Api::all(world.client.clone());
    wait::until(&receivers, &name, "reconciled", |receiver| {
        receiver.and_then(|receiver| receiver.status.as_ref()).is_some_and(|status| !status.conditions.is_empty())
    })
    .await;
    let alerts: Api<chandler_api::Alert> = Api::all(world.client.clone());
    wait::until(&alerts, &name, "reconciled", |alert| {
        alert.and_then(|alert| alert.status.as_ref()).is_some_and(|status| !status.conditions.is_empty())
    })
    .await;
    resolve(&world, &name, &package).await;
    let denied = || refused.lock().expect("no other thread panics").clone();
    assert_eq!(denied(), BTreeSet::new(), "refused");
    want(&world, &format!("{name}-wish"), &package).await;
    // Without an account, the controller itself reads what the bundle has.
    let of_bundle = |made: &Made| made.verb == "list" && made.resource == "configmaps";
    assert!(denied().iter().all(of_bundle), "{:?}", denied());
    refused.lock().expect("no other thread panics").clear();
    world.delete(&bell).await;
    world.delete(&name).await;
    classes.delete(&name, &kube::api::DeleteParams::default()).await.expect("the object exists");
    // On a fast machine, all of this takes less time than the Leases are valid.
    let common = installations_lease(&world);
    wait::eventually("the Lease of all installations is renewed", || async {
        let made = made.lock().expect("no other thread panics");
        made.iter().any(|made: &Made| made.verb == "update" && made.resource == "leases" && made.name == common)
    })
    .await;
    // It releases its Lease, and keeps its installation's.
    world.stop_controller().await;
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), INSTALLATIONS_NAMESPACE);
    leases.delete(&installations_lease(&world), &kube::api::DeleteParams::default()).await.expect("the Lease exists");

    assert_eq!(*refused.lock().expect("no other thread panics"), BTreeSet::new(), "refused");
    let made = made.lock().expect("no other thread panics").clone();
    let granted = rules_of(&rights)
        .into_iter()
        .chain(rules_of(&content))
        .chain(rules_of(&tenant))
        .flat_map(|rule| break_down(&rule));
    let unused: Vec<String> = granted
        .filter(|rule| !made.iter().any(|made| made.is_allowed_by(rule)))
        .map(|rule| rule.to_string())
        .filter(|rule| !NOT_SEEN.contains(&rule.as_str()))
        .collect();
    assert_eq!(unused, [""; 0], "{made:#?}");
    world.finish().await;
}

#[tokio::test]
async fn with_permission_to_watch_one_watch_per_kind_serves_all_accounts() {
    let mut world = World::new().await;
    world.stop_controller().await;
    for file in ["rbac.yaml", "rbac-service-account.yaml", "rbac-watch.yaml"] {
        apply(&world, &deployed(&world, file)).await;
    }
    let deployer = chandler_permissions::Account { namespace: world.namespace.clone(), name: "deployer".to_owned() };
    let wide = vec![PolicyRule::everything(), PolicyRule::every_path()];
    apply(&world, &roles(&[(None, wide)].into(), &deployer, &world.name())).await;
    let (made, refused) = (Arc::default(), Arc::default());
    let client = recording(&controller(&world).await, &made, &refused);
    world.start_controller_on(InProcess::RecordsRequests, client);
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: key}\n";
    let image = world.push(&Bundle::empty().with("manifests/objects.yaml", text)).await;
    let name = world.name();
    world.apply(&name, spec(&world, PLAIN, &image, "deployer")).await;
    world.ready(&name).await;

    // A change of either object is noticed: the ConfigMap's by the controller's watch, the Secret's by the account's.
    let change = Patch::Merge(json!({"metadata": {"labels": null}}));
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.namespace);
    maps.patch("note", &PatchParams::default(), &change).await.expect("a change");
    secrets.patch("key", &PatchParams::default(), &change).await.expect("a change");
    wait::until(&maps, "note", "repaired", |map| map.is_some_and(|map| map.metadata.labels.is_some())).await;
    wait::until(&secrets, "key", "repaired", |key| key.is_some_and(|key| key.metadata.labels.is_some())).await;

    assert_eq!(*refused.lock().expect("no other thread panics"), BTreeSet::new(), "refused");
    let made: BTreeSet<Made> = made.lock().expect("no other thread panics").clone();
    let watched = |resource: &str| {
        made.iter().any(|made| made.verb == "watch" && made.resource == resource && made.namespace.is_empty())
    };
    assert!(watched("configmaps") && !watched("secrets"), "{made:#?}");
    world.stop_controller().await;
    world.start_controller();
    world.finish().await;
}

/// A permission that is removed, and the message that the BundleDeployment then reports.
const TAKEN: &[(&str, &str, &str)] = &[
    ("namespaces", "get", "cannot read namespace"),
    ("serviceaccounts", "impersonate", "cannot act as ServiceAccount"),
    ("clusterroles", "get", "cannot read the roles that are bound"),
];

#[tokio::test]
async fn a_missing_controller_permission_is_reported_by_name() {
    for (resource, verb, expected) in TAKEN {
        let mut world = World::without_controller(Cluster::acquire().await).await;
        let name = world.name();
        let mut rights = deployed(&world, "rbac.yaml");
        rights.extend(deployed(&world, "rbac-service-account.yaml"));
        for object in &mut rights {
            for rule in object.get_mut("rules").and_then(Value::as_array_mut).into_iter().flatten() {
                let concerned = Vec::<String>::deserialize(&rule["resources"]).expect("resources");
                if concerned.iter().any(|name| name == resource)
                    && let Some(verbs) = rule["verbs"].as_array_mut()
                {
                    verbs.retain(|found| found != verb);
                    if verbs.is_empty() {
                        verbs.push(json!("none"));
                    }
                }
            }
        }
        apply(&world, &rights).await;
        let deployer =
            chandler_permissions::Account { namespace: world.namespace.clone(), name: "deployer".to_owned() };
        let wide = vec![PolicyRule::everything(), PolicyRule::every_path()];
        apply(&world, &roles(&[(None, wide)].into(), &deployer, &name)).await;
        world.start_controller_deployed(|_| {}).await;
        // The namespace of the account exists if the account does.
        let elsewhere = if *resource == "namespaces" { ", namespace: default" } else { "" };
        let text = format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{name: {name}{elsewhere}}}\n\
             roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}}\n\
             subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: Group, name: keepers}}]\n"
        );
        let image = world.push(&Bundle::empty().with("manifests/binding.yaml", &text)).await;
        world.apply(&name, spec(&world, PLAIN, &image, "deployer")).await;
        let deployment = world.condition(&name, "Ready", "False", "Forbidden").await;
        let message = &condition(&deployment, "Ready").expect("Ready").message;
        assert!(message.contains(expected), "{resource} {verb}: {message}");
        world.stop_controller().await;
        world.start_controller();
        world.finish().await;
    }
}
