//! ConfigMaps that decide a set, and those that only the controller writes.

use chandler_tests::World;
use serde_json::{Value, json};

use super::{Case, Request, Users, config_map, named};

const SET: &str = "resolveset.chandler.dev/set";
const NUMBER: &str = "resolveset.chandler.dev/number";
const ACCOUNT: &str = "resolveset.chandler.dev/service-account";

/// A set that `author` may decide, too.
pub(super) fn decidable(world: &World) -> String {
    format!("decidedset-{}-ours", world.name())
}

fn annotated(world: &World, name: &str, annotations: &Value) -> Value {
    let mut map = config_map(world, name, true);
    map["metadata"]["annotations"] = annotations.clone();
    map
}

fn decision(world: &World, name: &str, set: &str, account: &str) -> Value {
    let (set, account) = (format!("{}-{set}", world.name()), format!("{}/{account}", world.namespace));
    annotated(world, name, &json!({SET: set, NUMBER: "1", ACCOUNT: account}))
}

/// What exists before the policies are applied.
pub(super) fn objects(world: &World) -> [Value; 4] {
    let mut set = super::deployment(world, "theirs", &named("friend"));
    set["metadata"]["name"] = json!(format!("decidedset-{}-theirs", world.name()));
    let maps = ["decided", "absent"].map(|name| json!({"configMap": {"name": name}}));
    set["spec"]["source"] = json!({"type": "configMaps", "configMaps": maps});
    [
        decision(world, "decided", "theirs", "friend"),
        annotated(world, "note", &json!({"resolveset.chandler.dev/created": "uid"})),
        annotated(world, "of-a-resolution", &json!({"resolution.chandler.dev/uid": "uid"})),
        set,
    ]
}

pub(super) fn cases<'a>(world: &World, users: &'a Users) -> Vec<Case<'a>> {
    let policy = Some("chandler-decisions");
    let Users { author, boss, controller, .. } = users;
    let new = |set: &str, account: &str| Request::Create(decision(world, "new", set, account));
    let existing = |name: &str| config_map(world, name, true);
    let annotate =
        |name: &str, more: Value| Request::Change(existing(name), "", json!({"metadata": {"annotations": more}}));
    let without = |annotation: &str| {
        let mut map = decision(world, "new", "ours", "friend");
        map["metadata"]["annotations"].as_object_mut().expect("annotations").remove(annotation);
        Request::Create(map)
    };
    let mut mutable = decision(world, "new", "ours", "friend");
    mutable["immutable"] = json!(false);
    let deployment = |name: &str, account: &str| {
        let mut object = super::deployment(world, "new", &named(account));
        object["metadata"]["name"] = json!(format!("decidedset-{}-{name}", world.name()));
        Request::Create(object)
    };
    let mut cases = vec![
        (author, new("theirs", "friend"), policy),
        (author, new("ours", "deployer"), policy),
        (author, new("ours", "friend"), None),
        (boss, new("theirs", "deployer"), None),
        (boss, without(ACCOUNT), policy),
        (author, without(SET), None),
        (author, Request::Create(mutable), policy),
        // A user who may decide may also withdraw the decision, although the set names it.
        (author, Request::Delete(existing("decided")), policy),
        (boss, Request::Delete(existing("decided")), None),
        // The content of a set is decided by nothing but decisions.
        (author, Request::Create(existing("absent")), Some("chandler-config-maps")),
        (author, Request::Create(decision(world, "absent", "ours", "friend")), Some("chandler-config-maps")),
        (boss, Request::Create(decision(world, "absent", "theirs", "friend")), None),
        (author, annotate("decided", json!({"a": "b"})), policy),
        (boss, annotate("decided", json!({"a": "b"})), None),
        (boss, annotate("decided", json!({NUMBER: "2"})), policy),
        (boss, annotate("decided", json!({SET: null})), policy),
        (boss, annotate("loose", json!({SET: "x"})), policy),
        (author, annotate("loose", json!({NUMBER: "2"})), None),
        // The names of the BundleDeployments, whose author was checked.
        (author, deployment("new", "friend"), Some("chandler-sets")),
        (boss, deployment("new", "friend"), None),
        (controller, deployment("new", "deployer"), None),
    ];
    for name in ["note", "of-a-resolution"] {
        for request in [annotate(name, json!({"a": "b"})), Request::Delete(existing(name))] {
            cases.push((author, request.clone(), policy));
            cases.push((boss, request.clone(), None));
            cases.push((controller, request, None));
        }
    }
    for annotation in ["resolveset.chandler.dev/created", "resolution.chandler.dev/uid"] {
        cases.push((author, Request::Create(annotated(world, "new", &json!({annotation: "uid"}))), policy));
        cases.push((author, annotate("loose", json!({annotation: "uid"})), policy));
    }
    cases
}
