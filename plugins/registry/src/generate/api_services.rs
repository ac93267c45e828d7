//! APIServices, which add an aggregated API server of the operator to the cluster's API.
//!
//! OLM v1 refuses bundles that own one. The objects and their names come from OLM v0
//! (`pkg/controller/install/{apiservice,certresources}.go`): an APIService for each group and version, and for each Deployment behind one
//! the two bindings that delegated authentication and authorization need.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Context, Generated, service_name};
use crate::csv::{ApiService, DeploymentSpec};

/// Above the priority of CRDs, below the groups of Kubernetes itself: clients that name a kind without its group mean
/// the latter.
const GROUP_PRIORITY_MINIMUM: i32 = 2000;
/// The priority among the versions of a group.
const VERSION_PRIORITY: i32 = 15;

pub(super) fn generate<'a>(context: &Context<'a>) -> Vec<Generated<'a>> {
    let mut objects = Vec::new();
    // Several kinds of one group and version share one APIService.
    let mut seen = BTreeSet::new();
    for (index, service) in context.api_services().iter().enumerate() {
        if seen.insert(service.object_name()) {
            let origin = context.bundle.csv_place(&format!("/spec/apiservicedefinitions/owned/{index}"));
            objects.push(Generated::new(&api_service(context, service), origin));
        }
    }
    for (index, deployment) in context.bundle.csv.spec.install.spec.deployments.iter().enumerate() {
        if context.api_services().iter().any(|service| service.deployment_name == deployment.name) {
            let origin = context.bundle.csv_place(&format!("/spec/install/spec/deployments/{index}"));
            objects.extend(bindings(context, deployment).iter().map(|object| Generated::new(object, origin.clone())));
        }
    }
    objects
}

fn api_service(context: &Context<'_>, service: &ApiService) -> Value {
    let mut object = json!({
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": service.object_name()},
        "spec": {
            "group": service.group,
            "version": service.version,
            "groupPriorityMinimum": GROUP_PRIORITY_MINIMUM,
            "versionPriority": VERSION_PRIORITY,
            "service": {
                "namespace": context.namespace,
                "name": service_name(&service.deployment_name),
                "port": service.service_port(),
            },
        },
    });
    if let Some(provider) = context.certificates {
        provider.inject_ca(&mut object, context.namespace, &service.deployment_name);
    }
    object
}

/// Permission for delegated authentication and authorization, and to read the API server's client CAs.
fn bindings(context: &Context<'_>, deployment: &DeploymentSpec) -> [Value; 2] {
    let service = service_name(&deployment.name);
    let subjects =
        json!([{"kind": "ServiceAccount", "name": deployment.service_account(), "namespace": context.namespace}]);
    let delegator = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": format!("{service}-system:auth-delegator")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:auth-delegator"},
        "subjects": subjects,
    });
    let reader = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": format!("{service}-auth-reader"), "namespace": "kube-system"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "Role",
            "name": "extension-apiserver-authentication-reader",
        },
        "subjects": subjects,
    });
    [delegator, reader]
}
