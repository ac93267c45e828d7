//! Generates random values from a schema, and random edits of values.

use chandler_devcluster_apimachinery::schema::{Scalar, Schema, Shape};
use serde_json::{Map, Value, json};

use crate::random::Random;

/// How deep generated values are nested.
const DEEPEST: usize = 5;

/// Texts that some field of some kind accepts.
const TEXTS: &[&str] = &[
    "a",
    "b",
    "c",
    "x1",
    "web",
    "80",
    "10m",
    "1Gi",
    "50%",
    "example.com",
    "a.example.com",
    "http",
    "https",
    "/path",
    "10.0.0.1",
    "10.1.0.0/16",
    "2026-01-01T00:00:00Z",
    "30s",
    "Always",
    "IfNotPresent",
    "Never",
    "OnFailure",
    "TCP",
    "UDP",
    "ClusterFirst",
    "Default",
    "Exists",
    "In",
    "NotIn",
    "Equal",
    "NoExecute",
    "NoSchedule",
    "Ingress",
    "Egress",
    "Local",
    "Cluster",
    "IPv4",
    "Prefix",
    "Exact",
    "Retain",
    "Delete",
    "Immediate",
    "WaitForFirstConsumer",
    "None",
    "ClientIP",
    "RuntimeDefault",
    "ReadWriteOnce",
    "get",
    "list",
    "CREATE",
    "UPDATE",
    "Fail",
    "Ignore",
    "Memory",
    "kubernetes.io/os",
    "YQ==",
    "Allow",
    "Forbid",
    "Parallel",
    "OrderedReady",
    "Utilization",
    "cpu",
    "ConfigMap",
    "true",
    "*.example.com",
];

/// Names of members of maps.
const KEYS: &[&str] = &["added", "app", "tier", "cpu", "memory", "example.com/x", "kubernetes.io/os"];

/// A value of this schema, with all required members and some optional ones.
pub(super) fn value(schema: &Schema, random: &mut Random, depth: usize) -> Value {
    if let Some(value) = random.pick(&schema.enumeration) {
        return value.clone();
    }
    match &schema.shape {
        Shape::Any | Shape::Deduced => json!({"x": random.pick(TEXTS)}),
        Shape::Object { properties, required, values, .. } => {
            let mut object = Map::new();
            for (name, schema) in properties {
                let optional = depth < DEEPEST && random.percent(if properties.len() < 4 { 60 } else { 15 });
                if required.contains(name) || optional {
                    object.insert(name.clone(), value(schema, random, depth + 1));
                }
            }
            if let Some(values) = values {
                for _ in 0..=random.below(2) {
                    let key = random.pick(KEYS).copied().unwrap_or_default();
                    object.insert(key.to_owned(), value(values, random, depth + 1));
                }
            }
            Value::Object(object)
        }
        Shape::List { items, size, .. } => {
            let least = usize::try_from(size.0.unwrap_or(1)).unwrap_or(1);
            (0..least.max(1 + random.below(2))).map(|_| value(items, random, depth + 1)).collect()
        }
        Shape::Scalar(scalar) => of_scalar(scalar, random),
    }
}

fn of_scalar(scalar: &Scalar, random: &mut Random) -> Value {
    let text = |random: &mut Random| json!(random.pick(TEXTS));
    match scalar {
        Scalar::String { format, .. } => match format.as_deref() {
            Some("date-time") => json!("2026-01-01T00:00:00Z"),
            Some("byte") => json!("YQ=="),
            _ => text(random),
        },
        Scalar::Integer { range, .. } | Scalar::Number { range } => {
            #[expect(clippy::cast_possible_truncation, reason = "bounds of schemas are small, or irrelevant")]
            let least = range.minimum.map_or(1, |minimum| minimum as i64);
            json!(least + i64::try_from(random.below(3)).unwrap_or(0))
        }
        Scalar::Boolean => json!(random.percent(50)),
        Scalar::IntOrString => {
            if random.percent(50) {
                json!(1 + random.below(90))
            } else {
                text(random)
            }
        }
        Scalar::Quantity => json!(random.pick(&["1", "2", "100m", "1Gi", "1024Mi"])),
    }
}

/// Adds, replaces or removes something somewhere in a value.
pub(super) fn edit(schema: &Schema, target: &mut Value, random: &mut Random) {
    match (&schema.shape, target) {
        (Shape::Object { properties, values, .. }, Value::Object(object)) => {
            let present: Vec<String> = object.keys().cloned().collect();
            let of = |name: &str| properties.get(name).or(values.as_ref());
            let chosen = random.pick(&present).cloned();
            match (random.below(10), chosen) {
                (0..=4, Some(name)) => {
                    if let (Some(schema), Some(value)) = (of(&name), object.get_mut(&name)) {
                        edit(schema, value, random);
                    }
                }
                (5, Some(name)) => {
                    object.remove(&name);
                }
                _ => {
                    let absent: Vec<&String> = properties.keys().filter(|name| !object.contains_key(*name)).collect();
                    let key = random.pick(KEYS).copied().unwrap_or_default().to_owned();
                    let name = match (&values, random.pick(&absent)) {
                        (None, Some(name)) => (*name).clone(),
                        (None, None) => return,
                        (Some(_), _) => key,
                    };
                    if let Some(schema) = of(&name) {
                        object.insert(name, value(schema, random, DEEPEST - 2));
                    }
                }
            }
        }
        (Shape::List { items, .. }, Value::Array(list)) => match random.below(6) {
            0..=2 if !list.is_empty() => {
                let index = random.below(list.len());
                if let Some(item) = list.get_mut(index) {
                    edit(items, item, random);
                }
            }
            3 if !list.is_empty() => {
                list.remove(random.below(list.len()));
            }
            4 if list.len() > 1 => list.reverse(),
            _ => list.push(value(items, random, DEEPEST - 2)),
        },
        (_, target) => *target = value(schema, random, DEEPEST - 2),
    }
}

/// Edits a member of an object other than its identity: its specification, whatever the member is called.
pub(super) fn edit_specification(schema: &Schema, object: &mut Value, random: &mut Random) {
    let Shape::Object { properties, .. } = &schema.shape else { return };
    let Some(object) = object.as_object_mut() else { return };
    // A controller writes the rules of an aggregating ClusterRole.
    let other = ["apiVersion", "kind", "metadata", "status", "aggregationRule"];
    let names: Vec<&String> = properties.keys().filter(|name| !other.contains(&name.as_str())).collect();
    let present: Vec<&&String> = names.iter().filter(|name| object.contains_key(**name)).collect();
    // Existing members have more to edit.
    let name = if random.percent(85) { random.pick(&present).map(|name| **name) } else { None };
    let Some(name) = name.or_else(|| random.pick(&names).copied()) else { return };
    let Some(schema) = properties.get(name) else { return };
    match object.get_mut(name) {
        Some(member) if random.percent(97) => edit(schema, member, random),
        Some(_) => {
            object.remove(name);
        }
        None => {
            object.insert(name.clone(), value(schema, random, DEEPEST - 2));
        }
    }
}
