//! Rules about single values, as a table: kind, path, what the value must be.
//!
//! Source: `ValidateXxx` in `k8s.io/kubernetes/pkg/apis/*/validation`.

use serde_json::Value;

use crate::schema::{error::FieldError, names, resources::GroupVersionKind};

/// A rule for a value. Absent values only violate [`Rule::Required`].
#[derive(Clone, Copy)]
pub(super) enum Rule {
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// One of these texts; the error names the list, not its item.
    AllOf(&'static [&'static str]),
    /// A number of at least this.
    AtLeast(i64, &'static str),
    /// A number in a range, both ends included; absent counts as 0 when the last is set.
    Between(i64, i64, &'static str),
    /// A port by number, or by name.
    Port,
    /// A DNS-1123 subdomain, or empty.
    Subdomain,
    /// A DNS-1123 label, or empty.
    Label,
    /// A qualified name; never empty.
    Qualified,
    /// Present and not empty.
    Required(&'static str),
    /// A label selector.
    Selector,
}

use Rule::{AllOf, AtLeast, Between, Label, OneOf, Port, Qualified, Required, Selector, Subdomain};

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const ACCESS_MODES: &[&str] = &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const NOT_NEGATIVE: Rule = AtLeast(0, "must be greater than or equal to 0");
const ABOVE_ZERO: Rule = AtLeast(1, "must be greater than 0");
const PRIORITY: &str = "must be positive and less than 1000";

type Rows = &'static [(&'static str, Rule)];

