use k8s_openapi::api::core::v1::Namespace;
use serde_json::json;

use super::*;

/// A Namespace, whose status is `phase`, in a version.
fn object(version: u32, annotations: &[(&str, &str)], phase: &str) -> Namespace {
    let annotations: Map<String, Value> =
        annotations.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    let metadata = json!({"name": "a", "uid": "u", "resourceVersion": version.to_string(), "annotations": annotations});
    serde_json::from_value(json!({"metadata": metadata, "status": {"phase": phase}})).unwrap()
}

fn guarded(object: &Namespace) -> Arc<Guarded<Namespace>> {
    Arc::new(Guarded::written(object.clone()))
}

fn phase(text: &str) -> Value {
    json!({"phase": text})
}

/// What a sequence of events and own writes did.
#[derive(Default)]
struct Played {
    /// The versions whose events triggered a reconcile.
    woken: Vec<u32>,
    /// Whether the end of the reconcile triggered another one.
    again: bool,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Event(u32),
    /// A status write with this response, which was meant to set the phase.
    Status(&'a Namespace, &'a str),
    End,
}

/// Plays a reconcile that begins with version 1.
fn play(steps: &[Step<'_>]) -> Played {
    let (writes, mut played) = (OwnWrites::default(), Played::default());
    let (again, woken) = std::sync::mpsc::channel();
    let mut in_progress = Some(writes.begin(&object(1, &[], "Old"), move || again.send(()).unwrap()));
    for step in steps {
        match step {
            Step::Event(version) => {
                if writes.wakes(&object(*version, &[], "").metadata) {
                    played.woken.push(*version);
                }
            }
            Step::Status(response, intended) => writes.status(Namespace::clone(response), &phase(intended)),
            Step::End => drop(in_progress.take()),
        }
    }
    drop(in_progress);
    played.again = woken.try_recv().is_ok();
    played
}

#[test]
fn the_event_of_an_own_write_wakes_nothing_whenever_it_comes() {
    let (first, second) = (object(2, &[], "New"), object(3, &[], "Newer"));
    let writes = [Step::Status(&first, "New"), Step::Status(&second, "Newer")];
    for steps in [
        vec![writes[0], writes[1], Step::End, Step::Event(2), Step::Event(3)],
        vec![writes[0], Step::Event(2), writes[1], Step::Event(3), Step::End],
        // The events are faster than the responses.
        vec![Step::Event(2), writes[0], Step::Event(3), writes[1], Step::End],
        vec![Step::Event(2), writes[0], writes[1], Step::End, Step::Event(3)],
    ] {
        let played = play(&steps);
        assert_eq!((played.woken.as_slice(), played.again), ([].as_slice(), false));
    }
}

#[test]
fn every_change_by_another_client_wakes() {
    let own = object(3, &[], "New");
    for (steps, woken, again) in [
        (vec![Step::End, Step::Event(2)], vec![2], false),
        (vec![Step::Event(2), Step::End], vec![], true),
        (vec![Step::Event(2), Step::Status(&own, "New"), Step::Event(3), Step::End], vec![], true),
        (vec![Step::Status(&own, "New"), Step::End, Step::Event(2), Step::Event(3), Step::Event(4)], vec![2, 4], false),
    ] {
        let played = play(&steps);
        assert_eq!((played.woken, played.again), (woken, again));
    }
}

/// The response to an own write may be the state that another client has made: of a request that was sent twice, for example.
#[test]
fn an_own_write_that_carries_a_change_of_another_client_wakes() {
    let annotated = object(2, &[("example.com/poke", "1")], "New");
    let other_phase = object(2, &[], "Terminating");
    for response in [&annotated, &other_phase] {
        let played = play(&[Step::Status(response, "New"), Step::End, Step::Event(2)]);
        assert_eq!(played.woken, [2]);
        assert!(play(&[Step::Event(2), Step::Status(response, "New"), Step::End]).again);
    }
}

#[test]
fn only_what_was_written_may_differ() {
    let wakes = |response: &Namespace, note: fn(&OwnWrites<Namespace>, Namespace)| {
        let writes = OwnWrites::default();
        let _in_progress = writes.begin(&object(1, &[("example.com/a", "1")], "Old"), || {});
        note(&writes, response.clone());
        writes.end("a");
        writes.wakes(&response.metadata)
    };
    let marked = object(2, &[("example.com/a", "1"), ("set.example.com/kinds", "ConfigMap")], "Old");
    let changed = object(2, &[("example.com/a", "2"), ("set.example.com/kinds", "ConfigMap")], "Old");
    let mut held = object(2, &[("example.com/a", "1")], "Old");
    held.metadata.finalizers = Some(vec!["example.com/held".to_owned()]);
    assert!(!wakes(&marked, |writes, object| writes.marks(object, "set.example.com/", "example.com/ours")));
    assert!(wakes(&changed, |writes, object| writes.marks(object, "set.example.com/", "example.com/ours")));
    assert!(wakes(&held, |writes, object| writes.marks(object, "set.example.com/", "example.com/ours")));
    let ours = |writes: &OwnWrites<Namespace>, object| writes.marks(object, "set.example.com/", "example.com/held");
    assert!(!wakes(&held, ours));
    assert!(!wakes(&held, OwnWrites::finalizers));
    assert!(wakes(&marked, OwnWrites::finalizers));
}

#[test]
fn a_cached_object_that_is_older_than_an_own_write_is_not_used() {
    let writes = OwnWrites::default();
    let (old, new) = (object(9, &[], "Old"), object(10, &[], "New"));
    let newest = |cached: &Namespace| writes.newest(guarded(cached)).meta().resource_version.clone().unwrap();
    writes.status(new.clone(), &phase("New"));
    assert_eq!(newest(&old), "10");
    assert_eq!(newest(&object(11, &[], "")), "11", "another client has changed it since");
    assert_eq!(newest(&old), "9", "it was forgotten then");

    writes.status(new.clone(), &phase("New"));
    let mut recreated = object(9, &[], "");
    recreated.metadata.uid = Some("v".to_owned());
    assert_eq!(newest(&recreated), "9", "another object of the same name");

    writes.status(new.clone(), &phase("New"));
    writes.wakes(&new.metadata);
    assert_eq!(newest(&old), "9", "the cache has held it");
    writes.status(new.clone(), &phase("New"));
    writes.forget("a");
    assert_eq!(newest(&old), "9");
    writes.status(new, &phase("New"));
    writes.retain(|name| name != "a");
    assert_eq!(newest(&old), "9");
    assert!(writes.all().is_empty());
}

#[test]
fn memory_is_bounded() {
    let writes = OwnWrites::default();
    let _in_progress = writes.begin(&object(1, &[], "Old"), || {});
    for version in 2..200 {
        writes.status(object(version, &[], "New"), &phase("New"));
        writes.wakes(&object(version + 1000, &[], "").metadata);
    }
    let all = writes.all();
    assert_eq!((all["a"].awaited.len(), all["a"].held_back.len()), (AWAITED, HELD_BACK));
}
