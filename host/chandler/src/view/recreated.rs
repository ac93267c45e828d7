//! Objects that were created again after their revision was complete: another client had deleted them, and the controller repaired that. The
//! objects show it themselves, long after the API server has removed the Events about the repair.

use chandler_api::{BundleDeployment, Outcome};
use chandler_core::ObjectKey;
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::{SignedDuration, Timestamp},
};
use serde::Serialize;

use super::{text::one_line, tree::ObjectStatus};

/// The clock of the controller, which ends a revision, may differ from the clock of the API server, which creates objects, by this much.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(30);

/// How many are shown as text.
const SHOWN: usize = 5;

/// An object that was created again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recreated {
    /// The object.
    #[serde(flatten)]
    pub key: ObjectKey,
    /// When it was created again.
    pub time: Time,
    /// Whether other objects were deleted with it, which the controller cannot restore.
    pub data_lost: bool,
}

impl Recreated {
    /// The repair on one line.
    fn line(&self) -> String {
        let lost = if self.data_lost {
            "; its deletion deleted all of its custom resources, which only a backup restores"
        } else {
            ""
        };
        one_line(&format!("{} at {:.0}{lost}", self.key, self.time.0))
    }
}

/// The objects of the current revision that are newer than its end, the latest first.
pub fn recreated(deployment: &BundleDeployment, objects: &[ObjectStatus]) -> Vec<Recreated> {
    let revision = deployment.status.as_ref().and_then(|status| status.history.last());
    let complete = revision.filter(|revision| revision.outcome == Outcome::Succeeded);
    let Some(end) = complete.and_then(|revision| revision.completion_time.as_ref()) else { return Vec::new() };
    let is_later = |created: Timestamp| created.duration_since(end.0) > CLOCK_SKEW;
    let again = |object: &ObjectStatus| {
        let time = object.created.filter(|created| is_later(*created))?;
        let data_lost = object.key.kind == "CustomResourceDefinition" && object.key.group == "apiextensions.k8s.io";
        Some(Recreated { key: object.key.clone(), time: Time(time), data_lost })
    };
    let mut found: Vec<Recreated> = objects.iter().filter_map(again).collect();
    found.sort_by(|a, b| (b.data_lost, &b.time, &a.key).cmp(&(a.data_lost, &a.time, &b.key)));
    found
}

/// The objects as lines. CustomResourceDefinitions are among those that are shown.
pub fn lines(recreated: &[Recreated]) -> Vec<String> {
    let more = recreated.len().saturating_sub(SHOWN);
    let shown = recreated.iter().take(SHOWN).map(Recreated::line);
    shown.chain((more > 0).then(|| format!("and {more} more"))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{super::tree::ObjectHealth, *};

    fn deployment(outcome: &str, end: Value) -> BundleDeployment {
        serde_json::from_value(json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "harbour"},
            "spec": {"installNamespace": "n", "source": {"type": "image"}},
            "status": {"history": [{
                "number": 1, "source": {"type": "image"}, "contentDigest": "", "provisioner": {"class": "c", "digest": "d"},
                "installNamespace": "n", "configDigest": "", "releaseDigest": "", "outcome": outcome, "completionTime": end,
            }]},
        }))
        .unwrap()
    }

    fn object(group: &str, kind: &str, name: &str, created: &str) -> ObjectStatus {
        let key = ObjectKey {
            group: group.into(),
            kind: kind.into(),
            namespace: None,
            name: name.into(),
            version: "v1".into(),
        };
        ObjectStatus { key, health: ObjectHealth::Healthy, message: None, created: created.parse().ok() }
    }

    fn objects() -> Vec<ObjectStatus> {
        let crd = |name, created| object("apiextensions.k8s.io", "CustomResourceDefinition", name, created);
        let mut objects = vec![
            object("", "ConfigMap", "first", "2026-01-01T00:00:10Z"),
            crd("berths.example.com", "2026-01-01T00:00:10Z"),
            crd("ships.example.com", "2026-01-01T02:00:00Z"),
        ];
        objects.extend((3..9).map(|hour| object("", "ConfigMap", "a\u{1b}", &format!("2026-01-01T0{hour}:00:00Z"))));
        objects
    }

    #[test]
    fn objects_that_are_newer_than_their_revision_were_created_again() {
        let found = recreated(&deployment("Succeeded", json!("2026-01-01T00:00:12Z")), &objects());
        insta::assert_snapshot!(lines(&found).join("\n"), @r"
        CustomResourceDefinition.apiextensions.k8s.io ships.example.com at 2026-01-01T02:00:00Z; its deletion deleted all of its custom resources, which only a backup restores
        ConfigMap a\u{001B} at 2026-01-01T08:00:00Z
        ConfigMap a\u{001B} at 2026-01-01T07:00:00Z
        ConfigMap a\u{001B} at 2026-01-01T06:00:00Z
        ConfigMap a\u{001B} at 2026-01-01T05:00:00Z
        and 2 more
        ");
        assert_eq!(found.len(), 7, "{found:?}");
        assert_eq!(found.iter().filter(|object| object.data_lost).count(), 1);
    }

    #[test]
    fn objects_of_a_rollout_or_within_the_skew_of_clocks_are_not() {
        assert_eq!(recreated(&deployment("RollingOut", json!(null)), &objects()), []);
        assert_eq!(recreated(&deployment("Failed", json!("2026-01-01T00:00:12Z")), &objects()), []);
        let late = [object("", "ConfigMap", "late", "2026-01-01T00:00:42Z"), object("", "ConfigMap", "none", "")];
        assert_eq!(recreated(&deployment("Succeeded", json!("2026-01-01T00:00:12Z")), &late), []);
    }
}
