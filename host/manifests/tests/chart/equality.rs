//! The objects of the chart are the ones that `chandler manifests` prints.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use chandler_manifests::{Profile, SETTINGS, Settings, chart, objects, values};
use chandler_test_support::needs;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{EXAMPLES, defaults, helm, settings};
use crate::canonical;

/// The annotation with which Helm keeps an object when its release is removed.
const KEEP: &str = "helm.sh/resource-policy";

/// The objects by kind and name, and the kinds that Helm keeps.
fn by_name(objects: Vec<Value>) -> (BTreeMap<String, Value>, Vec<String>) {
    let mut kept = Vec::new();
    let named = objects.into_iter().map(|mut object| {
        canonical(&mut object);
        if let Some(annotations) = object["metadata"].get_mut("annotations").and_then(Value::as_object_mut) {
            let is_kept = annotations.remove(KEEP).is_some_and(|policy| policy == "keep");
            if annotations.is_empty() {
                object["metadata"].as_object_mut().unwrap().remove("annotations");
            }
            kept.extend(is_kept.then(|| object["kind"].as_str().unwrap().to_owned()));
        }
        let metadata = &object["metadata"];
        (format!("{} {}/{}", object["kind"], metadata["namespace"], metadata["name"]), object)
    });
    (named.collect(), kept)
}

fn is_crd(object: &Value) -> bool {
    object["kind"] == "CustomResourceDefinition"
}

