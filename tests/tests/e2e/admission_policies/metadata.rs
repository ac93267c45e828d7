//! Metadata: whose permission it needs, what the garbage collector writes to orphan objects, and requests that change nothing, as the
//! migration of stored versions sends them.

use chandler_tests::World;
use serde_json::{Value, json};

use super::{Case, Request, Users, config_map, deployment, record, resolution};

pub(super) fn cases<'a>(world: &World, users: &'a Users) -> Vec<Case<'a>> {
    let Users { author, boss, restorer, controller, collector } = users;
    let metadata = |object: Value, change: &Value| Request::Change(object, "", json!({"metadata": change}));
    let gone = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "gone"});
    let owned = json!({"ownerReferences": [gone]});
    let held = json!({"finalizers": ["example.com/forever"]});
    let policy = Some("chandler-resolutions");
    let of = |name: &str| resolution(world, name, &json!({}));
    let mut cases = Vec::new();
    for change in [&json!({"labels": {"team": "a"}}), &json!({"annotations": {"a": "b"}}), &held, &owned] {
        for name in ["deployers", "unnamed"] {
            cases.push((author, metadata(of(name), change), policy));
            cases.push((boss, metadata(of(name), change), None));
            cases.push((controller, metadata(of(name), change), None));
            cases.push((collector, metadata(of(name), change), None));
        }
        cases.push((author, metadata(of("friends"), change), None));
        cases.push((author, metadata(of("answers"), change), None));
    }
    let other = json!({"spec": {"packages": [{"name": "other"}]}});
    cases.push((collector, Request::Change(of("deployers"), "", other), policy));

    // Records and decisions: the garbage collector changes owner references and finalizers only, and others change nothing.
    for (object, policy) in [
        (record(world, "record", ""), "chandler-records"),
        (config_map(world, "of-a-resolution", true), "chandler-decisions"),
        (config_map(world, "note", true), "chandler-decisions"),
        (config_map(world, "decided", true), "chandler-decisions"),
    ] {
        for change in [&owned, &held] {
            cases.push((collector, metadata(object.clone(), change), None));
            cases.push((author, metadata(object.clone(), change), Some(policy)));
        }
        for change in [&json!({"labels": {"a": "b"}}), &json!({"annotations": {"a": "b"}})] {
            cases.push((collector, metadata(object.clone(), change), Some(policy)));
        }
        let data = json!({"data": {"a": "Yg=="}});
        if policy == "chandler-records" {
            cases.push((collector, Request::Change(object.clone(), "", data), Some(policy)));
            cases.push((collector, Request::Change(object.clone(), "", json!({"immutable": true})), Some(policy)));
        }
        for user in [author, boss, restorer, controller, collector] {
            cases.push((user, Request::Change(object.clone(), "", json!({})), None));
        }
    }
    // So do they not become a decision.
    let annotations = json!({"annotations": {"resolution.chandler.dev/uid": "uid"}});
    cases.push((collector, metadata(config_map(world, "loose", false), &annotations), Some("chandler-decisions")));
    for name in ["deployers", "unnamed"] {
        cases.push((author, Request::Change(deployment(world, name, &json!({})), "", json!({})), None));
        cases.push((author, Request::Change(of(name), "", json!({})), None));
    }
    cases
}
