use std::sync::{Arc, Mutex};

use chandler_core::Object;
use kube::{Client, client::Body};
use serde::Deserialize as _;

use super::*;
use crate::pure::{deletion_plan::DeletionPlan, desired::Served, live::tests::owner};

#[test]
fn needs_become_questions() {
    let need = |rule: Value| Need {
        scope: Scope::Namespace("shop".into()),
        rule: PolicyRule::deserialize(rule).unwrap(),
        why: Why::OwnerReference,
    };
    let query = AccessQuery::of(&need(json!({
        "verbs": ["update"], "apiGroups": ["a.b"], "resources": ["oxen/finalizers"], "resourceNames": ["x"]})));
    assert_eq!(
        query.unwrap().attributes(),
        json!({"namespace": "shop", "verb": "update", "group": "a.b", "resource": "oxen",
               "subresource": "finalizers", "name": "x"})
    );
    assert_eq!(AccessQuery::of(&need(json!({"verbs": ["get"], "nonResourceURLs": ["/x"]}))), None);
}

/// An API server whose authorizer cannot list its rules, and answers access reviews beyond them.
struct Webhook {
    /// `verb resource name` of each granted permission; a name of `*` means all names.
    allowed: &'static [&'static str],
    asked: Arc<Mutex<Vec<String>>>,
    /// How many names the rule has that it lists.
    names: usize,
}

impl Webhook {
    fn new(allowed: &'static [&'static str]) -> Self {
        Self { allowed, asked: Arc::default(), names: 0 }
    }

    fn client(&self) -> Client {
        let (allowed, asked) = (self.allowed, Arc::clone(&self.asked));
        let names: Arc<Vec<String>> = Arc::new((0..self.names).map(|number| format!("n{number}")).collect());
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (asked, names) = (Arc::clone(&asked), Arc::clone(&names));
            async move {
                let rules = request.uri().path().ends_with("selfsubjectrulesreviews");
                let body = request.into_body().collect_bytes().await.unwrap();
                let status = if rules {
                    json!({"incomplete": true, "nonResourceRules": [], "resourceRules": [
                        {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": *names}]})
                } else {
                    let review: Value = serde_json::from_slice(&body).unwrap();
                    let text = |field: &str| review["spec"]["resourceAttributes"][field].as_str().unwrap().to_owned();
                    let name = if text("name").is_empty() { "*".to_owned() } else { text("name") };
                    let query = format!("{} {} {name}", text("verb"), text("resource"));
                    let answer = allowed.contains(&query.as_str());
                    asked.lock().unwrap().push(query);
                    json!({"allowed": answer})
                };
                let answer = json!({"status": status}).to_string();
                Ok::<_, std::convert::Infallible>(http::Response::new(Body::from(answer.into_bytes())))
            }
        });
        Client::new(service, "default")
    }
}

fn desired(kind: &str, group: &str, plural: &str, name: &str, more: &Value) -> Desired {
    let version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
    let mut value = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}});
    value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let object = Object::parse(value.to_string().as_bytes(), 0, None).unwrap();
    let resource = ApiResource {
        group: group.into(),
        version: "v1".into(),
        api_version: object.key.api_version(),
        kind: kind.into(),
        plural: plural.into(),
    };
    Desired::new(&object, Served { resource, namespaced: true }, true, &owner())
}

async fn lacking(webhook: &Webhook, desired: &[Desired]) -> Vec<String> {
    lacking_for(webhook.client(), desired).await
}

async fn lacking_for(client: Client, desired: &[Desired]) -> Vec<String> {
    let account = Account { namespace: "shop".into(), name: "deployer".into() };
    let owner = owner().on_behalf_of(Some(account.clone()));
    let cluster = Cluster::new(client.clone());
    let discovery = Discovery::new(client);
    let recent = RecentAnswers::default();
    let installation = Installation { system_namespace: Some("chandler-system".into()), ..Installation::default() };
    let access_review = AccessReview {
        own: &cluster,
        actor: &cluster,
        discovery: &discovery,
        recent: &recent,
        owner: &owner,
        account: Some(&account),
        installation: &installation,
    };
    let parent = json!({});
    let work = Work { parent: &parent, desired, unwanted: &DeletionPlan::default() };
    let missing = access_review.review_now(work).await.unwrap().missing;
    let shown = |rule: &PolicyRule| chandler_permissions::missing::in_words(rule, 9);
    missing.rules().values().flatten().map(shown).collect()
}

