//! Types of lists and maps of the built-in kinds.

use serde_json::{Value, json};

use crate::support::{
    Scope, cases,
    objects::{deployment, ingress, pod_template},
};

cases! {
    "3.08" containers_are_shared_by_name;
    "3.08" ports_are_shared_by_port_and_protocol;
    "3.08" environment_and_mounts_are_keyed;
    "3.08" arguments_are_atomic;
    "3.08" selectors_are_atomic;
    "3.08" conditions_are_shared_by_type;
    "3.08" finalizers_are_a_set_and_owners_are_keyed;
    "3.08" secrets_of_an_account_are_atomic;
    "3.08" quantities_stay_as_written;
    "3.08" duplicates_are_created_and_updated_and_never_applied;
}

async fn apply(scope: &Scope, manager: &str, containers: Value) -> Value {
    let templates = scope.pod_templates().await;
    let object = templates.apply("a", manager, &pod_template("a", containers)).await.ok();
    object["template"]["spec"]["containers"].clone()
}

async fn containers_are_shared_by_name(scope: &Scope) {
    apply(scope, "one", json!([{"name": "main", "image": "a:1"}])).await;
    let containers = apply(scope, "two", json!([{"name": "sidecar", "image": "b:1"}])).await;
    let names = |containers: &Value| -> Vec<String> {
        containers.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&containers).len(), 2);
    let containers = apply(scope, "one", json!([{"name": "renamed", "image": "a:1"}])).await;
    let mut left = names(&containers);
    left.sort_unstable();
    assert_eq!(left, ["renamed", "sidecar"]);
    let templates = scope.pod_templates().await;
    let wanted = pod_template("a", json!([{"name": "sidecar", "image": "c:1"}]));
    let status = templates.apply("a", "three", &wanted).await.refused(409, "Conflict");
    assert_eq!(status["details"]["causes"][0]["field"], r#".template.spec.containers[name="sidecar"].image"#);
}

async fn ports_are_shared_by_port_and_protocol(scope: &Scope) {
    let port = |fields: Value| json!([{"name": "c", "image": "a:1", "ports": [fields]}]);
    apply(scope, "one", port(json!({"containerPort": 53}))).await;
    let containers = apply(scope, "two", port(json!({"containerPort": 53, "protocol": "UDP"}))).await;
    assert_eq!(containers[0]["ports"].as_array().unwrap().len(), 2);
    let containers = apply(scope, "two", port(json!({"containerPort": 53, "protocol": "TCP", "name": "dns"}))).await;
    assert_eq!(containers[0]["ports"], json!([{"containerPort": 53, "protocol": "TCP", "name": "dns"}]));

    let services = scope.collection("v1", "services").await;
    let service = |ports: Value| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"},
        "spec": {"ports": ports}})
    };
    services.apply("a", "one", &service(json!([{"name": "dns", "port": 53}]))).await.is(201);
    let object =
        services.apply("a", "two", &service(json!([{"name": "udp", "port": 53, "protocol": "UDP"}]))).await.ok();
    assert_eq!(object["spec"]["ports"].as_array().unwrap().len(), 2);
}

async fn environment_and_mounts_are_keyed(scope: &Scope) {
    let container = |fields: Value| {
        let mut container = json!({"name": "c", "image": "a:1"});
        for (name, value) in fields.as_object().unwrap() {
            container[name] = value.clone();
        }
        json!([container])
    };
    apply(scope, "one", container(json!({"env": [{"name": "A", "value": "1"}]}))).await;
    let containers = apply(scope, "two", container(json!({"env": [{"name": "B", "value": "2"}]}))).await;
    assert_eq!(containers[0]["env"].as_array().unwrap().len(), 2);
    let templates = scope.pod_templates().await;
    let mount = |manager: &'static str, volume: &'static str, path: &'static str| {
        let templates = templates.clone();
        let mut object = pod_template(
            "a",
            json!([{"name": "c", "image": "a:1", "volumeMounts": [{"name": volume, "mountPath": path}]}]),
        );
        object["template"]["spec"]["volumes"] = json!([{"name": volume, "emptyDir": {}}]);
        async move { templates.apply("a?force=true", manager, &object).await.ok() }
    };
    mount("three", "one", "/one").await;
    let object = mount("four", "two", "/two").await;
    let spec = &object["template"]["spec"];
    assert_eq!(spec["volumes"].as_array().unwrap().len(), 2, "volumes by name");
    assert_eq!(spec["containers"][0]["volumeMounts"].as_array().unwrap().len(), 2, "mounts by path");
}

