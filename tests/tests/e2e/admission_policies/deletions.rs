//! Deleting needs the permission that changing needs. The controller and the garbage collector delete members of sets.

use chandler_tests::World;
use serde_json::{Value, json};

use super::{Case, Request, Users, deployment, named, resolution, set};

/// What exists before the policies are applied.
pub(super) fn objects(world: &World) -> [Value; 5] {
    let kept = |name: &str, deletion: &Value| {
        let mut object = deployment(world, name, &named("friend"));
        object["spec"]["deletion"] = deletion.clone();
        object
    };
    [
        deployment(world, "unnamed", &json!({})),
        kept("orphaned", &json!({"policy": "Orphan"})),
        kept("crds", &json!({"crds": "Keep"})),
        resolution(world, "unnamed", &set(world, &json!({}))),
        resolution(world, "answers", &json!({})),
    ]
}

pub(super) fn cases<'a>(world: &World, users: &'a Users) -> Vec<Case<'a>> {
    let policy = Some("chandler-deletions");
    let Users { author, boss, restorer, controller, collector } = users;
    let of = |name: &str| deployment(world, name, &json!({}));
    let mut cases = vec![
        (author, Request::Delete(of("deployers")), policy),
        (author, Request::DeleteForeground(of("deployers")), policy),
        (author, Request::DeleteAll(of("deployers")), policy),
        (author, Request::Delete(of("unnamed")), policy),
        (restorer, Request::Delete(of("deployers")), policy),
        (author, Request::Delete(of("friends")), None),
        (author, Request::DeleteForeground(of("friends")), None),
        (boss, Request::Delete(of("deployers")), None),
        (boss, Request::Delete(of("unnamed")), None),
        (controller, Request::Delete(of("deployers")), None),
        (controller, Request::Delete(of("unnamed")), None),
        (collector, Request::Delete(of("deployers")), None),
    ];
    // The garbage collector would delete what the spec keeps.
    for name in ["orphaned", "crds"] {
        cases.push((boss, Request::DeleteForeground(of(name)), policy));
        cases.push((author, Request::DeleteForeground(of(name)), policy));
        cases.push((author, Request::Delete(of(name)), None));
        // A member of a set that is deleted like this.
        cases.push((collector, Request::DeleteForeground(of(name)), None));
    }
    let policy = Some("chandler-resolution-deletions");
    let of = |name: &str| resolution(world, name, &json!({}));
    cases.extend([
        (author, Request::Delete(of("deployers")), policy),
        (author, Request::DeleteForeground(of("deployers")), policy),
        (author, Request::DeleteAll(of("deployers")), policy),
        (author, Request::Delete(of("unnamed")), policy),
        (author, Request::Delete(of("friends")), None),
        // It installs nothing.
        (author, Request::Delete(of("answers")), None),
        (boss, Request::Delete(of("deployers")), None),
        (boss, Request::Delete(of("unnamed")), None),
        (controller, Request::Delete(of("deployers")), None),
        (collector, Request::Delete(of("deployers")), None),
    ]);
    cases
}
