//! What patterns and rules of a hostile CRD take of memory. The allocator counts, so this is a test binary of its own.

#![expect(clippy::expect_used, reason = "a test that cannot continue panics")]

use chandler_crd_upgrade::{CheckError, ObjectCheck, Policy};
use peak_alloc::PeakAlloc;
use serde_json::{Map, Value, json};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The most memory in MiB that checking one CRD may take on top of the CRD itself.
const ALLOWED: f32 = 64.0;

fn crd(spec: &Value) -> Value {
    json!({"metadata": {"name": "widgets.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": spec}}}}],
    }, "status": {"storedVersions": ["v1"]}})
}

/// A field for each of these patterns, and an object that has all of them.
fn patterns_and_object(patterns: impl Iterator<Item = String>) -> (Value, Value) {
    let patterns: Vec<String> = patterns.collect();
    let names = || (0..patterns.len()).map(|number| format!("p{number}"));
    let fields = patterns.iter().map(|pattern| json!({"type": "string", "pattern": pattern}));
    let fields: Map<String, Value> = names().zip(fields).collect();
    let values: Map<String, Value> = names().map(|name| (name, json!("text"))).collect();
    let object = json!({"metadata": {"name": "a"}, "spec": values});
    (crd(&json!({"type": "object", "properties": fields})), object)
}

/// What a check says, and the memory that it took, in MiB.
fn check(new: &Value, object: &Value) -> (Result<usize, CheckError>, f32) {
    let old = crd(&json!({"type": "object"}));
    let before = MEMORY.current_usage_as_mb();
    MEMORY.reset_peak_usage();
    let mut check = ObjectCheck::plan(&old, new, &Policy::default()).expect("the schemas differ");
    let checked = check.page(std::slice::from_ref(object), None);
    let checked = checked.map(|()| check.finish().refusals.len());
    (checked, MEMORY.peak_usage_as_mb() - before)
}

/// One test, since all share the memory that is counted.
#[test]
fn patterns_and_rules_take_bounded_memory() {
    let (hostile, object) = patterns_and_object((0..4000).map(|number| format!(".{{800}}{number}")));
    let (checked, taken) = check(&hostile, &object);
    let error = checked.expect_err("what cannot be checked is not harmless");
    println!("{} bytes of CRD take {taken} MiB: {error}", hostile.to_string().len());
    assert!(taken < ALLOWED, "{taken} MiB");
    let CheckError::PatternsTooLarge { pointer, .. } = &error else { panic!("{error}") };
    assert_eq!(hostile.pointer(pointer).map(Value::is_string), Some(true), "{pointer} leads to a pattern");

    let (ordinary, object) =
        patterns_and_object((0..400).map(|number| format!("^[a-z0-9]([-a-z0-9]*[a-z0-9])?{number}$")));
    let (checked, taken) = check(&ordinary, &object);
    assert_eq!(checked, Ok(1), "text matches none of them");
    assert!(taken < ALLOWED, "{taken} MiB");

    // Each loop makes a text four times as long, and its range is the loop before.
    let growing = format!("['{}'].map{} != []", "x".repeat(64), ["(s,s+s+s+s)"; 10].join(".map"));
    let rules = |rule: &str, message: &str| {
        crd(&json!({"type": "object", "x-kubernetes-validations": [{"rule": rule, "messageExpression": message}]}))
    };
    let object = json!({"metadata": {"name": "a"}, "spec": {}});
    for (rule, message, refused) in [(growing.as_str(), "'a'", 0), ("false", &format!("string({growing})"), 1)] {
        let (checked, taken) = check(&rules(rule, message), &object);
        println!("growing values take {taken} MiB");
        assert_eq!(checked, Ok(refused), "{rule}");
        assert!(taken < ALLOWED, "{taken} MiB");
    }
}
