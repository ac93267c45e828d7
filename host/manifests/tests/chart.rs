//! The chart makes the objects that `chandler manifests` prints, for every profile and setting, and refuses the same values.

mod equality;
mod files;
mod helm;
mod schema;

use std::sync::LazyLock;

use chandler_manifests::{Profile, SETTINGS, Settings, chart};

/// The chart of the defaults.
fn defaults() -> &'static helm::Chart {
    static DEFAULTS: LazyLock<helm::Chart> = LazyLock::new(|| chart(&Settings::of(Profile::Standalone)).unwrap());
    &DEFAULTS
}

/// An example of each setting, in the order of the table.
pub(super) const EXAMPLES: [(&str, &str); 26] = [
    ("image", "registry.corp.example:5000/platform/chandler:v1"),
    ("imagePullSecret", "pull.secret"),
    ("namespace", "123"),
    ("replicas", "3"),
    ("permissions", "cluster-admin"),
    ("admissionPolicies", "false"),
    ("watch", "true"),
    ("metrics", "false"),
    ("metrics.tlsSecret", "metrics"),
    ("content", "true"),
    ("receiver", "true"),
    ("receiver.tlsSecret", "webhooks"),
    ("cache.claim", "cache"),
    ("logFormat", "text"),
    ("priorityClass", "platform"),
    ("resources.requests.cpu", "1"),
    ("resources.requests.memory", "1Gi"),
    ("resources.limits.cpu", "2"),
    ("resources.limits.memory", "2Gi"),
    ("nodeSelector", "node-role.kubernetes.io/infra=,kubernetes.io/os=true"),
    ("tolerations", "node-role.kubernetes.io/infra,dedicated=true:NoExecute"),
    ("networkPolicy", "false"),
    ("monitoring.serviceMonitor", "true"),
    ("monitoring.rules", "true"),
    ("monitoring.dashboard", "true"),
    ("arg", "--pull-secrets-of=chandler"),
];

/// Settings of a profile with examples of some.
fn settings(profile: Profile, chosen: impl IntoIterator<Item = (&'static str, &'static str)>) -> Settings {
    let mut settings = Settings::of(profile);
    for (key, value) in chosen {
        settings.set(&format!("{key}={value}")).unwrap();
    }
    settings
}

#[test]
fn the_page_names_the_values_that_are_not_called_like_their_settings() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/install.md")).unwrap();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
    for setting in SETTINGS.iter().filter(|setting| !setting.chart.is_empty() && setting.chart != setting.key) {
        let [key, value] = [setting.key, setting.chart].map(|name| format!("`{name}`"));
        assert!(rows.iter().any(|row| row.contains(&key) && row.contains(&value)), "{key} is {value} in the chart");
    }
}
