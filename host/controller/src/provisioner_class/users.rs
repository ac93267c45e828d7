//! Which BundleDeployments a class concerns.

use chandler_api::BundleDeployment;

/// Whether a change of a class may concern a BundleDeployment: it names the class, or none, so that the class is detected.
pub(crate) fn may_use(deployment: &BundleDeployment, class: &str) -> bool {
    let named = deployment.spec.provisioner_class_name.as_str();
    named.is_empty() || named == class
}

/// Whether a BundleDeployment uses a class: it names the class, or names none, and the class was detected for its content or for the
/// release that is installed.
pub(super) fn uses(deployment: &BundleDeployment, class: &str) -> bool {
    if !deployment.spec.provisioner_class_name.is_empty() {
        return deployment.spec.provisioner_class_name == class;
    }
    let Some(status) = &deployment.status else { return false };
    let installed = status.history.last().map(|revision| &revision.provisioner);
    status.provisioner.iter().chain(installed).any(|provisioner| provisioner.class == class)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn deployment(spec: &Value, status: &Value) -> BundleDeployment {
        let mut object = json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "a"},
            "spec": {"installNamespace": "n", "source": {"type": "image"}}, "status": status,
        });
        object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_class_is_used_where_it_is_named_or_was_detected() {
        let (named, other, none) =
            (json!({"provisionerClassName": "c"}), json!({"provisionerClassName": "o"}), json!({}));
        let detected = json!({"provisioner": {"class": "c", "digest": ""}});
        let provisioner = json!({"class": "c", "digest": ""});
        let revision = json!({"number": 1, "generation": 1, "source": {"type": "image"}, "contentDigest": "", "provisioner": provisioner,
                              "installNamespace": "n", "configDigest": "", "releaseDigest": "", "outcome": "Succeeded"});
        let installed = json!({"provisioner": {"class": "o", "digest": ""}, "history": [revision]});
        for (spec, status, used, concerned) in [
            (&named, &json!(null), true, true),
            (&other, &detected, false, false),
            (&none, &json!(null), false, true),
            (&none, &detected, true, true),
            (&none, &installed, true, true),
            (&none, &json!({"provisioner": {"class": "o", "digest": ""}}), false, true),
        ] {
            let deployment = deployment(spec, status);
            assert_eq!((uses(&deployment, "c"), may_use(&deployment, "c")), (used, concerned), "{spec} {status}");
        }
    }
}
