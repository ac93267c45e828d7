//! Words that are public: a value that is one of them is hidden where it is, and not in other files. Otherwise the author of one object could
//! blank these words everywhere.

use std::collections::HashSet;

use chandler_api::{ConditionType, Reason};
use serde_json::Value;

use super::{LAST_APPLIED, OPAQUE};

/// The longest text that counts as one word, in bytes.
const LONGEST: usize = 128;
/// Words of Kubernetes and of logs that are not in an object of the installation.
const KUBERNETES: &str = "AlreadyExists BackOff CrashLoopBackOff ErrImagePull ImagePullBackOff ContainerCreating CreateContainerConfigError \
    CreateContainerError PodInitializing ContainersReady Initialized PodScheduled Unschedulable OOMKilled Completed Terminating Terminated \
    Evicted FailedScheduling FailedMount FailedCreate Scheduled Successful Unhealthy Succeeded NodeNotReady NotFound NotReady Forbidden \
    Unauthorized Conflict InternalError ServiceUnavailable TooManyRequests RequestTimeout DeadlineExceeded ReplicaSet StatefulSet DaemonSet CronJob \
    ConfigMap Endpoints EndpointSlice NetworkPolicy PersistentVolume PersistentVolumeClaim StorageClass ResourceVersion involvedObject \
    BestEffort Burstable Guaranteed IfNotPresent ClusterFirst RollingUpdate localhost 127.0.0.1 application/json kubernetes.default.svc \
    kube-system kube-public kube-node-lease kube-root-ca.crt kube-apiserver kube-controller-manager kubelet timestamp message connection \
    refused reconcile reconciled reconciling started starting finished waiting retrying successfully timeout exceeded applied installed";

/// The words.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary(HashSet<String>);

impl Vocabulary {
    /// The words of Kubernetes, and every word of the objects of an installation in this namespace: everybody may read them.
    pub fn published(system_namespace: &str) -> Self {
        let mut words = Self::default();
        words.add_words(KUBERNETES);
        for reason in Reason::ALL {
            words.add(reason.as_str());
        }
        for condition in ConditionType::ALL {
            words.add(condition.as_str());
        }
        // A file in this program that is wrong is reported by other commands; then only fewer words are public.
        let objects = chandler_manifests::installation(system_namespace).unwrap_or_default();
        for object in &objects {
            words.add_all(object);
        }
        words
    }

    /// The names of objects, which are shown in any case: their kinds, names and namespaces.
    pub fn add_names(&mut self, value: &Value) {
        match value {
            Value::Array(elements) => elements.iter().for_each(|element| self.add_names(element)),
            Value::Object(members) => {
                let metadata = members.get("metadata").and_then(Value::as_object);
                let named = ["name", "namespace"].iter().filter_map(|name| metadata?.get(*name));
                let typed = ["kind", "apiVersion"].iter().filter_map(|name| members.get(*name));
                named.chain(typed).filter_map(Value::as_str).for_each(|name| self.add(name));
                let is_shown = |name: &str| !OPAQUE.contains(&name) && name != "annotations" && name != LAST_APPLIED;
                members.iter().filter(|(name, _)| is_shown(name)).for_each(|(_, member)| self.add_names(member));
            }
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Whether a value is public, in any spelling.
    pub fn contains(&self, text: &str) -> bool {
        text.len() <= LONGEST && self.0.contains(&text.to_ascii_lowercase())
    }

    fn add_all(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.add_words(text),
            Value::Array(elements) => elements.iter().for_each(|element| self.add_all(element)),
            Value::Object(members) => {
                for (name, member) in members {
                    self.add_words(name);
                    self.add_all(member);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The whole text, its words, and their parts.
    fn add_words(&mut self, text: &str) {
        self.add(text);
        for word in text.split(char::is_whitespace) {
            self.add(word.trim_matches(|c: char| !c.is_alphanumeric()));
            word.split(|c: char| !c.is_alphanumeric()).for_each(|part| self.add(part));
            word.split(['/', ':', '=', '"', '\'', '`', ',']).for_each(|part| self.add(part));
        }
    }

    fn add(&mut self, text: &str) {
        if !text.is_empty() && text.len() <= LONGEST {
            self.0.insert(text.to_ascii_lowercase());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_published_is_public_and_what_users_choose_is_not() {
        let mut words = Vocabulary::published("chandler-system");
        words.add_names(&json!([{"kind": "Pod", "metadata": {"name": "harbour-0", "annotations": {"metadata": {"name": "not-a-name"}}},
            "spec": {"config": {"metadata": {"name": "hunter2-hunter2"}}}}]));
        for word in [
            "chandler",
            "chandler-system",
            "Progressing",
            "PROGRESSING",
            "ClusterRoleBinding",
            "core.rukpak.io",
            "core.rukpak.io/v1alpha2",
            "bundledeployments.core.rukpak.io",
            "CrashLoopBackOff",
            "PermissionsMissing",
            "harbour-0",
        ] {
            assert!(words.contains(word), "{word}");
        }
        for word in ["hunter2-hunter2", "not-a-name", "correct-horse-battery", ""] {
            assert!(!words.contains(word), "{word}");
        }
    }
}