async fn arguments_are_atomic(scope: &Scope) {
    apply(scope, "one", json!([{"name": "c", "image": "a:1", "args": ["x", "y"]}])).await;
    let templates = scope.pod_templates().await;
    let wanted = pod_template("a", json!([{"name": "c", "image": "a:1", "args": ["z"]}]));
    let status = templates.apply("a", "two", &wanted).await.refused(409, "Conflict");
    assert_eq!(status["details"]["causes"][0]["field"], r#".template.spec.containers[name="c"].args"#);
}

async fn selectors_are_atomic(scope: &Scope) {
    let services = scope.collection("v1", "services").await;
    let service = |selector: Value| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"},
        "spec": {"selector": selector, "ports": [{"port": 80}]}})
    };
    services.apply("a", "one", &service(json!({"app": "x"}))).await.is(201);
    let status = services.apply("a", "two", &service(json!({"tier": "y"}))).await.refused(409, "Conflict");
    assert_eq!(status["details"]["causes"][0]["field"], ".spec.selector");
    let deployments = scope.collection("apps/v1", "deployments").await;
    deployments.apply("web", "one", &deployment("web", 0)).await.is(201);
    let mut other = deployment("web", 0);
    other["spec"]["selector"] = json!({"matchLabels": {"tier": "y"}});
    let status = deployments.apply("web", "two", &other).await.refused(409, "Conflict");
    let fields = status["details"]["causes"].to_string();
    assert!(fields.contains(r#"".spec.selector""#), "{fields}");
}

async fn conditions_are_shared_by_type(scope: &Scope) {
    let services = scope.collection("v1", "services").await;
    let with = |conditions: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "status": {"conditions": conditions}});
    services.create(&json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}})).await.ok();
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": "Tested", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    services.apply("a/status", "one", &with(json!([condition("One")]))).await.is(200);
    let object = services.apply("a/status", "two", &with(json!([condition("Two")]))).await.is(200);
    let kinds = |object: &Value| object["status"]["conditions"].to_string();
    assert!(kinds(&object).contains("\"One\"") && kinds(&object).contains("\"Two\""), "{object}");
    let object = services.apply("a/status", "one", &with(json!([]))).await.is(200);
    assert!(!kinds(&object).contains("\"One\"") && kinds(&object).contains("\"Two\""), "{object}");
}

async fn finalizers_are_a_set_and_owners_are_keyed(scope: &Scope) {
    let ingresses = scope.ingresses().await;
    let owner = scope.config_maps().await.create(&json!({"metadata": {"name": "owner"}})).await.ok();
    let reference =
        |uid: &Value, name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid});
    let with = |finalizer: &str, owners: Value| {
        let mut object = ingress("a");
        object["metadata"]["finalizers"] = json!([finalizer]);
        object["metadata"]["ownerReferences"] = owners;
        object
    };
    let one = with("example.com/one", json!([reference(&owner["metadata"]["uid"], "owner")]));
    ingresses.apply("a", "one", &one).await.is(201);
    let object = ingresses.apply("a", "two", &with("example.com/two", json!([]))).await.is(200);
    assert_eq!(object["metadata"]["finalizers"].as_array().unwrap().len(), 2);
    let object = ingresses.apply("a", "one", &ingress("a")).await.is(200);
    assert_eq!(object["metadata"]["finalizers"], json!(["example.com/two"]));
    assert_eq!(object["metadata"].get("ownerReferences"), None);
    ingresses.merge("a", &json!({"metadata": {"finalizers": null}})).await.ok();
}

