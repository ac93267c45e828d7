//! Defaults and rules of built-in kinds.

use serde_json::json;

use super::*;

fn kind(group: &str, kind: &str) -> GroupVersionKind {
    GroupVersionKind::new(group, "v1", kind)
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "n"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "example.com/web", "ports": [{"containerPort": 80}],
                    "readinessProbe": {"httpGet": {"port": 80}}}],
                    "volumes": [{"name": "tmp"}, {"name": "config", "configMap": {"name": "c"}}]},
            },
        },
    })
}

fn errors(group: &str, name: &str, new: &Value, old: Option<&Value>) -> Vec<String> {
    validate(&kind(group, name), new, old).iter().map(ToString::to_string).collect()
}

fn defaulted(group: &str, name: &str, mut object: Value) -> Value {
    default(&kind(group, name), &mut object);
    let once = object.clone();
    default(&kind(group, name), &mut object);
    assert_eq!(once, object, "defaults are stable");
    object
}

#[test]
fn defaults_of_a_deployment() {
    let defaulted = defaulted("apps", "Deployment", deployment());
    insta::assert_json_snapshot!(defaulted["spec"], @r#"
        {
          "progressDeadlineSeconds": 600,
          "replicas": 1,
          "revisionHistoryLimit": 10,
          "selector": {
            "matchLabels": {
              "app": "web"
            }
          },
          "strategy": {
            "rollingUpdate": {
              "maxSurge": "25%",
              "maxUnavailable": "25%"
            },
            "type": "RollingUpdate"
          },
          "template": {
            "metadata": {
              "labels": {
                "app": "web"
              }
            },
            "spec": {
              "containers": [
                {
                  "image": "example.com/web",
                  "imagePullPolicy": "Always",
                  "name": "web",
                  "ports": [
                    {
                      "containerPort": 80,
                      "protocol": "TCP"
                    }
                  ],
                  "readinessProbe": {
                    "failureThreshold": 3,
                    "httpGet": {
                      "path": "/",
                      "port": 80,
                      "scheme": "HTTP"
                    },
                    "periodSeconds": 10,
                    "successThreshold": 1,
                    "timeoutSeconds": 1
                  },
                  "resources": {},
                  "terminationMessagePath": "/dev/termination-log",
                  "terminationMessagePolicy": "File"
                }
              ],
              "dnsPolicy": "ClusterFirst",
              "restartPolicy": "Always",
              "schedulerName": "default-scheduler",
              "securityContext": {},
              "terminationGracePeriodSeconds": 30,
              "volumes": [
                {
                  "emptyDir": {},
                  "name": "tmp"
                },
                {
                  "configMap": {
                    "defaultMode": 420,
                    "name": "c"
                  },
                  "name": "config"
                }
              ]
            }
          }
        }
        "#);
    assert_eq!(errors("apps", "Deployment", &defaulted, None), Vec::<String>::new());
}

#[test]
fn defaults_of_other_kinds() {
    let cases = [
        ("", "Secret", json!({}), "/type", json!("Opaque")),
        (
            "",
            "Service",
            json!({"spec": {"ports": [{"port": 80}]}}),
            "/spec/ports/0",
            json!({"port": 80, "protocol": "TCP", "targetPort": 80}),
        ),
        ("", "Service", json!({"spec": {"type": "LoadBalancer"}}), "/spec/externalTrafficPolicy", json!("Cluster")),
        ("", "Service", json!({"spec": {"type": "ExternalName"}}), "/spec/sessionAffinity", json!("None")),
        (
            "",
            "Namespace",
            json!({"metadata": {"name": "a"}}),
            "/metadata/labels/kubernetes.io~1metadata.name",
            json!("a"),
        ),
        ("batch", "Job", json!({"spec": {}}), "/spec/completions", json!(1)),
        (
            "batch",
            "CronJob",
            json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": {}}}}}}),
            "/spec/jobTemplate/spec/template/spec/dnsPolicy",
            json!("ClusterFirst"),
        ),
        (
            "apps",
            "StatefulSet",
            json!({"spec": {}}),
            "/spec/updateStrategy",
            json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}),
        ),
        (
            "apps",
            "DaemonSet",
            json!({"spec": {}}),
            "/spec/updateStrategy/rollingUpdate",
            json!({"maxUnavailable": 1, "maxSurge": 0}),
        ),
        (
            "rbac.authorization.k8s.io",
            "RoleBinding",
            json!({"roleRef": {}, "subjects": [{"kind": "User"}]}),
            "/subjects/0/apiGroup",
            json!("rbac.authorization.k8s.io"),
        ),
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration",
            json!({"webhooks": [{"rules": [{}]}]}),
            "/webhooks/0",
            json!({
            "rules": [{"scope": "*"}], "failurePolicy": "Fail", "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
            "timeoutSeconds": 10}),
        ),
        (
            "networking.k8s.io",
            "NetworkPolicy",
            json!({"spec": {"egress": [{"ports": [{"port": 1}]}]}}),
            "/spec/policyTypes",
            json!(["Ingress", "Egress"]),
        ),
        (
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            json!({"spec": {"names": {"kind": "Foo"}}}),
            "/spec/names",
            json!({"kind": "Foo", "singular": "foo", "listKind": "FooList"}),
        ),
        (
            "",
            "Pod",
            json!({"spec": {"containers": [{"image": "a:1", "resources": {"limits": {"cpu": "1"}}}]}}),
            "/spec/containers/0/resources/requests",
            json!({"cpu": "1"}),
        ),
        (
            "",
            "Pod",
            json!({"spec": {"containers": [{"image": "reg:5000/a@sha256:x"}]}}),
            "/spec/containers/0/imagePullPolicy",
            json!("IfNotPresent"),
        ),
    ];
    for (group, name, object, pointer, expected) in cases {
        assert_eq!(defaulted(group, name, object).pointer(pointer), Some(&expected), "{name} {pointer}");
    }
}

