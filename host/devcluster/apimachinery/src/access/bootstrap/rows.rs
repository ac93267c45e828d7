//! The rows of the bootstrap policy. Lists are words with spaces between.

/// Stands for the core group, whose name is empty.
pub(super) const CORE: &str = "core";

const READ: &str = "get list watch";
const WRITE: &str = "create delete deletecollection patch update";
const READ_AND_WRITE: &str = "create delete deletecollection get list patch update watch";
const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";
const EVENTS: &str = "core events.k8s.io";

/// A rule.
pub(super) enum Row {
    /// Verbs, groups, resources.
    Resources(&'static str, &'static str, &'static str),
    /// Verbs, groups, resources, names.
    Named(&'static str, &'static str, &'static str, &'static str),
    /// Verbs, other paths.
    Paths(&'static str, &'static str),
}

use Row::{Named, Paths, Resources};

/// A ClusterRole.
pub(super) struct Role {
    pub(super) name: &'static str,
    /// The role whose label `aggregate-to-<role>` it aggregates.
    pub(super) aggregates: Option<&'static str>,
    /// The role that aggregates it.
    pub(super) aggregated_to: Option<&'static str>,
    pub(super) rules: &'static [Row],
}

const fn role(name: &'static str, rules: &'static [Row]) -> Role {
    Role { name, aggregates: None, aggregated_to: None, rules }
}

/// ClusterRoles.
pub(super) const CLUSTER_ROLES: &[Role] = &[
    role("cluster-admin", &[Resources("*", "*", "*"), Paths("*", "*")]),
    Role { name: "admin", aggregates: Some("admin"), aggregated_to: None, rules: &[] },
    Role { name: "edit", aggregates: Some("edit"), aggregated_to: Some("admin"), rules: &[] },
    Role { name: "view", aggregates: Some("view"), aggregated_to: Some("edit"), rules: &[] },
    Role { name: "system:aggregate-to-admin", aggregates: None, aggregated_to: Some("admin"), rules: ADMIN },
    Role { name: "system:aggregate-to-edit", aggregates: None, aggregated_to: Some("edit"), rules: EDIT },
    Role { name: "system:aggregate-to-view", aggregates: None, aggregated_to: Some("view"), rules: VIEW },
    role(
        "system:basic-user",
        &[
            Resources("create", AUTHORIZATION, "selfsubjectaccessreviews selfsubjectrulesreviews"),
            Resources("create", AUTHENTICATION, "selfsubjectreviews"),
        ],
    ),
    role(
        "system:discovery",
        &[Paths("get", "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/")],
    ),
    role("system:public-info-viewer", &[Paths("get", "/healthz /livez /readyz /version /version/")]),
    role(
        "system:service-account-issuer-discovery",
        &[Paths(
            "get",
            "/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/",
        )],
    ),
    role(
        "system:monitoring",
        &[
            Paths(
                "get",
                "/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/* /statusz",
            ),
            Resources("get", CORE, "nodes/metrics"),
        ],
    ),
    role(
        "system:auth-delegator",
        &[
            Resources("create", AUTHENTICATION, "tokenreviews"),
            Resources("create", AUTHORIZATION, "subjectaccessreviews"),
        ],
    ),
    role("system:kube-aggregator", &[Resources(READ, CORE, "endpoints services")]),
    role(
        "system:persistent-volume-provisioner",
        &[
            Resources("create delete get list watch", CORE, "persistentvolumes"),
            Resources("get list update watch", CORE, "persistentvolumeclaims"),
            Resources(READ, "storage.k8s.io", "storageclasses"),
            Resources("watch", CORE, "events"),
            Resources("create patch update", EVENTS, "events"),
        ],
    ),
    role(
        "system:kubelet-api-admin",
        &[
            Resources(READ, CORE, "nodes"),
            Resources("proxy", CORE, "nodes"),
            Resources("*", CORE, "nodes/log nodes/metrics nodes/proxy nodes/stats"),
            Resources("*", CORE, "nodes/configz nodes/healthz nodes/pods"),
        ],
    ),
];

const ADMIN: &[Row] = &[
    Resources("create", AUTHORIZATION, "localsubjectaccessreviews"),
    Resources(READ_AND_WRITE, "rbac.authorization.k8s.io", "rolebindings roles"),
];

const EDIT: &[Row] = &[
    Resources(READ, CORE, "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
    Resources("impersonate", CORE, "serviceaccounts"),
    Resources(WRITE, CORE, "pods pods/attach pods/exec pods/portforward pods/proxy"),
    Resources("create", CORE, "pods/eviction"),
    Resources(
        WRITE,
        CORE,
        "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets serviceaccounts \
         services services/proxy",
    ),
    Resources("create", CORE, "serviceaccounts/token"),
    Resources(WRITE, EVENTS, "events"),
    Resources(
        WRITE,
        "apps",
        "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets \
         statefulsets/scale",
    ),
    Resources(WRITE, "autoscaling", "horizontalpodautoscalers"),
    Resources(WRITE, "batch", "cronjobs jobs"),
    Resources(
        WRITE,
        "extensions",
        "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets \
         replicasets/scale replicationcontrollers/scale",
    ),
    Resources(WRITE, "policy", "poddisruptionbudgets"),
    Resources(WRITE, "networking.k8s.io", "ingresses networkpolicies"),
    Resources(READ_AND_WRITE, "coordination.k8s.io", "leases"),
    Resources(WRITE, "resource.k8s.io", "resourceclaims resourceclaimtemplates"),
];

const VIEW: &[Row] = &[
    Resources(
        READ,
        CORE,
        "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers \
         replicationcontrollers/scale serviceaccounts services services/status",
    ),
    Resources(
        READ,
        CORE,
        "bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status resourcequotas \
         resourcequotas/status",
    ),
    Resources(READ, CORE, "namespaces"),
    Resources(READ, EVENTS, "events"),
    Resources(READ, "discovery.k8s.io", "endpointslices"),
    Resources(
        READ,
        "apps",
        "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets \
         replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status",
    ),
    Resources(READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
    Resources(READ, "batch", "cronjobs cronjobs/status jobs jobs/status"),
    Resources(
        READ,
        "extensions",
        "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses ingresses/status \
         networkpolicies replicasets replicasets/scale replicasets/status replicationcontrollers/scale",
    ),
    Resources(READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
    Resources(READ, "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
    Resources(READ, "resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates"),
];

/// Roles: namespace, name, rules.
pub(super) const ROLES: &[(&str, &str, &[Row])] = &[(
    "kube-system",
    "extension-apiserver-authentication-reader",
    &[Named(READ, CORE, "configmaps", "extension-apiserver-authentication")],
)];

/// A ClusterRoleBinding with the name of its ClusterRole.
pub(super) struct Binding {
    pub(super) role: &'static str,
    /// The kind of all subjects.
    pub(super) kind: &'static str,
    pub(super) subjects: &'static [&'static str],
}

const fn groups(role: &'static str, subjects: &'static [&'static str]) -> Binding {
    Binding { role, kind: "Group", subjects }
}

/// ClusterRoleBindings.
pub(super) const CLUSTER_ROLE_BINDINGS: &[Binding] = &[
    groups("cluster-admin", &["system:masters"]),
    groups("system:monitoring", &["system:monitoring"]),
    groups("system:discovery", &["system:authenticated"]),
    groups("system:basic-user", &["system:authenticated"]),
    groups("system:public-info-viewer", &["system:authenticated", "system:unauthenticated"]),
    groups("system:service-account-issuer-discovery", &["system:serviceaccounts"]),
];
