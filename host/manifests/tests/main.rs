//! The integration tests of this crate, in one binary.
//!
//! | module | tests |
//! |---|---|
//! | `bundles` | the plain+v0 and the registry+v1 bundle have the printed objects, or name what they lack |
//! | `chart` | the Helm chart makes the printed objects, with and without Helm |
//! | `deploy` | the files of `deploy/` and the kustomization are the printed objects |
//! | `monitoring` | alerts and the dashboard |

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "test helpers may panic, too")]

mod bundles;
mod chart;
mod deploy;
mod monitoring;

use chandler_manifests::{Profile, Settings};
use serde_json::Value;

/// The settings of a profile, with these as on the command line.
fn chosen(profile: Profile, options: &[&str]) -> Settings {
    let mut settings = Settings::of(profile);
    for option in options {
        settings.set(option).unwrap();
    }
    settings
}

/// Numbers as floats: a parser, Helm and kustomize make `1` of `1.0`.
fn canonical(value: &mut Value) {
    match value {
        Value::Number(number) => *value = number.as_f64().unwrap().into(),
        Value::Array(items) => items.iter_mut().for_each(canonical),
        Value::Object(members) => members.values_mut().for_each(canonical),
        _ => {}
    }
}
