//! Whether the package of a deleted PlatformOperator is uninstalled.

use chandler_api::{BundleDeployment, ConditionType, Resolution, find_condition};

use super::resolution;

/// The known state of a package whose PlatformOperator is being deleted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Removal<'a> {
    /// The package.
    pub package: &'a str,
    /// Whether another PlatformOperator wants it.
    pub is_wanted: bool,
    /// Whether it is to stay installed: the PlatformOperator is deleted with `--cascade=orphan`.
    pub is_orphaned: bool,
    /// The Resolution of all PlatformOperators.
    pub resolution: Option<&'a Resolution>,
    /// The BundleDeployment of the set that installs the package.
    pub deployment: Option<&'a BundleDeployment>,
    /// Whether the bundle of another package of the set contains the PlatformOperator. That package is uninstalled only once the
    /// PlatformOperator is gone, and the set may keep `package` until then: each would wait for the other for ever.
    pub is_bundled: bool,
}

/// Whether the finalizer may go: nothing that the PlatformOperator installed is left, or something else needs it.
pub fn is_complete(removal: &Removal<'_>) -> bool {
    let Some(resolution) = removal.resolution else { return removal.is_orphaned || removal.deployment.is_none() };
    let asks = resolution::asks_for(resolution, removal.package);
    if removal.is_wanted {
        return true;
    }
    if removal.is_orphaned {
        return !asks || resolution::kept_packages(resolution).contains(removal.package);
    }
    let is_deleted = resolution.metadata.deletion_timestamp.is_some();
    if removal.is_bundled {
        // What uninstalls the bundle uninstalls the package: the set with its Resolution, or the set without the package.
        return is_deleted || !asks;
    }
    if is_deleted || asks {
        return false;
    }
    let members = resolution.status.iter().flat_map(|status| &status.members);
    if members.into_iter().any(|member| member.package == removal.package) {
        // Another package needs it, if this is the answer to the question without it.
        return is_decided(resolution);
    }
    removal.deployment.is_none()
}

/// Whether the members in the status are the answer to the spec.
fn is_decided(resolution: &Resolution) -> bool {
    let Some(status) = &resolution.status else { return false };
    let resolved = find_condition(&status.conditions, ConditionType::Resolved);
    let rolled_back = resolution.spec.output.as_ref().and_then(|output| output.resolve_set.as_ref()?.to_decision);
    let is_current = status.observed_generation == resolution.metadata.generation;
    let is_resolved = resolved.is_some_and(|it| it.status == "True");
    is_current && is_resolved && status.pending.is_none() && !resolution.spec.suspend && rolled_back.is_none()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn resolution(packages: &[&str], members: &[&str], more: &Value) -> Resolution {
        let packages: Vec<Value> = packages.iter().map(|name| json!({"name": name})).collect();
        let member = |name: &&str| json!({"package": name, "bundle": "b", "version": "1.0.0", "image": "i"});
        let members: Vec<Value> = members.iter().map(member).collect();
        let resolved = json!({"type": "Resolved", "status": "True", "reason": "PackagesResolved", "message": "",
                              "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let mut object = json!({
            "apiVersion": "core.deppy.io/v1alpha1", "kind": "Resolution", "metadata": {"name": "all", "generation": 2},
            "spec": {"packages": packages},
            "status": {"observedGeneration": 2, "conditions": [resolved], "members": members},
        });
        for (pointer, value) in more.as_object().into_iter().flatten() {
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            object.pointer_mut(parent).unwrap()[key] = value.clone();
        }
        serde_json::from_value(object).unwrap()
    }

    fn installed() -> BundleDeployment {
        let spec = json!({"installNamespace": "a", "provisionerClassName": "b", "source": {"type": "image"}});
        BundleDeployment::new("x", serde_json::from_value(spec).unwrap())
    }

    fn removal<'a>(resolution: Option<&'a Resolution>, deployment: Option<&'a BundleDeployment>) -> Removal<'a> {
        Removal { package: "x", resolution, deployment, ..Removal::default() }
    }

    #[test]
    fn a_platform_operator_of_the_set_itself_waits_for_nothing_that_waits_for_it() {
        let deployment = installed();
        let deleted = json!({"/metadata/deletionTimestamp": "2026-01-01T00:00:00Z"});
        let bundled = |resolution: &Resolution| {
            is_complete(&Removal { is_bundled: true, ..removal(Some(resolution), Some(&deployment)) })
        };
        for (asked, deleted, expected) in [
            (&["x", "y"][..], &json!({}), false),
            (&["y"], &json!({}), true),
            (&["x", "y"], &deleted, true),
            (&["y"], &deleted, true),
        ] {
            assert_eq!(bundled(&resolution(asked, &["x", "y"], deleted)), expected, "{asked:?} {deleted}");
        }
    }

    #[test]
    fn the_finalizer_goes_once_the_package_is_uninstalled_or_needed() {
        let deployment = installed();
        let installed = Some(&deployment);
        let none = json!({});
        let answered = |members: &[&str]| resolution(&["y"], members, &none);
        let gone = answered(&["y"]);
        assert!(!is_complete(&removal(Some(&gone), installed)), "the BundleDeployment is there");
        assert!(is_complete(&removal(Some(&gone), None)));
        assert!(is_complete(&removal(Some(&answered(&["x", "y"])), installed)), "another package needs it");
        assert!(is_complete(&Removal { is_wanted: true, ..removal(Some(&gone), installed) }));
        assert!(!is_complete(&removal(None, installed)) && is_complete(&removal(None, None)));
        for waiting in [
            resolution(&["x", "y"], &["y"], &none),
            resolution(&["y"], &["x"], &json!({"/status/observedGeneration": 1})),
            resolution(&["y"], &["x"], &json!({"/spec/suspend": true})),
            resolution(&["y"], &["x"], &json!({"/status/conditions": []})),
            resolution(&["y"], &["y"], &json!({"/metadata/deletionTimestamp": "2026-01-01T00:00:00Z"})),
        ] {
            assert!(!is_complete(&removal(Some(&waiting), None)), "{waiting:?}");
        }
        let is_orphaned = |resolution: &Resolution| {
            is_complete(&Removal { is_orphaned: true, ..removal(Some(resolution), installed) })
        };
        assert!(!is_orphaned(&resolution(&["x", "y"], &["x"], &none)), "it is not kept yet");
        assert!(is_orphaned(&resolution(
            &["x", "y"],
            &["x"],
            &json!({"/metadata/annotations": {resolution::KEPT: "x"}})
        )));
    }
}
