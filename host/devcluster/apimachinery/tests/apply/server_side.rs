//! Server-side apply and ownership, case by case from Kubernetes' documentation.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use chandler_devcluster_apimachinery::{
    apply::{ApplyError, ApplyOutcome, ApplyRequest, apply, managed, managed::UpdateRequest},
    schema::{Builtins, CustomResourceDefinition, GroupVersionKind, Schema},
};
use serde_json::{Value, json};

const EARLIER: &str = "2026-01-01T00:00:00Z";
const LATER: &str = "2026-01-02T00:00:00Z";

fn builtin(group: &str, kind: &str) -> Schema {
    Builtins::get().kind(&GroupVersionKind::new(group, "v1", kind)).unwrap().schema.clone()
}

struct Cluster {
    schema: Schema,
    api_version: &'static str,
    live: Option<Value>,
}

impl Cluster {
    fn new(group: &str, api_version: &'static str, kind: &str) -> Self {
        Self { schema: builtin(group, kind), api_version, live: None }
    }

    fn try_apply(
        &mut self,
        manager: &str,
        applied: &Value,
        force: bool,
        now: &str,
    ) -> Result<ApplyOutcome, ApplyError> {
        let outcome = apply(ApplyRequest {
            schema: &self.schema,
            live: self.live.as_ref(),
            applied,
            manager,
            api_version: self.api_version,
            force,
            subresource: "",
            now,
        })?;
        self.live = Some(outcome.object.clone());
        Ok(outcome)
    }

    fn apply(&mut self, manager: &str, applied: &Value) -> &Value {
        self.try_apply(manager, applied, false, EARLIER).unwrap();
        self.live.as_ref().unwrap()
    }

    fn update(&mut self, manager: &str, new: &Value) -> &Value {
        self.live = Some(managed::track_update(UpdateRequest {
            schema: &self.schema,
            live: self.live.as_ref(),
            new,
            manager,
            api_version: self.api_version,
            subresource: "",
            reset: &[],
            now: EARLIER,
        }));
        self.live.as_ref().unwrap()
    }

    fn entry(&self, manager: &str) -> Option<&Value> {
        let entries = self.live.as_ref()?.pointer("/metadata/managedFields")?.as_array()?;
        entries.iter().find(|entry| entry["manager"] == manager)
    }

    fn fields(&self, manager: &str) -> Option<&Value> {
        self.entry(manager).map(|entry| &entry["fieldsV1"])
    }

    fn at(&self, pointer: &str) -> Option<&Value> {
        self.live.as_ref()?.pointer(pointer)
    }
}

fn config_map(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}, "data": data})
}

fn deployment(spec: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
}

fn containers(containers: &Value) -> Value {
    deployment(&json!({"template": {"spec": {"containers": containers}}}))
}

const CONTAINERS: &str = "/spec/template/spec/containers";

#[test]
fn apply_creates_and_owns_the_declared_fields() {
    let mut cluster = Cluster::new("", "v1", "ConfigMap");
    cluster.apply("a", &config_map(&json!({"x": "1"})));
    assert_eq!(
        cluster.entry("a").unwrap(),
        &json!({
            "apiVersion": "v1", "fieldsType": "FieldsV1", "manager": "a", "operation": "Apply", "time": EARLIER,
            "fieldsV1": {"f:data": {"f:x": {}}},
        })
    );
}

#[test]
fn omitted_fields_are_removed_unless_another_manager_owns_them() {
    let mut cluster = Cluster::new("", "v1", "ConfigMap");
    cluster.apply("a", &config_map(&json!({"x": "1", "y": "2", "z": "3"})));
    cluster.apply("b", &config_map(&json!({"y": "2"})));
    assert_eq!(cluster.apply("a", &config_map(&json!({"z": "3"})))["data"], json!({"y": "2", "z": "3"}));
    assert_eq!(cluster.fields("b").unwrap(), &json!({"f:data": {"f:y": {}}}));
    assert_eq!(cluster.apply("b", &config_map(&json!({})))["data"], json!({"z": "3"}));
    assert!(cluster.fields("b").is_none_or(|fields| fields == &json!({"f:data": {}})), "{:?}", cluster.fields("b"));
}

