//! Pods and Deployments: `k8s.io/api/core/v1` and `k8s.io/api/apps/v1`, and the part of a configuration that overrides them
//! (`SubscriptionConfig` of `github.com/operator-framework/api`).

use super::meta::{LABEL_SELECTOR, OBJECT_META};
use super::volume::{LOCAL_OBJECT_REFERENCE, OBJECT_FIELD_SELECTOR, RESOURCE_FIELD_SELECTOR, VOLUME};
use crate::typed::records;

records! {
    AFFINITY { "nodeAffinity" * NODE_AFFINITY, "podAffinity" * POD_AFFINITY, "podAntiAffinity" * POD_ANTI_AFFINITY }
    APP_ARMOR_PROFILE { "localhostProfile" * string, "type" ! string }
    CAPABILITIES { "add" ? [string], "drop" ? [string] }
    CONFIG_MAP_ENV_SOURCE { "name" ? string, "optional" * bool }
    CONFIG_MAP_KEY_SELECTOR { "key" ! string, "name" ? string, "optional" * bool }
    CONTAINER {
        "args" ? [string], "command" ? [string], "env" ? [ENV_VAR], "envFrom" ? [ENV_FROM_SOURCE], "image" ? string,
        "imagePullPolicy" ? string, "lifecycle" * LIFECYCLE, "livenessProbe" * PROBE, "name" ! string,
        "ports" ? [CONTAINER_PORT], "readinessProbe" * PROBE, "resizePolicy" ? [CONTAINER_RESIZE_POLICY],
        "resources" ~ RESOURCE_REQUIREMENTS, "restartPolicy" * string,
        "restartPolicyRules" ? [CONTAINER_RESTART_RULE], "securityContext" * SECURITY_CONTEXT, "startupProbe" * PROBE,
        "stdin" ? bool, "stdinOnce" ? bool, "terminationMessagePath" ? string, "terminationMessagePolicy" ? string,
        "tty" ? bool, "volumeDevices" ? [VOLUME_DEVICE], "volumeMounts" ? [VOLUME_MOUNT], "workingDir" ? string,
    }
    CONTAINER_PORT {
        "containerPort" ! i32, "hostIP" ? string, "hostPort" ? i32, "name" ? string, "protocol" ? string,
    }
    CONTAINER_RESIZE_POLICY { "resourceName" ! string, "restartPolicy" ! string }
    CONTAINER_RESTART_RULE { "action" ? string, "exitCodes" * CONTAINER_RESTART_RULE_ON_EXIT_CODES }
    CONTAINER_RESTART_RULE_ON_EXIT_CODES { "operator" ? string, "values" ? [i32] }
    DEPLOYMENT_SPEC {
        "minReadySeconds" ? i32, "paused" ? bool, "progressDeadlineSeconds" * i32, "replicas" * i32,
        "revisionHistoryLimit" * i32, "selector" + LABEL_SELECTOR, "strategy" ~ DEPLOYMENT_STRATEGY,
        "template" ! POD_TEMPLATE_SPEC,
    }
    DEPLOYMENT_STRATEGY { "rollingUpdate" * ROLLING_UPDATE_DEPLOYMENT, "type" ? string }
    ENV_FROM_SOURCE { "configMapRef" * CONFIG_MAP_ENV_SOURCE, "prefix" ? string, "secretRef" * SECRET_ENV_SOURCE }
    ENV_VAR { "name" ! string, "value" ? string, "valueFrom" * ENV_VAR_SOURCE }
    ENV_VAR_SOURCE {
        "configMapKeyRef" * CONFIG_MAP_KEY_SELECTOR, "fieldRef" * OBJECT_FIELD_SELECTOR,
        "fileKeyRef" * FILE_KEY_SELECTOR, "resourceFieldRef" * RESOURCE_FIELD_SELECTOR,
        "secretKeyRef" * SECRET_KEY_SELECTOR,
    }
    EPHEMERAL_CONTAINER {
        "args" ? [string], "command" ? [string], "env" ? [ENV_VAR], "envFrom" ? [ENV_FROM_SOURCE], "image" ? string,
        "imagePullPolicy" ? string, "lifecycle" * LIFECYCLE, "livenessProbe" * PROBE, "name" ! string,
        "ports" ? [CONTAINER_PORT], "readinessProbe" * PROBE, "resizePolicy" ? [CONTAINER_RESIZE_POLICY],
        "resources" ~ RESOURCE_REQUIREMENTS, "restartPolicy" * string,
        "restartPolicyRules" ? [CONTAINER_RESTART_RULE], "securityContext" * SECURITY_CONTEXT, "startupProbe" * PROBE,
        "stdin" ? bool, "stdinOnce" ? bool, "targetContainerName" ? string, "terminationMessagePath" ? string,
        "terminationMessagePolicy" ? string, "tty" ? bool, "volumeDevices" ? [VOLUME_DEVICE],
        "volumeMounts" ? [VOLUME_MOUNT], "workingDir" ? string,
    }
    EXEC_ACTION { "command" ? [string] }
    FILE_KEY_SELECTOR { "key" ! string, "optional" * bool, "path" ! string, "volumeName" ! string }
    GRPC_ACTION { "port" ! i32, "service" + string }
    HOST_ALIAS { "hostnames" ? [string], "ip" ! string }
    HTTP_GET_ACTION {
        "host" ? string, "httpHeaders" ? [HTTP_HEADER], "path" ? string, "port" ! intstr, "scheme" ? string,
    }
    HTTP_HEADER { "name" ! string, "value" ! string }
    LIFECYCLE { "postStart" * LIFECYCLE_HANDLER, "preStop" * LIFECYCLE_HANDLER, "stopSignal" * string }
    LIFECYCLE_HANDLER {
        "exec" * EXEC_ACTION, "httpGet" * HTTP_GET_ACTION, "sleep" * SLEEP_ACTION, "tcpSocket" * TCP_SOCKET_ACTION,
    }
    NODE_AFFINITY {
        "preferredDuringSchedulingIgnoredDuringExecution" ? [PREFERRED_SCHEDULING_TERM],
        "requiredDuringSchedulingIgnoredDuringExecution" * NODE_SELECTOR,
    }
    NODE_SELECTOR { "nodeSelectorTerms" + [NODE_SELECTOR_TERM] }
    NODE_SELECTOR_REQUIREMENT { "key" ! string, "operator" ! string, "values" ? [string] }
    NODE_SELECTOR_TERM {
        "matchExpressions" ? [NODE_SELECTOR_REQUIREMENT], "matchFields" ? [NODE_SELECTOR_REQUIREMENT],
    }
    POD_AFFINITY {
        "preferredDuringSchedulingIgnoredDuringExecution" ? [WEIGHTED_POD_AFFINITY_TERM],
        "requiredDuringSchedulingIgnoredDuringExecution" ? [POD_AFFINITY_TERM],
    }
    POD_AFFINITY_TERM {
        "labelSelector" * LABEL_SELECTOR, "matchLabelKeys" ? [string], "mismatchLabelKeys" ? [string],
        "namespaceSelector" * LABEL_SELECTOR, "namespaces" ? [string], "topologyKey" ! string,
    }
    POD_ANTI_AFFINITY {
        "preferredDuringSchedulingIgnoredDuringExecution" ? [WEIGHTED_POD_AFFINITY_TERM],
        "requiredDuringSchedulingIgnoredDuringExecution" ? [POD_AFFINITY_TERM],
    }
    POD_DNS_CONFIG { "nameservers" ? [string], "options" ? [POD_DNS_CONFIG_OPTION], "searches" ? [string] }
    POD_DNS_CONFIG_OPTION { "name" ? string, "value" * string }
    POD_OS { "name" ! string }
    POD_READINESS_GATE { "conditionType" ! string }
    POD_RESOURCE_CLAIM { "name" ! string, "resourceClaimName" * string, "resourceClaimTemplateName" * string }
    POD_SCHEDULING_GATE { "name" ! string }
    POD_SCHEDULING_GROUP { "podGroupName" * string }
    POD_SECURITY_CONTEXT {
        "appArmorProfile" * APP_ARMOR_PROFILE, "fsGroup" * i64, "fsGroupChangePolicy" * string, "runAsGroup" * i64,
        "runAsNonRoot" * bool, "runAsUser" * i64, "seLinuxChangePolicy" * string, "seLinuxOptions" * SE_LINUX_OPTIONS,
        "seccompProfile" * SECCOMP_PROFILE, "supplementalGroups" ? [i64], "supplementalGroupsPolicy" * string,
        "sysctls" ? [SYSCTL], "windowsOptions" * WINDOWS_SECURITY_CONTEXT_OPTIONS,
    }
    POD_SPEC {
        "activeDeadlineSeconds" * i64, "affinity" * AFFINITY, "automountServiceAccountToken" * bool,
        "containers" + [CONTAINER], "dnsConfig" * POD_DNS_CONFIG, "dnsPolicy" ? string, "enableServiceLinks" * bool,
        "ephemeralContainers" ? [EPHEMERAL_CONTAINER], "hostAliases" ? [HOST_ALIAS], "hostIPC" ? bool,
        "hostNetwork" ? bool, "hostPID" ? bool, "hostUsers" * bool, "hostname" ? string, "hostnameOverride" * string,
        "imagePullSecrets" ? [LOCAL_OBJECT_REFERENCE], "initContainers" ? [CONTAINER], "nodeName" ? string,
        "nodeSelector" ? {string}, "os" * POD_OS, "overhead" ? {quantity}, "preemptionPolicy" * string,
        "priority" * i32, "priorityClassName" ? string, "readinessGates" ? [POD_READINESS_GATE],
        "resourceClaims" ? [POD_RESOURCE_CLAIM], "resources" * RESOURCE_REQUIREMENTS, "restartPolicy" ? string,
        "runtimeClassName" * string, "schedulerName" ? string, "schedulingGates" ? [POD_SCHEDULING_GATE],
        "schedulingGroup" * POD_SCHEDULING_GROUP, "securityContext" * POD_SECURITY_CONTEXT, "serviceAccount" ? string,
        "serviceAccountName" ? string, "setHostnameAsFQDN" * bool, "shareProcessNamespace" * bool,
        "subdomain" ? string, "terminationGracePeriodSeconds" * i64, "tolerations" ? [TOLERATION],
        "topologySpreadConstraints" ? [TOPOLOGY_SPREAD_CONSTRAINT], "volumes" ? [VOLUME],
    }
    POD_TEMPLATE_SPEC { "metadata" ~ OBJECT_META, "spec" ~ POD_SPEC }
    PREFERRED_SCHEDULING_TERM { "preference" ! NODE_SELECTOR_TERM, "weight" ! i32 }
    PROBE {
        "exec" * EXEC_ACTION, "failureThreshold" ? i32, "grpc" * GRPC_ACTION, "httpGet" * HTTP_GET_ACTION,
        "initialDelaySeconds" ? i32, "periodSeconds" ? i32, "successThreshold" ? i32, "tcpSocket" * TCP_SOCKET_ACTION,
        "terminationGracePeriodSeconds" * i64, "timeoutSeconds" ? i32,
    }
    RESOURCE_CLAIM { "name" ! string, "request" ? string }
    RESOURCE_REQUIREMENTS { "claims" ? [RESOURCE_CLAIM], "limits" ? {quantity}, "requests" ? {quantity} }
    ROLLING_UPDATE_DEPLOYMENT { "maxSurge" * intstr, "maxUnavailable" * intstr }
    SECCOMP_PROFILE { "localhostProfile" * string, "type" ! string }
    SECRET_ENV_SOURCE { "name" ? string, "optional" * bool }
    SECRET_KEY_SELECTOR { "key" ! string, "name" ? string, "optional" * bool }
    SECURITY_CONTEXT {
        "allowPrivilegeEscalation" * bool, "appArmorProfile" * APP_ARMOR_PROFILE, "capabilities" * CAPABILITIES,
        "privileged" * bool, "procMount" * string, "readOnlyRootFilesystem" * bool, "runAsGroup" * i64,
        "runAsNonRoot" * bool, "runAsUser" * i64, "seLinuxOptions" * SE_LINUX_OPTIONS,
        "seccompProfile" * SECCOMP_PROFILE, "windowsOptions" * WINDOWS_SECURITY_CONTEXT_OPTIONS,
    }
    SE_LINUX_OPTIONS { "level" ? string, "role" ? string, "type" ? string, "user" ? string }
    SLEEP_ACTION { "seconds" ! i64 }
    SUBSCRIPTION_CONFIG {
        "affinity" * AFFINITY, "annotations" ? {string}, "env" ? [ENV_VAR], "envFrom" ? [ENV_FROM_SOURCE],
        "nodeSelector" * {string}, "resources" * RESOURCE_REQUIREMENTS, "tolerations" ? [TOLERATION],
        "volumeMounts" ? [VOLUME_MOUNT], "volumes" ? [VOLUME],
    }
    SYSCTL { "name" ! string, "value" ! string }
    TCP_SOCKET_ACTION { "host" ? string, "port" ! intstr }
    TOLERATION { "effect" ? string, "key" ? string, "operator" ? string, "tolerationSeconds" * i64, "value" ? string }
    TOPOLOGY_SPREAD_CONSTRAINT {
        "labelSelector" * LABEL_SELECTOR, "matchLabelKeys" ? [string], "maxSkew" ! i32, "minDomains" * i32,
        "nodeAffinityPolicy" * string, "nodeTaintsPolicy" * string, "topologyKey" ! string,
        "whenUnsatisfiable" ! string,
    }
    VOLUME_DEVICE { "devicePath" ! string, "name" ! string }
    VOLUME_MOUNT {
        "mountPath" ! string, "mountPropagation" * string, "name" ! string, "readOnly" ? bool,
        "recursiveReadOnly" * string, "subPath" ? string, "subPathExpr" ? string,
    }
    WEIGHTED_POD_AFFINITY_TERM { "podAffinityTerm" ! POD_AFFINITY_TERM, "weight" ! i32 }
    WINDOWS_SECURITY_CONTEXT_OPTIONS {
        "gmsaCredentialSpec" * string, "gmsaCredentialSpecName" * string, "hostProcess" * bool,
        "runAsUserName" * string,
    }
}
