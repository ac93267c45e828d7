//! The policies and bindings of a cluster.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use serde_json::Value;

use crate::policies::{
    compile::{Compiled, compile},
    model::{BindingSpec, PolicySpec, read_spec},
};

/// A policy.
#[derive(Debug)]
pub struct Policy {
    /// The name.
    pub name: String,
    /// What it says, or why it cannot be read.
    pub spec: Result<PolicySpec, String>,
    compiled: OnceLock<Compiled>,
}

impl Policy {
    /// Its expressions, compiled when the first request fits; `spec` is its own.
    pub fn compiled(&self, spec: &PolicySpec) -> &Compiled {
        self.compiled.get_or_init(|| compile(spec))
    }
}

/// A binding of a policy.
#[derive(Debug)]
pub struct Binding {
    /// The name.
    pub name: String,
    /// The name of the policy.
    pub policy: String,
    /// What it says, or why it cannot be read.
    pub spec: Result<BindingSpec, String>,
}

/// The policies and bindings of a cluster, each by name. A copy shares them.
#[derive(Clone, Debug, Default)]
pub struct PolicySet {
    policies: BTreeMap<String, Arc<Policy>>,
    bindings: BTreeMap<String, Arc<Binding>>,
    /// The bindings of each policy, by its name.
    bound: BTreeMap<String, Vec<Arc<Binding>>>,
}

impl PolicySet {
    /// Adds or replaces a policy. Its expressions stay compiled if it says the same as before.
    pub fn put_policy(&mut self, object: &Value) {
        let name = name(object);
        let spec = read_spec(object).map_err(|error| error.to_string());
        if self.policies.get(&name).is_some_and(|known| known.spec == spec) {
            return;
        }
        self.policies.insert(name.clone(), Arc::new(Policy { name, spec, compiled: OnceLock::new() }));
    }

    /// Removes a policy.
    pub fn remove_policy(&mut self, object: &Value) {
        self.policies.remove(&name(object));
    }

    /// Replaces all policies.
    pub fn set_policies(&mut self, objects: Vec<&Value>) {
        let kept: Vec<String> = objects.iter().map(|object| name(object)).collect();
        self.policies.retain(|name, _| kept.contains(name));
        for object in objects {
            self.put_policy(object);
        }
    }

    /// Adds or replaces a binding.
    pub fn put_binding(&mut self, object: &Value) {
        self.insert_binding(object);
        self.sort_bindings();
    }

    /// Removes a binding.
    pub fn remove_binding(&mut self, object: &Value) {
        self.bindings.remove(&name(object));
        self.sort_bindings();
    }

    /// Replaces all bindings.
    pub fn set_bindings(&mut self, objects: Vec<&Value>) {
        self.bindings.clear();
        for object in objects {
            self.insert_binding(object);
        }
        self.sort_bindings();
    }

    fn insert_binding(&mut self, object: &Value) {
        let name = name(object);
        let spec = read_spec(object).map_err(|error| error.to_string());
        let policy = object.pointer("/spec/policyName").and_then(Value::as_str).unwrap_or_default().to_owned();
        self.bindings.insert(name.clone(), Arc::new(Binding { name, policy, spec }));
    }

    fn sort_bindings(&mut self) {
        self.bound.clear();
        for binding in self.bindings.values() {
            self.bound.entry(binding.policy.clone()).or_default().push(Arc::clone(binding));
        }
    }

    /// Whether no policy is bound, so that nothing is enforced.
    pub fn is_empty(&self) -> bool {
        self.bindings.is_empty() || self.policies.is_empty()
    }

    /// The policies that are bound, with their bindings.
    pub fn bound(&self) -> impl Iterator<Item = (&Policy, &[Arc<Binding>])> {
        self.policies.values().filter_map(|policy| {
            let bindings = self.bound.get(&policy.name)?;
            Some((policy.as_ref(), bindings.as_slice()))
        })
    }
}

fn name(object: &Value) -> String {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned()
}
