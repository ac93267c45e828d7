//! All settings: their keys, their values, what they mean, and how they change [`Settings`].

use serde_json::{Value, json};

use crate::{
    LogFormat, Permissions, Settings,
    deployment::LINUX,
    form::Form,
    values::{self, Refused},
};

/// A setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The key.
    pub key: &'static str,
    /// What to write as the value, in capitals, or the possible values.
    pub value: &'static str,
    /// The default, in words or as a value.
    pub default: &'static str,
    /// What it does, in one line.
    pub what: &'static str,
    /// Where the value is in the values of the chart; empty for the one that the release of a chart has.
    pub chart: &'static str,
    /// Which values there are in the values of the chart.
    pub(crate) form: Form,
    /// The value in the values of the chart.
    pub(crate) read: fn(&Settings) -> Value,
    /// Changes the settings.
    pub(crate) change: fn(&mut Settings, &str) -> Result<(), Refused>,
}

impl Setting {
    /// What it does in the chart, in one line.
    pub(crate) fn chart_what(&self) -> &'static str {
        self.form.what().unwrap_or(self.what)
    }
}

/// Sets a field to the parsed value.
macro_rules! field {
    ($($field:ident).+, $parse:expr) => {
        |settings, text| {
            settings.$($field).+ = $parse(text)?;
            Ok(())
        }
    };
}

/// Sets an optional field to the parsed value.
macro_rules! optional {
    ($($field:ident).+, $parse:expr) => {
        |settings, text| {
            settings.$($field).+ = Some($parse(text)?);
            Ok(())
        }
    };
}