#[tokio::test]
async fn permissions_missing_in_incomplete_rules_are_reviewed() {
    let webhook = Webhook::new(&[
        "create configmaps *",
        "list configmaps *",
        "delete configmaps a",
        "update bundledeployments *",
    ]);
    let objects = [
        desired("ConfigMap", "", "configmaps", "a", &json!({})),
        desired("ConfigMap", "", "configmaps", "b", &json!({})),
    ];
    assert_eq!(
        lacking(&webhook, &objects).await,
        ["watch configmaps", r#"patch configmaps "a""#, r#"delete, patch configmaps "b""#]
    );
    let mut asked = webhook.asked.lock().unwrap().clone();
    asked.sort_unstable();
    // Permissions in the rules are not reviewed, and single names only if not all names are granted.
    assert_eq!(
        asked,
        [
            "create configmaps *",
            "delete configmaps *",
            "delete configmaps a",
            "delete configmaps b",
            "list configmaps *",
            "patch configmaps *",
            "patch configmaps a",
            "patch configmaps b",
            "update bundledeployments *",
            "watch configmaps *",
        ]
    );
}

#[tokio::test]
async fn rules_with_very_many_names_are_not_compared() {
    let allowed: &'static [&'static str] = &[
        "get configmaps n7",
        "create configmaps *",
        "list configmaps *",
        "watch configmaps *",
        "patch configmaps *",
        "delete configmaps *",
        "update bundledeployments *",
    ];
    let objects = [desired("ConfigMap", "", "configmaps", "n7", &json!({}))];
    for (names, is_compared) in [(100, true), (RULES, false), (1_000_000, false)] {
        let webhook = Webhook { names, ..Webhook::new(allowed) };
        assert_eq!(lacking(&webhook, &objects).await, [""; 0], "{names}");
        let asked = webhook.asked.lock().unwrap();
        assert_eq!(!asked.contains(&"get configmaps n7".to_owned()), is_compared, "{names}: {asked:?}");
    }
}

#[tokio::test]
async fn granting_roles_is_reviewed_only_as_escalation() {
    let role = || {
        let rules = json!({"rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]});
        [desired("Role", GROUP, "roles", "keyring", &rules)]
    };
    let requests: &[&str] = &[
        "create roles *",
        "list roles *",
        "watch roles *",
        "get roles *",
        "patch roles *",
        "delete roles *",
        "update bundledeployments *",
    ];
    let some: &'static [&'static str] = Vec::leak(requests.to_vec());
    assert_eq!(lacking(&Webhook::new(some), &role()).await, ["get secrets"]);
    let all: &'static [&'static str] = Vec::leak([requests, &["escalate roles *"]].concat());
    assert_eq!(lacking(&Webhook::new(all), &role()).await, [""; 0]);
}

#[tokio::test]
async fn delegations_are_granted_only_if_they_were_reviewed() {
    let nested = |name: &str, account: &str| {
        let source = json!({"type": "image", "image": {"ref": "a:v1"}});
        let spec = json!({"spec": {"installNamespace": "shop", "serviceAccount": {"name": account}, "source": source}});
        desired("BundleDeployment", "core.rukpak.io", "bundledeployments", name, &spec)
    };
    let requests: &[&str] = &[
        "create bundledeployments *",
        "list bundledeployments *",
        "watch bundledeployments *",
        "get bundledeployments *",
        "patch bundledeployments *",
        "delete bundledeployments *",
        "update bundledeployments *",
        "impersonate serviceaccounts friend",
    ];
    let some: &'static [&'static str] = Vec::leak(requests.to_vec());
    let objects = [nested("a", "deployer"), nested("b", "friend"), nested("c", "root")];
    assert_eq!(lacking(&Webhook::new(some), &objects).await, [r#"impersonate serviceaccounts "root""#]);
    // Permissions beyond the limit of reviews are not granted.
    let many: Vec<Desired> = (0..300).map(|number| nested(&format!("n{number}"), &format!("a{number}"))).collect();
    let rules = lacking(&Webhook::new(some), &many).await.join(" ");
    assert!((0..300).all(|number| rules.contains("and") || rules.contains(&format!("\"a{number}\""))), "{rules}");
    // All permissions can only be granted by rules, regardless of an authorizer's answer for `*`.
    let class = [desired("ProvisionerClass", "chandler.dev", "provisionerclasses", "helm", &json!({}))];
    let allowed: &'static [&'static str] = &[
        "create provisionerclasses *",
        "list provisionerclasses *",
        "watch provisionerclasses *",
        "get provisionerclasses *",
        "patch provisionerclasses *",
        "delete provisionerclasses *",
        "update bundledeployments *",
        "* * *",
    ];
    assert_eq!(lacking(&Webhook::new(allowed), &class).await, ["every verb on every path"]);
}

#[tokio::test]
async fn so_many_questions_are_asked_and_no_more() {
    let webhook = Webhook::new(&[]);
    let objects: Vec<Desired> =
        (0..300).map(|number| desired("ConfigMap", "", "configmaps", &format!("c{number}"), &json!({}))).collect();
    let shown = lacking(&webhook, &objects).await;
    assert_eq!(webhook.asked.lock().unwrap().len(), REVIEWS);
    assert!(shown.iter().any(|rule| rule.starts_with("create")), "{shown:?}");
}

