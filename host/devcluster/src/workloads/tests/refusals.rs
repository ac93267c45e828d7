use std::collections::HashMap;

use serde_json::json;

use crate::workloads::{
    action::Action,
    fields::{condition, text},
    kind::{Key, Kind},
    model::{Model, spec},
    reconcile::reconcile,
    world::World,
};

/// A rejected request is reported in the status before it is retried, and the report is removed when it succeeds.
#[test]
fn rejected_requests_are_reported_in_the_status() {
    let why = "pods \"web-\" is forbidden: exceeded quota";
    for (kind, condition_type, reason) in [
        (Kind::ReplicaSet, "ReplicaFailure", "FailedCreate"),
        (Kind::Deployment, "Progressing", "ReplicaSetCreateError"),
    ] {
        let mut model = Model::new();
        let more = json!({"replicas": 1, "progressDeadlineSeconds": 600});
        let key = model.create(kind, spec("web", "nginx", &more));
        let refusals: HashMap<Key, String> = [(key.clone(), why.to_owned())].into();
        let world = World { cache: &model.cache, rules: &model.rules, now: model.now, refusals: &refusals };
        let decision = reconcile(&world, kind, model.get(&key));
        let [Action::Status { change, .. }, .., Action::Create { .. }] = decision.actions.as_slice() else {
            panic!("the status first, then another try: {:?}", decision.actions)
        };
        let told = condition(change, condition_type).unwrap();
        assert_eq!(text(told, "/reason"), reason);
        assert!(text(told, "/message").ends_with(why), "{told}");
        let change = change.clone();
        model.change(&key, &change);
        model.settle();
        let told = condition(model.get(&key), condition_type).map(|told| text(told, "/reason")).unwrap_or_default();
        assert_ne!(told, reason, "it was let in at last");
    }
}
