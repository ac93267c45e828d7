//! Results of `compatibility: extended`, the default, for bundles that OLM v1 refuses or breaks.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests may panic and print"
)]

use std::{collections::BTreeSet, fs};

use chandler_expected::{canonical, difference, identity};
use serde_json::{Value, json};

use crate::support::{
    fixtures, render,
    small::{CRD, Small, names, one},
    values,
};

/// An operator with one aggregated API.
fn aggregated() -> Small {
    let mut small = Small::new(&["AllNamespaces"]);
    small.csv["spec"]["apiservicedefinitions"] = json!({"owned": [
        {"name": "ships", "group": "harbour.example.com", "version": "v1alpha1", "kind": "Ship",
         "deploymentName": "op.main", "containerPort": 5443},
        {"name": "tugs", "group": "harbour.example.com", "version": "v1alpha1", "kind": "Tug",
         "deploymentName": "op.main", "containerPort": 5443},
    ]});
    small.csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"]["serviceAccountName"] =
        json!("op");
    small
}

#[test]
fn an_aggregated_api_gets_a_service_a_certificate_and_auth_bindings() {
    let release = aggregated().render(&json!({"certificateProvider": "cert-manager"})).unwrap();
    insta::assert_json_snapshot!(names(&release), @r#"
    [
      "APIService /v1alpha1.harbour.example.com",
      "Certificate ns/op-main-service-cert",
      "ClusterRole /op.v1-op-28n751rod35l3i38px9ddojrfdjivpro9ikaezdl09m6",
      "ClusterRoleBinding /op-main-service-system:auth-delegator",
      "ClusterRoleBinding /op.v1-op-28n751rod35l3i38px9ddojrfdjivpro9ikaezdl09m6",
      "Deployment ns/op.main",
      "Issuer ns/op-main-service-cert-selfsigned-issuer",
      "RoleBinding kube-system/op-main-service-auth-reader",
      "Service ns/op-main-service",
      "ServiceAccount ns/op"
    ]
    "#);
    insta::assert_json_snapshot!(one(&release, "APIService"), @r#"
    {
      "apiVersion": "apiregistration.k8s.io/v1",
      "kind": "APIService",
      "metadata": {
        "annotations": {
          "cert-manager.io/inject-ca-from": "ns/op-main-service-cert"
        },
        "name": "v1alpha1.harbour.example.com"
      },
      "spec": {
        "group": "harbour.example.com",
        "groupPriorityMinimum": 2000,
        "service": {
          "name": "op-main-service",
          "namespace": "ns",
          "port": 5443
        },
        "version": "v1alpha1",
        "versionPriority": 15
      }
    }
    "#);
    insta::assert_json_snapshot!(one(&release, "Service")["spec"], @r#"
    {
      "ports": [
        {
          "name": "5443",
          "port": 5443,
          "targetPort": 5443
        }
      ],
      "selector": {
        "app": "op"
      }
    }
    "#);
    insta::assert_json_snapshot!(one(&release, "RoleBinding"), @r#"
    {
      "apiVersion": "rbac.authorization.k8s.io/v1",
      "kind": "RoleBinding",
      "metadata": {
        "name": "op-main-service-auth-reader",
        "namespace": "kube-system"
      },
      "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "Role",
        "name": "extension-apiserver-authentication-reader"
      },
      "subjects": [
        {
          "kind": "ServiceAccount",
          "name": "op",
          "namespace": "ns"
        }
      ]
    }
    "#);
    let bindings: Vec<&Value> = release.objects.iter().map(|object| &object.value).collect();
    let delegator = bindings.iter().find(|object| object["roleRef"]["name"] == "system:auth-delegator").unwrap();
    assert_eq!(delegator["subjects"], json!([{"kind": "ServiceAccount", "name": "op", "namespace": "ns"}]));
    let pod = &one(&release, "Deployment")["spec"]["template"]["spec"];
    assert_eq!(
        pod["containers"][0]["volumeMounts"][1],
        json!({"name": "apiservice-cert", "mountPath": "/apiserver.local.config/certificates"})
    );
}

#[test]
fn an_aggregated_api_with_the_service_ca_of_openshift_with_the_host_and_with_none() {
    let release = aggregated().render(&json!({"certificateProvider": "openshift-service-ca"})).unwrap();
    let annotations = &one(&release, "APIService")["metadata"]["annotations"];
    assert_eq!(annotations, &json!({"service.beta.openshift.io/inject-cabundle": "true"}));
    let annotations = &one(&release, "Service")["metadata"]["annotations"];
    let secret = json!({"service.beta.openshift.io/serving-cert-secret-name": "op-main-service-cert"});
    assert_eq!(annotations, &secret);

    let release = aggregated().render(&json!({"certificateProvider": "host"})).unwrap();
    let annotations = &one(&release, "APIService")["metadata"]["annotations"];
    assert_eq!(annotations, &json!({"certificates.chandler.dev/inject-ca": "true"}));
    let annotations = &one(&release, "Service")["metadata"]["annotations"];
    let secret = json!({"certificates.chandler.dev/serving-secret": "op-main-service-cert"});
    assert_eq!(annotations, &secret);

    let release = aggregated().render(&json!({"certificateProvider": "none"})).unwrap();
    let service = one(&release, "APIService");
    assert_eq!(service["metadata"].get("annotations"), None);
    assert_eq!(service["spec"].get("insecureSkipTLSVerify"), None, "no client is asked to trust any server");
    let codes: Vec<&str> = release.findings.iter().map(|finding| finding.code.as_str()).collect();
    assert_eq!(codes, ["ApiServiceWithoutCertificate", "ApiServiceWithoutCertificate"]);
}

#[test]
fn a_webhook_and_an_aggregated_api_of_one_deployment_share_a_service() {
    let small = aggregated().webhook("ValidatingAdmissionWebhook", "v.example.com");
    let release = small.render(&json!({"certificateProvider": "cert-manager"})).unwrap();
    let ports = json!([
        {"name": "443", "port": 443, "targetPort": 9443},
        {"name": "5443", "port": 5443, "targetPort": 5443},
    ]);
    assert_eq!(one(&release, "Service")["spec"]["ports"], ports);
    assert!(one(&release, "Certificate").is_object());
}

#[test]
fn the_host_is_the_default_certificate_provider() {
    let small = aggregated().webhook("ValidatingAdmissionWebhook", "v.example.com");
    let objects = |config: Value| {
        let release = small.render(&config).unwrap();
        assert_eq!(release.findings.iter().map(|finding| &finding.code).collect::<Vec<_>>(), [""; 0]);
        release.objects.into_iter().map(|emitted| emitted.value).collect::<Vec<_>>()
    };
    let host = objects(json!({"certificateProvider": "host"}));
    assert_eq!(objects(json!({})), host);
    assert_eq!(objects(json!({"certificateProvider": null, "compatibility": "extended"})), host);
    assert_ne!(objects(json!({"certificateProvider": "cert-manager"})), host);
}

#[test]
fn invalid_aggregated_apis_are_refused() {
    let mut small = aggregated().webhook("ValidatingAdmissionWebhook", "v.example.com");
    let owned = &mut small.csv["spec"]["apiservicedefinitions"]["owned"];
    owned[0]["containerPort"] = json!(443);
    owned
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "x", "group": "harbour", "version": "V1", "deploymentName": "removed"}));
    insta::assert_snapshot!(small.refusal(&json!({"certificateProvider": "none"})), @r#"
    content
    InvalidApiService manifests/csv.yaml:31:20 (/spec/apiservicedefinitions/owned/2/group): API service "x" has an invalid group "harbour"
      a group is a domain such as example.com, a version is one such as v1alpha1
    InvalidApiService manifests/csv.yaml:33:22 (/spec/apiservicedefinitions/owned/2/version): API service "x" has an invalid version "V1"
      a group is a domain such as example.com, a version is one such as v1alpha1
    ApiServiceDeploymentMissing manifests/csv.yaml:30:29 (/spec/apiservicedefinitions/owned/2/deploymentName): API service "x" references non-existent deployment "removed"
      name a deployment of the install strategy
    ConflictingApiServices manifests/csv.yaml:21:9 (/spec/apiservicedefinitions/owned/1): "v1alpha1.harbour.example.com" is served by several deployments or ports
      serve all kinds of a version by one deployment and port
    ConflictingPorts manifests/csv.yaml:13:9 (/spec/apiservicedefinitions/owned/0): port 443 in front of deployment "op.main" targets both 9443 and 443 of its pods
      give them different containerPorts, or the same targetPort
    "#);
    insta::assert_snapshot!(aggregated().refusal(&json!({"compatibility": "reference"})), @r#"
    unsupported
    ApiServicesUnsupported manifests/csv.yaml:13:9 (/spec/apiservicedefinitions/owned/0): unsupported bundle: apiServiceDefintions are not supported
      API service "ships" is installed with compatibility: extended
    ApiServicesUnsupported manifests/csv.yaml:21:9 (/spec/apiservicedefinitions/owned/1): unsupported bundle: apiServiceDefintions are not supported
      API service "tugs" is installed with compatibility: extended
    "#);
}

#[test]
fn accounts_that_only_a_deployment_names_are_created() {
    let mut small = Small::new(&["AllNamespaces"]);
    let deployments = small.csv["spec"]["install"]["spec"]["deployments"].as_array_mut().unwrap();
    for (name, field) in
        [("worker", "serviceAccountName"), ("older", "serviceAccount"), ("default", "serviceAccountName")]
    {
        let mut deployment = deployments[0].clone();
        deployment["name"] = json!(name);
        deployment["spec"]["template"]["spec"][field] = json!(name);
        deployments.push(deployment);
    }
    let accounts = |compatibility: &str| -> Vec<String> {
        let release = small.render(&json!({"compatibility": compatibility})).unwrap();
        names(&release).into_iter().filter_map(|name| Some(name.strip_prefix("ServiceAccount ")?.to_owned())).collect()
    };
    assert_eq!(accounts("extended"), ["ns/older", "ns/op", "ns/worker"]);
    assert_eq!(accounts("reference"), ["ns/op"]);
}

#[test]
fn unlisted_kinds_are_installed_with_a_warning() {
    let objects = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, namespace: elsewhere}\n---\n\
                   apiVersion: v1\nkind: Namespace\nmetadata: {name: north}\n---\n\
                   apiVersion: example.com/v1\nkind: Berth\nmetadata: {name: b}\n";
    let small = Small::new(&["AllNamespaces"]).file("manifests/more.yaml", objects).file("manifests/crd.yaml", CRD);
    let release = small.render(&json!({})).unwrap();
    let kept: Vec<String> = names(&release)
        .into_iter()
        .filter(|name| ["Job ", "Namespace ", "Berth "].iter().any(|kind| name.starts_with(kind)))
        .collect();
    // An object with a namespace is namespaced; for others only the host knows.
    assert_eq!(kept, ["Berth /b", "Job ns/j", "Namespace /north"]);
    let findings: Vec<String> = release.findings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(findings.join("\n"), @r#"
    manifests/crd.yaml:16:7 (/spec/versions/0/additionalPrinterColumns/0/JSONPath): unknown field "JSONPath" is read as "jsonPath" (help: field names are case-sensitive; OLM drops this one)
    manifests/more.yaml:2:7 (/kind): Job "j" is of a kind that registry+v1 bundles may not contain, and is installed (help: OLM refuses such a bundle, and so does compatibility: reference)
    manifests/more.yaml:6:7 (/kind): Namespace "north" is of a kind that registry+v1 bundles may not contain, and is installed (help: OLM refuses such a bundle, and so does compatibility: reference)
    manifests/more.yaml:10:7 (/kind): Berth "b" is of a kind that registry+v1 bundles may not contain, and is installed (help: OLM refuses such a bundle, and so does compatibility: reference)
    "#);
    insta::assert_snapshot!(small.refusal(&json!({"compatibility": "reference"})), @r#"
    content
    UnsupportedKind manifests/more.yaml:2:7 (/kind): unsupported resource "j" with kind "Job"
      registry+v1 bundles allow a fixed list of kinds; compatibility: extended installs others, too
    UnsupportedKind manifests/more.yaml:6:7 (/kind): unsupported resource "north" with kind "Namespace"
      registry+v1 bundles allow a fixed list of kinds; compatibility: extended installs others, too
    UnsupportedKind manifests/more.yaml:10:7 (/kind): unsupported resource "b" with kind "Berth"
      registry+v1 bundles allow a fixed list of kinds; compatibility: extended installs others, too
    "#);
}

#[test]
fn values_of_secrets_that_are_no_text_are_refused() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {user: keeper, port: 5432}\n";
    let small = Small::new(&["AllNamespaces"]).file("manifests/secret.yaml", secret);
    insta::assert_snapshot!(small.refusal(&json!({})), @"
    content
    InvalidType manifests/secret.yaml:4:34 (/stringData/port): stringData.port must be text, and is an integer
      put the value into quotes
    ");
    // OLM v1 leaves it to the API server.
    let release = small.render(&json!({"compatibility": "reference"})).unwrap();
    assert_eq!(one(&release, "Secret")["stringData"]["port"], 5432);
    let codes: Vec<&str> = release.findings.iter().map(|finding| finding.code.as_str()).collect();
    assert_eq!(codes, ["InvalidType"]);
}

#[test]
fn crds_that_api_servers_accept_and_that_do_not_work_have_warnings() {
    let conversion = "  conversion:\n    strategy: Webhook\n    webhook:\n      clientConfig: {service: {name: pier, namespace: \
                      other}}\n      conversionReviewVersions: [v1]\n";
    let crd = CRD
        .replace("JSONPath", "jsonPath")
        .replace("plural: berths}", "plural: berths, shortNames: [b, berth, berths]}");
    let crd = format!("{crd}{conversion}");
    let mut small = Small::new(&["AllNamespaces"]).file("manifests/crd.yaml", &crd);
    let findings = |small: &Small| {
        let release = small.render(&json!({})).unwrap();
        let findings = release.findings.iter().map(|finding| format!("{}: {finding}", finding.code));
        findings.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(findings(&small), @r#"
    UndeclaredConversionWebhook: manifests/crd.yaml:20:5 (/spec/conversion): the objects of CustomResourceDefinition "berths.example.com" are converted by Service other/pier, which no webhook definition of the ClusterServiceVersion declares (help: declare a ConversionWebhook with conversionCRDs in spec.webhookdefinitions, or set strategy: None; until something else installs the converter, the installation waits for it, unless the configuration has undeclaredConversionWebhooks: remove)
    RedundantShortName: manifests/crd.yaml:7:52 (/spec/names/shortNames): CustomResourceDefinition "berths.example.com" has berth, berths as plural or singular and as a short name (help: remove the short name: an API server that has the CRD without it refuses it for good)
    "#);
    // Without the conversion, nothing waits for the converter, and the operator can set its own.
    let removed = small.render(&json!({"undeclaredConversionWebhooks": "remove"})).unwrap();
    assert_eq!(one(&removed, "CustomResourceDefinition")["spec"].get("conversion"), None);
    assert!(removed.findings[0].help.as_ref().unwrap().contains("without a conversion"), "{:?}", removed.findings[0]);
    let kept = small.render(&json!({"undeclaredConversionWebhooks": "keep"})).unwrap();
    assert_eq!(one(&kept, "CustomResourceDefinition")["spec"]["conversion"]["strategy"], "Webhook");
    let wrong = small.refusal(&json!({"undeclaredConversionWebhooks": "None"}));
    assert!(wrong.contains("InvalidValue config (/undeclaredConversionWebhooks)"), "{wrong}");
    small = small.webhook("ConversionWebhook", "convert");
    small.csv["spec"]["webhookdefinitions"][0]["conversionCRDs"] = json!(["berths.example.com"]);
    small.csv["spec"]["customresourcedefinitions"] =
        json!({"owned": [{"name": "berths.example.com", "version": "v1", "kind": "Berth"}]});
    let declared = findings(&small);
    assert!(declared.starts_with("RedundantShortName") && !declared.contains("UndeclaredConversion"), "{declared}");
}

#[test]
fn values_for_catalogs_that_cannot_be_read_have_warnings() {
    let mut small = Small::new(&["AllNamespaces"]);
    small.csv["metadata"]["annotations"] = json!({"olm.skipRange": "<v1.1.0"});
    small.csv["spec"]["version"] = json!(1.1);
    small.csv["spec"]["icon"] = json!([{"base64data": "<svg/>", "mediatype": "image/svg+xml"}]);
    let findings = |small: &Small| {
        let release = small.render(&json!({})).unwrap();
        release.findings.iter().map(|it| format!("{} {}", it.code, it.message)).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(findings(&small), @r#"
    InvalidVersion the version of the ClusterServiceVersion is a number, and must be text
    InvalidSkipRange olm.skipRange "<v1.1.0" is not a version range, and the bundle updates no version by it
    InvalidIcon the icon is not base64, and is not shown
    "#);
    small.csv["metadata"]["annotations"] = json!({"olm.skipRange": ">=1.0.0 <1.1.0"});
    small.csv["spec"]["version"] = json!("1.1.0");
    small.csv["spec"]["icon"] = json!([{"base64data": "eA==", "mediatype": "image/png"}]);
    assert_eq!(findings(&small), "");
}

#[test]
fn field_names_with_wrong_case_are_accepted() {
    let mut small = Small::new(&["AllNamespaces"]).file("manifests/crd.yaml", CRD);
    small.csv["spec"]["install"]["spec"]["permissions"][0]["rules"][0] =
        json!({"apigroups": [""], "resources": ["pods"], "verbs": ["get"]});
    let release = small.render(&json!({})).unwrap();
    let column = &one(&release, "CustomResourceDefinition")["spec"]["versions"][0]["additionalPrinterColumns"][0];
    assert_eq!(column["jsonPath"], ".metadata.creationTimestamp");
    let rule = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]});
    assert_eq!(one(&release, "ClusterRole")["rules"][0], rule);
    let findings: Vec<String> = release.findings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(findings.join("\n"), @r#"
    manifests/crd.yaml:16:7 (/spec/versions/0/additionalPrinterColumns/0/JSONPath): unknown field "JSONPath" is read as "jsonPath" (help: field names are case-sensitive; OLM drops this one)
    manifests/csv.yaml:45:17 (/spec/install/spec/permissions/0/rules/0/apigroups): unknown field "apigroups" is read as "apiGroups" (help: field names are case-sensitive; OLM drops this one)
    "#);
}

#[test]
fn v1beta1_crds_are_installed_as_v1() {
    let old = "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\n\
               metadata: {name: berths.example.com}\n\
               spec:\n  group: example.com\n  version: v1\n  scope: Namespaced\n\
               \x20 names: {kind: Berth, plural: berths}\n  subresources: {status: {}}\n\
               \x20 preserveUnknownFields: false\n\
               \x20 additionalPrinterColumns: [{name: Age, type: date, JSONPath: .x}]\n\
               \x20 validation: {openAPIV3Schema: {properties: {spec: {type: object}}}}\n";
    let mut small =
        Small::new(&["AllNamespaces"]).webhook("ConversionWebhook", "c.example.com").file("manifests/old.yaml", old);
    small.csv["spec"]["webhookdefinitions"][0]["conversionCRDs"] = json!(["berths.example.com"]);
    small.csv["spec"]["customresourcedefinitions"] = json!({"owned": [{"name": "berths.example.com"}]});
    let release = small.render(&json!({"certificateProvider": "cert-manager"})).unwrap();
    insta::assert_json_snapshot!(one(&release, "CustomResourceDefinition"), @r#"
    {
      "apiVersion": "apiextensions.k8s.io/v1",
      "kind": "CustomResourceDefinition",
      "metadata": {
        "annotations": {
          "cert-manager.io/inject-ca-from": "ns/op-main-service-cert"
        },
        "name": "berths.example.com"
      },
      "spec": {
        "conversion": {
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
        },
        "group": "example.com",
        "names": {
          "kind": "Berth",
          "plural": "berths"
        },
        "scope": "Namespaced",
        "versions": [
          {
            "additionalPrinterColumns": [
              {
                "jsonPath": ".x",
                "name": "Age",
                "type": "date"
              }
            ],
            "name": "v1",
            "schema": {
              "openAPIV3Schema": {
                "properties": {
                  "spec": {
                    "type": "object"
                  }
                },
                "type": "object"
              }
            },
            "served": true,
            "storage": true,
            "subresources": {
              "status": {}
            }
          }
        ]
      }
    }
    "#);
    assert_eq!(release.findings.len(), 1);
    insta::assert_snapshot!(release.findings[0], @"manifests/old.yaml:1:13 (/apiVersion): apiextensions.k8s.io/v1beta1 is not served by Kubernetes 1.22 and newer, and this CustomResourceDefinition is installed as one of apiextensions.k8s.io/v1 (help: convert it in the bundle, and check the resulting schema)");
}

#[test]
fn removed_api_versions_are_replaced() {
    let objects = "apiVersion: rbac.authorization.k8s.io/v1beta1\nkind: ClusterRole\nmetadata: {name: r1}\n---\n\
                   apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: p1}\nspec: {selector: {}, minAvailable: 1}\n---\n\
                   apiVersion: scheduling.k8s.io/v1beta1\nkind: PriorityClass\nmetadata: {name: c1}\n";
    let small = Small::new(&["OwnNamespace"]).file("manifests/old.yaml", objects);
    let config = |compatibility: &str| json!({"watchNamespace": "ns", "compatibility": compatibility});
    let release = small.render(&config("extended")).unwrap();
    let versions =
        ["ClusterRole", "PodDisruptionBudget", "PriorityClass"].map(|kind| one(&release, kind)["apiVersion"].clone());
    assert_eq!(versions, [json!("rbac.authorization.k8s.io/v1"), json!("policy/v1"), json!("scheduling.k8s.io/v1")]);
    // A selector that matched no pods still matches none.
    assert_eq!(one(&release, "PodDisruptionBudget")["spec"], json!({"minAvailable": 1}));
    assert_eq!(release.findings.len(), 3);
    insta::assert_snapshot!(release.findings[0], @r#"manifests/old.yaml:1:1: ClusterRole "r1" is of version rbac.authorization.k8s.io/v1beta1, which is no longer served, and is installed as rbac.authorization.k8s.io/v1 (help: set it in the manifest)"#);
    let release = small.render(&config("reference")).unwrap();
    assert_eq!(one(&release, "PodDisruptionBudget")["apiVersion"], "policy/v1beta1");
}

#[test]
fn cluster_scoped_objects_lose_their_namespace() {
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r, namespace: x}\n";
    let small = Small::new(&["OwnNamespace"]).file("manifests/role.yaml", role);
    let namespace = |compatibility: &str| {
        let release = small.render(&json!({"watchNamespace": "ns", "compatibility": compatibility})).unwrap();
        one(&release, "ClusterRole")["metadata"].get("namespace").cloned()
    };
    assert_eq!((namespace("extended"), namespace("reference")), (None, Some(json!("x"))));
}

#[test]
fn invalid_identities_are_refused_with_their_location() {
    let mut small = Small::new(&["AllNamespaces"])
        .file("manifests/a.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {generateName: s-}\n")
        .file("manifests/b.yaml", "kind: Berth\nmetadata: {name: b}\n")
        .file("manifests/c.yaml", "apiVersion: example.com/v1\nkind: Berth\nmetadata: {name: a/b}\n");
    small.csv["spec"]["install"]["spec"]["permissions"][0]["serviceAccountName"] = json!("a%b");
    insta::assert_snapshot!(small.refusal(&json!({})), @r#"
    content
    InvalidIdentity manifests/csv.yaml:56:35 (/spec/install/spec/permissions/0/serviceAccountName): API servers reject object ServiceAccount ns/a%b: metadata.name is invalid: "a%b"
      an object has an apiVersion, a kind and a name of up to 253 characters without / and %; quote a name that YAML takes for a number or a truth value
    InvalidIdentity manifests/csv.yaml:42:11 (/spec/install/spec/permissions/0): API servers reject object ClusterRole.rbac.authorization.k8s.io op.v1-a%b-21l15xx2lkqhb261kr8uds391kon840anr5jl6siswoj: metadata.name is invalid: "op.v1-a%b-21l15xx2lkqhb261kr8uds391kon840anr5jl6siswoj"
      an object has an apiVersion, a kind and a name of up to 253 characters without / and %; quote a name that YAML takes for a number or a truth value
    InvalidIdentity manifests/csv.yaml:42:11 (/spec/install/spec/permissions/0): API servers reject object ClusterRoleBinding.rbac.authorization.k8s.io op.v1-a%b-21l15xx2lkqhb261kr8uds391kon840anr5jl6siswoj: metadata.name is invalid: "op.v1-a%b-21l15xx2lkqhb261kr8uds391kon840anr5jl6siswoj"
      an object has an apiVersion, a kind and a name of up to 253 characters without / and %; quote a name that YAML takes for a number or a truth value
    InvalidIdentity manifests/a.yaml:1:1: API servers reject object Secret ns/: metadata.name is missing
      an object has an apiVersion, a kind and a name of up to 253 characters without / and %; quote a name that YAML takes for a number or a truth value
    InvalidIdentity manifests/b.yaml:1:1: API servers reject object Berth b: apiVersion is missing
      an object has an apiVersion, a kind and a name of up to 253 characters without / and %; quote a name that YAML takes for a number or a truth value
    InvalidIdentity manifests/c.yaml:1:1: API servers reject object Berth.example.com a/b: metadata.name is invalid: "a/b"
      an object has an apiVersion, a kind and a name of up to 253 characters without / and %; quote a name that YAML takes for a number or a truth value
    "#);
}

/// Removes the intended changes of `extended`: the port of webhooks, and namespaces of cluster-scoped objects.
fn without_changes(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("namespace");
    }
    for webhook in object["webhooks"].as_array_mut().into_iter().flatten() {
        webhook["clientConfig"]["service"].as_object_mut().unwrap().remove("port");
    }
    if let Some(service) = object.pointer_mut("/spec/conversion/webhook/clientConfig/service") {
        service.as_object_mut().unwrap().remove("port");
    }
    object
}

#[test]
fn extended_keeps_all_objects_of_published_bundles() {
    let Some(fixtures) = fixtures() else { return };
    let corpus = fixtures.join("corpus");
    let index: Value = serde_json::from_slice(&fs::read(corpus.join("index.json")).unwrap()).unwrap();
    let (mut compared, mut more) = (0, BTreeSet::new());
    for bundle in index["bundles"].as_array().unwrap() {
        let name = bundle["bundle"].as_str().unwrap();
        let directory = corpus.join("bundles").join(name);
        for config in [json!({}), json!({"watchNamespace": "oracle-system"}), json!({"watchNamespace": "watched"})] {
            let objects = |compatibility: &str| {
                let mut config = config.clone();
                config["certificateProvider"] = json!("cert-manager");
                config["compatibility"] = json!(compatibility);
                render(&directory, "oracle-system", &config).map(|release| {
                    let misspelt = release.findings.iter().any(|finding| finding.code == "MisspeltField");
                    (canonical(values(release)), misspelt)
                })
            };
            let Ok((reference, _)) = objects("reference") else { continue };
            let (extended, misspelt) = objects("extended").unwrap_or_else(|failure| panic!("{name}: {failure}"));
            let (reference, extended): (Vec<Value>, Vec<Value>) = (
                reference.into_iter().map(without_changes).collect(),
                extended.into_iter().map(without_changes).collect(),
            );
            for object in &reference {
                let identity = identity(object);
                // API servers reject these: removed versions, and rules without groups.
                let removed = object["apiVersion"].as_str().is_some_and(|version| version.ends_with(".k8s.io/v1beta1"));
                if removed || misspelt && has_hashed_name(object) {
                    continue;
                }
                let other = extended.iter().find(|other| chandler_expected::identity(other) == identity);
                let other = other.unwrap_or_else(|| panic!("{name}: {identity} is removed"));
                // The value that the misspelt name belonged to has more fields now.
                assert!(misspelt || difference(object, other).is_none(), "{name}: {identity}");
            }
            if misspelt {
                continue;
            }
            let known: BTreeSet<String> = reference.iter().map(identity).collect();
            let added = extended.iter().map(identity).filter(|identity| !known.contains(identity));
            more.extend(added.map(|identity| identity.split(' ').nth(1).unwrap().to_owned()));
            compared += 1;
        }
    }
    println!("{compared} releases; kinds that extended adds: {more:?}");
    assert!(compared > 50, "only {compared}");
    let expected = ["ClusterRole", "CustomResourceDefinition", "ServiceAccount"].map(str::to_owned);
    assert!(more.is_subset(&BTreeSet::from(expected)), "{more:?}");
}

/// The names of roles are hashes of their rules: they differ if OLM v1 dropped a part of the rules.
fn has_hashed_name(object: &Value) -> bool {
    matches!(object["kind"].as_str(), Some("Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding"))
}
