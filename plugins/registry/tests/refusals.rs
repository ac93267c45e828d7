//! Refused bundles and configurations.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests may panic and print"
)]

use chandler_registry::Registry;
use chandler_sdk::{
    Provisioner as _, Request,
    testing::{Bundle, run},
};
use serde_json::json;

use crate::support::small::{Small, one};

#[test]
fn all_load_errors_are_reported_at_once() {
    let mut small = Small::new(&["AllNamespaces"])
        .file("manifests/README.md", "a: b: c\n")
        .file("manifests/deep/er/x.yaml", "kind: Secret\n")
        .file("manifests/list.yaml", "kind: List\napiVersion: v1\nitems:\n- metadata: {name: x}\n");
    small.files[0].1 = "annotations: {operators.operatorframework.io.bundle.package.v1: 7}\n".to_owned();
    small.csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["replicas"] = json!("1");
    insta::assert_snapshot!(small.refusal(&json!({})), @r#"
    content
    InvalidAnnotations metadata/annotations.yaml:1:65 (/annotations/operators.operatorframework.io.bundle.package.v1): annotation "operators.operatorframework.io.bundle.package.v1" is not a string
      got integer: put the name of the package into quotes
    InvalidYaml manifests/README.md:1:5: error parsing objects in "manifests/README.md": mapping values are not allowed in this context
      every file in manifests/ is parsed as YAML or JSON, whatever its name; move others elsewhere
    InvalidObject manifests/csv.yaml:18:27 (/spec/install/spec/deployments/0/spec/replicas): error parsing objects in "manifests/csv.yaml": unrecognized type: int32
      got string, want integer: write it without quotes
    SubdirectoryInManifests manifests/deep: subdirectories are not allowed within the "manifests" directory of the bundle image filesystem: found "manifests/deep"
      move its files into manifests/ itself
    KindMissing manifests/list.yaml:4:3 (/kind): error parsing objects in "manifests/list.yaml": Object 'Kind' is missing
      manifests contain Kubernetes objects, each with a kind
    "#);
}

/// They are converted to v1 text, whose lines are not in the bundle.
#[test]
fn errors_of_v1beta1_crds_have_source_lines() {
    let old = "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata:\n  \
               creationTimestamp: now\n  name: berths.example.com\nspec:\n  group: example.com\n  version: v1\n  \
               names: {kind: Berth, plural: berths}\n  validation:\n    openAPIV3Schema: {type: 1}\n";
    let small = Small::new(&["AllNamespaces"]).file("manifests/old.yaml", old);
    insta::assert_snapshot!(small.refusal(&json!({})), @r#"
    content
    InvalidObject manifests/old.yaml:4:22 (/metadata/creationTimestamp): error parsing objects in "manifests/old.yaml": parsing time "now" as "2006-01-02T15:04:05Z07:00": cannot parse it
      got string, want time: write it as 2006-01-02T15:04:05Z, or leave it out
    "#);
}

/// Only their metadata is typed here.
#[test]
fn metadata_types_are_checked_in_every_object() {
    let small = Small::new(&["AllNamespaces"])
        .file("manifests/a.yaml", "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n  labels: {a: 1, b: null}\n")
        .file("manifests/b.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: 1, creationTimestamp: now}\n")
        .file("manifests/c.yaml", "apiVersion: 1\nkind: Secret\nmetadata: {name: c, finalizers: x, unknown: 1}\n");
    insta::assert_snapshot!(small.refusal(&json!({})), @r#"
    content
    InvalidObject manifests/a.yaml:5:15 (/metadata/labels/a): error parsing objects in "manifests/a.yaml": cannot convert int64 to string
      got integer, want string: put it into quotes
    InvalidObject manifests/b.yaml:3:18 (/metadata/name): error parsing objects in "manifests/b.yaml": cannot convert int64 to string
      got integer, want string: put it into quotes
    InvalidObject manifests/b.yaml:3:40 (/metadata/creationTimestamp): error parsing objects in "manifests/b.yaml": parsing time "now" as "2006-01-02T15:04:05Z07:00": cannot parse it
      got string, want time: write it as 2006-01-02T15:04:05Z, or leave it out
    InvalidObject manifests/c.yaml:1:13 (/apiVersion): error parsing objects in "manifests/c.yaml": cannot convert int64 to string
      got integer, want string: put it into quotes
    InvalidObject manifests/c.yaml:3:33 (/metadata/finalizers): error parsing objects in "manifests/c.yaml": cannot restore slice from string
      got string, want array
    "#);
}

#[test]
fn an_empty_directory_is_not_a_bundle() {
    let failure = run::<Registry>(&Bundle::default(), &Request::default()).unwrap_err();
    insta::assert_snapshot!(failure, @r#"
    invalid content
    metadata/annotations.yaml: open metadata/annotations.yaml: file does not exist (help: a registry+v1 bundle names its package in metadata/annotations.yaml)
    manifests: the bundle has no directory "manifests", or it is empty (help: put the ClusterServiceVersion and its objects into manifests/)
    "#);
    let without_csv =
        Bundle::new([("metadata/annotations.yaml", "{}"), ("manifests/a.yaml", "kind: Secret\nmetadata: {name: a}")]);
    insta::assert_snapshot!(run::<Registry>(&without_csv, &Request::default()).unwrap_err(), @r#"
    invalid content
    manifests: no ClusterServiceVersion found in "manifests" (help: a registry+v1 bundle installs what its ClusterServiceVersion describes)
    "#);
}

#[test]
fn all_rules_run() {
    let mut small = Small::new(&["AllNamespaces", "OwnNamespace"])
        .webhook("ConversionWebhook", "c.example.com")
        .webhook("ConversionWebhook", "d.example.com")
        .webhook("ValidatingAdmissionWebhook", "Bad-")
        .webhook("ValidatingAdmissionWebhook", "Bad-")
        .file("manifests/job.yaml", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\n");
    small.files[0].1 = "annotations: {}\n".to_owned();
    let webhooks = &mut small.csv["spec"]["webhookdefinitions"];
    webhooks[0]["conversionCRDs"] = json!(["x.example.com"]);
    webhooks[1]["conversionCRDs"] = json!(["x.example.com"]);
    webhooks[2]["deploymentName"] = json!("gone");
    webhooks[3]["rules"] = json!([
        {"apiGroups": ["*", "admissionregistration.k8s.io"], "resources": ["pods", "ValidatingWebhookConfigurations"]},
    ]);
    let deployments = &mut small.csv["spec"]["install"]["spec"]["deployments"];
    deployments[0]["name"] = json!("op_main");
    let first = deployments[0].clone();
    deployments.as_array_mut().unwrap().push(first);
    small.csv["spec"]["customresourcedefinitions"] = json!({"owned": [{"name": "y.example.com"}]});
    insta::assert_snapshot!(small.refusal(&json!({"certificateProvider": "cert-manager", "compatibility": "reference"})), @r#"
    content
    DuplicateDeployment manifests/csv.yaml:48:21 (/spec/install/spec/deployments/1/name): cluster service version contains duplicate strategy deployment spec 'op_main'
      give each deployment of the install strategy its own name
    InvalidDeploymentName manifests/csv.yaml:23:21 (/spec/install/spec/deployments/0/name): invalid cluster service version strategy deployment name 'op_main': a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
      rename the deployment, and the webhooks that refer to it
    OwnedCustomResourceDefinitionMissing manifests/csv.yaml:14:19 (/spec/customresourcedefinitions/owned/0/name): cluster service definition references owned custom resource definition 'y.example.com' not found in bundle
      put the CRD into manifests/, or list it as required instead of owned
    PackageNameMissing metadata/annotations.yaml:1:14 (/annotations/operators.operatorframework.io.bundle.package.v1): package name is empty
      set the annotation operators.operatorframework.io.bundle.package.v1
    ConversionWebhookNeedsAllNamespaces manifests/csv.yaml:105:7 (/spec/webhookdefinitions/0): bundle contains conversion webhook "c.example.com" and supports install modes [AllNamespaces OwnNamespace] - conversion webhooks are only supported for bundles that only support AllNamespaces install mode
      support AllNamespaces alone in spec.installModes
    ConversionWebhookNeedsAllNamespaces manifests/csv.yaml:119:7 (/spec/webhookdefinitions/1): bundle contains conversion webhook "d.example.com" and supports install modes [AllNamespaces OwnNamespace] - conversion webhooks are only supported for bundles that only support AllNamespaces install mode
      support AllNamespaces alone in spec.installModes
    WebhookDeploymentMissing manifests/csv.yaml:137:27 (/spec/webhookdefinitions/2/deploymentName): webhook of type 'ValidatingAdmissionWebhook' with name 'Bad-' references non-existent deployment 'gone'
      name a deployment of the install strategy
    WebhookDeploymentMissing manifests/csv.yaml:112:27 (/spec/webhookdefinitions/0/deploymentName): webhook of type 'ConversionWebhook' with name 'c.example.com' references non-existent deployment 'op.main'
      name a deployment of the install strategy
    WebhookDeploymentMissing manifests/csv.yaml:126:27 (/spec/webhookdefinitions/1/deploymentName): webhook of type 'ConversionWebhook' with name 'd.example.com' references non-existent deployment 'op.main'
      name a deployment of the install strategy
    WebhookDeploymentMissing manifests/csv.yaml:148:27 (/spec/webhookdefinitions/3/deploymentName): webhook of type 'ValidatingAdmissionWebhook' with name 'Bad-' references non-existent deployment 'op.main'
      name a deployment of the install strategy
    DuplicateWebhook manifests/csv.yaml:149:25 (/spec/webhookdefinitions/3/generateName): duplicate webhook 'Bad-' of type 'ValidatingAdmissionWebhook'
      give each webhook of a type its own name
    InvalidWebhookName manifests/csv.yaml:138:25 (/spec/webhookdefinitions/2/generateName): webhook of type 'ValidatingAdmissionWebhook' has invalid name 'Bad-': a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
      use a name such as validate.example.com
    ConflictingConversionWebhooks manifests/csv.yaml:123:27 (/spec/webhookdefinitions/1/conversionCRDs): conversion webhooks [c.example.com,d.example.com] reference same custom resource definition 'x.example.com'
      let one webhook convert the CRD
    ConversionOfForeignCustomResourceDefinition manifests/csv.yaml:109:27 (/spec/webhookdefinitions/0/conversionCRDs): conversion webhook 'c.example.com' references custom resource definition 'x.example.com' not owned bundle
      list the CRD in spec.customresourcedefinitions.owned, or leave it to the bundle that owns it
    ConversionOfForeignCustomResourceDefinition manifests/csv.yaml:123:27 (/spec/webhookdefinitions/1/conversionCRDs): conversion webhook 'd.example.com' references custom resource definition 'x.example.com' not owned bundle
      list the CRD in spec.customresourcedefinitions.owned, or leave it to the bundle that owns it
    ForbiddenWebhookRule manifests/csv.yaml:151:11 (/spec/webhookdefinitions/3/rules/0): webhook "Bad-" contains forbidden rule: admission webhook rules cannot reference API group "*"
      name the API groups and resources that the webhook is for
    ForbiddenWebhookRule manifests/csv.yaml:151:11 (/spec/webhookdefinitions/3/rules/0): webhook "Bad-" contains forbidden rule: admission webhook rules cannot reference resource "ValidatingWebhookConfigurations" for API group "admissionregistration.k8s.io"
      name the API groups and resources that the webhook is for
    UnsupportedKind manifests/job.yaml:2:7 (/kind): unsupported resource "j" with kind "Job"
      registry+v1 bundles allow a fixed list of kinds; compatibility: extended installs others, too
    "#);
}

#[test]
fn unsupported_bundles_are_refused() {
    let mut small = Small::new(&["Unheard"]).webhook("ValidatingAdmissionWebhook", "v.example.com");
    small.csv["spec"]["apiservicedefinitions"] = json!({"owned": [{"name": "v1.example.com", "group": "example.com"}]});
    insta::assert_snapshot!(small.refusal(&json!({"compatibility": "reference"})), @r#"
    unsupported
    ApiServicesUnsupported manifests/csv.yaml:13:9 (/spec/apiservicedefinitions/owned/0): unsupported bundle: apiServiceDefintions are not supported
      API service "v1.example.com" is installed with compatibility: extended
    CertificateProviderMissing manifests/csv.yaml:77:7 (/spec/webhookdefinitions/0): unsupported bundle: webhookDefinitions are not supported: certificate provider is nil
      webhook "v.example.com" needs a certificate: set certificateProvider to host, cert-manager or openshift-service-ca, or to none if you bring it yourself
    InstallModesUnsupported manifests/csv.yaml:70:21 (/spec/installModes): unsupported bundle: bundle must support at least one of [AllNamespaces SingleNamespace OwnNamespace] install modes
      spec.installModes supports no known install mode
    "#);
}

#[test]
fn different_objects_with_one_identity() {
    let secret = |namespace: &str, value: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: s, namespace: {namespace}}}\nstringData: {{k: {value}}}\n"
        )
    };
    let two = |first: &str, second: &str| {
        Small::new(&["AllNamespaces"]).file("manifests/a.yaml", first).file("manifests/b.yaml", second)
    };
    let small = two(&secret("a", "one"), &secret("b", "two"));
    insta::assert_snapshot!(small.refusal(&json!({})), @r"
    content
    DuplicateObject manifests/b.yaml:1:1: bundle contains two different objects Secret ns/s
      the other is at manifests/a.yaml:1:1; all namespaced objects are moved to the install namespace
    ");
    // Applied one after the other, the last one remains.
    let value = |small: &Small, config| {
        let release = small.render(&config).unwrap();
        (one(&release, "Secret")["stringData"]["k"].clone(), release.findings[0].to_string())
    };
    let (kept, warning) = value(&small, json!({"compatibility": "reference"}));
    assert_eq!(kept, "two");
    insta::assert_snapshot!(warning, @"manifests/a.yaml:1:1: bundle contains two different objects Secret ns/s, and only the last one is used (help: the last one is at manifests/b.yaml:1:1; keep one)");
    assert_eq!(value(&two(&secret("a", "one"), &secret("a", "two")), json!({})), (json!("two"), warning));
}

/// Operator scaffolds contain the Service of their webhooks, and OLM generates one of the same name.
#[test]
fn a_service_of_the_bundle_that_is_also_generated() {
    let bundled = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "op-main-service", "labels": {"a": "b"}, "annotations": {"c": "d"}},
        "spec": {
            "type": "ClusterIP",
            "selector": {"app": "other"},
            "ports": [{"port": 443, "targetPort": 1}, {"port": 8443, "targetPort": 2}],
        },
    });
    let small = Small::new(&["AllNamespaces"])
        .webhook("ValidatingAdmissionWebhook", "v.example.com")
        .file("manifests/service.yaml", &bundled.to_string());
    let service = |compatibility: &str| {
        let config = json!({"compatibility": compatibility, "certificateProvider": "openshift-service-ca"});
        let release = small.render(&config).unwrap();
        let findings: Vec<_> = release.findings.iter().map(ToString::to_string).collect();
        (one(&release, "Service").clone(), findings.join("\n"))
    };
    // The generated one comes last.
    let (reference, warning) = service("reference");
    assert_eq!(reference["spec"]["ports"], json!([{"name": "443", "port": 443, "targetPort": 9443}]));
    assert_eq!((&reference["metadata"]["labels"], &reference["spec"]["type"]), (&json!(null), &json!(null)));
    insta::assert_snapshot!(warning, @"manifests/service.yaml:1:1: bundle contains two different objects Service ns/op-main-service, and only the last one is used (help: the last one is at manifests/csv.yaml:15:11 (/spec/install/spec/deployments/0); keep one)");
    let (extended, warning) = service("extended");
    let mut wanted = bundled.clone();
    wanted["metadata"]["namespace"] = json!("ns");
    wanted["metadata"]["annotations"]["service.beta.openshift.io/serving-cert-secret-name"] =
        json!("op-main-service-cert");
    wanted["spec"]["selector"] = json!({"app": "op"});
    wanted["spec"]["ports"] = json!([
        {"name": "443", "port": 443, "targetPort": 9443},
        {"name": "8443", "port": 8443, "targetPort": 2},
    ]);
    assert_eq!(extended, wanted);
    insta::assert_snapshot!(warning, @"manifests/service.yaml:1:1: bundle contains Service ns/op-main-service, which is also generated for its webhooks; the two are merged (help: the webhooks determine its ports and selector; remove the Service, or rename it)");
}

#[test]
fn watch_namespaces_and_install_modes() {
    let long = "a".repeat(64);
    let cases = [
        (vec!["AllNamespaces"], json!({"watchNamespace": "a"})),
        (vec!["AllNamespaces"], json!({"watchNamespaces": ["a"]})),
        (vec!["OwnNamespace"], json!({})),
        (vec!["OwnNamespace"], json!({"watchNamespace": null})),
        (vec!["OwnNamespace"], json!({"watchNamespace": "other"})),
        (vec!["SingleNamespace"], json!({"watchNamespace": "ns"})),
        (vec!["SingleNamespace"], json!({"watchNamespace": 7})),
        (vec!["SingleNamespace"], json!({"watchNamespace": "Not_A_Name"})),
        (vec!["SingleNamespace"], json!({"watchNamespace": long})),
        (vec!["SingleNamespace"], json!({"watchNamespace": ""})),
        (vec!["MultiNamespace"], json!({"watchNamespaces": []})),
        (vec!["MultiNamespace"], json!({"watchNamespaces": ["a", "B"]})),
        (vec!["MultiNamespace"], json!({"watchNamespaces": ["a", "ns"]})),
        (vec!["MultiNamespace", "SingleNamespace"], json!({"watchNamespaces": ["a", "b"], "watchNamespace": "c"})),
    ];
    let refusals: Vec<String> = cases.iter().map(|(modes, config)| Small::new(modes).refusal(config)).collect();
    insta::assert_snapshot!(refusals.join("\n"), @r#"
    config
    UnknownField config (/watchNamespace): unknown field "watchNamespace"
      this operator supports the install modes [AllNamespaces] only
    config
    UnknownField config (/watchNamespaces): unknown field "watchNamespaces"
      this operator supports the install modes [AllNamespaces] only
    config
    RequiredFieldMissing config (/watchNamespace): required field "watchNamespace" is missing
      this operator supports the install modes [OwnNamespace]: name the namespace that it should watch
    config
    RequiredFieldMissing config (/watchNamespace): required field "watchNamespace" is missing
      this operator supports the install modes [OwnNamespace]: name the namespace that it should watch
    config
    InvalidNamespace config (/watchNamespace): invalid format for field "watchNamespace": 'other' is not valid ownNamespaceInstallMode: invalid value "other": must be "ns" (the namespace where the operator is installed) because this operator only supports OwnNamespace install mode
      name the install namespace
    config
    InvalidNamespace config (/watchNamespace): invalid format for field "watchNamespace": 'ns' is not valid singleNamespaceInstallMode: invalid value "ns": must be different from "ns" (the install namespace) because this operator uses SingleNamespace install mode to watch a different namespace
      name another namespace
    config
    InvalidType config (/watchNamespace): invalid type for field "watchNamespace": got integer, want string
      put the name of a namespace into quotes
    config
    InvalidNamespace config (/watchNamespace): field "watchNamespace" must match pattern "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
      a namespace name has up to 63 lower-case letters, digits and dashes
    config
    InvalidNamespace config (/watchNamespace): field "watchNamespace" must have maximum length of 63 (len=64)
      a namespace name has up to 63 lower-case letters, digits and dashes
    config
    InvalidNamespace config (/watchNamespace): field "watchNamespace" must have minimum length of 1 (len=0)
      a namespace name has up to 63 lower-case letters, digits and dashes
    InvalidNamespace config (/watchNamespace): field "watchNamespace" must match pattern "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
      a namespace name has up to 63 lower-case letters, digits and dashes
    config
    InvalidType config (/watchNamespaces): invalid type for field "watchNamespaces": want a list with at least one namespace
      write it as [one, another]
    config
    InvalidNamespace config (/watchNamespaces/1): field "watchNamespaces.1" must match pattern "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
      a namespace name has up to 63 lower-case letters, digits and dashes
    config
    InvalidTargetNamespaces config (/watchNamespaces): invalid option(s): invalid target namespaces [a ns]: supported install modes [MultiNamespace] do not support targeting own namespace
      set watchNamespace, or watchNamespaces, to what the operator supports
    config
    ConflictingFields config (/watchNamespaces): fields "watchNamespace" and "watchNamespaces" exclude each other
      set one of them
    "#);
}

#[test]
fn other_keys_of_the_configuration() {
    let config = json!({
        "watchNamespce": "a",
        "certificateProvider": "letsencrypt",
        "compatibility": 1,
        "deploymentConfig": {"selector": {}, "env": [{"name": 7}]},
    });
    insta::assert_snapshot!(Small::new(&["AllNamespaces"]).refusal(&config), @r#"
    config
    UnknownField config (/watchNamespce): unknown field "watchNamespce"
      the keys are watchNamespace, watchNamespaces, deploymentConfig, certificateProvider, compatibility, proxy, operatorConditionName and undeclaredConversionWebhooks
    UnknownField config (/deploymentConfig/selector): unknown field "selector"
      deploymentConfig has the keys of OLM's subscription configuration, except selector
    InvalidType config (/deploymentConfig/env/0/name): invalid type for field "deploymentConfig.env.0.name": got integer, want string
      write it as in the specification of a Deployment
    InvalidValue config (/certificateProvider): invalid value for field "certificateProvider"
      use one of cert-manager, openshift-service-ca, host, none
    InvalidValue config (/compatibility): invalid value for field "compatibility"
      use one of reference, extended
    "#);
    let quantity = json!({"deploymentConfig": {"resources": {"limits": {"cpu": "much"}}}});
    insta::assert_snapshot!(Small::new(&["AllNamespaces"]).refusal(&quantity), @r#"
    config
    InvalidType config (/deploymentConfig/resources/limits/cpu): invalid type for field "deploymentConfig.resources.limits.cpu": got string, want quantity
      write it as in the specification of a Deployment
    "#);
}

#[test]
fn detection_uses_the_media_type_and_then_the_manifests() {
    let media_type =
        |kind: &str| format!("annotations: {{operators.operatorframework.io.bundle.mediatype.v1: {kind}}}");
    let csv = "kind: ClusterServiceVersion";
    let cases = [
        (vec![("metadata/annotations.yaml", media_type("registry+v1"))], true),
        (vec![("metadata/annotations.yaml", media_type("plain+v0")), ("manifests/a.yaml", csv.to_owned())], false),
        (vec![("manifests/a.yaml", csv.to_owned())], true),
        (vec![("manifests/a.yaml", "kind: Secret".to_owned())], false),
        (vec![("manifests/a.yaml", format!("kind: Secret\n---\n{csv}"))], true),
        // The CRD of OLM, in a plain bundle.
        (vec![("manifests/a.yaml", format!("kind: CustomResourceDefinition\nspec: {{names: {{{csv}}}}}"))], false),
        // It has the errors of a ClusterServiceVersion.
        (vec![("manifests/a.yaml", format!("{csv}\n  metadata: {{"))], true),
        (vec![("a.yaml", csv.to_owned())], false),
        (vec![], false),
    ];
    for (files, want) in cases {
        assert_eq!(Registry::detect(&Bundle::new(files.clone())).is_some(), want, "{files:?}");
    }
}
