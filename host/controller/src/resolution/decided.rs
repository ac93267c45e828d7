//! Which BundleDeployments the controller wrote for a Resolution: its set, and the members of the set.
//!
//! Any user who may write BundleDeployments can give one a name, labels and owner references, and can change the spec of a member. So
//! membership follows from objects that only the controller writes: the decisions in the system namespace, and the record of the set.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use chandler_api::{BundleDeployment, Resolution};
use chandler_core::Digest;
use kube::{Api, ResourceExt as _};
use parking_lot::Mutex;

use super::decisions::Decisions;
use crate::cluster::Cluster;

/// What the decisions of each Resolution say about its members, by the name of the Resolution. They are read when they are first needed,
/// and when they do not have the answer: decisions never change.
#[derive(Default)]
pub(crate) struct DecidedMembers(Mutex<BTreeMap<String, Arc<Members>>>);

/// The members that the decisions of one Resolution have: their names, and digests of what the decisions say about them.
struct Members {
    uid: Option<String>,
    known: BTreeSet<(String, Digest)>,
}

impl DecidedMembers {
    /// Forgets a Resolution that is gone.
    pub(super) fn forget(&self, resolution: &str) {
        self.0.lock().remove(resolution);
    }

    /// Whether a decision of a Resolution has this member as it is.
    pub(super) async fn has(&self, cluster: &Cluster, resolution: &Resolution, member: &BundleDeployment) -> bool {
        let (name, uid, wanted) = (resolution.name_any(), resolution.uid(), identity(member));
        let known = self.0.lock().get(&name).cloned();
        if known.is_some_and(|known| known.uid == uid && known.known.contains(&wanted)) {
            return true;
        }
        let maps = Api::namespaced(cluster.client.clone(), &cluster.options.system_namespace);
        let decisions = match Decisions::read(&maps, resolution).await {
            Ok(decisions) => decisions,
            Err(error) => {
                tracing::debug!(resolution = name, %error, "the decisions cannot be read, so that no member is known");
                return false;
            }
        };
        let members = decisions.newest_first().flat_map(|decision| decision.manifests.deployments());
        let known: BTreeSet<_> = members.map(|member| identity(&member)).collect();
        let has = known.contains(&wanted);
        self.0.lock().insert(name, Arc::new(Members { uid, known }));
        has
    }
}

/// The name of a member, and the digest of all that a decision says about it. Administrators may set other fields.
fn identity(member: &BundleDeployment) -> (String, Digest) {
    let spec = &member.spec;
    let said = (
        &spec.install_namespace,
        &spec.provisioner_class_name,
        &spec.source,
        &spec.config,
        &spec.service_account,
        spec.collision_protection,
    );
    (member.name_any(), Digest::of_json(&said))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn member(more: &serde_json::Value) -> BundleDeployment {
        let mut object = json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "app"},
            "spec": {"installNamespace": "shop", "source": {"type": "image", "image": {"ref": "example.com/app@sha256:1"}},
                     "serviceAccount": {"name": "deployer", "namespace": "shop"}},
        });
        object["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_member_is_what_a_decision_says_of_it() {
        let decided = identity(&member(&json!({})));
        for (more, same) in [
            (json!({"suspend": true, "rollout": {"historyLimit": 3}, "approval": "Manual"}), true),
            (json!({"source": {"type": "image", "image": {"ref": "example.com/app@sha256:2"}}}), false),
            (json!({"serviceAccount": {"name": "root", "namespace": "shop"}}), false),
            (json!({"installNamespace": "kube-system"}), false),
            (json!({"config": {"watchNamespace": "x"}}), false),
            (json!({"provisionerClassName": "other"}), false),
            (json!({"collisionProtection": "None"}), false),
        ] {
            assert_eq!(identity(&member(&more)) == decided, same, "{more}");
        }
    }
}