#[test]
fn a_workload_selects_its_pods_for_good() {
    let good = defaulted("apps", "Deployment", deployment());
    let mut bad = good.clone();
    bad["spec"]["selector"]["matchLabels"]["app"] = json!("other");
    insta::assert_debug_snapshot!(errors("apps", "Deployment", &bad, Some(&good)), @r#"
        [
            "spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does not match template `labels`",
            "spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"other\"}}: field is immutable",
        ]
        "#);
    let mut bare = good.clone();
    bare["spec"].as_object_mut().unwrap().remove("selector");
    bare["spec"]["template"]["spec"] = json!({"containers": [{"name": "A_b", "ports": [{"containerPort": 0}], "volumeMounts": [{"name": "x", "mountPath": "/x"}]}], "restartPolicy": "Never"});
    insta::assert_debug_snapshot!(errors("apps", "Deployment", &bare, None), @r#"
        [
            "spec.selector: Required value",
            "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
            "spec.template.spec.containers[0].name: Invalid value: \"A_b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
            "spec.template.spec.containers[0].image: Required value",
            "spec.template.spec.containers[0].ports[0].containerPort: Invalid value: 0: must be between 1 and 65535, inclusive",
            "spec.template.spec.containers[0].volumeMounts[0].name: Not found: \"x\"",
        ]
        "#);
    let mut wrong = good.clone();
    wrong["spec"]["replicas"] = json!("three");
    let found = validate(&kind("apps", "Deployment"), &wrong, None);
    assert_eq!(found.iter().map(|error| error.error_type).collect::<Vec<_>>(), [ErrorType::TypeInvalid]);
}

#[test]
fn a_stateful_set_mounts_its_claims() {
    let mut set = deployment();
    set["kind"] = json!("StatefulSet");
    let mut set = defaulted("apps", "StatefulSet", set);
    set["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    let missing = "spec.template.spec.containers[0].volumeMounts[0].name: Not found: \"data\"";
    assert_eq!(errors("apps", "StatefulSet", &set, None), [missing]);
    let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    set["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": claim}]);
    assert_eq!(errors("apps", "StatefulSet", &set, None), [""; 0]);
}

#[test]
fn a_pod_template_has_a_container() {
    for object in [json!({}), json!({"template": {}}), json!({"template": {"metadata": {"labels": {"a": "b"}}}})] {
        let object = defaulted("", "PodTemplate", object);
        assert_eq!(errors("", "PodTemplate", &object, None), ["template.spec.containers: Required value"], "{object}");
    }
}

#[test]
fn other_invalid_values_are_refused() {
    let rbac = "rbac.authorization.k8s.io";
    let binding = json!({"roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "a"}, "subjects": [{"kind": "ServiceAccount", "name": "x"}]});
    let mut rebound = binding.clone();
    rebound["roleRef"]["name"] = json!("b");
    let frozen = json!({"immutable": true, "data": {"a": "1"}});
    let headless = json!({"spec": {"type": "ClusterIP", "clusterIP": "10.0.0.1", "sessionAffinity": "None", "ports": [{"port": 80, "protocol": "TCP"}]}});
    let mut moved = headless.clone();
    moved["spec"]["clusterIP"] = json!("10.0.0.2");
    let cases: Vec<(&str, &str, Value, Option<&Value>)> = vec![
        (rbac, "RoleBinding", rebound, Some(&binding)),
        (rbac, "ClusterRoleBinding", binding.clone(), None),
        (rbac, "Role", json!({"rules": [{"resources": ["pods"]}]}), None),
        ("", "ConfigMap", json!({"immutable": true, "data": {"a": "2"}}), Some(&frozen)),
        ("", "ConfigMap", json!({"data": {"a/b": "2"}}), None),
        ("", "Service", moved, Some(&headless)),
        ("", "PersistentVolumeClaim", json!({"spec": {"accessModes": []}}), None),
        (
            "networking.k8s.io",
            "Ingress",
            json!({"spec": {"rules": [{"http": {"paths": [{"path": "x", "backend": {}}]}}]}}),
            None,
        ),
        ("policy", "PodDisruptionBudget", json!({"spec": {"minAvailable": 1, "maxUnavailable": 1}}), None),
    ];
    let found: Vec<String> = cases.iter().flat_map(|(group, name, new, old)| errors(group, name, new, *old)).collect();
    insta::assert_debug_snapshot!(found, @r#"
        [
            "roleRef: Invalid value: {\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"ClusterRole\",\"name\":\"b\"}: cannot change roleRef",
            "subjects[0].namespace: Required value",
            "rules[0].verbs: Required value: verbs must contain at least one value",
            "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
            "data: Forbidden: field is immutable when `immutable` is set",
            "data[a/b]: Invalid value: \"a/b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
            "spec.clusterIPs[0]: Invalid value: [\"10.0.0.2\"]: may not change once set",
            "spec.accessModes: Required value: at least 1 access mode is required",
            "spec.resources.storage: Required value",
            "spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified",
            "spec.rules[0].http.paths[0].path: Invalid value: \"x\": must be an absolute path",
            "spec: Invalid value: {\"maxUnavailable\":1,\"minAvailable\":1}: minAvailable and maxUnavailable cannot be both set",
        ]
        "#);
}

#[test]
fn mutually_exclusive_fields_are_refused() {
    let with = |pointer: &str, value: serde_json::Value| {
        let mut object = defaulted("apps", "Deployment", deployment());
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[name] = value;
        errors("apps", "Deployment", &object, None)
    };
    let pod = "/spec/template/spec";
    assert_eq!(
        with("/spec/strategy/type", json!("Recreate")),
        ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"]
    );
    assert_eq!(
        with(&format!("{pod}/volumes/1/secret"), json!({"secretName": "s"})),
        ["spec.template.spec.volumes[1].configMap: Forbidden: may not specify more than 1 volume type"]
    );
    assert_eq!(
        with(&format!("{pod}/containers/0/readinessProbe/tcpSocket"), json!({"port": 80})),
        [
            "spec.template.spec.containers[0].readinessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"
        ]
    );
}
