//! Values on the command line: `--set` wherever a bundle is rendered, and values of Secrets in no output.

use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client, Config,
    api::{Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

use crate::{
    dev::Kept,
    support::{Outcome, chandler},
};

const OLD: &str = "./tests/fixtures/registry/harbour-operator.v0.1.0";
const CANARY: &str = "canary-51c9d7";
const NAMESPACE: &str = "harbour-operator-system";

/// Writes a Secret whose values set a variable of the operator.
fn write_secret(kubeconfig: &str, token: &str) {
    let values = format!("deploymentConfig:\n  env:\n  - {{name: HARBOUR_TOKEN, value: {token}}}\n");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let file = Kubeconfig::read_from(kubeconfig).unwrap();
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
        let secrets: Api<Secret> = Api::namespaced(Client::try_from(config).unwrap(), NAMESPACE);
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "harbour-values"},
                            "stringData": {"values.yaml": values}});
        secrets.patch("harbour-values", &PatchParams::apply("test").force(), &Patch::Apply(secret)).await.unwrap();
    });
}

#[test]
fn a_single_value_can_be_set_wherever_a_bundle_is_rendered() {
    let set = ["--set", "deploymentConfig.env[0].name=TOKEN,deploymentConfig.env[0].value=low"];
    let render = |arguments: &[&str]| chandler([&["render", OLD][..], arguments].concat(), "");
    let rendered = render(&set).data();
    assert!(rendered.contains("name: TOKEN") && rendered.contains("value: low"), "{rendered}");
    let both = render(&[&["--config", "-"][..], &set].concat());
    assert_eq!(both.code, Some(0), "{}", both.stderr);
    let unknown = render(&["--set", "nothing=1"]);
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.stderr.contains("nothing"), "{}", unknown.stderr);
    let wrong = render(&["--set", "nothing"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("has no value"), "{}", wrong.stderr);
    let linted = chandler(["lint", OLD, "--set", "nothing=1", "-o", "json"], "");
    assert_eq!(linted.code, Some(1));
    let found: Value = serde_json::from_str(&linted.stdout).unwrap();
    assert!(found["findings"].as_array().is_some_and(|all| !all.is_empty()), "{found}");
}

#[test]
fn no_output_has_a_value_of_a_secret() {
    let kept = Kept::start(&["--bundle", OLD]);
    let run = |arguments: &[&str]| -> Outcome {
        chandler(arguments.iter().copied().chain(["--kubeconfig", kept.kubeconfig.as_str()]), "")
    };
    run(&["status", "harbour-operator", "--watch", "--timeout", "1m"]).data();
    let early = run(&["upgrade", "harbour-operator", "--values-from", "secret/harbour-values", "--dry-run"]).data();
    assert!(early.contains("kind: Secret") && early.contains("name: harbour-values"), "{early}");
    write_secret(&kept.kubeconfig, CANARY);
    let upgraded = run(&["upgrade", "harbour-operator", "--values-from", "secret/harbour-values", "--timeout", "1m"]);
    assert_eq!(upgraded.code, Some(0), "{}", upgraded.stderr);
    let outputs = |expected: i32| {
        for arguments in [
            &["get", "harbour-operator"][..],
            &["get", "harbour-operator", "-o", "json"],
            &["get", "values", "harbour-operator", "-o", "json"],
            &["status", "harbour-operator", "-o", "json"],
            &["status", "harbour-operator"],
            &["history", "harbour-operator", "-o", "json"],
            &["tree", "harbour-operator", "-o", "json"],
            &["list", "-o", "json"],
            &["diff", OLD, "--name", "harbour-operator"],
            &["diff", OLD, "--name", "harbour-operator", "-o", "json"],
        ] {
            let outcome = run(arguments);
            let wanted = if arguments[0] == "diff" { expected } else { 0 };
            assert_eq!(outcome.code, Some(wanted), "{arguments:?}: {}{}", outcome.stdout, outcome.stderr);
            let text = outcome.stdout + &outcome.stderr;
            assert!(!text.contains(CANARY), "{arguments:?}: {text}");
        }
    };
    outputs(0);
    let manifest = run(&["get", "manifest", "harbour-operator"]).data();
    assert!(manifest.contains("value: (hidden)"), "{manifest}");

    // While the controller may not roll out a change, the diff shows the field and neither value.
    run(&["suspend", "harbour-operator"]).data();
    write_secret(&kept.kubeconfig, "second-51c9d7");
    let changed = run(&["diff", OLD, "--name", "harbour-operator"]);
    assert_eq!(changed.code, Some(4), "{}", changed.stderr);
    assert!(changed.stdout.contains("env[name=HARBOUR_TOKEN].value"), "{}", changed.stdout);
    let text = changed.stdout + &changed.stderr;
    assert!(!text.contains(CANARY) && !text.contains("second-51c9d7"), "{text}");
}
