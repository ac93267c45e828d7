//! Policies about requests, with a cluster in memory.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    Admission, Attributes, Cluster, Operation, ParamScope, PolicySet, Resource, admission::admit_within,
    evaluation::Budget, model::LabelSelector,
};
use crate::{
    access::{Attributes as Access, Decision, User},
    schema::GroupVersionKind,
};

mod bounds;
mod decisions;
mod matching;
mod properties;

/// A cluster of ConfigMaps and Namespaces, in which the user `boss` may do everything.
#[derive(Default)]
struct Fake {
    namespaces: BTreeMap<String, Value>,
    config_maps: Vec<Value>,
}

impl Cluster for Fake {
    fn namespace(&self, name: &str) -> Option<Value> {
        self.namespaces.get(name).cloned()
    }

    fn equivalents(&self, resource: &Resource, _: &str) -> Vec<(Resource, GroupVersionKind)> {
        let versions = ["v1", "v2"].map(|version| {
            let kind = GroupVersionKind::new("example.com", version, "Toy");
            (Resource::new("example.com", version, "toys"), kind)
        });
        if resource.plural == "toys" { versions.to_vec() } else { Vec::new() }
    }

    fn convert(&self, object: &Value, resource: &Resource, _: &str) -> Option<Value> {
        let mut object = object.clone();
        object["apiVersion"] = format!("{}/{}", resource.group, resource.version).into();
        Some(object)
    }

    fn scope(&self, kind: &GroupVersionKind) -> Option<ParamScope> {
        (kind.kind == "ConfigMap").then_some(ParamScope::Namespaced)
    }

    fn object(&self, _: &GroupVersionKind, namespace: &str, name: &str) -> Option<Value> {
        let named =
            |object: &&Value| object["metadata"]["namespace"] == namespace && object["metadata"]["name"] == name;
        self.config_maps.iter().find(named).cloned()
    }

    fn objects(
        &self,
        _: &GroupVersionKind,
        namespace: Option<&str>,
        selector: &LabelSelector,
        each: &mut dyn FnMut(&Value) -> bool,
    ) {
        let there = |object: &&Value| namespace.is_none_or(|namespace| object["metadata"]["namespace"] == namespace);
        for object in self.config_maps.iter().filter(there) {
            if selector.selects(object) && !each(object) {
                return;
            }
        }
    }

    fn authorize(&self, user: &User, access: &Access) -> Decision {
        let verb = match access {
            Access::Resource(resource) => resource.verb.as_str(),
            Access::NonResource(path) => path.verb.as_str(),
        };
        let account = user.name == "system:serviceaccount:shop:robot" && verb == "get";
        Decision { allowed: user.name == "boss" || account, reason: format!("{} {verb}", user.name) }
    }
}

fn cluster() -> Fake {
    let namespace = |name: &str, labels: Value| {
        let object = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": labels, "managedFields": []}, "status": {"phase": "Active"}});
        (name.to_owned(), object)
    };
    let map = |namespace: &str, name: &str, most: u64| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"most": most.to_string()},
            "metadata": {"namespace": namespace, "name": name, "labels": {"size": name}}})
    };
    Fake {
        namespaces: BTreeMap::from([namespace("shop", json!({"team": "a"})), namespace("yard", json!({}))]),
        config_maps: vec![map("shop", "small", 1), map("shop", "large", 10), map("yard", "other", 5)],
    }
}

/// A policy about toys of version v1, and its binding; with these members of their specifications.
fn set(policy: Value, binding: Value) -> PolicySet {
    let mut set = PolicySet::default();
    let mut object = json!({"metadata": {"name": "rule"}, "spec": {"matchConstraints": {
        "matchPolicy": "Equivalent",
        "resourceRules": [{"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["toys"]}],
    }}});
    merge(&mut object["spec"], policy);
    let mut bound =
        json!({"metadata": {"name": "bound"}, "spec": {"policyName": "rule", "validationActions": ["Deny"]}});
    merge(&mut bound["spec"], binding);
    set.put_policy(&object);
    set.put_binding(&bound);
    set
}

fn merge(into: &mut Value, from: Value) {
    for (field, value) in from.as_object().unwrap() {
        into[field] = value.clone();
    }
}

struct Asked {
    operation: Operation,
    version: &'static str,
    subresource: &'static str,
    namespace: &'static str,
    user: &'static str,
    object: Option<Value>,
    old: Option<Value>,
}

fn toy(size: u64) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Toy", "spec": {"size": size},
        "metadata": {"name": "bear", "namespace": "shop", "labels": {"soft": "yes"}}})
}

fn create(size: u64) -> Asked {
    Asked {
        operation: Operation::Create,
        version: "v1",
        subresource: "",
        namespace: "shop",
        user: "jane",
        object: Some(toy(size)),
        old: None,
    }
}

impl Asked {
    fn ask(&self, set: &PolicySet) -> Admission {
        self.ask_within(Budget::default(), set)
    }

    fn ask_within(&self, budget: Budget, set: &PolicySet) -> Admission {
        let user = User::new(self.user, &["crew"]);
        let attributes = Attributes {
            operation: self.operation,
            kind: GroupVersionKind::new("example.com", self.version, "Toy"),
            resource: Resource::new("example.com", self.version, "toys"),
            subresource: self.subresource,
            namespace: self.namespace,
            name: "bear",
            object: self.object.as_ref(),
            old_object: self.old.as_ref(),
            user: &user,
            dry_run: true,
            options: json!({"kind": "CreateOptions"}),
        };
        admit_within(budget, set, &attributes, &cluster())
    }

    /// The message of the denial without its head; empty if the request is allowed.
    fn denied(&self, set: &PolicySet) -> String {
        let message = self.ask(set).denial.map(|denial| denial.message).unwrap_or_default();
        let head = "ValidatingAdmissionPolicy 'rule' with binding 'bound' denied request: ";
        message.strip_prefix(head).map(str::to_owned).unwrap_or(message)
    }
}

fn holds(expression: &str) -> PolicySet {
    set(json!({"validations": [{"expression": expression}]}), json!({}))
}
