//! Properties of server-side apply over random configurations.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use chandler_devcluster_apimachinery::{
    apply::{ApplyRequest, apply, managed, managed::UpdateRequest},
    schema::{Builtins, GroupVersionKind, Schema},
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn schema() -> Schema {
    Builtins::get().kind(&GroupVersionKind::new("apps", "v1", "Deployment")).unwrap().schema.clone()
}

fn force(live: Option<&Value>, manager: &str, applied: &Value) -> Value {
    let schema = schema();
    let request = ApplyRequest {
        schema: &schema,
        live,
        applied,
        manager,
        api_version: "apps/v1",
        force: true,
        subresource: "",
        now: "t",
    };
    apply(request).unwrap().object
}

fn labels() -> impl Strategy<Value = Value> {
    prop::collection::hash_map("[a-c]", "[x-z]", 0..4)
        .prop_map(|labels| Value::Object(labels.into_iter().map(|(name, value)| (name, Value::from(value))).collect()))
}

fn container() -> impl Strategy<Value = (String, Value)> {
    ("[a-d]", prop::option::of("[x-z]"), prop::collection::btree_set(1..4_i32, 0..3)).prop_map(
        |(name, image, ports)| {
            let mut container = Map::new();
            container.insert("name".to_owned(), name.as_str().into());
            if let Some(image) = image {
                container.insert("image".to_owned(), image.into());
            }
            if !ports.is_empty() {
                container
                    .insert("ports".to_owned(), ports.into_iter().map(|port| json!({"containerPort": port})).collect());
            }
            (name, Value::Object(container))
        },
    )
}

fn configuration() -> impl Strategy<Value = Value> {
    let containers = prop::collection::vec(container(), 0..4).prop_map(|containers| {
        let mut seen = Vec::new();
        let mut unique = Vec::new();
        for (name, container) in containers {
            if !seen.contains(&name) {
                seen.push(name);
                unique.push(container);
            }
        }
        unique
    });
    (prop::option::of(labels()), prop::option::of(0..3_i32), containers).prop_map(|(labels, replicas, containers)| {
        let mut object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {}});
        if let Some(labels) = labels {
            object["metadata"]["labels"] = labels;
        }
        if let Some(replicas) = replicas {
            object["spec"]["replicas"] = replicas.into();
        }
        if !containers.is_empty() {
            object["spec"]["template"] = json!({"spec": {"containers": containers}});
        }
        object
    })
}

/// Every value of `applied` is in `live`; items of lists are found by `name` or `containerPort`.
fn holds(live: &Value, applied: &Value) -> bool {
    match (live, applied) {
        (Value::Object(live), Value::Object(applied)) => {
            applied.iter().all(|(name, value)| live.get(name).is_some_and(|live| holds(live, value)))
        }
        (Value::Array(live), Value::Array(applied)) => applied.iter().all(|item| {
            live.iter().any(|live| {
                live.get("name") == item.get("name")
                    && live.get("containerPort") == item.get("containerPort")
                    && holds(live, item)
            })
        }),
        (live, applied) => live == applied,
    }
}

proptest! {
    #[test]
    fn applying_twice_is_applying_once(first in configuration(), other in configuration(), second in configuration()) {
        let live = force(Some(&force(None, "a", &first)), "b", &other);
        let once = force(Some(&live), "a", &second);
        let schema = schema();
        let again = apply(ApplyRequest {
            schema: &schema, live: Some(&once), applied: &second, manager: "a", api_version: "apps/v1", force: false,
            subresource: "", now: "later",
        });
        let again = again.unwrap();
        prop_assert!(!again.changed);
        prop_assert_eq!(again.object, once);
    }

    #[test]
    fn applied_fields_exist(first in configuration(), other in configuration(), second in configuration()) {
        let live = force(Some(&force(None, "a", &first)), "b", &other);
        let live = force(Some(&live), "a", &second);
        prop_assert!(holds(&live, &second), "{live} {second}");
    }

    #[test]
    fn a_sole_owner_decides_alone(first in configuration(), second in configuration()) {
        let direct = force(None, "a", &second);
        let by_way_of_another = force(Some(&force(None, "a", &first)), "a", &second);
        let scalars = |object: &Value| (object["spec"].get("replicas").cloned(), object.pointer("/metadata/labels").cloned().filter(|labels| labels != &json!({})));
        prop_assert_eq!(scalars(&direct), scalars(&by_way_of_another));
        let containers = |object: &Value| object.pointer("/spec/template/spec/containers").cloned().unwrap_or(json!([]));
        prop_assert_eq!(containers(&direct), containers(&by_way_of_another));
    }

    #[test]
    fn ownership_follows_the_last_writer(first in configuration(), second in configuration()) {
        let live = force(None, "a", &first);
        let schema = schema();
        let written = managed::track_update(UpdateRequest {
            schema: &schema, live: Some(&live), new: &second, manager: "b", api_version: "apps/v1", subresource: "", reset: &[], now: "t",
        });
        // A manager that then applies the live values has no conflict, and without a change the entries stay.
        let same = managed::track_update(UpdateRequest {
            schema: &schema, live: Some(&written), new: &second, manager: "c", api_version: "apps/v1", subresource: "", reset: &[], now: "u",
        });
        prop_assert_eq!(&same, &written);
        let shared = apply(ApplyRequest {
            schema: &schema, live: Some(&written), applied: &second, manager: "d", api_version: "apps/v1", force: false,
            subresource: "", now: "t",
        });
        prop_assert!(shared.is_ok());
    }
}
