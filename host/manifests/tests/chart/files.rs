//! The other files of the chart.

use chandler_manifests::{Profile, SETTINGS, VERSION, chart, values};
use serde_json::{Value, json};

use super::{defaults, helm, settings};

#[test]
fn every_file_has_a_purpose() {
    let chart = defaults();
    let names: Vec<&str> = chart.keys().map(String::as_str).collect();
    insta::assert_snapshot!("files", names.join("\n"));
    insta::assert_snapshot!("values", chart["values.yaml"]);
    insta::assert_snapshot!("deployment", chart["templates/controller.yaml"]);
}

#[test]
fn the_values_are_the_settings() {
    let found: Value = serde_saphyr::from_str(&defaults()["values.yaml"]).unwrap();
    let wanted = values(&settings(Profile::Standalone, []));
    assert_eq!(found, wanted);
    let readme = &defaults()["README.md"];
    for setting in SETTINGS.iter().filter(|setting| !setting.chart.is_empty()) {
        let pointer = format!("/{}", setting.chart.replace('.', "/"));
        assert!(found.pointer(&pointer).is_some(), "{pointer}");
        assert!(readme.contains(&format!("| `{}` |", setting.chart)), "{}", setting.chart);
    }
}

/// <https://artifacthub.io/docs/topics/annotations/helm/>
#[test]
fn artifact_hub_learns_what_the_chart_installs() {
    let chosen = settings(Profile::Standalone, [("image", "registry.corp.example/chandler:v1")]);
    let chart: Value = serde_saphyr::from_str(&chart(&chosen).unwrap()["Chart.yaml"]).unwrap();
    assert_eq!(
        (&chart["apiVersion"], &chart["name"], &chart["version"]),
        (&json!("v2"), &json!("chandler"), &json!(VERSION))
    );
    let annotations = chart["annotations"].as_object().unwrap();
    assert!(annotations.values().all(Value::is_string), "{annotations:#?}");
    let parsed = |name: &str| -> Value { serde_saphyr::from_str(annotations[name].as_str().unwrap()).unwrap() };
    assert_eq!(
        parsed("artifacthub.io/images"),
        json!([{"name": "chandler", "image": "registry.corp.example/chandler:v1"}])
    );
    let crds = parsed("artifacthub.io/crds");
    for crd in crds.as_array().unwrap() {
        let texts = ["kind", "version", "name", "displayName", "description"].map(|key| crd[key].as_str().unwrap());
        assert!(texts.iter().all(|text| !text.is_empty()), "{crd:#}");
    }
    assert!(crds.as_array().unwrap().iter().any(|crd| crd["name"] == "bundledeployments.core.rukpak.io"));
}

#[test]
fn the_notes_name_what_is_missing() {
    let notes = |values: Value| {
        let (chart, mut all) = (defaults(), values);
        let given: Value = serde_saphyr::from_str(&chart["values.yaml"]).unwrap();
        for (key, value) in given.as_object().unwrap() {
            all.as_object_mut().unwrap().entry(key).or_insert_with(|| value.clone());
        }
        let data = json!({"Values": all, "Chart": {"AppVersion": "v1"}, "Release": {"Namespace": "platform"}});
        helm::execute(&chart["templates/NOTES.txt"], &data).unwrap()
    };
    let first = notes(json!({}));
    assert!(first.contains("is a placeholder") && first.contains("kubectl label namespace platform"), "{first}");
    let second = notes(json!({"image": "registry.corp.example/chandler:v1", "createNamespace": true}));
    assert!(!second.contains("placeholder") && !second.contains("kubectl label"), "{second}");
}