#[test]
fn an_equal_apply_changes_nothing_not_even_the_time() {
    let mut cluster = Cluster::new("", "v1", "ConfigMap");
    cluster.apply("a", &config_map(&json!({"x": "1"})));
    let before = cluster.live.clone().unwrap();
    let outcome = cluster.try_apply("a", &config_map(&json!({"x": "1"})), false, LATER).unwrap();
    assert!(!outcome.changed);
    assert_eq!(outcome.object, before);
    let outcome = cluster.try_apply("a", &config_map(&json!({"x": "2"})), false, LATER).unwrap();
    assert!(outcome.changed);
    assert_eq!(cluster.entry("a").unwrap()["time"], LATER);
}

#[test]
fn another_value_is_a_conflict_and_force_takes_over() {
    let mut cluster = Cluster::new("apps", "apps/v1", "Deployment");
    cluster.update("kube-controller-manager", &deployment(&json!({"replicas": 1, "paused": true})));
    let error = cluster.try_apply("me", &deployment(&json!({"replicas": 3})), false, LATER).unwrap_err();
    insta::assert_snapshot!(error, @r#"Apply failed with 1 conflict: conflict with "kube-controller-manager" using apps/v1: .spec.replicas"#);
    let wanted = deployment(&json!({"replicas": 3, "paused": false}));
    let error = cluster.try_apply("me", &wanted, false, LATER).unwrap_err();
    insta::assert_snapshot!(error, @r#"
    Apply failed with 2 conflicts: conflicts with "kube-controller-manager" using apps/v1:
    - .spec.paused
    - .spec.replicas
    "#);
    cluster.try_apply("me", &wanted, true, LATER).unwrap();
    assert_eq!(cluster.at("/spec/replicas"), Some(&json!(3)));
    assert_eq!(cluster.fields("kube-controller-manager"), None);
    assert_eq!(cluster.fields("me").unwrap(), &json!({"f:spec": {"f:paused": {}, "f:replicas": {}}}));
}

#[test]
fn equal_values_are_shared_and_an_update_takes_the_field_from_all() {
    let mut cluster = Cluster::new("apps", "apps/v1", "Deployment");
    cluster.apply("a", &deployment(&json!({"replicas": 2})));
    cluster.apply("b", &deployment(&json!({"replicas": 2})));
    assert_eq!(cluster.fields("a"), cluster.fields("b"));
    let mut scaled = cluster.live.clone().unwrap();
    scaled["spec"]["replicas"] = json!(5);
    cluster.update("autoscaler", &scaled);
    assert_eq!(cluster.fields("a"), None);
    assert_eq!(cluster.fields("autoscaler").unwrap(), &json!({"f:spec": {"f:replicas": {}}}));
    let error = cluster.try_apply("a", &deployment(&json!({"replicas": 2})), false, LATER).unwrap_err();
    assert!(matches!(error, ApplyError::Conflicts(conflicts) if conflicts[0].manager == "autoscaler"));
}

#[test]
fn containers_merge_by_name_and_ports_by_port_and_defaulted_protocol() {
    let mut cluster = Cluster::new("apps", "apps/v1", "Deployment");
    cluster.apply("a", &containers(&json!([{"name": "x", "image": "x:1", "ports": [{"containerPort": 80}]}])));
    let injected = cluster.apply("b", &containers(&json!([{"name": "sidecar", "image": "s:1"}])));
    let names: Vec<&Value> =
        injected.pointer(CONTAINERS).unwrap().as_array().unwrap().iter().map(|c| &c["name"]).collect();
    assert_eq!(names, ["x", "sidecar"]);
    assert_eq!(
        cluster.fields("a").unwrap().pointer("/f:spec/f:template/f:spec/f:containers").unwrap(),
        &json!({"k:{\"name\":\"x\"}": {
            ".": {}, "f:name": {}, "f:image": {},
            "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
        }})
    );
    cluster.apply("a", &containers(&json!([])));
    assert_eq!(cluster.at(CONTAINERS).unwrap(), &json!([{"name": "sidecar", "image": "s:1"}]));
}

#[test]
fn the_order_of_a_list_is_that_of_the_last_apply() {
    let mut cluster = Cluster::new("apps", "apps/v1", "Deployment");
    let named = |names: &[&str]| containers(&Value::Array(names.iter().map(|name| json!({"name": name})).collect()));
    let order = |cluster: &Cluster| {
        let list = cluster.at(CONTAINERS).unwrap().as_array().unwrap();
        list.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect::<String>()
    };
    cluster.apply("m", &named(&["a", "b", "c"]));
    cluster.apply("n", &named(&["x", "b"]));
    assert_eq!(order(&cluster), "axbc");
    cluster.apply("m", &named(&["c", "b", "a"]));
    assert_eq!(order(&cluster), "xcba");
}

#[test]
fn atomic_values_have_one_owner_and_sets_many() {
    let mut cluster = Cluster::new("apps", "apps/v1", "Deployment");
    let selecting = |labels: &Value| deployment(&json!({"selector": {"matchLabels": labels}}));
    cluster.apply("a", &selecting(&json!({"x": "1"})));
    assert_eq!(cluster.fields("a").unwrap(), &json!({"f:spec": {"f:selector": {}}}));
    assert!(cluster.try_apply("b", &selecting(&json!({"y": "1"})), false, LATER).is_err());
    let finalizing = |finalizers: &Value| json!({"metadata": {"name": "web", "finalizers": finalizers}});
    cluster.apply("b", &finalizing(&json!(["example.com/b"])));
    cluster.apply("c", &finalizing(&json!(["example.com/c"])));
    assert_eq!(cluster.at("/metadata/finalizers").unwrap(), &json!(["example.com/b", "example.com/c"]));
    cluster.apply("b", &finalizing(&json!([])));
    assert_eq!(cluster.at("/metadata/finalizers").unwrap(), &json!(["example.com/c"]));
}

#[test]
fn unowned_fields_survive_the_removal_of_siblings() {
    let mut cluster = Cluster::new("apps", "apps/v1", "Deployment");
    cluster.apply("a", &deployment(&json!({"replicas": 2, "paused": true})));
    // Defaults arrive after the merge and have no owner.
    let mut live = cluster.live.clone().unwrap();
    live["spec"]["progressDeadlineSeconds"] = json!(600);
    live["metadata"]["uid"] = json!("u");
    cluster.live = Some(live);
    cluster.apply("a", &deployment(&json!({"paused": true})));
    assert_eq!(cluster.at("/spec").unwrap(), &json!({"paused": true, "progressDeadlineSeconds": 600}));
    assert_eq!(cluster.at("/metadata/uid").unwrap(), "u");
}

#[test]
fn objects_that_cannot_be_applied() {
    let mut cluster = Cluster::new("apps", "apps/v1", "Deployment");
    let error = |cluster: &mut Cluster, manager: &str, applied: &Value| match cluster
        .try_apply(manager, applied, true, LATER)
    {
        Err(ApplyError::Invalid(message) | ApplyError::Untyped(message)) => message,
        other => panic!("{other:?}"),
    };
    let twice = containers(&json!([{"name": "a"}, {"name": "a"}]));
    insta::assert_snapshot!(error(&mut cluster, "m", &twice), @r#"failed to create typed patch object (/web; apps/v1, Kind=Deployment): .spec.template.spec.containers: duplicate entries for key [name="a"]"#);
    insta::assert_snapshot!(error(&mut cluster, "m", &deployment(&json!({"colour": 1}))), @"failed to create typed patch object (/web; apps/v1, Kind=Deployment): .spec.colour: field not declared in schema");
    insta::assert_snapshot!(error(&mut cluster, "m", &containers(&json!([7]))), @"failed to create typed patch object (/web; apps/v1, Kind=Deployment): .spec.template.spec.containers: element 0: associative list with keys may not have non-map elements");
    // An omitted name is the empty string, which validation rejects later.
    assert!(cluster.try_apply("m", &containers(&json!([{"image": "a"}])), true, LATER).is_ok());
    let managed = json!({"metadata": {"name": "a", "managedFields": [{"manager": "x"}]}});
    insta::assert_snapshot!(error(&mut cluster, "m", &managed), @"metadata.managedFields must be nil");
    assert!(error(&mut cluster, "", &deployment(&json!({}))).contains("fieldManager"));
    assert!(error(&mut cluster, "m", &json!({"apiVersion": "apps/v2"})).starts_with("Incorrect version"));
}

#[test]
fn kubectl_moves_from_client_side_to_server_side_apply() {
    let mut cluster = Cluster::new("apps", "apps/v1", "Deployment");
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let client_side = deployment(&json!({"replicas": 1}));
    let mut created = client_side.clone();
    created["metadata"]["annotations"] = json!({annotation: client_side.to_string()});
    cluster.update("kubectl-client-side-apply", &created);
    assert!(cluster.try_apply("other", &deployment(&json!({"replicas": 4})), false, LATER).is_err());
    cluster.try_apply("kubectl", &deployment(&json!({"replicas": 4})), false, LATER).unwrap();
    assert_eq!(cluster.at("/spec/replicas"), Some(&json!(4)));
    assert!(
        cluster.live.as_ref().unwrap()["metadata"]["annotations"][annotation]
            .as_str()
            .unwrap()
            .contains("\"replicas\":4")
    );
}

#[test]
fn an_object_that_nothing_tracked_gets_an_owner_before_the_first_apply() {
    let mut cluster = Cluster::new("", "v1", "ConfigMap");
    cluster.live = Some(config_map(&json!({"old": "1"})));
    cluster.apply("a", &config_map(&json!({"new": "2"})));
    assert_eq!(cluster.fields("before-first-apply").unwrap(), &json!({"f:data": {".": {}, "f:old": {}}}));
    assert_eq!(cluster.at("/data").unwrap(), &json!({"old": "1", "new": "2"}));
}

#[test]
fn nothing_is_tracked_of_an_object_that_is_not_of_its_type() {
    let mut cluster = Cluster::new("", "v1", "ServiceAccount");
    let account = |secrets: Value| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}, "secrets": secrets});
    cluster.apply("m", &account(json!([{"name": "a"}])));
    cluster.update("u", &account(json!([{"uid": "b"}])));
    assert_eq!(cluster.at("/metadata/managedFields"), None);
    let Err(ApplyError::Untyped(message)) = cluster.try_apply("m", &account(json!([])), true, LATER) else { panic!() };
    insta::assert_snapshot!(message, @r#"failed to create manager for existing fields: failed to convert new object (/a; /v1, Kind=ServiceAccount) to smd typed: .secrets: element 0: associative list with keys has an element that omits all key fields ["name"] (and doesn't have default values for any key fields)"#);
    // Only an update can correct it, and it is tracked again from the next apply on.
    cluster.update("u", &account(json!([{"name": "b"}])));
    assert_eq!(cluster.at("/metadata/managedFields"), None);
    cluster.apply("m", &account(json!([])));
    assert!(cluster.fields("before-first-apply").is_some());
}

#[test]
fn updates_own_the_changed_fields() {
    let mut cluster = Cluster::new("apps", "apps/v1", "Deployment");
    cluster.update(
        "creator",
        &json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"a": "b"}},
            "spec": {
                "replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "strategy": {"rollingUpdate": {"maxSurge": 1}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "x", "resources": {}}]}},
            },
        }),
    );
    // As kube-apiserver 1.36 records it for `kubectl create`.
    assert_eq!(
        cluster.fields("creator").unwrap(),
        &json!({
            "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
            "f:spec": {
                "f:replicas": {}, "f:selector": {}, "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}}},
                "f:template": {
                    "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
                    "f:spec": {"f:containers": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}, "f:resources": {}}}},
                },
            },
        })
    );
    let unchanged = cluster.live.clone().unwrap();
    cluster.update("nobody", &unchanged);
    assert_eq!(cluster.live.as_ref(), Some(&unchanged));
    let mut smaller = unchanged;
    smaller["spec"].as_object_mut().unwrap().remove("replicas");
    smaller["metadata"]["labels"]["c"] = json!("d");
    cluster.update("editor", &smaller);
    assert_eq!(cluster.fields("editor").unwrap(), &json!({"f:metadata": {"f:labels": {"f:c": {}}}}));
    assert_eq!(cluster.fields("creator").unwrap().pointer("/f:spec/f:replicas"), None);
}

