//! What the integration tests share: where the shared fixtures are, and objects in a form that can be compared.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) mod small;

use std::path::{Path, PathBuf};

use chandler_registry::Registry;
use chandler_sdk::{
    Failure, Request, Target,
    testing::{Bundle, Recorder, run},
};
use serde_json::Value;

/// The shared fixtures, beside the workspace. Says why it skips where they are not.
pub(crate) fn fixtures() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let root = std::env::var_os("FIXTURES").map_or(root.join("../shared/fixtures"), PathBuf::from);
    if root.is_dir() {
        return Some(root);
    }
    println!("skipped: {} is not there", root.display());
    None
}

/// Provisions the bundle in a directory.
pub(crate) fn render(directory: &Path, namespace: &str, config: &Value) -> Result<Recorder, Failure> {
    let bundle = Bundle::from_directory(directory).unwrap();
    let target = Target { name: "test".into(), namespace: namespace.into(), ..Target::default() };
    run::<Registry>(&bundle, &Request { config: config.as_object().unwrap().clone(), target })
}

/// The objects of a release.
pub(crate) fn values(release: Recorder) -> impl Iterator<Item = Value> {
    release.objects.into_iter().map(|object| object.value)
}

/// Objects sorted by identity, without what says nothing: nulls, empty maps where asked for, status.
pub(crate) fn canonical(objects: impl IntoIterator<Item = Value>, drop_empty_maps: bool) -> Vec<Value> {
    let mut objects: Vec<Value> = objects
        .into_iter()
        .map(|mut object| {
            if let Some(object) = object.as_object_mut() {
                object.remove("status");
            }
            prune(&mut object, drop_empty_maps);
            object
        })
        .collect();
    // A permission that a bundle repeats gives the same role twice in the reference, once here; and of a ServiceAccount
    // that is generated and in the bundle, the reference applies both, the one that says more last.
    objects.sort_by_cached_key(|object| (identity(object), std::cmp::Reverse(object.to_string().len())));
    objects
        .dedup_by(|next, first| next == first || next["kind"] == "ServiceAccount" && identity(next) == identity(first));
    objects
}

/// `apiVersion kind namespace/name`.
pub(crate) fn identity(object: &Value) -> String {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    format!("{} {} {}/{}", text("/apiVersion"), text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
}

fn prune(value: &mut Value, drop_empty_maps: bool) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(|value| prune(value, drop_empty_maps));
            map.retain(|_, value| {
                !(value.is_null() || drop_empty_maps && value.as_object().is_some_and(serde_json::Map::is_empty))
            });
        }
        Value::Array(list) => list.iter_mut().for_each(|value| prune(value, drop_empty_maps)),
        _ => {}
    }
}

/// The first place where two values differ.
pub(crate) fn difference(want: &Value, got: &Value, path: &str) -> Option<String> {
    match (want, got) {
        (Value::Object(want), Value::Object(got)) => {
            let keys: std::collections::BTreeSet<_> = want.keys().chain(got.keys()).collect();
            keys.into_iter().find_map(|key| {
                let path = format!("{path}/{key}");
                match (want.get(key), got.get(key)) {
                    (Some(want), Some(got)) => difference(want, got, &path),
                    (want, got) => Some(format!("{path}: want {}, got {}", short(want), short(got))),
                }
            })
        }
        (Value::Array(want), Value::Array(got)) if want.len() == got.len() => {
            let mut pairs = want.iter().zip(got).enumerate();
            pairs.find_map(|(index, (want, got))| difference(want, got, &format!("{path}/{index}")))
        }
        (want, got) if want == got => None,
        (Value::Number(want), Value::Number(got)) if want.as_f64() == got.as_f64() => None,
        (want, got) => Some(format!("{path}: want {}, got {}", short(Some(want)), short(Some(got)))),
    }
}

fn short(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| value.to_string().chars().take(200).collect())
}