async fn secrets_of_an_account_are_atomic(scope: &Scope) {
    let accounts = scope.collection("v1", "serviceaccounts").await;
    let account = |secret: &str| {
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"},
        "imagePullSecrets": [{"name": secret}]})
    };
    accounts.apply("a", "one", &account("x")).await.is(201);
    let status = accounts.apply("a", "two", &account("y")).await.refused(409, "Conflict");
    assert_eq!(status["details"]["causes"][0]["field"], ".imagePullSecrets");
}

async fn quantities_stay_as_written(scope: &Scope) {
    let memory = |memory: &str| json!([{"name": "c", "image": "a:1", "resources": {"limits": {"memory": memory}}}]);
    let containers = apply(scope, "one", memory("1024Mi")).await;
    assert_eq!(containers[0]["resources"]["limits"]["memory"], "1Gi");
}

async fn duplicates_are_created_and_updated_and_never_applied(scope: &Scope) {
    let deployments = scope.collection("apps/v1", "deployments").await;
    let mut object = deployment("web", 0);
    let pod = &mut object["spec"]["template"]["spec"];
    pod["containers"][0]["env"] = json!([{"name": "MODE", "value": "a"}, {"name": "MODE", "value": "b"}]);
    pod["containers"][0]["ports"] =
        json!([{"name": "http", "containerPort": 80}, {"name": "metrics", "containerPort": 80, "protocol": "TCP"}]);
    pod["hostAliases"] =
        json!([{"ip": "10.0.0.1", "hostnames": ["one.test"]}, {"ip": "10.0.0.1", "hostnames": ["two.test"]}]);
    pod["imagePullSecrets"] = json!([{"name": "pull"}, {"name": "pull"}]);
    let lists = |object: &Value| {
        let pod = &object["spec"]["template"]["spec"];
        let lists = [
            &pod["containers"][0]["env"],
            &pod["containers"][0]["ports"],
            &pod["hostAliases"],
            &pod["imagePullSecrets"],
        ];
        lists.map(|list| list.as_array().unwrap().len())
    };
    let answer = deployments.create(&object).await;
    let warnings = answer.warnings().join("\n");
    for part in ["hides previous definition of \"MODE\"", "duplicate port definition with", "duplicate name \"pull\""] {
        assert!(warnings.contains(part), "{part}: {warnings}");
    }
    let mut created = answer.is(201);
    assert_eq!(lists(&created), [2; 4]);
    created["spec"]["template"]["spec"]["containers"][0]["image"] = json!("registry.example.com/web:2");
    // Without it, the update does not depend on whether the controller of Deployments has written the status meanwhile.
    created["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    let updated = deployments.put("web", &created).await.is(200);
    assert_eq!(lists(&updated), [2; 4]);

    // Another manager applies other fields.
    let labelled =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"team": "one"}}});
    let labelled = deployments.apply("web", "one", &labelled).await.is(200);
    assert_eq!(lists(&labelled), [2; 4]);

    let pod = object["spec"]["template"]["spec"].clone();
    for (list, key) in [
        ("env", r#"duplicate entries for key [name=\"MODE\"]"#),
        ("ports", r#"duplicate entries for key [containerPort=80,protocol=\"TCP\"]"#),
        ("hostAliases", r#"duplicate entries for key [ip=\"10.0.0.1\"]"#),
        ("imagePullSecrets", r#"duplicate entries for key [name=\"pull\"]"#),
    ] {
        let mut applied = deployment("web", 0);
        let wanted = &mut applied["spec"]["template"]["spec"];
        match list {
            "env" | "ports" => wanted["containers"][0][list] = pod["containers"][0][list].clone(),
            _ => wanted[list] = pod[list].clone(),
        }
        let answer = deployments.apply("web?force=true", "two", &applied).await;
        assert!(
            (400..=500).contains(&answer.status) && answer.text.contains(key),
            "{list}: {} {}",
            answer.status,
            answer.text
        );
    }
}
