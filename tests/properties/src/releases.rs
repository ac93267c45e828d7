//! The identities, the order and the digest of any objects in a release.

use chandler_core::{Diagnostic, Object, Release, order};
use chandler_yaml::Limits;
use serde_json::{Map, Value};

/// An input is a stream of YAML or JSON documents. Each document is an object, and its annotation `stage` sets its stage.
pub(crate) fn holds(input: &[u8]) {
    let Ok(documents) = chandler_yaml::parse(input, &Limits::default()) else { return };
    let mut objects = Vec::new();
    for node in chandler_yaml::flatten_lists(documents) {
        let mut text = Vec::new();
        node.write_json(&mut text);
        let stage = node.at("/metadata/annotations/stage").and_then(chandler_yaml::Node::as_i64).unwrap_or_default();
        match Object::parse(&text, u32::try_from(stage).unwrap_or_default(), None) {
            Ok(object) => {
                assert_object(&object);
                objects.push(object);
            }
            Err(error) => {
                let text = error.to_string();
                assert!(!text.is_empty() && !text.chars().any(char::is_control), "{text:?}");
            }
        }
    }
    let mut backwards = objects.clone();
    backwards.reverse();
    let distinct = objects
        .iter()
        .enumerate()
        .all(|(at, one)| objects.iter().take(at).all(|other| !one.key.same_object(&other.key) && one.key != other.key));
    let release = Release::new(objects.clone(), Vec::new(), Vec::<Diagnostic>::new());
    assert_sorted(&release);
    assert_eq!(release.objects().len(), objects.len(), "an object is lost");
    // Duplicates are rejected earlier; their order does not matter.
    if distinct && objects.len() < 200 {
        let other = Release::new(backwards, Vec::new(), Vec::new());
        assert_eq!(release.digest(), other.digest(), "the digest depends on the order of emission");
    }
}

/// Asserts that parsing is idempotent, and that the identity is valid in a URL.
fn assert_object(object: &Object) {
    let again = Object::from_value(object.value.clone(), object.stage, None).expect("an object is one");
    assert_eq!(again, *object);
    let key = &object.key;
    let parts = [Some(&key.name), key.namespace.as_ref(), Some(&key.kind), Some(&key.version)];
    for part in parts.into_iter().flatten() {
        assert!(!part.is_empty() && !part.contains('/') && !matches!(part.as_str(), "." | ".."), "{key:?}");
        assert!(!part.chars().any(char::is_control) && !part.contains('%'), "{key:?}");
    }
    assert!(!object.value.contains_key("status"));
    let text = |value: &Map<String, Value>, field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
    assert_eq!(text(&object.value, "apiVersion"), Some(key.api_version()));
}

fn assert_sorted(release: &Release) {
    let ranks = release.objects().iter().map(|object| (object.stage, order::phase_of(&object.key)));
    assert!(ranks.is_sorted(), "objects are out of order");
}
