//! Conditions on settings: for this program, and for the templates of the chart. Tests compare the two.

use crate::{Permissions, Profile, Settings};

/// A condition on settings.
#[derive(Clone, Copy)]
pub(crate) struct Condition {
    /// Whether it holds.
    pub(crate) holds: fn(&Settings) -> bool,
    /// The expression in a template; empty if it always holds.
    pub(crate) template: &'static str,
}

macro_rules! condition {
    ($(#[$what:meta])* $name:ident, $holds:expr, $template:expr) => {
        $(#[$what])*
        pub(crate) const $name: Condition = Condition { holds: $holds, template: $template };
    };
}

/// Whether the Prometheus Operator is expected: as set, or as the profile decides.
macro_rules! monitoring {
    ($name:literal) => {
        concat!(
            "or .Values.monitoring.",
            $name,
            " (and (kindIs \"invalid\" .Values.monitoring.",
            $name,
            ") (eq .Values.profile \"openshift\"))"
        )
    };
}

condition!(ALWAYS, |_| true, "");
condition!(CLUSTER_ADMIN, |it| it.permissions == Permissions::ClusterAdmin, "eq .Values.permissions \"cluster-admin\"");
condition!(WATCH, |it| it.watch, ".Values.watch");
condition!(OPENSHIFT, |it| it.profile == Profile::OpenShift, "eq .Values.profile \"openshift\"");
condition!(MULTI_TENANT, |it| it.profile == Profile::MultiTenant, "eq .Values.profile \"multi-tenant\"");
condition!(
    /// A priority class of Kubernetes itself, which providers may restrict to kube-system.
    SYSTEM_PRIORITY,
    |it| it.priority_class.as_deref().is_some_and(|class| class.starts_with("system-")),
    "hasPrefix \"system-\" .Values.priorityClass"
);
condition!(ADMISSION_POLICIES, |it| it.admission_policies, ".Values.admissionPolicies");
condition!(METRICS, |it| it.metrics, ".Values.metrics.enabled");
condition!(CONTENT, |it| it.content, ".Values.content");
condition!(RECEIVER, |it| it.receiver, ".Values.receiver.enabled");
condition!(NETWORK_POLICY, |it| it.network_policy, ".Values.networkPolicy");
condition!(SERVICE_MONITOR, |it| it.service_monitor, monitoring!("serviceMonitor"));
condition!(RULES, |it| it.rules, monitoring!("rules"));
condition!(DASHBOARD, |it| it.dashboard, ".Values.monitoring.dashboard");
condition!(
    /// The roles `edit` and `admin` may write BundleDeployments. Their users may name only accounts that they may impersonate, if the admission
    /// policies apply, and nothing is installed without an account.
    USERS_MAY_WRITE,
    |it| it.admission_policies && it.permissions == Permissions::ServiceAccounts,
    "and .Values.admissionPolicies (eq .Values.permissions \"service-accounts\")"
);
condition!(
    /// The controller reads its own ServiceAccount, to pull images with its pull secrets. No option contains a line break.
    PULL_SECRETS,
    |it| has_option(it, "--pull-secrets-of"),
    r#"contains "\n--pull-secrets-of" (printf "\n%s" (join "\n" .Values.args))"#
);

/// Two settings that contradict each other.
pub(crate) struct Contradiction {
    /// Whether they do.
    pub(crate) condition: Condition,
    /// What to do.
    pub(crate) message: &'static str,
}

macro_rules! contradiction {
    ($holds:expr, $template:expr, $message:expr) => {
        Contradiction { condition: Condition { holds: $holds, template: $template }, message: $message }
    };
}

/// Whether an option of the controller is set. No option contains a line break.
fn has_option(settings: &Settings, option: &str) -> bool {
    settings.arguments.iter().any(|argument| argument.starts_with(option))
}

/// All contradictions.
pub(crate) const CONTRADICTIONS: &[Contradiction] = &[
    contradiction!(
        |it| it.permissions == Permissions::ClusterAdmin && it.profile == Profile::MultiTenant,
        "and (eq .Values.permissions \"cluster-admin\") (eq .Values.profile \"multi-tenant\")",
        "permissions=cluster-admin contradicts the profile multi-tenant, in which every bundle is installed with the permissions \
         of an account: omit one of them"
    ),
    contradiction!(
        |it| !it.metrics && it.metrics_tls_secret.is_some(),
        "and (not .Values.metrics.enabled) .Values.metrics.tlsSecret",
        "metrics.tlsSecret has no effect with metrics=false: omit one of them"
    ),
    contradiction!(
        |it| !it.receiver && it.receiver_tls_secret.is_some(),
        "and (not .Values.receiver.enabled) .Values.receiver.tlsSecret",
        "receiver.tlsSecret has no effect with receiver=false: omit one of them"
    ),
    contradiction!(
        |it| !it.metrics && it.service_monitor,
        concat!("and (not .Values.metrics.enabled) (", monitoring!("serviceMonitor"), ")"),
        "monitoring.serviceMonitor=true needs the metrics, and metrics is false: omit one of them"
    ),
    contradiction!(
        |it| {
            let own = format!("--accounts-in={}", it.namespace);
            let is_limited = it.profile == Profile::MultiTenant || has_option(it, "--accounts-in");
            has_option(it, "--platform-service-account") && is_limited && !it.arguments.contains(&own)
        },
        concat!(
            r#"and (contains "\n--platform-service-account" (printf "\n%s" (join "\n" .Values.args))) "#,
            r#"(or (eq .Values.profile "multi-tenant") (contains "\n--accounts-in" (printf "\n%s" (join "\n" .Values.args)))) "#,
            r#"(not (contains (printf "\n--accounts-in=%s\n" .Release.Namespace) (printf "\n%s\n" (join "\n" .Values.args))))"#
        ),
        "--platform-service-account names an account in the namespace of the controller, and --accounts-in, which the profile \
         multi-tenant sets, allows other namespaces only: add the option --accounts-in=NAMESPACE with the namespace of the controller"
    ),
];