const TABLE: &[(&str, &str, Rows)] = &[
    (
        "",
        "Service",
        &[
            ("spec.sessionAffinity", OneOf(&["ClientIP", "None"])),
            (
                "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
                Between(1, 86_400, "must be greater than 0 and less than 86400"),
            ),
            ("spec.externalTrafficPolicy", OneOf(&["Cluster", "Local"])),
            ("spec.internalTrafficPolicy", OneOf(&["Cluster", "Local"])),
            ("spec.ipFamilyPolicy", OneOf(&["PreferDualStack", "RequireDualStack", "SingleStack"])),
            ("spec.ipFamilies[]", OneOf(&["IPv4", "IPv6"])),
            ("spec.ports[].protocol", OneOf(PROTOCOLS)),
            ("spec.ports[].appProtocol", Qualified),
        ],
    ),
    (
        "",
        "PersistentVolumeClaim",
        &[
            ("spec.accessModes[]", AllOf(ACCESS_MODES)),
            ("spec.volumeMode", OneOf(&["Block", "Filesystem"])),
            ("spec.storageClassName", Subdomain),
            ("spec.selector", Selector),
        ],
    ),
    (
        "",
        "PersistentVolume",
        &[
            ("spec.accessModes", Required("")),
            ("spec.accessModes[]", AllOf(ACCESS_MODES)),
            ("spec.capacity", Required("")),
            ("spec.persistentVolumeReclaimPolicy", OneOf(&["Delete", "Recycle", "Retain"])),
            ("spec.storageClassName", Subdomain),
            ("spec.volumeMode", OneOf(&["Block", "Filesystem"])),
        ],
    ),
    (
        "storage.k8s.io",
        "StorageClass",
        &[
            ("provisioner", Required("")),
            ("provisioner", Qualified),
            ("reclaimPolicy", OneOf(&["Delete", "Retain"])),
            ("volumeBindingMode", OneOf(&["Immediate", "WaitForFirstConsumer"])),
        ],
    ),
    ("scheduling.k8s.io", "PriorityClass", &[("preemptionPolicy", OneOf(&["Never", "PreemptLowerPriority"]))]),
    (
        "policy",
        "PodDisruptionBudget",
        &[
            ("spec.minAvailable", NOT_NEGATIVE),
            ("spec.maxUnavailable", NOT_NEGATIVE),
            ("spec.selector", Selector),
            ("spec.unhealthyPodEvictionPolicy", OneOf(&["AlwaysAllow", "IfHealthyBudget"])),
        ],
    ),
    (
        "networking.k8s.io",
        "NetworkPolicy",
        &[
            ("spec.podSelector", Selector),
            ("spec.ingress[].ports[].protocol", OneOf(PROTOCOLS)),
            ("spec.ingress[].ports[].port", Port),
            ("spec.ingress[].from[].podSelector", Selector),
            ("spec.ingress[].from[].namespaceSelector", Selector),
            ("spec.egress[].ports[].protocol", OneOf(PROTOCOLS)),
            ("spec.egress[].ports[].port", Port),
            ("spec.egress[].to[].podSelector", Selector),
            ("spec.egress[].to[].namespaceSelector", Selector),
            ("spec.policyTypes[]", OneOf(&["Egress", "Ingress"])),
        ],
    ),
    (
        "networking.k8s.io",
        "Ingress",
        &[("spec.rules[].host", Subdomain), ("spec.tls[].secretName", Subdomain), ("spec.ingressClassName", Subdomain)],
    ),
    (
        "autoscaling",
        "HorizontalPodAutoscaler",
        &[
            ("spec.scaleTargetRef.kind", Required("")),
            ("spec.scaleTargetRef.name", Required("")),
            ("spec.behavior.scaleDown.stabilizationWindowSeconds", AtLeast(0, "must be greater than or equal to zero")),
            ("spec.behavior.scaleUp.stabilizationWindowSeconds", AtLeast(0, "must be greater than or equal to zero")),
        ],
    ),
    (
        "apiregistration.k8s.io",
        "APIService",
        &[
            ("spec.service.namespace", Required("")),
            ("spec.service.name", Required("")),
            ("spec.service.port", Between(1, 65_535, "port is not valid: must be between 1 and 65535, inclusive")),
            ("spec.groupPriorityMinimum", Between(1, 20_000, "must be positive and less than 20000")),
            ("spec.versionPriority", Between(1, 1000, PRIORITY)),
        ],
    ),
    (
        "coordination.k8s.io",
        "Lease",
        &[("spec.leaseDurationSeconds", ABOVE_ZERO), ("spec.leaseTransitions", NOT_NEGATIVE)],
    ),
    (
        "discovery.k8s.io",
        "EndpointSlice",
        &[
            ("addressType", OneOf(&["FQDN", "IPv4", "IPv6"])),
            ("endpoints[].addresses", Required("must contain at least 1 address")),
            ("endpoints[].hostname", Label),
            ("ports[].protocol", OneOf(PROTOCOLS)),
            ("ports[].appProtocol", Qualified),
        ],
    ),
    (
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicy",
        &[
            ("spec.failurePolicy", OneOf(&["Fail", "Ignore"])),
            ("spec.matchConstraints.matchPolicy", OneOf(&["Equivalent", "Exact"])),
            ("spec.matchConstraints.namespaceSelector", Selector),
            ("spec.matchConstraints.objectSelector", Selector),
            ("spec.validations[].expression", Required("expression is not specified")),
            ("spec.validations[].reason", OneOf(&["Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized"])),
            ("spec.variables[].expression", Required("expression is not specified")),
        ],
    ),
    (
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicyBinding",
        &[
            ("spec.policyName", Required("")),
            ("spec.policyName", Subdomain),
            ("spec.validationActions", Required("at least one validation action is required")),
            ("spec.validationActions[]", OneOf(&["Audit", "Deny", "Warn"])),
            ("spec.matchResources.namespaceSelector", Selector),
            ("spec.matchResources.objectSelector", Selector),
        ],
    ),
    (
        "batch",
        "CronJob",
        &[
            ("spec.startingDeadlineSeconds", NOT_NEGATIVE),
            ("spec.successfulJobsHistoryLimit", NOT_NEGATIVE),
            ("spec.failedJobsHistoryLimit", NOT_NEGATIVE),
        ],
    ),
    (
        "apps",
        "Deployment",
        &[
            ("spec.strategy.type", OneOf(&["Recreate", "RollingUpdate"])),
            ("spec.minReadySeconds", NOT_NEGATIVE),
            ("spec.revisionHistoryLimit", NOT_NEGATIVE),
            ("spec.progressDeadlineSeconds", NOT_NEGATIVE),
        ],
    ),
    (
        "apps",
        "DaemonSet",
        &[
            ("spec.updateStrategy.type", OneOf(&["OnDelete", "RollingUpdate"])),
            ("spec.minReadySeconds", NOT_NEGATIVE),
            ("spec.revisionHistoryLimit", NOT_NEGATIVE),
        ],
    ),
    (
        "apps",
        "StatefulSet",
        &[
            ("spec.podManagementPolicy", OneOf(&["OrderedReady", "Parallel"])),
            ("spec.updateStrategy.type", OneOf(&["OnDelete", "RollingUpdate"])),
            ("spec.updateStrategy.rollingUpdate.partition", NOT_NEGATIVE),
            ("spec.minReadySeconds", NOT_NEGATIVE),
            ("spec.serviceName", Label),
        ],
    ),
    (
        "rbac.authorization.k8s.io",
        "ClusterRole",
        &[
            (
                "aggregationRule.clusterRoleSelectors",
                Required("at least one clusterRoleSelector required if aggregationRule is non-nil"),
            ),
            ("aggregationRule.clusterRoleSelectors[]", Selector),
        ],
    ),
];

