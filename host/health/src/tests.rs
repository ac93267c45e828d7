//! Health of kinds without pods, and of any kind.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    Dependencies, Health, ServiceName, State, assess, needs,
    webhook_dependency::{Write, webhook_dependencies},
};

/// `State: message (help)`.
pub(crate) fn verdict(health: &Health) -> String {
    let state = match health.state {
        State::Healthy if health.message.is_empty() => return "Healthy".to_owned(),
        State::Healthy => "Healthy",
        State::Progressing => "Progressing",
        State::Degraded { permanent: true } => "Failed",
        State::Degraded { permanent: false } => "Degraded",
        State::Unknown => "Unknown",
    };
    format!("{state}: {health}")
}

#[test]
fn only_a_permanent_failure_is_permanent() {
    for (state, healthy, permanent) in [
        (State::Healthy, true, false),
        (State::Progressing, false, false),
        (State::Degraded { permanent: false }, false, false),
        (State::Degraded { permanent: true }, false, true),
        (State::Unknown, false, false),
    ] {
        let health = Health { state, ..Health::progressing("m") };
        assert_eq!((health.is_healthy(), health.is_permanent()), (healthy, permanent), "{state:?}");
    }
}

fn check(cases: &[(Value, &str)]) {
    for (object, want) in cases {
        assert_eq!(verdict(&assess(object, &Dependencies::default())), *want, "{object}");
    }
}

fn of(api_version: &str, kind: &str, spec: Value, status: Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "namespace": "n", "generation": 2},
        "spec": spec, "status": status})
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message})
}

#[test]
fn custom_resources_are_assessed_by_their_conditions() {
    let custom = |status: Value| of("a.b/v1", "X", Value::Null, status);
    let conditions = |conditions: Value| custom(json!({"conditions": conditions}));
    let ready = |status: &str, observed: i64| json!({"type": "Ready", "status": status, "observedGeneration": observed, "message": "m"});
    check(&[
        (json!({"apiVersion": "a.b/v1", "kind": "X"}), "Healthy"),
        (json!("odd"), "Healthy"),
        (custom(json!({"conditions": "odd"})), "Healthy"),
        (conditions(json!([condition("Ready", "True", "", "")])), "Healthy"),
        (conditions(json!([condition("Ready", "False", "", "no")])), "Progressing: no"),
        (conditions(json!([condition("Ready", "False", "Why", "")])), "Progressing: Why"),
        (conditions(json!([condition("Ready", "Unknown", "", "")])), "Progressing: condition Ready is Unknown"),
        (conditions(json!([ready("True", 1)])), "Progressing: condition Ready was set for generation 1 of 2"),
        (conditions(json!([ready("False", 2)])), "Progressing: m"),
        (conditions(json!([condition("Stalled", "True", "", "stuck")])), "Failed: stuck"),
        (conditions(json!([condition("Stalled", "False", "", "")])), "Healthy"),
        (conditions(json!([condition("Reconciling", "True", "", "soon")])), "Progressing: soon"),
        // Without Ready, what clusters and operators usually set.
        (conditions(json!([condition("Available", "False", "", "down")])), "Progressing: down"),
        (conditions(json!([condition("Available", "True", "", "")])), "Healthy"),
        (
            conditions(json!([
                condition("Degraded", "True", "", "one is lost"),
                condition("Available", "True", "", "")
            ])),
            "Degraded: one is lost",
        ),
        (conditions(json!([condition("Degraded", "True", "", ""), condition("Ready", "True", "", "")])), "Healthy"),
        (
            custom(json!({"observedGeneration": 1})),
            "Progressing: its controller has observed generation 1 of 2 of this X",
        ),
        // Restored from a backup.
        (custom(json!({"observedGeneration": 7})), "Healthy"),
    ]);
}

#[test]
fn terminating_objects_name_their_finalizers() {
    let gone = |finalizers: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers}});
    check(&[
        (gone(Value::Null), "Progressing: is being deleted"),
        (gone(json!(["a/b"])), "Progressing: is being deleted, held by finalizer a/b"),
        (gone(json!(["a/b", "c"])), "Progressing: is being deleted, held by finalizers a/b, c"),
    ]);
}

#[test]
fn kinds_that_always_set_ready_are_awaited() {
    for (api_version, kind) in [
        ("core.rukpak.io/v1alpha2", "BundleDeployment"),
        ("core.deppy.io/v1alpha1", "Resolution"),
        ("cert-manager.io/v1", "Certificate"),
        ("cert-manager.io/v1", "ClusterIssuer"),
    ] {
        let with = |conditions: Value| of(api_version, kind, Value::Null, json!({"conditions": conditions}));
        check(&[
            (of(api_version, kind, Value::Null, Value::Null), "Progressing: has no condition Ready yet"),
            (
                with(json!([{"type": "Ready", "status": "True", "observedGeneration": 1}])),
                "Progressing: condition Ready was set for generation 1 of 2",
            ),
            (
                with(
                    json!([{"type": "Ready", "status": "False", "observedGeneration": 2, "message": "Issuing certificate"}]),
                ),
                "Progressing: Issuing certificate",
            ),
            (with(json!([{"type": "Ready", "status": "True", "observedGeneration": 2}])), "Healthy"),
        ]);
    }
}