/// All settings, in the order of the help.
pub const SETTINGS: &[Setting] = &[
    Setting {
        key: "image",
        value: "IMAGE",
        default: "a placeholder, with the version of this command as its tag",
        what: "the image of the controller",
        chart: "image",
        form: Form::Image,
        read: |settings| json!(settings.image()),
        change: optional!(image, values::image),
    },
    Setting {
        key: "imagePullSecret",
        value: "SECRET",
        default: "none",
        what: "Secret that the kubelet pulls the image with",
        chart: "imagePullSecret",
        form: Form::Name,
        read: |settings| json!(settings.image_pull_secret.as_deref().unwrap_or_default()),
        change: optional!(image_pull_secret, values::name),
    },
    Setting {
        key: "namespace",
        value: "NAMESPACE",
        default: "chandler-system",
        what: "namespace of the controller; the policies follow. Cluster-scoped objects have fixed names: one installation per cluster",
        chart: "",
        form: Form::Release,
        read: |_| Value::Null,
        change: field!(namespace, values::label),
    },
    Setting {
        key: "replicas",
        value: "NUMBER",
        default: "2; 1 with cache.claim",
        what: "one replica works, the others wait for the Lease",
        chart: "replicas",
        form: Form::Replicas,
        read: |settings| json!(settings.replicas),
        change: optional!(replicas, values::replicas),
    },
    Setting {
        key: "permissions",
        value: "service-accounts|cluster-admin",
        default: "service-accounts",
        what: "cluster-admin installs bundles without an account: every user who may create a BundleDeployment is an administrator",
        chart: "permissions",
        form: Form::Choice(&["service-accounts", "cluster-admin"]),
        read: |settings| json!(settings.permissions.name()),
        change: field!(permissions, permissions),
    },
    Setting {
        key: "admissionPolicies",
        value: "true|false",
        default: "true",
        what: "the ValidatingAdmissionPolicies (Kubernetes 1.30 and later)",
        chart: "admissionPolicies",
        form: Form::Boolean,
        read: |settings| json!(settings.admission_policies),
        change: field!(admission_policies, values::boolean),
    },
    Setting {
        key: "watch",
        value: "true|false",
        default: "false",
        what: "permission to list and watch the kinds of most bundles: fewer watches",
        chart: "watch",
        form: Form::Boolean,
        read: |settings| json!(settings.watch),
        change: field!(watch, values::boolean),
    },
    Setting {
        key: "metrics",
        value: "true|false",
        default: "true",
        what: "serve metrics on port 9443",
        chart: "metrics.enabled",
        form: Form::Boolean,
        read: |settings| json!(settings.metrics),
        change: field!(metrics, values::boolean),
    },
    Setting {
        key: "metrics.tlsSecret",
        value: "SECRET",
        default: "the controller makes a certificate",
        what: "Secret of type kubernetes.io/tls for the metrics, with the authority in ca.crt",
        chart: "metrics.tlsSecret",
        form: Form::Name,
        read: |settings| json!(settings.metrics_tls_secret.as_deref().unwrap_or_default()),
        change: optional!(metrics_tls_secret, values::name),
    },
    Setting {
        key: "content",
        value: "true|false",
        default: "false",
        what: "serve content and accept uploads on port 8443",
        chart: "content",
        form: Form::Boolean,
        read: |settings| json!(settings.content),
        change: field!(content, values::boolean),
    },
    Setting {
        key: "receiver",
        value: "true|false",
        default: "false",
        what: "receive webhooks of registries and git servers on port 8444",
        chart: "receiver.enabled",
        form: Form::Boolean,
        read: |settings| json!(settings.receiver),
        change: field!(receiver, values::boolean),
    },
    Setting {
        key: "receiver.tlsSecret",
        value: "SECRET",
        default: "the controller makes a certificate",
        what: "Secret of type kubernetes.io/tls for webhooks",
        chart: "receiver.tlsSecret",
        form: Form::Name,
        read: |settings| json!(settings.receiver_tls_secret.as_deref().unwrap_or_default()),
        change: optional!(receiver_tls_secret, values::name),
    },
    Setting {
        key: "cache.claim",
        value: "CLAIM",
        default: "a volume that ends with the Pod",
        what: "PersistentVolumeClaim of the caches and uploads; several replicas need a ReadWriteMany volume",
        chart: "cache.claim",
        form: Form::Name,
        read: |settings| json!(settings.cache_claim.as_deref().unwrap_or_default()),
        change: optional!(cache_claim, values::name),
    },
    Setting {
        key: "logFormat",
        value: "json|text",
        default: "json",
        what: "format of log lines",
        chart: "logFormat",
        form: Form::Choice(&["json", "text"]),
        read: |settings| json!(settings.log_format.name()),
        change: field!(log_format, log_format),
    },
    Setting {
        key: "priorityClass",
        value: "CLASS",
        default: "system-cluster-critical",
        what: "priority class of the Pods; empty for none",
        chart: "priorityClass",
        form: Form::Name,
        read: |settings| json!(settings.priority_class.as_deref().unwrap_or_default()),
        change: |settings, text| {
            settings.priority_class = if text.is_empty() { None } else { Some(values::name(text)?) };
            Ok(())
        },
    },
    Setting {
        key: "resources.requests.cpu",
        value: "QUANTITY",
        default: "100m",
        what: "requested processor time",
        chart: "resources.requests.cpu",
        form: Form::Quantity,
        read: |settings| json!(settings.resources.requests_cpu),
        change: field!(resources.requests_cpu, values::quantity),
    },
    Setting {
        key: "resources.requests.memory",
        value: "QUANTITY",
        default: "256Mi",
        what: "requested memory",
        chart: "resources.requests.memory",
        form: Form::Quantity,
        read: |settings| json!(settings.resources.requests_memory),
        change: field!(resources.requests_memory, values::quantity),
    },
    Setting {
        key: "resources.limits.cpu",
        value: "QUANTITY",
        default: "unlimited",
        what: "limit of processor time",
        chart: "resources.limits.cpu",
        form: Form::OptionalQuantity,
        read: |settings| json!(settings.resources.limits_cpu.as_deref().unwrap_or_default()),
        change: optional!(resources.limits_cpu, values::quantity),
    },
    Setting {
        key: "resources.limits.memory",
        value: "QUANTITY",
        default: "1Gi",
        what: "limit of memory; leave room for the calls of two provisioners",
        chart: "resources.limits.memory",
        form: Form::Quantity,
        read: |settings| json!(settings.resources.limits_memory),
        change: field!(resources.limits_memory, values::quantity),
    },
    Setting {
        key: "nodeSelector",
        value: "KEY=VALUE,...",
        default: "kubernetes.io/os=linux",
        what: "further labels of the nodes",
        chart: "nodeSelector",
        form: Form::Labels,
        read: labels,
        change: field!(node_selector, values::labels),
    },
    Setting {
        key: "tolerations",
        value: "KEY=VALUE:EFFECT,...",
        default: "none",
        what: "taints of nodes that do not matter, as kubectl taint writes them; * for all",
        chart: "tolerations",
        form: Form::Tolerations,
        read: |settings| json!(settings.tolerations),
        change: field!(tolerations, values::tolerations),
    },
    Setting {
        key: "networkPolicy",
        value: "true|false",
        default: "true",
        what: "a NetworkPolicy that admits connections for metrics, content and webhooks only",
        chart: "networkPolicy",
        form: Form::Boolean,
        read: |settings| json!(settings.network_policy),
        change: field!(network_policy, values::boolean),
    },
    Setting {
        key: "monitoring.serviceMonitor",
        value: "true|false",
        default: "false; true on openshift",
        what: "a ServiceMonitor (Prometheus Operator)",
        chart: "monitoring.serviceMonitor",
        form: Form::BooleanOfProfile,
        read: |settings| unless(settings.service_monitor, settings.profile.is_monitored()),
        change: field!(service_monitor, values::boolean),
    },
    Setting {
        key: "monitoring.rules",
        value: "true|false",
        default: "false; true on openshift",
        what: "a PrometheusRule with the alerts of docs/monitoring.md",
        chart: "monitoring.rules",
        form: Form::BooleanOfProfile,
        read: |settings| unless(settings.rules, settings.profile.is_monitored()),
        change: field!(rules, values::boolean),
    },
    Setting {
        key: "monitoring.dashboard",
        value: "true|false",
        default: "false",
        what: "a ConfigMap with a dashboard for Grafana",
        chart: "monitoring.dashboard",
        form: Form::Boolean,
        read: |settings| json!(settings.dashboard),
        change: field!(dashboard, values::boolean),
    },
    Setting {
        key: "arg",
        value: "OPTION",
        default: "none",
        what: "a further option of `chandler controller`, such as arg=--concurrency=16. Repeatable",
        chart: "args",
        form: Form::Options,
        read: |settings| json!(settings.arguments),
        change: |settings, text| {
            if !text.starts_with("--") || text.contains(char::is_control) {
                return Err(
                    "write an option of `chandler controller` with its value, such as --concurrency=16".to_owned()
                );
            }
            settings.arguments.push(text.to_owned());
            Ok(())
        },
    },
];

fn permissions(text: &str) -> Result<Permissions, Refused> {
    match text {
        "service-accounts" => Ok(Permissions::ServiceAccounts),
        "cluster-admin" => Ok(Permissions::ClusterAdmin),
        _ => Err("write service-accounts or cluster-admin".to_owned()),
    }
}

fn log_format(text: &str) -> Result<LogFormat, Refused> {
    match text {
        "json" => Ok(LogFormat::Json),
        "text" => Ok(LogFormat::Text),
        _ => Err("write json or text".to_owned()),
    }
}

/// Labels of nodes, with the one that the Deployment has anyway: values of a chart are merged.
fn labels(settings: &Settings) -> Value {
    let mut labels = settings.node_selector.clone();
    labels.entry(LINUX.0.to_owned()).or_insert_with(|| LINUX.1.to_owned());
    json!(labels)
}

/// A value that is not the default, or null: the profile decides.
fn unless(value: bool, default: bool) -> Value {
    if value == default { Value::Null } else { json!(value) }
}