/// Compares object by object, so that a difference is short. CRDs do not depend on settings and are many, so most cases omit them.
#[track_caller]
fn same(found: Vec<Value>, settings: &Settings) {
    let has_crds = found.iter().any(is_crd);
    let (found, kept) = by_name(found);
    let wanted = objects(settings).unwrap().into_iter().filter(|object| has_crds || !is_crd(object));
    let (wanted, _) = by_name(wanted.collect());
    assert_eq!(found.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
    for (name, object) in &found {
        assert_eq!(object, &wanted[name], "{name}");
    }
    let count = |kind: &str| wanted.values().filter(|object| object["kind"] == kind).count();
    assert_eq!(kept.len(), count("CustomResourceDefinition") + count("Namespace"));
}

/// The values of settings, with the namespace as an object and without CRDs.
fn all_values(settings: &Settings) -> Value {
    let mut values = values(settings);
    values["createNamespace"] = json!(true);
    values["crds"] = json!(false);
    values
}

#[test]
fn every_setting_of_every_profile_makes_the_objects_that_are_printed() {
    let keys: Vec<&str> = SETTINGS.iter().map(|setting| setting.key).collect();
    assert_eq!(keys, EXAMPLES.map(|(key, _)| key));
    let chart = defaults();
    for profile in Profile::ALL {
        for example in EXAMPLES.iter().map(Some).chain([None]) {
            let chosen = settings(profile, example.copied());
            let rendered = helm::template(chart, &chosen.namespace, &all_values(&chosen));
            match chosen.check() {
                Ok(()) => same(rendered.unwrap_or_else(|error| panic!("{example:?}: {error}")), &chosen),
                Err(refusal) => {
                    let error = rendered.unwrap_err();
                    assert!(error.contains(&refusal.to_string()), "{error}");
                }
            }
        }
    }
}

/// The controller exits with these options, so that its Pods would never run.
#[test]
fn an_account_of_the_platform_must_be_in_a_namespace_whose_accounts_install() {
    let (platform, own) = (("arg", "--platform-service-account=platform"), ("arg", "--accounts-in=123"));
    let (namespace, other) = (("namespace", "123"), ("arg", "--accounts-in=accounts"));
    for (profile, chosen, is_refused) in [
        (Profile::MultiTenant, vec![namespace, platform], true),
        (Profile::MultiTenant, vec![platform, own], true),
        (Profile::MultiTenant, vec![namespace, platform, own], false),
        (Profile::Standalone, vec![namespace, platform], false),
        (Profile::Standalone, vec![namespace, platform, other], true),
        (Profile::Standalone, vec![namespace, platform, other, own], false),
        (Profile::Standalone, vec![namespace, other], false),
    ] {
        let chosen = settings(profile, chosen);
        let rendered = helm::template(defaults(), &chosen.namespace, &all_values(&chosen));
        match chosen.check() {
            Ok(()) => {
                assert!(!is_refused, "{chosen:?}");
                same(rendered.unwrap(), &chosen);
            }
            Err(refusal) => {
                assert!(is_refused, "{chosen:?}");
                let error = rendered.unwrap_err();
                assert!(error.contains(&refusal.to_string()), "{error}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn combined_settings_make_the_objects_that_are_printed(
        profile in prop::sample::select(Profile::ALL.to_vec()),
        chosen in prop::sample::subsequence(EXAMPLES.to_vec(), 0..=EXAMPLES.len()),
    ) {
        let chosen = settings(profile, chosen);
        let rendered = helm::template(defaults(), &chosen.namespace, &all_values(&chosen));
        match chosen.check() {
            Ok(()) => same(rendered.unwrap(), &chosen),
            Err(refusal) => {
                let error = rendered.unwrap_err();
                prop_assert!(error.contains(&refusal.to_string()), "{}", error);
            }
        }
    }
}

#[test]
fn a_chart_with_other_settings_has_them_as_defaults() {
    let chosen = [("image", "registry.corp.example/chandler:v1"), ("replicas", "3"), ("arg", "--concurrency=16")];
    let chosen = settings(Profile::OpenShift, chosen);
    let rendered = helm::template(&chart(&chosen).unwrap(), "chandler-system", &json!({"createNamespace": true}));
    same(rendered.unwrap(), &chosen);
}

#[test]
fn the_namespace_and_the_crds_can_be_left_to_others() {
    let kinds = |values: Value| {
        let objects = helm::template(defaults(), "chandler-system", &values).unwrap();
        let count = |kind: &str| objects.iter().filter(|object| object["kind"] == kind).count();
        (count("Namespace"), count("CustomResourceDefinition"))
    };
    assert_eq!(
        kinds(json!({})),
        (0, objects(&settings(Profile::Standalone, [])).unwrap().iter().filter(|it| is_crd(it)).count())
    );
    assert_eq!(kinds(json!({"createNamespace": true, "crds": false})), (1, 0));
}

#[test]
fn text_that_looks_like_an_action_is_printed_as_it_is() {
    let chosen = settings(Profile::OpenShift, []);
    let printed = serde_json::to_string(&objects(&chosen).unwrap()).unwrap();
    assert!(printed.contains("{{ $labels."), "the alerts have no templates of their own");
    let rendered = helm::template(defaults(), "chandler-system", &all_values(&chosen)).unwrap();
    let text = serde_json::to_string(&rendered).unwrap();
    assert_eq!(text.matches("{{ $labels.").count(), printed.matches("{{ $labels.").count());
}

/// Writes a chart for Helm.
fn write(chart: &helm::Chart, directory: &Path) {
    for (path, text) in chart {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Helm itself, where a machine has it.
#[test]
fn helm_makes_the_objects_that_are_printed() {
    const GROUPS: usize = 4;
    let Some(helm) = needs::helm() else { return };
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("chandler");
    write(defaults(), &place);
    let run = |arguments: &[&str]| Command::new(&helm).args(arguments).arg(&place).output().unwrap();
    let linted = run(&["lint", "--strict"]);
    assert!(linted.status.success(), "{}", String::from_utf8_lossy(&linted.stdout));
    // Processes take longer, so each group of settings is rendered at once.
    for profile in Profile::ALL {
        for group in 0..GROUPS {
            let chosen = settings(profile, EXAMPLES.into_iter().skip(group).step_by(GROUPS));
            let (file, mut values) = (directory.path().join("values.json"), all_values(&chosen));
            values["crds"] = json!(group == 0);
            fs::write(&file, values.to_string()).unwrap();
            let (namespace, file) = (chosen.namespace.as_str(), file.to_str().unwrap());
            let output = run(&["template", "chandler", "--namespace", namespace, "--values", file]);
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            match chosen.check() {
                Ok(()) => {
                    assert!(output.status.success(), "{profile:?} {group}: {error}");
                    let text = String::from_utf8(output.stdout).unwrap();
                    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
                    same(documents.into_iter().filter(|document| !document.is_null()).collect(), &chosen);
                }
                Err(refusal) => assert!(error.contains(&refusal.to_string()), "{error}"),
            }
        }
    }
}
