//! Policies for the namespace of a case, and waiting until the server enforces them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Answer, Http, Scope, http::PATIENCE, objects::config_map};

pub(super) const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
pub(super) const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

/// A ConfigMap of this name is denied as soon as a policy is in force.
const PROBE: &str = "policy-probe";

/// A policy in the namespace of a case.
pub(super) struct Rule<'a> {
    scope: &'a Scope,
    pub(super) name: String,
}

/// The rule of a policy about a resource.
pub(super) fn about(group: &str, resource: &str, operations: &[&str]) -> Value {
    json!({"apiGroups": [group], "apiVersions": ["*"], "operations": operations, "resources": [resource]})
}

/// A policy about ConfigMaps with these validations.
pub(super) async fn enforce(scope: &Scope, validations: Value) -> Rule<'_> {
    enforce_with(scope, json!({"validations": validations}), json!({})).await
}

/// A policy with these members of its specification, about ConfigMaps unless it says otherwise, and its binding with these. Returns
/// when the server enforces it in the namespace of the case, and nowhere else.
pub(super) async fn enforce_with(scope: &Scope, policy: Value, binding: Value) -> Rule<'_> {
    let rule = Rule { scope, name: scope.name("rule") };
    let namespace = scope.namespace().await;
    let mut spec = json!({"matchConstraints": {"resourceRules": [about("", "configmaps", &["*"])]}, "validations": []});
    merge(&mut spec, policy);
    let mut probe = about("", "configmaps", &["CREATE"]);
    probe["resourceNames"] = json!([PROBE]);
    let constraints = &mut spec["matchConstraints"];
    constraints["resourceRules"].as_array_mut().unwrap().push(probe.clone());
    let mut selector = constraints["namespaceSelector"].take();
    if selector.is_null() {
        selector = json!({});
    }
    merge(&mut selector, json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}}));
    constraints["namespaceSelector"] = selector;
    let probed =
        json!({"expression": format!("!has(request.name) || request.name != '{PROBE}'"), "message": "in force"});
    spec["validations"].as_array_mut().unwrap().insert(0, probed);
    let mut bound = json!({"policyName": rule.name, "validationActions": ["Deny"]});
    merge(&mut bound, binding);
    rule.create(POLICIES, &rule.name, spec).await;
    rule.create(BINDINGS, &rule.name, bound).await;
    let last = json!({"policyName": rule.name, "validationActions": ["Deny"],
        "matchResources": {"resourceRules": [probe]}});
    rule.create(BINDINGS, &format!("{}-probe", rule.name), last).await;
    rule.until(scope.http(), true).await;
    rule
}

impl Rule<'_> {
    async fn create(&self, collection: &str, name: &str, spec: Value) {
        self.scope.remove_later(format!("{collection}/{name}"));
        let object = self.scope.mark(json!({"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name},
            "kind": if collection == POLICIES { "ValidatingAdmissionPolicy" } else { "ValidatingAdmissionPolicyBinding" },
            "spec": spec}));
        self.scope.http().post(collection, &object).await.is(201);
    }

    /// Waits until the policy is in force, or no longer.
    async fn until(&self, http: &Http, in_force: bool) {
        let namespace = self.scope.namespace().await;
        let path = format!("/api/v1/namespaces/{namespace}/configmaps?dryRun=All");
        let mut tick = tokio::time::interval(Duration::from_millis(50));
        let waiting = async {
            loop {
                tick.tick().await;
                let answer = http.post(&path, &config_map(PROBE, json!({}))).await;
                if answer.text.contains(&format!("ValidatingAdmissionPolicy '{}'", self.name)) == in_force {
                    return;
                }
            }
        };
        assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "{} is never in force: {in_force}", self.name);
    }

    /// Waits until the policy is no longer enforced after its bindings are removed, and removes it.
    pub(super) async fn end(&self) {
        let http = self.scope.http();
        http.delete(&format!("{BINDINGS}/{}", self.name)).await.ok();
        http.delete(&format!("{BINDINGS}/{}-probe", self.name)).await.ok();
        self.until(http, false).await;
        http.delete(&format!("{POLICIES}/{}", self.name)).await.ok();
    }

    /// The message of a denial after the part that names the policy and its binding.
    #[track_caller]
    pub(super) fn denies(&self, answer: Answer) -> String {
        let body = answer.body.clone();
        let reason = body["reason"].as_str().unwrap_or_default().to_owned();
        let code = u16::try_from(body["code"].as_u64().unwrap_or_default()).unwrap();
        let status = answer.refused(code, &reason);
        let message = status["message"].as_str().unwrap();
        let name = &self.name;
        let head = format!("ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: ");
        let found = message.split_once(&head).unwrap_or_else(|| panic!("{name} did not deny it: {message}"));
        found.1.to_owned()
    }
}

fn merge(into: &mut Value, from: Value) {
    for (field, value) in from.as_object().unwrap() {
        into[field] = value.clone();
    }
}
