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
fn a_bundle_does_not_say_who_installs_it() {
    let outcome = chandler(["rbac", LIGHTHOUSE], "");
    assert_eq!(outcome.code, Some(2));
    insta::assert_snapshot!(outcome.stderr, @r#"
    error: a bundle does not say which ServiceAccount installs it
      hint: say it: `--service-account NAME`
    "#);
}