/// An API server whose authorizer lists all rules: these for the whole cluster, and those for any namespace.
fn rules_of(cluster: &Value, namespace: &Value, reviewed: &Arc<Mutex<Vec<String>>>) -> Client {
    let (cluster, namespace, reviewed) = (cluster.clone(), namespace.clone(), Arc::clone(reviewed));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (cluster, namespace, reviewed) = (cluster.clone(), namespace.clone(), Arc::clone(&reviewed));
        async move {
            let body = request.into_body().collect_bytes().await.unwrap();
            let review: Value = serde_json::from_slice(&body).unwrap();
            let name = review["spec"]["namespace"].as_str().unwrap().to_owned();
            // The API server adds the rules for the whole cluster to those for a namespace.
            let mut rules = cluster.as_array().unwrap().clone();
            if name == "install" {
                rules.extend(namespace.as_array().unwrap().clone());
            }
            reviewed.lock().unwrap().push(name);
            let answer = json!({"status": {"incomplete": false, "nonResourceRules": [], "resourceRules": rules}});
            Ok::<_, std::convert::Infallible>(http::Response::new(Body::from(answer.to_string().into_bytes())))
        }
    });
    Client::new(service, "default")
}

#[tokio::test]
async fn namespaces_are_reviewed_only_for_what_the_rules_for_the_cluster_lack() {
    let all = |resource: &str| json!({"verbs": ["*"], "apiGroups": ["*"], "resources": [resource]});
    let objects =
        [desired("ConfigMap", "", "configmaps", "a", &json!({"metadata": {"name": "a", "namespace": "install"}}))];
    for (cluster, namespace, reviewed, permitted) in [
        (json!([all("*")]), json!([]), &["-"][..], true),
        (json!([all("bundledeployments/finalizers")]), json!([all("configmaps")]), &["-", "install"], true),
        // A rule for a namespace grants nothing in the whole cluster.
        (json!([all("configmaps")]), json!([all("bundledeployments/finalizers")]), &["-", "install"], false),
        (json!([]), json!([]), &["-", "install"], false),
    ] {
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let lacking = lacking_for(rules_of(&cluster, &namespace, &seen), &objects).await;
        assert_eq!(seen.lock().unwrap()[..], *reviewed, "{lacking:?}");
        assert_eq!(lacking.is_empty(), permitted, "{lacking:?}");
    }
}

/// Another cluster with these rules, or without reviews, in which nothing may be read.
fn other_cluster(rules: Option<Value>) -> Client {
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let path = request.uri().path();
        let (code, body) = match &rules {
            Some(rules) if path.ends_with("selfsubjectrulesreviews") => {
                (200, json!({"status": {"incomplete": false, "nonResourceRules": [], "resourceRules": rules}}))
            }
            Some(_) if path.ends_with("selfsubjectaccessreviews") => (200, json!({"status": {"allowed": false}})),
            _ => (
                403,
                json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 403,
                              "reason": "Forbidden", "message": "no"}),
            ),
        };
        let answer = http::Response::builder().status(code).header("content-type", "application/json");
        let answer = answer.body(Body::from(body.to_string().into_bytes())).unwrap();
        async move { Ok::<_, std::convert::Infallible>(answer) }
    });
    Client::new(service, "default")
}

/// What the user of a kubeconfig lacks.
async fn lacking_elsewhere(rules: Option<Value>, desired: &[Desired]) -> Option<String> {
    let client = other_cluster(rules);
    let (cluster, discovery, recent) = (Cluster::new(client.clone()), Discovery::new(client), RecentAnswers::default());
    let owner = owner().in_another_cluster();
    let (installation, parent) = (Installation::default(), json!({}));
    let access_review = AccessReview {
        own: &cluster,
        actor: &cluster,
        discovery: &discovery,
        recent: &recent,
        owner: &owner,
        account: None,
        installation: &installation,
    };
    let work = Work { parent: &parent, desired, unwanted: &DeletionPlan::default() };
    access_review.check(work).await.err().map(|error| error.to_string())
}

#[tokio::test]
async fn the_user_of_a_kubeconfig_lacks_what_both_reviews_deny() {
    let objects = [
        desired("ConfigMap", "", "configmaps", "a", &json!({})),
        desired("ConfigMap", "", "configmaps", "b", &json!({})),
    ];
    let some = json!([{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps", "namespaces"]}]);
    let missing = lacking_elsewhere(Some(some), &objects).await.unwrap();
    insta::assert_snapshot!(missing, @r#"the user of the kubeconfig lacks permissions: create configmaps in namespace install; delete, patch configmaps "a", "b" in namespace install; grant them in the cluster of the kubeconfig, status.missingPermissions lists all rules"#);
    let all = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
    assert_eq!(lacking_elsewhere(Some(all.clone()), &objects).await, None);
    // A cluster that reviews nothing decides about each request.
    assert_eq!(lacking_elsewhere(None, &objects).await, None);
    // So many rules are not compared.
    let names = vec!["x"; FOREIGN_RULES];
    let many = json!([all[0], {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": names}]);
    assert!(lacking_elsewhere(Some(many), &objects).await.is_some_and(|text| text.contains("create")));
    // Roles that it may not read say nothing about what it may bind.
    let binding = [desired(
        "ClusterRoleBinding",
        GROUP,
        "clusterrolebindings",
        "a",
        &json!({
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "unknown"}, "subjects": [],
        }),
    )];
    let rbac = json!([{"verbs": ["*"], "apiGroups": ["", GROUP], "resources": ["clusterrolebindings", "namespaces"]}]);
    assert_eq!(lacking_elsewhere(Some(rbac), &binding).await, None);
}
