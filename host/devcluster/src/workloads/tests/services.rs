use serde_json::{Value, json};

use crate::workloads::{
    Behaviour, Subject,
    fields::{condition, is_true, label, list, text},
    kind::{Key, Kind},
    model::{Model, spec},
};

fn service(model: &mut Model, name: &str, more: Value) -> Key {
    let mut object = json!({"metadata": {"name": name}, "spec": {
        "selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "web"}]}});
    object["spec"].as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    model.create(Kind::Service, object)
}

fn deployment(model: &mut Model, replicas: i64) -> Key {
    let containers = json!([{"name": "c", "image": "nginx", "ports": [{"name": "web", "containerPort": 8080}]}]);
    let more = json!({"replicas": replicas, "template": {"spec": {"containers": containers}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}});
    model.create(Kind::Deployment, spec("web", "nginx", &more))
}

fn budget(model: &mut Model) -> Key {
    let spec = json!({"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}});
    model.create(Kind::PodDisruptionBudget, json!({"metadata": {"name": "web"}, "spec": spec}))
}

#[test]
fn endpoints_follow_the_pods() {
    let mut model = Model::new();
    let key = service(&mut model, "web", json!({}));
    model.settle();
    assert_eq!(model.all(Kind::EndpointSlice).len(), 1, "without Pods there is a slice too");
    let workload = deployment(&mut model, 3);
    let budget = budget(&mut model);
    model.settle();
    let slice = model.all(Kind::EndpointSlice)[0];
    assert_eq!(label(slice, "kubernetes.io/service-name"), "web");
    assert_eq!(slice["ports"], json!([{"name": "http", "port": 8080, "protocol": "TCP"}]));
    assert_eq!(list(slice, "/endpoints").len(), 3);
    assert!(list(slice, "/endpoints").iter().all(|endpoint| endpoint["conditions"]["ready"] == true));
    let endpoints = model.get(&Key::new(Kind::Endpoints, "n", "web"));
    assert_eq!(list(endpoints, "/subsets/0/addresses").len(), 3);
    assert_eq!(endpoints["subsets"][0]["ports"], json!([{"name": "http", "port": 8080, "protocol": "TCP"}]));
    let status = &model.get(&budget)["status"];
    assert_eq!(
        (&status["expectedPods"], &status["desiredHealthy"], &status["disruptionsAllowed"]),
        (&json!(3), &json!(2), &json!(1))
    );

    model.rules.behave(Subject::object("Deployment", "n", "web"), Behaviour::CrashLoop);
    model.look_at_all();
    model.settle();
    let endpoints = model.get(&Key::new(Kind::Endpoints, "n", "web"));
    assert_eq!(list(endpoints, "/subsets/0/notReadyAddresses").len(), 3);
    assert!(
        list(model.all(Kind::EndpointSlice)[0], "/endpoints")
            .iter()
            .all(|endpoint| endpoint["conditions"]["ready"] == false)
    );
    assert_eq!(condition(model.get(&budget), "DisruptionAllowed").unwrap()["reason"], "InsufficientPods");

    model.delete(&workload);
    model.settle();
    assert!(list(model.all(Kind::EndpointSlice)[0], "/endpoints").is_empty());
    model.delete(&key);
    model.settle();
    assert!(model.all(Kind::EndpointSlice).is_empty() && model.all(Kind::Endpoints).is_empty());
}

#[test]
fn load_balancers_get_an_address_by_default() {
    let mut model = Model::new();
    let key = service(&mut model, "web", json!({"type": "LoadBalancer"}));
    model.settle();
    assert!(text(model.get(&key), "/status/loadBalancer/ingress/0/ip").starts_with("192.0.2."));
    model.rules.behave(Subject::object("Service", "n", "stalled"), Behaviour::Stall);
    let key = service(&mut model, "stalled", json!({"type": "LoadBalancer"}));
    model.settle();
    assert_eq!(text(model.get(&key), "/status/loadBalancer/ingress/0/ip"), "");
}

#[test]
fn an_api_service_is_available_with_a_ready_endpoint() {
    let mut model = Model::new();
    let local = model
        .create(Kind::ApiService, json!({"metadata": {"name": "v1.apps"}, "spec": {"group": "apps", "version": "v1"}}));
    let served =
        json!({"group": "x.example.com", "version": "v1", "service": {"namespace": "n", "name": "web", "port": 80}});
    let key = model.create(Kind::ApiService, json!({"metadata": {"name": "v1.x.example.com"}, "spec": served}));
    model.settle();
    assert!(is_true(model.get(&local), "Available"));
    let said = |model: &Model| {
        let available = condition(model.get(&key), "Available").unwrap();
        (text(available, "/reason").to_owned(), text(available, "/message").to_owned())
    };
    let expect =
        |model: &Model, reason: &str, message: &str| assert_eq!(said(model), (reason.to_owned(), message.to_owned()));
    expect(&model, "ServiceNotFound", r#"service/web in "n" is not present"#);
    service(&mut model, "web", json!({}));
    model.settle();
    expect(&model, "MissingEndpoints", r#"endpoints for service/web in "n" have no addresses with port name "http""#);
    let workload = deployment(&mut model, 1);
    model.settle();
    expect(&model, "Passed", "all checks passed");
    model.change(&key, &json!({"spec": {"service": {"port": 443}}}));
    model.settle();
    expect(&model, "ServicePortError", r#"service/web in "n" is not listening on port 443"#);
    model.change(&key, &json!({"spec": {"service": {"port": 80}}}));
    model.delete(&workload);
    model.settle();
    assert_eq!(said(&model).0, "MissingEndpoints");
    let before = model.writes;
    model.look_at_all();
    model.settle();
    assert_eq!(model.writes, before);
}
