//! Members of a set that name what they depend on. Pure.

use std::collections::BTreeMap;

use chandler_core::{ObjectKey, order::DEPENDS_ON_ANNOTATION};
use serde_json::Value;

use crate::pure::{desired::Desired, live::annotation};

/// The BundleDeployments behind `from` whose dependencies are ready, all of them. They need not wait for the other objects of earlier
/// stages. One that names no dependency, or one that is not in the release, waits for its stage.
pub(crate) fn unblocked(desired: &[Desired], from: usize, is_ready: impl Fn(usize) -> bool) -> Vec<usize> {
    let members = desired.iter().enumerate().filter(|(_, desired)| is_member(&desired.key));
    let by_name: BTreeMap<&str, usize> = members.map(|(index, desired)| (desired.key.name.as_str(), index)).collect();
    let is_unblocked = |desired: &Desired| {
        let Some(names) = depends_on(&desired.value) else { return false };
        names.iter().all(|name| by_name.get(name).is_some_and(|index| is_ready(*index)))
    };
    by_name.values().copied().filter(|index| *index >= from && desired.get(*index).is_some_and(is_unblocked)).collect()
}

/// The names of the BundleDeployments that an object depends on, if it names any.
pub(crate) fn depends_on(object: &Value) -> Option<Vec<&str>> {
    annotation(object, DEPENDS_ON_ANNOTATION).map(|names| names.split(',').map(str::trim).collect())
}

/// Whether an object can be a member of a set.
pub(crate) fn is_member(key: &ObjectKey) -> bool {
    key.group == "core.rukpak.io" && key.kind == "BundleDeployment"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pure::desired::tests::desired;

    #[test]
    fn a_member_waits_for_its_dependencies_only() {
        let object = |kind: &str, name: &str, depends_on: Option<&str>| {
            let annotations = match depends_on {
                Some(names) => json!({DEPENDS_ON_ANNOTATION: names}),
                None => json!({}),
            };
            let value = json!({"apiVersion": "core.rukpak.io/v1alpha2", "kind": kind,
                               "metadata": {"name": name, "annotations": annotations}});
            desired(&value, false)
        };
        let member = |name: &str, depends_on: Option<&str>| object("BundleDeployment", name, depends_on);
        let objects = [
            member("broken", None),
            member("database", None),
            member("shop", Some("database")),
            member("both", Some("database, broken")),
            member("alone", None),
            member("strange", Some("elsewhere")),
            member("empty", Some("")),
            object("Other", "database-user", Some("database")),
            member("later", Some("shop,database")),
        ];
        let unblocked = |from: usize, ready: &[usize]| -> Vec<&str> {
            let mut names: Vec<&str> = unblocked(&objects, from, |index| ready.contains(&index))
                .into_iter()
                .map(|index| objects[index].key.name.as_str())
                .collect();
            names.sort_unstable();
            names
        };
        assert_eq!(unblocked(2, &[]), [""; 0]);
        assert_eq!(unblocked(2, &[1]), ["shop"]);
        assert_eq!(unblocked(2, &[1, 2]), ["later", "shop"]);
        assert_eq!(unblocked(3, &[0, 1]), ["both"]);
    }
}