#[test]
fn an_api_service_is_available_unless_its_condition_is_false() {
    let service =
        |conditions: Value| of("apiregistration.k8s.io/v1", "APIService", json!({}), json!({"conditions": conditions}));
    check(&[
        (service(json!([])), "Progressing: has no condition Available yet"),
        (
            service(json!([condition("Available", "False", "MissingEndpoints", "no endpoints")])),
            "Progressing: is not available: no endpoints",
        ),
        (service(json!([condition("Available", "Unknown", "", "")])), "Healthy"),
        (service(json!([condition("Available", "True", "", "")])), "Healthy"),
    ]);
}

#[test]
fn crds_claims_services_and_namespaces() {
    let crd = |conditions: Value| {
        of("apiextensions.k8s.io/v1", "CustomResourceDefinition", json!({}), json!({"conditions": conditions}))
    };
    let claim = |status: Value| of("v1", "PersistentVolumeClaim", json!({"storageClassName": "slow"}), status);
    let help = "(kubectl describe -n n persistentvolumeclaim/x)";
    check(&[
        (crd(json!([])), "Progressing: is not established yet"),
        (crd(json!([condition("Established", "False", "Installing", "wait")])), "Progressing: is not established yet"),
        (
            crd(json!([condition("Established", "False", "NotAccepted", "not all names are accepted")])),
            "Failed: is not established: not all names are accepted",
        ),
        (
            crd(json!([
                condition("NamesAccepted", "False", "ListKindConflict", "conflict"),
                condition("Established", "True", "", "")
            ])),
            "Healthy: is served, but not by all of its names: conflict",
        ),
        (
            crd(json!([
                condition("NamesAccepted", "False", "KindConflict", "\"Berth\" is already in use"),
                condition("Established", "False", "NotAccepted", "not all names are accepted")
            ])),
            "Failed: its names are not accepted: \"Berth\" is already in use (another CRD uses the same names: `kubectl get crds`)",
        ),
        (
            of(
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                json!({"names": {"kind": "Pier"}}),
                json!({
                    "acceptedNames": {"kind": "Berth"},
                    "conditions": [
                        condition("NamesAccepted", "False", "KindConflict", "\"Pier\" is already in use"),
                        condition("Established", "True", "", "")
                    ]
                }),
            ),
            "Failed: its names are not accepted: \"Pier\" is already in use (another CRD uses the same names: `kubectl get crds`)",
        ),
        (crd(json!([condition("NamesAccepted", "True", "", ""), condition("Established", "True", "", "")])), "Healthy"),
        (claim(json!({})), &format!("Progressing: is not bound to a volume {help}")),
        (claim(json!({"phase": "Pending"})), &format!("Progressing: is not bound to a volume {help}")),
        (
            claim(json!({"phase": "Lost"})),
            "Failed: has lost its volume (its data is lost: delete the claim to create it again)",
        ),
        (claim(json!({"phase": "Bound"})), "Healthy"),
        (
            of("v1", "PersistentVolume", json!({}), json!({"phase": "Failed", "message": "busy"})),
            "Degraded: cannot be reclaimed: busy",
        ),
        (of("v1", "PersistentVolume", json!({}), json!({"phase": "Released"})), "Healthy"),
        (of("v1", "Service", json!({}), json!({})), "Healthy"),
        (of("v1", "Service", json!({"type": "LoadBalancer"}), json!({})), "Progressing: has no cluster IP yet"),
        // A cluster without load balancers never sets the other address.
        (of("v1", "Service", json!({"type": "LoadBalancer", "clusterIP": "10.0.0.1"}), json!({})), "Healthy"),
        (of("v1", "Namespace", json!({}), json!({"phase": "Active"})), "Healthy"),
        (of("v1", "Namespace", json!({}), json!({"phase": "Terminating"})), "Progressing: is in phase Terminating"),
        // A state that the spec asks for is healthy.
        (
            of(
                "policy/v1",
                "PodDisruptionBudget",
                json!({}),
                json!({"conditions": [condition("DisruptionAllowed", "False", "", "")]}),
            ),
            "Healthy",
        ),
        (
            of(
                "autoscaling/v2",
                "HorizontalPodAutoscaler",
                json!({}),
                json!({"conditions": [condition("ScalingActive", "False", "", "")]}),
            ),
            "Healthy",
        ),
        (of("networking.k8s.io/v1", "Ingress", json!({}), json!({"loadBalancer": {}})), "Healthy"),
    ]);
}