/// The `spec` of Pods.
const POD: Rows = &[
    ("dnsPolicy", OneOf(&["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"])),
    ("tolerations[].operator", OneOf(&["", "Equal", "Exists", "Gt", "Lt"])),
    ("tolerations[].effect", OneOf(&["", "NoExecute", "NoSchedule", "PreferNoSchedule"])),
    ("serviceAccountName", Subdomain),
    ("priorityClassName", Subdomain),
    ("hostname", Label),
    ("subdomain", Label),
    ("topologySpreadConstraints[].maxSkew", ABOVE_ZERO),
    ("topologySpreadConstraints[].topologyKey", Required("can not be empty")),
    ("topologySpreadConstraints[].whenUnsatisfiable", OneOf(&["DoNotSchedule", "ScheduleAnyway"])),
    ("topologySpreadConstraints[].labelSelector", Selector),
    (
        "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
        Required("must have at least one node selector term"),
    ),
    (
        "affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[].weight",
        Between(1, 100, "must be in the range 1-100"),
    ),
    (
        "affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[].weight",
        Between(1, 100, "must be in the range 1-100"),
    ),
    ("securityContext.seccompProfile.type", OneOf(&["Localhost", "RuntimeDefault", "Unconfined"])),
    ("securityContext.fsGroupChangePolicy", OneOf(&["Always", "OnRootMismatch"])),
    ("volumes[].secret.secretName", Required("")),
    ("volumes[].secret.items[].key", Required("")),
    ("volumes[].secret.items[].path", Required("")),
    ("volumes[].configMap.name", Required("")),
    ("volumes[].configMap.items[].key", Required("")),
    ("volumes[].configMap.items[].path", Required("")),
    ("volumes[].persistentVolumeClaim.claimName", Required("")),
    ("volumes[].hostPath.path", Required("")),
    (
        "volumes[].hostPath.type",
        OneOf(&["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"]),
    ),
];

/// Containers.
const CONTAINER: Rows = &[
    ("terminationMessagePolicy", OneOf(&["FallbackToLogsOnError", "File"])),
    ("livenessProbe.httpGet.port", Port),
    ("livenessProbe.tcpSocket.port", Port),
    ("readinessProbe.httpGet.port", Port),
    ("readinessProbe.tcpSocket.port", Port),
    ("startupProbe.httpGet.port", Port),
    ("startupProbe.tcpSocket.port", Port),
    ("livenessProbe.initialDelaySeconds", NOT_NEGATIVE),
    ("livenessProbe.timeoutSeconds", NOT_NEGATIVE),
    ("livenessProbe.periodSeconds", NOT_NEGATIVE),
    ("livenessProbe.successThreshold", NOT_NEGATIVE),
    ("livenessProbe.failureThreshold", NOT_NEGATIVE),
    ("readinessProbe.initialDelaySeconds", NOT_NEGATIVE),
    ("readinessProbe.timeoutSeconds", NOT_NEGATIVE),
    ("readinessProbe.periodSeconds", NOT_NEGATIVE),
    ("readinessProbe.successThreshold", NOT_NEGATIVE),
    ("readinessProbe.failureThreshold", NOT_NEGATIVE),
    ("lifecycle.preStop.exec.command", Required("")),
    ("lifecycle.postStart.exec.command", Required("")),
    ("livenessProbe.exec.command", Required("")),
    ("readinessProbe.exec.command", Required("")),
    ("startupProbe.exec.command", Required("")),
    ("env[].valueFrom.fieldRef.fieldPath", Required("")),
    ("env[].valueFrom.secretKeyRef.key", Required("")),
    ("env[].valueFrom.configMapKeyRef.key", Required("")),
    ("envFrom[].configMapRef.name", Subdomain),
    ("envFrom[].secretRef.name", Subdomain),
    ("envFrom[].configMapRef.name", Required("")),
    ("envFrom[].secretRef.name", Required("")),
];

/// Applies the rules of a kind.
pub(super) fn check(kind: &GroupVersionKind, object: &Value, errors: &mut Vec<FieldError>) {
    for (group, name, rows) in TABLE {
        if *group == kind.group && *name == kind.kind {
            apply(object, "", rows, errors);
        }
    }
}

/// Applies the rules of the `spec` of a Pod at `path`.
pub(super) fn pod(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    apply(spec, path, POD, errors);
}

/// Applies the rules of a container at `path`.
pub(super) fn container(container: &Value, path: &str, errors: &mut Vec<FieldError>) {
    apply(container, path, CONTAINER, errors);
}

