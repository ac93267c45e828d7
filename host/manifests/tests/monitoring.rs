//! The alerts and the dashboard use metrics that exist, and docs/monitoring.md says for each alert what to do.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    process::Command,
};

use chandler_test_support::needs;
use regex::Regex;
use serde_json::Value;

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The rules of `deploy/monitoring-rules.yaml`.
fn rules() -> Vec<Value> {
    let object: Value = serde_saphyr::from_str(&read("deploy/monitoring-rules.yaml")).unwrap();
    object.pointer("/spec/groups/0/rules").unwrap().as_array().unwrap().clone()
}

/// Metrics and their labels, from the table in docs/monitoring.md, which a test of host/monitoring compares with the code.
fn metrics() -> BTreeMap<String, BTreeSet<String>> {
    let page = read("docs/monitoring.md");
    let rows = page.lines().filter(|line| line.starts_with("| `chandler_") || line.starts_with("| `process_"));
    let metrics = rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let labels = cells[3].split('`').skip(1).step_by(2).map(str::to_owned).collect();
        (cells[1].trim_matches('`').to_owned(), labels)
    });
    metrics.collect()
}

/// The metrics and labels of an expression that do not exist.
fn unknown(expression: &str) -> Vec<String> {
    let metrics = metrics();
    let names = Regex::new(r"\b(?:chandler|process)_[a-z_]+").unwrap();
    // Labels that a histogram and a scrape add.
    let mut labels: BTreeSet<String> = ["le", "job", "pod"].map(str::to_owned).into();
    let mut unknown = Vec::new();
    for name in names.find_iter(expression).map(|found| found.as_str()) {
        let base = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix));
        match metrics.get(name).or_else(|| metrics.get(base?)) {
            Some(of_metric) => labels.extend(of_metric.iter().cloned()),
            None => unknown.push(name.to_owned()),
        }
    }
    let groups = Regex::new(r"by \(([^)]*)\)").unwrap();
    let selected = Regex::new(r"([a-z]+)\s*(?:=~|!=|!~|=)\s*\x22").unwrap();
    let by =
        groups.captures_iter(expression).flat_map(|found| found[1].split(", ").map(str::to_owned).collect::<Vec<_>>());
    let used = by.chain(selected.captures_iter(expression).map(|found| found[1].to_owned()));
    unknown.extend(used.filter(|label| !labels.contains(label)));
    unknown
}

#[test]
fn unknown_metrics_and_labels_are_found() {
    assert_eq!(unknown("sum by (kind, le) (rate(chandler_reconcile_duration_seconds_bucket[5m]))"), [""; 0]);
    assert_eq!(unknown("sum by (code) (chandler_object{tenant=\"a\"})"), ["chandler_object", "code", "tenant"]);
}

#[test]
fn alerts_use_metrics_that_exist_and_have_a_section_in_the_page() {
    let (page, rules) = (read("docs/monitoring.md"), rules());
    let alerts = page.split("\n## Alerts\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let sections: Vec<&str> = alerts.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let names: Vec<&str> = rules.iter().map(|rule| rule["alert"].as_str().unwrap()).collect();
    assert_eq!(sections, names, "docs/monitoring.md has a section for each alert, in their order");
    for rule in &rules {
        let (name, expression) = (rule["alert"].as_str().unwrap(), rule["expr"].as_str().unwrap());
        assert_eq!(unknown(expression), [""; 0], "{name}");
        let runbook = rule["annotations"]["runbook_url"].as_str().unwrap();
        assert!(runbook.ends_with(&format!("/docs/monitoring.md#{}", name.to_lowercase())), "{runbook}");
        assert!(["critical", "warning"].contains(&rule["labels"]["severity"].as_str().unwrap()), "{name}");
    }
}

#[test]
fn the_dashboard_shows_metrics_that_exist() {
    let map: Value = serde_saphyr::from_str(&read("deploy/monitoring-dashboard.yaml")).unwrap();
    let dashboard: Value = serde_json::from_str(map["data"]["chandler.json"].as_str().unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() > 10);
    for panel in panels {
        for target in panel["targets"].as_array().unwrap() {
            assert_eq!(unknown(target["expr"].as_str().unwrap()), [""; 0], "{}", panel["title"]);
        }
    }
}

#[test]
fn prometheus_accepts_the_rules_and_fires_each_alert() {
    let Some(promtool) = needs::promtool() else { return };
    let directory = tempfile::tempdir().unwrap();
    let object: Value = serde_saphyr::from_str(&read("deploy/monitoring-rules.yaml")).unwrap();
    // JSON is YAML.
    fs::write(directory.path().join("rules.yaml"), object["spec"].to_string()).unwrap();
    let tests = read("host/manifests/tests/alerts.yaml");
    for rule in rules() {
        let name = rule["alert"].as_str().unwrap();
        assert!(
            tests.contains(&format!("alertname: {name}\n")),
            "host/manifests/tests/alerts.yaml does not test {name}"
        );
    }
    fs::write(directory.path().join("tests.yaml"), tests).unwrap();
    for arguments in [["check", "rules", "rules.yaml"], ["test", "rules", "tests.yaml"]] {
        let output = Command::new(&promtool).args(arguments).current_dir(directory.path()).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&text));
    }
}
