//! ClusterServiceVersions: `github.com/operator-framework/api/pkg/operators/v1alpha1`, and the types of
//! `k8s.io/api/rbac/v1` and `k8s.io/api/admissionregistration/v1` in them.

use super::meta::{GROUP_VERSION_KIND, LABEL_SELECTOR, OBJECT_META};
use super::pod::DEPLOYMENT_SPEC;
use crate::typed::records;

records! {
    ACTION_DESCRIPTOR {
        "description" ? string, "displayName" ? string, "path" ! string, "value" * any, "x-descriptors" ? [string],
    }
    API_RESOURCE_REFERENCE { "kind" ! string, "name" ! string, "version" ! string }
    API_SERVICE_DEFINITIONS { "owned" ? [API_SERVICE_DESCRIPTION], "required" ? [API_SERVICE_DESCRIPTION] }
    API_SERVICE_DESCRIPTION {
        "actionDescriptors" ? [ACTION_DESCRIPTOR], "containerPort" ? i32, "deploymentName" ? string,
        "description" ? string, "displayName" ? string, "group" ! string, "kind" ! string, "name" ! string,
        "resources" ? [API_RESOURCE_REFERENCE], "specDescriptors" ? [SPEC_DESCRIPTOR],
        "statusDescriptors" ? [STATUS_DESCRIPTOR], "version" ! string,
    }
    APP_LINK { "name" ? string, "url" ? string }
    CLEANUP_SPEC { "enabled" ! bool }
    CLUSTER_SERVICE_VERSION {
        "apiVersion" ? string, "kind" ? string, "metadata" ! OBJECT_META, "spec" ! CLUSTER_SERVICE_VERSION_SPEC,
    }
    CLUSTER_SERVICE_VERSION_SPEC {
        "annotations" ? {string}, "apiservicedefinitions" ~ API_SERVICE_DEFINITIONS, "cleanup" ~ CLEANUP_SPEC,
        "customresourcedefinitions" ~ CUSTOM_RESOURCE_DEFINITIONS, "description" ? string, "displayName" ! string,
        "icon" ? [ICON], "install" ! NAMED_INSTALL_STRATEGY, "installModes" ? [INSTALL_MODE], "keywords" ? [string],
        "labels" ? {string}, "links" ? [APP_LINK], "maintainers" ? [MAINTAINER], "maturity" ? string,
        "minKubeVersion" ? string, "nativeAPIs" ? [GROUP_VERSION_KIND], "provider" ~ APP_LINK,
        "relatedImages" ? [RELATED_IMAGE], "release" * any, "replaces" ? string, "selector" * LABEL_SELECTOR,
        "skips" ? [string], "version" * any, "webhookdefinitions" ? [WEBHOOK_DESCRIPTION],
    }
    CRD_DESCRIPTION {
        "actionDescriptors" ? [ACTION_DESCRIPTOR], "description" ? string, "displayName" ? string, "kind" ! string,
        "name" ! string, "resources" ? [API_RESOURCE_REFERENCE], "specDescriptors" ? [SPEC_DESCRIPTOR],
        "statusDescriptors" ? [STATUS_DESCRIPTOR], "version" ! string,
    }
    CUSTOM_RESOURCE_DEFINITIONS { "owned" ? [CRD_DESCRIPTION], "required" ? [CRD_DESCRIPTION] }
    ICON { "base64data" ! string, "mediatype" ! string }
    INSTALL_MODE { "supported" ! bool, "type" ! string }
    MAINTAINER { "email" ? string, "name" ? string }
    NAMED_INSTALL_STRATEGY { "spec" ~ STRATEGY_DETAILS_DEPLOYMENT, "strategy" ! string }
    POLICY_RULE {
        "apiGroups" ? [string], "nonResourceURLs" ? [string], "resourceNames" ? [string], "resources" ? [string],
        "verbs" + [string],
    }
    RELATED_IMAGE { "image" ! string, "name" ! string }
    RULE_WITH_OPERATIONS {
        "apiGroups" ? [string], "apiVersions" ? [string], "operations" ? [string], "resources" ? [string],
        "scope" * string,
    }
    SPEC_DESCRIPTOR {
        "description" ? string, "displayName" ? string, "path" ! string, "value" * any, "x-descriptors" ? [string],
    }
    STATUS_DESCRIPTOR {
        "description" ? string, "displayName" ? string, "path" ! string, "value" * any, "x-descriptors" ? [string],
    }
    STRATEGY_DEPLOYMENT_PERMISSIONS { "rules" + [POLICY_RULE], "serviceAccountName" ! string }
    STRATEGY_DEPLOYMENT_SPEC { "label" ? {string}, "name" ! string, "spec" ! DEPLOYMENT_SPEC }
    STRATEGY_DETAILS_DEPLOYMENT {
        "clusterPermissions" ? [STRATEGY_DEPLOYMENT_PERMISSIONS], "deployments" + [STRATEGY_DEPLOYMENT_SPEC],
        "permissions" ? [STRATEGY_DEPLOYMENT_PERMISSIONS],
    }
    WEBHOOK_DESCRIPTION {
        "admissionReviewVersions" + [string], "containerPort" ? i32, "conversionCRDs" ? [string],
        "deploymentName" ? string, "failurePolicy" * string, "generateName" ! string, "matchPolicy" * string,
        "objectSelector" * LABEL_SELECTOR, "reinvocationPolicy" * string, "rules" ? [RULE_WITH_OPERATIONS],
        "sideEffects" + string, "targetPort" * intstr, "timeoutSeconds" * i32, "type" ! string,
        "webhookPath" * string,
    }
}