#[test]
fn a_claim_that_waits_for_its_consumer_is_at_rest() {
    let mut dependencies = Dependencies::default();
    dependencies.add_storage_class(&json!({"metadata": {"name": "slow"}, "volumeBindingMode": "WaitForFirstConsumer"}));
    dependencies.add_storage_class(&json!({"metadata": {"name": "fast"}, "volumeBindingMode": "Immediate"}));
    let claim = |class: &str| {
        of("v1", "PersistentVolumeClaim", json!({"storageClassName": class}), json!({"phase": "Pending"}))
    };
    assert_eq!(verdict(&assess(&claim("slow"), &dependencies)), "Healthy: waits for a pod that uses it");
    assert!(!assess(&claim("fast"), &dependencies).is_healthy());
}

fn service_name() -> ServiceName {
    ServiceName { namespace: "n".into(), name: "hook".into() }
}

fn slice(service: &str, ready: &[Option<bool>]) -> Value {
    let endpoints: Vec<Value> = ready.iter().map(|ready| json!({"conditions": {"ready": ready}})).collect();
    json!({"metadata": {"namespace": "n", "labels": {"kubernetes.io/service-name": service}}, "endpoints": endpoints})
}

fn webhook(more: Value) -> Value {
    let mut webhook = json!({
        "name": "v.example.com",
        "clientConfig": {"caBundle": "Y2E=", "service": {"namespace": "n", "name": "hook"}},
        "rules": [{"apiGroups": ["a.b"], "apiVersions": ["*"], "resources": ["oxen"], "operations": ["CREATE"]}],
    });
    webhook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "w"}, "webhooks": [webhook]})
}

fn conversion() -> Value {
    of(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        json!({
            "group": "a.b", "names": {"plural": "oxen"},
            "versions": [{"name": "v1", "storage": true}, {"name": "v2"}],
            "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"namespace": "n", "name": "hook"}, "caBundle": "Y2E="}}},
        }),
        json!({"conditions": [condition("Established", "True", "", "")]}),
    )
}

#[test]
fn a_caller_of_a_service_is_healthy_when_the_service_has_endpoints() {
    let empty = "Service n/hook, which webhook v.example.com calls, has no ready endpoints";
    let mut dependencies = Dependencies::default();
    assert_eq!(verdict(&assess(&webhook(json!({})), &dependencies)), "Healthy", "endpoints were not read");
    dependencies.look_at(service_name());
    assert_eq!(verdict(&assess(&webhook(json!({})), &dependencies)), format!("Progressing: {empty}"));
    assert_eq!(verdict(&assess(&webhook(json!({"failurePolicy": "Ignore"})), &dependencies)), "Healthy");
    assert_eq!(verdict(&assess(&webhook(json!({"clientConfig": {"url": "https://a"}})), &dependencies)), "Healthy");
    assert_eq!(
        verdict(&assess(&conversion(), &dependencies)),
        "Progressing: Service n/hook, which its conversion webhook calls, has no ready endpoints"
    );
    let mut single = conversion();
    single["spec"]["versions"] = json!([{"name": "v1", "storage": true}]);
    assert_eq!(verdict(&assess(&single, &dependencies)), "Healthy", "it is never called");
    dependencies.add_slice(&slice("other", &[Some(true)]));
    dependencies.add_slice(&slice("hook", &[Some(false)]));
    assert!(dependencies.lacks_endpoints(&service_name()));
    dependencies.add_slice(&slice("hook", &[None, Some(true)]));
    assert!(!dependencies.lacks_endpoints(&service_name()));
    assert_eq!(verdict(&assess(&webhook(json!({})), &dependencies)), "Healthy");
    assert_eq!(verdict(&assess(&conversion(), &dependencies)), "Healthy");
    assert!(!Dependencies::default().lacks_endpoints(&service_name()));
}

#[test]
fn a_missing_ca_bundle_is_awaited() {
    let mut bare = webhook(json!({"clientConfig": {"service": {"namespace": "n", "name": "hook"}}}));
    assert_eq!(verdict(&assess(&bare, &Dependencies::default())), "Healthy");
    bare["metadata"]["annotations"] = json!({"cert-manager.io/inject-ca-from": "n/c"});
    assert_eq!(
        verdict(&assess(&bare, &Dependencies::default())),
        "Progressing: cert-manager has not filled in the CA bundle of webhook v.example.com"
    );
    // The one that fills it in may be in the stage of the workload, which may come later.
    let mut staged = Dependencies::default();
    staged.look_at(service_name());
    assert_eq!(verdict(&assess(&bare, &staged.only(|_| false))), "Healthy");
    assert_eq!(verdict(&assess(&bare, &Dependencies::default().only(|_| false))), "Healthy");
    assert_eq!(
        verdict(&assess(&bare, &staged.only(|_| true))),
        "Progressing: cert-manager has not filled in the CA bundle of webhook v.example.com"
    );
}

