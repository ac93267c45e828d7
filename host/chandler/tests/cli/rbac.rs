//! `chandler rbac` for bundles, without a cluster.

use crate::support::chandler;

const HARBOUR: &str = "tests/fixtures/registry/harbour-operator.v0.1.0";
const LIGHTHOUSE: &str = "tests/fixtures/plain/lighthouse";

#[test]
fn all_permissions_that_a_bundle_needs() {
    let outcome = chandler(["rbac", LIGHTHOUSE, "--namespace", "shop", "--service-account", "deployer"], "");
    insta::assert_snapshot!(outcome.stderr, @r#"
    note: the permissions for lighthouse are granted in the whole cluster: the namespace is part of the bundle, so it cannot contain a Role before the installation
    10 rules in 1 role for ServiceAccount shop/deployer
    "#);
    insta::assert_snapshot!("rbac.lighthouse", outcome.data());
}

#[test]
fn an_operator_and_the_roles_that_it_contains() {
    let arguments = ["rbac", HARBOUR, "--namespace", "shop", "--service-account", "ci/deployer", "-o", "json"];
    let outcome = chandler(arguments, "");
    insta::assert_snapshot!(outcome.stderr, @"16 rules in 2 roles for ServiceAccount ci/deployer");
    insta::assert_snapshot!("rbac.harbour", outcome.data());
}

#[test]
fn why_each_rule_is_needed() {
    let arguments =
        ["rbac", HARBOUR, "--namespace", "shop", "--service-account", "deployer", "-o", "text", "--allow-escalation"];
    insta::assert_snapshot!("rbac.harbour.text", chandler(arguments, "").data());
}

#[test]
fn a_bundle_that_makes_chandler_act_on_its_behalf_causes_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    let manifests = directory.path().join("manifests");
    std::fs::create_dir(&manifests).unwrap();
    let nested = |name: &str, account: &str| {
        format!(
            "apiVersion: core.rukpak.io/v1alpha2\nkind: BundleDeployment\nmetadata: {{name: {name}}}\n\
             spec:\n  installNamespace: shop\n  provisionerClassName: core-rukpak-io-plain\n{account}\
             \x20 source: {{type: image, image: {{ref: 'registry.example.com/a:v1'}}}}\n---\n"
        )
    };
    let text = nested("inner", "") + &nested("other", "  serviceAccount: {name: root, namespace: kube-system}\n");
    std::fs::write(manifests.join("nested.yaml"), text).unwrap();
    let bundle = directory.path().to_str().unwrap();
    let arguments =
        ["rbac", bundle, "--name", "outer", "--namespace", "shop", "--service-account", "deployer", "-o", "json"];
    let outcome = chandler(arguments, "");
    insta::assert_snapshot!(outcome.stderr, @"
    warning: BundleDeployment.core.rukpak.io inner names no ServiceAccount, so it is installed with the permissions of the controller: the account needs all permissions, unless the controller runs with --default-service-account or --require-service-account
    warning: BundleDeployment.core.rukpak.io other is installed on behalf of ServiceAccount kube-system/root: the account needs permission to act as that account
    warning: these roles grant all permissions: the account becomes a cluster administrator
    2 rules in 1 role for ServiceAccount shop/deployer
    ");
    let granted: serde_json::Value = serde_json::from_str(&outcome.data()).unwrap();
    insta::assert_snapshot!(granted["items"][0]["rules"], @r#"[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]},{"nonResourceURLs":["*"],"verbs":["*"]}]"#);
}

#[test]
fn a_bundle_requires_a_service_account() {
    let outcome = chandler(["rbac", LIGHTHOUSE], "");
    assert_eq!(outcome.code, Some(2));
    insta::assert_snapshot!(outcome.stderr, @r#"
    error: a bundle requires --service-account
      hint: set the ServiceAccount that will install it: `--service-account NAME`
    "#);
}
