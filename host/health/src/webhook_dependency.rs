//! The writes that must wait, because the API server would call a webhook without ready endpoints.
//!
//! Such a write fails with an internal error of the API server. Waiting reports the cause instead.

use chandler_core::is_custom_group;
use serde_json::Value;

use crate::{
    dependencies::{Dependencies, ServiceName},
    needs::{self, Need},
    reader::Reader,
};

/// A webhook Service that the API server calls when objects of some kinds are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookDependency {
    service: ServiceName,
    caller: String,
    scope: Scope,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Scope {
    /// An admission webhook, called for its rules.
    Rules(Vec<Rule>),
    /// A conversion webhook, called for objects of this group and plural in any version but the storage version.
    Conversion { group: String, plural: String, storage: String },
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    operations: Vec<String>,
}

/// A write request.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// The API group.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// The plural of the kind.
    pub plural: &'a str,
    /// Whether it creates the object; otherwise it updates it.
    pub creates: bool,
}

/// The webhook dependencies that a live object defines.
///
/// Webhooks with selectors or match conditions are left out: whether the API server calls them depends on more than the kind,
/// and a wrong guess could make a release wait for itself.
pub fn webhook_dependencies(live: &Value) -> Vec<WebhookDependency> {
    let object = Reader(live);
    match object.group_kind() {
        ("admissionregistration.k8s.io", _) => object
            .list("/webhooks")
            .filter(|webhook| {
                let empty = |field: &str| match webhook.0.get(field) {
                    None | Some(Value::Null) => true,
                    Some(Value::Array(items)) => items.is_empty(),
                    Some(Value::Object(selector)) => selector.is_empty(),
                    Some(_) => false,
                };
                ["namespaceSelector", "objectSelector", "matchConditions"].into_iter().all(empty)
            })
            .filter_map(|webhook| {
                let alone = serde_json::json!({
                    "apiVersion": live.get("apiVersion"), "kind": live.get("kind"), "webhooks": [webhook.0],
                });
                let Need { service, caller, .. } = needs::of_object(&alone).into_iter().next()?;
                Some(WebhookDependency {
                    service,
                    caller,
                    scope: Scope::Rules(webhook.list("/rules").map(rule).collect()),
                })
            })
            .collect(),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            let storage = object.list("/spec/versions").find(|version| version.flag("/storage"));
            let scope = Scope::Conversion {
                group: object.text("/spec/group").to_owned(),
                plural: object.text("/spec/names/plural").to_owned(),
                storage: storage.map(|version| version.text("/name")).unwrap_or_default().to_owned(),
            };
            let needs = needs::of_object(live).into_iter();
            needs
                .map(|need| WebhookDependency { service: need.service, caller: need.caller, scope: scope.clone() })
                .collect()
        }
        _ => Vec::new(),
    }
}

fn rule(rule: Reader<'_>) -> Rule {
    let texts = |pointer| rule.list(pointer).filter_map(|item| item.0.as_str().map(str::to_owned)).collect();
    Rule {
        groups: texts("/apiGroups"),
        versions: texts("/apiVersions"),
        resources: texts("/resources"),
        operations: texts("/operations"),
    }
}

impl WebhookDependency {
    /// The message about what this write must wait for, if the Service is known to have no ready endpoints.
    ///
    /// Only custom resources wait. A webhook for workloads may apply to its own workload, which must start first.
    pub fn holds(&self, write: Write<'_>, dependencies: &Dependencies) -> Option<String> {
        let holds =
            is_custom_group(write.group) && self.is_called_for(write) && dependencies.lacks_endpoints(&self.service);
        holds.then(|| format!("waits for ready endpoints of {}, which {} calls", self.service, self.caller))
    }

    fn is_called_for(&self, write: Write<'_>) -> bool {
        match &self.scope {
            Scope::Conversion { group, plural, storage } => {
                (write.group, write.plural) == (group, plural) && write.version != storage
            }
            Scope::Rules(rules) => rules.iter().any(|rule| {
                let names = |list: &[String], name: &str| list.iter().any(|item| item == "*" || item == name);
                let operation = if write.creates { "CREATE" } else { "UPDATE" };
                names(&rule.groups, write.group)
                    && names(&rule.versions, write.version)
                    && (names(&rule.resources, write.plural) || rule.resources.iter().any(|resource| resource == "*/*"))
                    && names(&rule.operations, operation)
            }),
        }
    }
}