#[test]
fn a_service_is_due_when_its_workload_exists() {
    let service = |more: Value| {
        let mut spec = json!({"selector": {"app": "hook"}});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"}, "spec": spec})
    };
    let workload = |labels: Value| json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"template": {"metadata": {"labels": labels}}}});
    let (plain, named) = (service(json!({})), json!({"app": "hook", "more": "x"}));
    let (crd, hook, external) = (conversion(), webhook(json!({})), service(json!({"type": "ExternalName"})));
    let (mine, others) = (workload(named), workload(json!({"app": "other"})));
    let n = Some("n");
    for (objects, want) in [
        (vec![], None),
        (vec![(0, n, &plain), (5, n, &mine)], None),
        (vec![(3, None, &hook)], Some(3)),
        (vec![(3, None, &hook), (1, None, &crd)], Some(1)),
        (vec![(1, None, &crd), (2, n, &plain)], Some(2)),
        (vec![(1, None, &crd), (2, n, &plain), (5, n, &mine), (7, n, &mine), (4, n, &others)], Some(5)),
        // In another namespace.
        (vec![(1, None, &crd), (2, n, &plain), (5, Some("m"), &mine)], Some(2)),
        (vec![(1, None, &crd), (2, n, &external)], None),
    ] {
        assert_eq!(needs::due_stages(objects.clone()).get(&service_name()).copied(), want, "{objects:?}");
    }
}

#[test]
fn only_writes_that_would_fail_wait() {
    let mut empty = Dependencies::default();
    empty.look_at(service_name());
    let write = |group, version, plural, creates| Write { group, version, plural, creates };
    let held = |object: &Value, write, dependencies: &Dependencies| {
        webhook_dependencies(object).iter().any(|interceptor| interceptor.holds(write, dependencies).is_some())
    };
    let create = write("a.b", "v1", "oxen", true);
    assert!(held(&webhook(json!({})), create, &empty));
    assert!(!held(&webhook(json!({})), create, &Dependencies::default()));
    assert!(!held(&webhook(json!({})), write("a.b", "v1", "oxen", false), &empty), "another operation");
    assert!(!held(&webhook(json!({})), write("a.b", "v1", "cows", true), &empty), "another kind");
    assert!(!held(&webhook(json!({"failurePolicy": "Ignore"})), create, &empty));
    assert!(!held(&webhook(json!({"objectSelector": {"matchLabels": {"a": "b"}}})), create, &empty));
    assert!(held(&webhook(json!({"objectSelector": {}})), create, &empty));
    let all = json!({"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}]});
    assert!(held(&webhook(all.clone()), create, &empty));
    assert!(!held(&webhook(all), write("apps", "v1", "deployments", true), &empty), "it may be its own workload");
    // Conversion takes place where the version is not the stored one.
    assert!(held(&conversion(), write("a.b", "v2", "oxen", true), &empty));
    assert!(!held(&conversion(), create, &empty));
    assert_eq!(
        webhook_dependencies(&webhook(json!({})))
            .iter()
            .find_map(|interceptor| interceptor.holds(create, &empty))
            .unwrap(),
        "waits for ready endpoints of Service n/hook, which webhook v.example.com calls"
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-zA-Z]{0,8}".prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let name =
            prop_oneof!["status|spec|conditions|type|replicas|webhooks|metadata|generation|phase|rules", "[a-z]{1,6}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..6).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Any controller may write any status.
    #[test]
    fn any_status_can_be_assessed(kind in 0_usize..12, spec in any_json(), status in any_json()) {
        let kinds = [
            ("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("apps/v1", "DaemonSet"), ("apps/v1", "ReplicaSet"),
            ("batch/v1", "Job"), ("v1", "Pod"), ("v1", "Service"), ("v1", "PersistentVolumeClaim"),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition"), ("apiregistration.k8s.io/v1", "APIService"),
            ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"), ("a.b/v1", "X"),
        ];
        let (api_version, kind) = kinds[kind];
        let mut object = of(api_version, kind, spec.clone(), status);
        object["webhooks"] = spec;
        let health = assess(&object, &Dependencies::default());
        prop_assert!(health.is_healthy() || !health.to_string().is_empty());
        let _ = (webhook_dependencies(&object), needs::due_stages([(0, None, &object)]));
    }
}
