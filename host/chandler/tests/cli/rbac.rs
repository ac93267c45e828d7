//! `chandler rbac` of bundles: no cluster is needed.

use crate::support::chandler;

const HARBOUR: &str = "tests/fixtures/registry/harbour-operator.v0.1.0";
const LIGHTHOUSE: &str = "tests/fixtures/plain/lighthouse";

#[test]
fn everything_that_a_bundle_needs() {
    let outcome = chandler(["rbac", LIGHTHOUSE, "--namespace", "shop", "--service-account", "deployer"], "");
    insta::assert_snapshot!(outcome.stderr, @r#"
    note: what is needed in lighthouse is granted in the whole cluster, since the namespace comes with the bundle and can hold no Role before
    10 rules in 1 role for the ServiceAccount shop/deployer
    "#);
    insta::assert_snapshot!("rbac.lighthouse", outcome.data());
}

#[test]
fn an_operator_and_what_it_grants() {
    let arguments = ["rbac", HARBOUR, "--namespace", "shop", "--service-account", "ci/deployer", "-o", "json"];
    let outcome = chandler(arguments, "");
    insta::assert_snapshot!(outcome.stderr, @"16 rules in 2 roles for the ServiceAccount ci/deployer");
    insta::assert_snapshot!("rbac.harbour", outcome.data());
}

#[test]
fn why_each_rule_is_needed() {
    let arguments =
        ["rbac", HARBOUR, "--namespace", "shop", "--service-account", "deployer", "-o", "text", "--allow-escalation"];
    insta::assert_snapshot!("rbac.harbour.text", chandler(arguments, "").data());
}

#[test]
fn a_bundle_that_has_chandler_do_something_is_warned_of() {
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
    warning: BundleDeployment.core.rukpak.io inner names no ServiceAccount, so it is installed with the permissions of the controller: whoever writes it must hold every right, unless the controller runs with --default-service-account or --require-service-account
    warning: BundleDeployment.core.rukpak.io other is installed on behalf of ServiceAccount kube-system/root: whoever writes it must be allowed to act as that account
    warning: these roles grant every right there is: the account becomes an administrator of the cluster
    2 rules in 1 role for the ServiceAccount shop/deployer
    ");
    let granted: serde_json::Value = serde_json::from_str(&outcome.data()).unwrap();
    insta::assert_snapshot!(granted["items"][0]["rules"], @r#"[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]},{"nonResourceURLs":["*"],"verbs":["*"]}]"#);
}

#[test]
fn a_bundle_does_not_say_who_installs_it() {
    let outcome = chandler(["rbac", LIGHTHOUSE], "");
    assert_eq!(outcome.code, Some(2));
    insta::assert_snapshot!(outcome.stderr, @r#"
    error: a bundle does not say which ServiceAccount installs it
      hint: say it: `--service-account NAME`
    "#);
}
