//! A backup is restored by users who may restore records, and by no others.

use chandler_tests::World;
use serde_json::{Value, json};

use super::{Case, Request, Users, deployment, record, resolution};

fn held(mut object: Value) -> Value {
    object["metadata"]["finalizers"] = json!(["chandler.dev/teardown"]);
    object
}

pub(super) fn cases<'a>(world: &World, users: &'a Users) -> Vec<Case<'a>> {
    let named = deployment(world, "new", &json!({"serviceAccount": {"name": "friend"}}));
    let mut managed = resolution(world, "new", &json!({}));
    managed["metadata"]["annotations"] = json!({"platform.chandler.dev/managed": "true"});
    let mut cases = Vec::new();
    for (request, policy) in [
        (Request::Create(record(world, "new", "chandler.dev/record")), "chandler-records"),
        (Request::Create(record(world, "new", "chandler.dev/release")), "chandler-records"),
        (
            Request::Change(record(world, "record", ""), "", json!({"metadata": {"labels": {"a": "b"}}})),
            "chandler-records",
        ),
        (Request::Delete(record(world, "record", "")), "chandler-records"),
        (Request::Create(held(named.clone())), "chandler-finalizer"),
        (Request::Create(held(resolution(world, "new", &json!({})))), "chandler-finalizer"),
        (Request::Create(managed), "chandler-managed-resolutions"),
    ] {
        cases.push((&users.author, request.clone(), Some(policy)));
        cases.push((&users.boss, request.clone(), Some(policy)));
        cases.push((&users.restorer, request, None));
    }
    let change = |object: Value, more: Value| Request::Change(object, "", json!({"metadata": more}));
    let annotation = json!({"annotations": {"platform.chandler.dev/managed": "true"}});
    // It creates objects, and changes none: that is what the controller does.
    cases.extend([
        (
            &users.restorer,
            change(deployment(world, "held", &json!({})), json!({"finalizers": null})),
            Some("chandler-finalizer"),
        ),
        (
            &users.restorer,
            change(resolution(world, "friends", &json!({})), annotation),
            Some("chandler-managed-resolutions"),
        ),
        (
            &users.restorer,
            Request::Create(held(deployment(world, "new", &json!({"serviceAccount": {"name": "deployer"}})))),
            Some("chandler-accounts"),
        ),
    ]);
    cases
}
