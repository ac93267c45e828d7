//! How many BundleDeployments use a class, and how far the update to its component is.
//!
//! These are counts for people and alerts, from the statuses of the BundleDeployments: they decide nothing, and name none of them.

use chandler_api::{BundleDeployment, ClassUses, ConditionType as Type, NewCondition, Outcome, Reason, UpdatePolicy};

use super::updates;

/// Counts these users of a class, which has this component.
pub fn count<'a>(users: impl IntoIterator<Item = &'a BundleDeployment>, component: &str) -> ClassUses {
    let mut counts = ClassUses::default();
    for deployment in users {
        counts.total += 1;
        let Some(status) = &deployment.status else { continue };
        let current = status.history.last().filter(|current| current.provisioner.digest == component);
        let waits = status.pending_change.as_ref().filter(|pending| {
            pending.provisioner.as_ref().is_some_and(|provisioner| provisioner.new.digest == component)
        });
        let is_refused = || status.warnings.iter().any(|warning| updates::is_failure_of(warning, component));
        match (current.map(|current| current.outcome), waits) {
            (Some(Outcome::Succeeded), _) => counts.updated += 1,
            (Some(Outcome::Failed), _) => counts.failed += 1,
            (Some(_), _) => {}
            (None, Some(pending)) => {
                counts.waiting += 1;
                counts.changing += i64::from(pending.created + pending.changed + pending.removed > 0);
            }
            (None, None) => counts.failed += i64::from(is_refused()),
        }
    }
    counts
}

/// The condition `Updated`; `None` while no BundleDeployment uses the class. `stopped` is the number of updates that failed, so that a staged
/// update stopped.
pub fn condition(uses: &ClassUses, policy: UpdatePolicy, stopped: usize) -> Option<NewCondition> {
    let ClassUses { total, updated, waiting, changing, failed } = *uses;
    if total == 0 {
        return None;
    }
    let staged = policy == UpdatePolicy::Staged;
    let what = if staged { "their turn" } else { "approval" };
    let waits = (waiting > 0).then(|| format!(", {waiting} wait for {what}, of which {changing} would change"));
    let fails = (failed > 0).then(|| format!(", {failed} failed"));
    let mut message = [
        format!("{updated} of {total} BundleDeployments use the component"),
        waits.unwrap_or_default(),
        fails.unwrap_or_default(),
    ]
    .concat();
    Some(if updated == total {
        NewCondition::is_true(Type::Updated, Reason::UpdateComplete, message)
    } else if stopped > 0 {
        message += "; the update stopped, and those that were updated go back to their earlier component";
        NewCondition::is_false(Type::Updated, Reason::UpdateStopped, message)
    } else if failed > 0 || waiting > 0 && !staged {
        NewCondition::is_false(Type::Updated, Reason::UpdatePending, message)
    } else {
        NewCondition::is_false(Type::Updated, Reason::UpdateInProgress, message)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn user(status: &Value) -> BundleDeployment {
        let object = json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "a"},
            "spec": {"installNamespace": "n", "source": {"type": "image"}, "provisionerClassName": "c"}, "status": status,
        });
        serde_json::from_value(object).unwrap()
    }

    fn at(component: &str, outcome: &str) -> Value {
        json!([{"number": 1, "generation": 1, "source": {"type": "image"}, "contentDigest": "",
                "provisioner": {"class": "c", "digest": component}, "installNamespace": "n", "configDigest": "",
                "releaseDigest": "", "outcome": outcome}])
    }

    fn waits(changed: i64) -> Value {
        json!({"digest": "d", "releaseDigest": "r", "created": 0, "changed": changed, "removed": 0,
               "provisioner": {"new": {"class": "c", "digest": "new"}}})
    }

    #[test]
    fn each_user_counts_once() {
        let refused = json!([{"code": "ProvisionerUpdateFailed", "message": "to (new) fails: it trapped"}]);
        let refused_before = json!([{"code": "ProvisionerUpdateFailed", "message": "to (older) fails: it trapped"}]);
        let users = [
            json!(null),
            json!({"history": at("new", "Succeeded")}),
            json!({"history": at("new", "Succeeded"), "pendingChange": waits(1)}),
            json!({"history": at("new", "RollingOut")}),
            json!({"history": at("new", "Failed")}),
            json!({"history": at("old", "Succeeded")}),
            json!({"history": at("old", "Succeeded"), "pendingChange": waits(0)}),
            json!({"history": at("old", "Succeeded"), "pendingChange": waits(2)}),
            json!({"history": at("old", "Succeeded"), "warnings": refused}),
            json!({"history": at("old", "Succeeded"), "warnings": refused_before}),
        ];
        let users: Vec<BundleDeployment> = users.iter().map(user).collect();
        let counts = count(&users, "new");
        assert_eq!(counts, ClassUses { total: 10, updated: 2, waiting: 2, changing: 1, failed: 2 });
    }

    #[test]
    fn the_condition_says_what_the_update_waits_for() {
        let line = |uses: ClassUses, policy, stopped| {
            let found = condition(&uses, policy, stopped);
            found.map_or_else(|| "none".to_owned(), |it| format!("{}/{}: {}", it.status, it.reason, it.message))
        };
        let uses =
            |total, updated, waiting, failed| ClassUses { total, updated, waiting, changing: waiting / 2, failed };
        let manual = UpdatePolicy::Manual;
        insta::assert_snapshot!(
            [
                line(uses(0, 0, 0, 0), manual, 0),
                line(uses(3, 3, 0, 0), manual, 0),
                line(uses(9, 3, 4, 0), manual, 0),
                line(uses(9, 3, 4, 2), manual, 0),
                line(uses(9, 3, 0, 0), UpdatePolicy::Automatic, 0),
                line(uses(9, 3, 6, 0), UpdatePolicy::Staged, 0),
                line(uses(9, 3, 5, 1), UpdatePolicy::Staged, 1),
            ]
            .join("\n"),
            @r"
        none
        True/UpdateComplete: 3 of 3 BundleDeployments use the component
        False/UpdatePending: 3 of 9 BundleDeployments use the component, 4 wait for approval, of which 2 would change
        False/UpdatePending: 3 of 9 BundleDeployments use the component, 4 wait for approval, of which 2 would change, 2 failed
        False/UpdateInProgress: 3 of 9 BundleDeployments use the component
        False/UpdateInProgress: 3 of 9 BundleDeployments use the component, 6 wait for their turn, of which 3 would change
        False/UpdateStopped: 3 of 9 BundleDeployments use the component, 5 wait for their turn, of which 2 would change, 1 failed; the update stopped, and those that were updated go back to their earlier component
        "
        );
    }
}
