//! All settings: their keys, their values, what they mean, and how they change [`Settings`].

use crate::{
    LogFormat, Permissions, Settings,
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
    /// Changes the settings.
    pub(crate) change: fn(&mut Settings, &str) -> Result<(), Refused>,
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
        change: optional!(image, values::image),
    },
    Setting {
        key: "imagePullSecret",
        value: "SECRET",
        default: "none",
        what: "Secret that the kubelet pulls the image with",
        change: optional!(image_pull_secret, values::name),
    },
    Setting {
        key: "namespace",
        value: "NAMESPACE",
        default: "chandler-system",
        what: "namespace of the controller; the policies follow. Cluster-scoped objects have fixed names: one installation per cluster",
        change: field!(namespace, values::label),
    },
    Setting {
        key: "replicas",
        value: "NUMBER",
        default: "2; 1 with content or cache.claim",
        what: "one replica works, the others wait for the Lease",
        change: optional!(replicas, values::replicas),
    },
    Setting {
        key: "permissions",
        value: "service-accounts|cluster-admin",
        default: "service-accounts",
        what: "cluster-admin installs bundles without an account: every user who may create a BundleDeployment is an administrator",
        change: field!(permissions, permissions),
    },
    Setting {
        key: "admissionPolicies",
        value: "true|false",
        default: "true",
        what: "the ValidatingAdmissionPolicies (Kubernetes 1.30 and later)",
        change: field!(admission_policies, values::boolean),
    },
    Setting {
        key: "watch",
        value: "true|false",
        default: "false",
        what: "permission to list and watch the kinds of most bundles: fewer watches",
        change: field!(watch, values::boolean),
    },
    Setting {
        key: "metrics",
        value: "true|false",
        default: "true",
        what: "serve metrics on port 9443",
        change: field!(metrics, values::boolean),
    },
    Setting {
        key: "metrics.tlsSecret",
        value: "SECRET",
        default: "the controller makes a certificate",
        what: "Secret of type kubernetes.io/tls for the metrics, with the authority in ca.crt",
        change: optional!(metrics_tls_secret, values::name),
    },
    Setting {
        key: "content",
        value: "true|false",
        default: "false",
        what: "serve content and accept uploads on port 8443: one replica, since only the one with the Lease serves",
        change: field!(content, values::boolean),
    },
    Setting {
        key: "cache.claim",
        value: "CLAIM",
        default: "a volume that ends with the Pod",
        what: "PersistentVolumeClaim of the caches and uploads; several replicas need a ReadWriteMany volume",
        change: optional!(cache_claim, values::name),
    },
    Setting {
        key: "logFormat",
        value: "json|text",
        default: "json",
        what: "format of log lines",
        change: field!(log_format, log_format),
    },
    Setting {
        key: "priorityClass",
        value: "CLASS",
        default: "system-cluster-critical",
        what: "priority class of the Pods; empty for none",
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
        change: field!(resources.requests_cpu, values::quantity),
    },
    Setting {
        key: "resources.requests.memory",
        value: "QUANTITY",
        default: "256Mi",
        what: "requested memory",
        change: field!(resources.requests_memory, values::quantity),
    },
    Setting {
        key: "resources.limits.cpu",
        value: "QUANTITY",
        default: "unlimited",
        what: "limit of processor time",
        change: optional!(resources.limits_cpu, values::quantity),
    },
    Setting {
        key: "resources.limits.memory",
        value: "QUANTITY",
        default: "1Gi",
        what: "limit of memory; leave room for the calls of two provisioners",
        change: field!(resources.limits_memory, values::quantity),
    },
    Setting {
        key: "nodeSelector",
        value: "KEY=VALUE,...",
        default: "kubernetes.io/os=linux",
        what: "further labels of the nodes",
        change: field!(node_selector, values::labels),
    },
    Setting {
        key: "tolerations",
        value: "KEY=VALUE:EFFECT,...",
        default: "none",
        what: "taints of nodes that do not matter, as kubectl taint writes them; * for all",
        change: field!(tolerations, values::tolerations),
    },
    Setting {
        key: "networkPolicy",
        value: "true|false",
        default: "true",
        what: "a NetworkPolicy that admits connections for metrics and content only",
        change: field!(network_policy, values::boolean),
    },
    Setting {
        key: "monitoring.serviceMonitor",
        value: "true|false",
        default: "false; true on openshift",
        what: "a ServiceMonitor (Prometheus Operator)",
        change: field!(service_monitor, values::boolean),
    },
    Setting {
        key: "monitoring.rules",
        value: "true|false",
        default: "false; true on openshift",
        what: "a PrometheusRule with the alerts of docs/monitoring.md",
        change: field!(rules, values::boolean),
    },
    Setting {
        key: "monitoring.dashboard",
        value: "true|false",
        default: "false",
        what: "a ConfigMap with a dashboard for Grafana",
        change: field!(dashboard, values::boolean),
    },
    Setting {
        key: "arg",
        value: "OPTION",
        default: "none",
        what: "a further option of `chandler controller`, such as arg=--concurrency=16. Repeatable",
        change: |settings, text| {
            if !text.starts_with("--") {
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