fn apply(value: &Value, at: &str, rows: Rows, errors: &mut Vec<FieldError>) {
    for (path, rule) in rows {
        walk(value, at, path, *rule, errors);
    }
}

/// Goes along a path; a step ending in `[]` goes into every item. Nothing is wrong where a parent is absent.
fn walk(value: &Value, at: &str, path: &str, rule: Rule, errors: &mut Vec<FieldError>) {
    let (step, rest) = path.split_once('.').map_or((path, None), |(step, rest)| (step, Some(rest)));
    let (name, items) = step.strip_suffix("[]").map_or((step, false), |name| (name, true));
    let at = if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    let found = value.get(name).unwrap_or(&Value::Null);
    if items {
        for (index, item) in found.as_array().into_iter().flatten().enumerate() {
            let at_item = format!("{at}[{index}]");
            match rest {
                Some(rest) => walk(item, &at_item, rest, rule, errors),
                None if matches!(rule, AllOf(_)) => one(item, &at, rule, errors),
                None => one(item, &at_item, rule, errors),
            }
        }
        return;
    }
    match rest {
        Some(rest) if found.is_object() => walk(found, &at, rest, rule, errors),
        Some(_) => {}
        None => one(found, &at, rule, errors),
    }
}

fn one(value: &Value, at: &str, rule: Rule, errors: &mut Vec<FieldError>) {
    let text = value.as_str();
    let mut invalid = |details: Vec<String>| {
        errors.extend(details.into_iter().map(|detail| FieldError::invalid(&at, value.clone(), detail)));
    };
    match (rule, text) {
        (OneOf(supported) | AllOf(supported), Some(text)) if !supported.contains(&text) => {
            let named = supported.iter().copied().filter(|text| !text.is_empty());
            errors.push(FieldError::not_supported(&at, text, named));
        }
        (Subdomain, Some(text)) if !text.is_empty() => invalid(names::dns1123_subdomain(text)),
        (Label, Some(text)) if !text.is_empty() => invalid(names::dns1123_label(text)),
        (Qualified, Some(text)) if !text.is_empty() => invalid(names::qualified_name(&text.to_lowercase())),
        (Port, Some(name)) => invalid(names::port_name(name)),
        (Port, None) => {
            let number = value.as_i64().unwrap_or(0);
            if !value.is_null() && !(1..=65_535).contains(&number) {
                invalid(vec!["must be between 1 and 65535, inclusive".to_owned()]);
            }
        }
        (AtLeast(least, detail), None) if value.as_i64().is_some_and(|number| number < least) => {
            invalid(vec![detail.to_owned()]);
        }
        (Between(least, most, detail), None)
            if value.as_i64().is_some_and(|number| !(least..=most).contains(&number)) =>
        {
            invalid(vec![detail.to_owned()]);
        }
        (Required(detail), _) if is_empty(value) => errors.push(FieldError::required(&at, detail)),
        (Selector, None) if value.is_object() => selector(value, at, errors),
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
        _ => false,
    }
}

fn selector(value: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let root = crate::schema::path::FieldPath::Root;
    crate::schema::selector::selector(value, &root.field(at), errors);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_checked_where_they_stand() {
        let cases = [
            (
                "",
                "Service",
                json!({"spec": {"externalTrafficPolicy": "X"}}),
                "spec.externalTrafficPolicy: Unsupported value: \"X\": supported values: \"Cluster\", \"Local\"",
            ),
            ("", "Service", json!({"spec": {"externalTrafficPolicy": "Local"}}), ""),
            (
                "",
                "PersistentVolumeClaim",
                json!({"spec": {"accessModes": ["X"]}}),
                "spec.accessModes: Unsupported value: \"X\": supported values: \"ReadOnlyMany\", \"ReadWriteMany\", \"ReadWriteOnce\", \"ReadWriteOncePod\"",
            ),
            (
                "coordination.k8s.io",
                "Lease",
                json!({"spec": {"leaseDurationSeconds": 0}}),
                "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
            ),
            (
                "apiregistration.k8s.io",
                "APIService",
                json!({"spec": {"service": {"name": "a", "port": 443}, "groupPriorityMinimum": 1, "versionPriority": 1}}),
                "spec.service.namespace: Required value",
            ),
            (
                "policy",
                "PodDisruptionBudget",
                json!({"spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}}),
                "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
            ),
        ];
        for (group, kind, object, expected) in cases {
            let mut errors = Vec::new();
            check(&GroupVersionKind::new(group, "v1", kind), &object, &mut errors);
            let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(found.join("; "), expected);
        }
    }
}