#[test]
fn resetting_and_joining_entries() {
    let mut cluster = Cluster::new("", "v1", "ConfigMap");
    cluster.apply("a", &config_map(&json!({"x": "1"})));
    let mut reset = cluster.live.clone().unwrap();
    reset["metadata"]["managedFields"] = json!([{}]);
    assert_eq!(cluster.update("b", &reset).pointer("/metadata/managedFields"), None);
    // An object whose entries were reset stays untracked until it is applied; another object is tracked from its creation.
    let mut cluster = Cluster::new("", "v1", "ConfigMap");
    cluster.update("b", &config_map(&json!({"x": "1"})));
    for index in 0..15 {
        let mut next = cluster.live.clone().unwrap();
        next["data"][format!("key{index}")] = json!("1");
        cluster.update(&format!("manager{index}"), &next);
    }
    assert_eq!(cluster.at("/metadata/managedFields").unwrap().as_array().unwrap().len(), 10);
    assert!(cluster.fields("ancient-changes").unwrap().pointer("/f:data/f:key0").is_some());
}

#[test]
fn custom_resources_use_their_list_types_and_deduce_the_rest() {
    let crd = CustomResourceDefinition::parse(&json!({"spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": {
                "rules": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
                          "items": {"type": "object", "properties": {"id": {"type": "integer"}, "v": {"type": "string"}}}},
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "plain": {"type": "array", "items": {"type": "string"}},
                "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }}},
        }}}],
    }}))
    .unwrap();
    let schema = crd.storage_version().unwrap().resource.schema.clone();
    let mut cluster = Cluster { schema, api_version: "example.com/v1", live: None };
    let foo =
        |spec: &Value| json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "a"}, "spec": spec});
    cluster.apply(
        "a",
        &foo(&json!({"rules": [{"id": 1, "v": "a"}], "tags": ["x"], "plain": ["p"], "open": {"deep": {"k": 1, "l": [1]}}})),
    );
    assert_eq!(
        cluster.fields("a").unwrap(),
        &json!({"f:spec": {
            "f:rules": {"k:{\"id\":1}": {".": {}, "f:id": {}, "f:v": {}}},
            "f:tags": {"v:\"x\"": {}},
            "f:plain": {},
            "f:open": {"f:deep": {".": {}, "f:k": {}, "f:l": {}}},
        }})
    );
    cluster.apply("b", &foo(&json!({"rules": [{"id": 2, "v": "b"}], "tags": ["y"], "open": {"deep": {"m": 2}}})));
    cluster.apply("a", &foo(&json!({"plain": ["p"]})));
    assert_eq!(
        cluster.at("/spec").unwrap(),
        &json!({"rules": [{"id": 2, "v": "b"}], "tags": ["y"], "plain": ["p"], "open": {"deep": {"m": 2}}})
    );
}

#[test]
fn subresources_are_owners_of_their_own() {
    let mut cluster = Cluster::new("apps", "apps/v1", "Deployment");
    cluster.apply("a", &deployment(&json!({"replicas": 1})));
    let outcome = apply(ApplyRequest {
        schema: &cluster.schema,
        live: cluster.live.as_ref(),
        applied: &json!({"metadata": {"name": "web"}, "status": {"replicas": 1}}),
        manager: "a",
        api_version: "apps/v1",
        force: false,
        subresource: "status",
        now: LATER,
    })
    .unwrap();
    assert_eq!(outcome.object["spec"], json!({"replicas": 1}));
    let entries = outcome.object["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[1]["subresource"], "status");
}
