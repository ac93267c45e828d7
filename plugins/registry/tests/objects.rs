//! The objects generated from a small operator.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests may panic and print"
)]

use serde_json::json;

use crate::support::small::{CRD, Small, names, one};

const WEBHOOK: &str = "ValidatingAdmissionWebhook";

#[test]
fn an_operator_that_watches_everything_has_its_permissions_promoted() {
    let release = Small::new(&["AllNamespaces"]).render(&json!({})).unwrap();
    insta::assert_json_snapshot!(names(&release), @r#"
    [
      "ClusterRole /op.v1-op-28n751rod35l3i38px9ddojrfdjivpro9ikaezdl09m6",
      "ClusterRoleBinding /op.v1-op-28n751rod35l3i38px9ddojrfdjivpro9ikaezdl09m6",
      "Deployment ns/op.main",
      "ServiceAccount ns/op"
    ]
    "#);
    insta::assert_json_snapshot!(one(&release, "ClusterRole")["rules"], @r#"
    [
      {
        "apiGroups": [
          ""
        ],
        "resources": [
          "pods"
        ],
        "verbs": [
          "get"
        ]
      },
      {
        "apiGroups": [
          ""
        ],
        "resources": [
          "namespaces"
        ],
        "verbs": [
          "get",
          "list",
          "watch"
        ]
      }
    ]
    "#);
    insta::assert_json_snapshot!(one(&release, "Deployment"), @r#"
    {
      "apiVersion": "apps/v1",
      "kind": "Deployment",
      "metadata": {
        "name": "op.main",
        "namespace": "ns"
      },
      "spec": {
        "revisionHistoryLimit": 1,
        "selector": {
          "matchLabels": {
            "app": "op"
          }
        },
        "strategy": {},
        "template": {
          "metadata": {
            "annotations": {
              "a": "b",
              "olm.operatorNamespace": "ns",
              "olm.targetNamespaces": ""
            },
            "labels": {
              "app": "op"
            }
          },
          "spec": {
            "containers": [
              {
                "image": "example.com/op",
                "name": "op",
                "resources": {}
              }
            ]
          }
        }
      }
    }
    "#);
}

#[test]
fn an_operator_that_watches_several_namespaces_has_a_role_in_each() {
    let release = Small::new(&["MultiNamespace"]).render(&json!({"watchNamespaces": ["b", "a", "b"]})).unwrap();
    insta::assert_json_snapshot!(names(&release), @r#"
    [
      "Deployment ns/op.main",
      "Role a/op.v1-op-r8nuk4q6rkyntbiqzooqpxzxup0t7fbuvh2vxi4j55e",
      "Role b/op.v1-op-r8nuk4q6rkyntbiqzooqpxzxup0t7fbuvh2vxi4j55e",
      "RoleBinding a/op.v1-op-r8nuk4q6rkyntbiqzooqpxzxup0t7fbuvh2vxi4j55e",
      "RoleBinding b/op.v1-op-r8nuk4q6rkyntbiqzooqpxzxup0t7fbuvh2vxi4j55e",
      "ServiceAccount ns/op"
    ]
    "#);
    let annotations = &one(&release, "Deployment")["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(annotations["olm.targetNamespaces"], "a,b");
}

#[test]
fn every_object_has_an_origin() {
    let small = Small::new(&["AllNamespaces"]).file("manifests/crd.yaml", CRD);
    let release = small.render(&json!({})).unwrap();
    let origins: Vec<String> = release
        .objects
        .iter()
        .map(|object| format!("{} {}", object.value["kind"].as_str().unwrap(), object.origin.as_ref().unwrap()))
        .collect();
    insta::assert_json_snapshot!(origins, @r#"
    [
      "ServiceAccount manifests/csv.yaml:56:35 (/spec/install/spec/permissions/0/serviceAccountName)",
      "ClusterRole manifests/csv.yaml:42:11 (/spec/install/spec/permissions/0)",
      "ClusterRoleBinding manifests/csv.yaml:42:11 (/spec/install/spec/permissions/0)",
      "CustomResourceDefinition manifests/crd.yaml:1:1",
      "Deployment manifests/csv.yaml:15:11 (/spec/install/spec/deployments/0)"
    ]
    "#);
}

#[test]
fn unknown_fields_are_dropped_and_reported() {
    let small = Small::new(&["AllNamespaces"]).file("manifests/crd.yaml", CRD);
    let release = small.render(&json!({"compatibility": "reference"})).unwrap();
    let version = &one(&release, "CustomResourceDefinition")["spec"]["versions"][0];
    assert_eq!(version["additionalPrinterColumns"], json!([{"name": "Age", "type": "date", "jsonPath": ""}]));
    assert_eq!(version["schema"]["openAPIV3Schema"], json!({"type": "object"}));
    let findings: Vec<String> = release.findings.iter().map(ToString::to_string).collect();
    insta::assert_json_snapshot!(findings, @r#"
    [
      "manifests/crd.yaml:16:7 (/spec/versions/0/additionalPrinterColumns/0/JSONPath): unknown field \"JSONPath\" is dropped (help: field names are case-sensitive; did you mean \"jsonPath\"?)"
    ]
    "#);
}

#[test]
fn webhooks_with_cert_manager() {
    let small = Small::new(&["OwnNamespace"])
        .webhook(WEBHOOK, "v.example.com")
        .webhook("MutatingAdmissionWebhook", "m.example.com");
    let release = small.render(&json!({"watchNamespace": "ns", "certificateProvider": "cert-manager"})).unwrap();
    insta::assert_json_snapshot!(names(&release), @r#"
    [
      "Certificate ns/op-main-service-cert",
      "Deployment ns/op.main",
      "Issuer ns/op-main-service-cert-selfsigned-issuer",
      "MutatingWebhookConfiguration /m.example.com",
      "Role ns/op.v1-op-r8nuk4q6rkyntbiqzooqpxzxup0t7fbuvh2vxi4j55e",
      "RoleBinding ns/op.v1-op-r8nuk4q6rkyntbiqzooqpxzxup0t7fbuvh2vxi4j55e",
      "Service ns/op-main-service",
      "ServiceAccount ns/op",
      "ValidatingWebhookConfiguration /v.example.com"
    ]
    "#);
    insta::assert_json_snapshot!(one(&release, "ValidatingWebhookConfiguration"), @r#"
    {
      "apiVersion": "admissionregistration.k8s.io/v1",
      "kind": "ValidatingWebhookConfiguration",
      "metadata": {
        "annotations": {
          "cert-manager.io/inject-ca-from": "ns/op-main-service-cert"
        },
        "name": "v.example.com"
      },
      "webhooks": [
        {
          "admissionReviewVersions": [
            "v1"
          ],
          "clientConfig": {
            "service": {
              "name": "op-main-service",
              "namespace": "ns",
              "path": "/hook",
              "port": 443
            }
          },
          "name": "v.example.com",
          "namespaceSelector": {
            "matchExpressions": [
              {
                "key": "kubernetes.io/metadata.name",
                "operator": "In",
                "values": [
                  "ns"
                ]
              }
            ]
          },
          "sideEffects": "None"
        }
      ]
    }
    "#);
    insta::assert_json_snapshot!(one(&release, "Service")["spec"], @r#"
    {
      "ports": [
        {
          "name": "443",
          "port": 443,
          "targetPort": 9443
        }
      ],
      "selector": {
        "app": "op"
      }
    }
    "#);
}

#[test]
fn webhooks_with_the_service_ca_of_openshift() {
    let small = Small::new(&["AllNamespaces"]).webhook(WEBHOOK, "v.example.com");
    let release = small.render(&json!({"certificateProvider": "openshift-service-ca"})).unwrap();
    let annotation = |kind: &str| one(&release, kind)["metadata"]["annotations"].clone();
    let secret = json!({"service.beta.openshift.io/serving-cert-secret-name": "op-main-service-cert"});
    assert_eq!(annotation("Service"), secret);
    let inject = json!({"service.beta.openshift.io/inject-cabundle": "true"});
    assert_eq!(annotation("ValidatingWebhookConfiguration"), inject);
    assert!(names(&release).iter().all(|name| !name.contains("Issuer")));
}

#[test]
fn webhooks_with_the_host() {
    let small = Small::new(&["AllNamespaces"]).webhook(WEBHOOK, "v.example.com");
    let release = small.render(&json!({"certificateProvider": "host"})).unwrap();
    let annotation = |kind: &str| one(&release, kind)["metadata"]["annotations"].clone();
    let secret = json!({"certificates.chandler.dev/serving-secret": "op-main-service-cert"});
    assert_eq!(annotation("Service"), secret);
    assert_eq!(annotation("ValidatingWebhookConfiguration"), json!({"certificates.chandler.dev/inject-ca": "true"}));
    let volumes = &one(&release, "Deployment")["spec"]["template"]["spec"]["volumes"];
    assert_eq!(volumes[0]["secret"]["secretName"], "op-main-service-cert");
    assert!(names(&release).iter().all(|name| !name.contains("Issuer") && !name.contains("Secret")));
}

#[test]
fn a_conversion_webhook_is_set_in_its_crd() {
    let mut small =
        Small::new(&["AllNamespaces"]).webhook("ConversionWebhook", "c.example.com").file("manifests/crd.yaml", CRD);
    small.csv["spec"]["webhookdefinitions"][0]["conversionCRDs"] = json!(["berths.example.com"]);
    small.csv["spec"]["customresourcedefinitions"] =
        json!({"owned": [{"name": "berths.example.com", "kind": "Berth", "version": "v1"}]});
    let release = small.render(&json!({"certificateProvider": "cert-manager"})).unwrap();
    let crd = one(&release, "CustomResourceDefinition");
    insta::assert_json_snapshot!([&crd["metadata"], &crd["spec"]["conversion"]], @r#"
    [
      {
        "annotations": {
          "cert-manager.io/inject-ca-from": "ns/op-main-service-cert"
        },
        "name": "berths.example.com"
      },
      {
        "strategy": "Webhook",
        "webhook": {
          "clientConfig": {
            "service": {
              "name": "op-main-service",
              "namespace": "ns",
              "path": "/hook",
              "port": 443
            }
          },
          "conversionReviewVersions": [
            "v1"
          ]
        }
      }
    ]
    "#);
}

#[test]
fn webhooks_are_in_a_later_stage_than_their_servers() {
    let policy = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\n";
    let small =
        || Small::new(&["AllNamespaces"]).webhook(WEBHOOK, "v.example.com").webhook("MutatingAdmissionWebhook", "m.io");
    let late = |small: &Small, compatibility: &str| {
        let config = json!({"certificateProvider": "cert-manager", "compatibility": compatibility});
        let objects = small.render(&config).unwrap().objects.into_iter();
        let (late, early): (Vec<_>, Vec<_>) = objects.partition(|object| object.stage.is_some());
        assert!(early.iter().any(|object| object.value["kind"] == "Deployment"));
        assert!(late.iter().all(|object| object.stage == Some(1)));
        late.iter().map(|object| object.value["kind"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let webhooks = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];
    let mut found = late(&small(), "reference");
    found.sort();
    assert_eq!(found, webhooks);
    let mut found = late(&small().file("manifests/policy.yaml", policy), "extended");
    found.sort();
    assert_eq!(found, [webhooks[0], "ValidatingAdmissionPolicy", webhooks[1]]);
}

#[test]
fn without_a_provider_webhooks_are_installed_with_a_warning() {
    let small = Small::new(&["AllNamespaces"]).webhook(WEBHOOK, "v.example.com");
    let release = small.render(&json!({"certificateProvider": "none"})).unwrap();
    assert_eq!(
        release.findings.iter().map(|finding| finding.code.as_str()).collect::<Vec<_>>(),
        ["WebhookWithoutCertificate"]
    );
    assert_eq!(one(&release, "Deployment")["spec"]["template"]["spec"].get("volumes"), None);
}

#[test]
fn extended_compatibility_fixes_olm_v1_errors() {
    let autoscaler = "apiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {name: v}\n";
    let small = Small::new(&["AllNamespaces"]).webhook(WEBHOOK, "v.example.com").file("manifests/v.yaml", autoscaler);
    let config = |compatibility: &str| json!({"certificateProvider": "none", "compatibility": compatibility});
    let seen = |compatibility: &str| {
        let release = small.render(&config(compatibility)).unwrap();
        let webhook = one(&release, "ValidatingWebhookConfiguration");
        [
            webhook["webhooks"][0]["clientConfig"]["service"]["port"].clone(),
            webhook["metadata"]["namespace"].clone(),
            one(&release, "VerticalPodAutoscaler")["metadata"]["namespace"].clone(),
        ]
    };
    assert_eq!(seen("reference"), [json!(0), json!("ns"), json!(null)]);
    assert_eq!(seen("extended"), [json!(443), json!(null), json!("ns")]);
}

#[test]
fn the_bundles_own_service_account_wins_over_the_generated_one() {
    let account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: op, labels: {own: 'yes'}}\n";
    let release = Small::new(&["AllNamespaces"]).file("manifests/sa.yaml", account).render(&json!({})).unwrap();
    assert_eq!(one(&release, "ServiceAccount")["metadata"]["labels"], json!({"own": "yes"}));
}

#[test]
fn a_repeated_permission_gives_one_role() {
    let mut small = Small::new(&["AllNamespaces"]);
    let permission = small.csv["spec"]["install"]["spec"]["permissions"][0].clone();
    small.csv["spec"]["install"]["spec"]["permissions"].as_array_mut().unwrap().push(permission);
    let release = small.render(&json!({})).unwrap();
    assert!(one(&release, "ClusterRole").is_object());
}

#[test]
fn namespaced_objects_get_the_install_namespace_and_an_api_version() {
    let secret = "kind: Secret\nmetadata: {name: s, namespace: elsewhere}\n";
    let release = Small::new(&["AllNamespaces"]).file("manifests/s.yaml", secret).render(&json!({})).unwrap();
    let secret = one(&release, "Secret");
    assert_eq!(secret, &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "ns"}}));
    assert_eq!(release.findings[0].code, "ApiVersionMissing");
}

#[test]
fn bundle_properties_are_annotated_on_pods_in_go_format() {
    let properties = "properties:\n- type: olm.gvk\n  value: {version: v1, kind: <K&>}\n";
    let mut small = Small::new(&["AllNamespaces"]).file("metadata/properties.yaml", properties);
    small.csv["metadata"]["annotations"]["olm.properties"] =
        json!("[ {\"type\": \"x\", \"value\": {\"b\": 1.0, \"a\": 2}} ]");
    let release = small.render(&json!({})).unwrap();
    let annotations = &one(&release, "Deployment")["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(
        annotations["olm.properties"],
        r#"[{"type":"x","value":{"b":1.0,"a":2}},{"type":"olm.gvk","value":{"kind":"\u003cK\u0026\u003e","version":"v1"}}]"#
    );
}

#[test]
fn a_misspelt_field_below_deployment_config_is_reported() {
    let config = json!({"deploymentConfig": {"env": [{"name": "A", "Value": "x"}]}});
    let release = Small::new(&["AllNamespaces"]).render(&config).unwrap();
    assert_eq!(
        release.findings[0].to_string(),
        "config (/deploymentConfig/env/0/Value): unknown field \"Value\" is dropped (help: field names are \
         case-sensitive; did you mean \"value\"?)"
    );
}
