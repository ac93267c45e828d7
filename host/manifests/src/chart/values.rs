//! The settings as values of the chart.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::{ManifestsError, SETTINGS, Settings, yaml::yaml};

/// A value that only the chart has.
pub(super) struct Own {
    /// Its key.
    pub(super) key: &'static str,
    /// The default.
    pub(super) default: bool,
    /// What it does, in one line.
    pub(super) what: &'static str,
}

/// The values that only the chart has.
pub(super) const OWN: [Own; 2] = [
    Own {
        key: "crds",
        default: true,
        what: "the CRDs: upgraded with the release, and kept when it is removed. With false, apply them before: chandler crds",
    },
    Own {
        key: "createNamespace",
        default: false,
        what: "the namespace of the release as an object, for tools that render the chart and store no release in it",
    },
];

/// What the value `profile` does.
pub(super) const PROFILE: &str =
    "what the cluster is for: standalone, openshift or multi-tenant. It decides options of the controller and defaults";

/// The values of these settings.
pub fn values(settings: &Settings) -> Value {
    let mut values = Map::from_iter([("profile".to_owned(), json!(settings.profile.name()))]);
    for setting in SETTINGS.iter().filter(|setting| !setting.chart.is_empty()) {
        put(&mut values, setting.chart, (setting.read)(settings));
    }
    values.extend(OWN.map(|own| (own.key.to_owned(), json!(own.default))));
    Value::Object(values)
}

/// Sets the value at a path with dots.
pub(super) fn put(values: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            values.insert(path.to_owned(), value);
        }
        Some((key, rest)) => {
            let below = values.entry(key).or_insert_with(|| json!({}));
            if let Some(below) = below.as_object_mut() {
                put(below, rest, value);
            }
        }
    }
}

/// `values.yaml`: the values in the order of the settings, each with a comment.
pub(super) fn text(settings: &Settings) -> Result<String, ManifestsError> {
    let mut text = "# The settings of Chandler. `chandler help manifests` lists them, too.\n".to_owned();
    let mut open: Vec<&str> = Vec::new();
    let mut add = |path: &'static str, what: &str, value: &Value| -> Result<(), ManifestsError> {
        let keys: Vec<&str> = path.split('.').collect();
        let (above, key) = (keys.get(..keys.len() - 1).unwrap_or_default(), keys.last().copied().unwrap_or_default());
        let shared = open.iter().zip(above).take_while(|(open, key)| open == key).count();
        for (depth, key) in above.iter().enumerate().skip(shared) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}{key}:", "  ".repeat(depth));
        }
        open = above.to_vec();
        let indent = "  ".repeat(above.len());
        let _ = writeln!(text, "{indent}# {what}");
        for line in yaml(&json!({ key: value }))?.lines() {
            let _ = writeln!(text, "{indent}{line}");
        }
        Ok(())
    };
    add("profile", PROFILE, &json!(settings.profile.name()))?;
    for setting in SETTINGS.iter().filter(|setting| !setting.chart.is_empty()) {
        let what = match setting.form.what() {
            Some(what) => format!("{what} (default: {})", setting.default),
            None => format!("{} [{}] (default: {})", setting.what, setting.value, setting.default),
        };
        add(setting.chart, &what, &(setting.read)(settings))?;
    }
    for own in OWN {
        add(own.key, own.what, &json!(own.default))?;
    }
    Ok(text)
}
