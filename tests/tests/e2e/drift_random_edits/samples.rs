//! A valid object of each built-in kind, without its identity.

use serde_json::{Value, json};

const IMAGE: &str = "registry.k8s.io/pause:3.10";

/// Kinds that the test skips, and why.
pub(super) const LEFT_OUT: &[(&str, &str)] = &[
    ("Event", "the API server removes it by itself"),
    ("Namespace", "it has no specification that users write"),
    ("Node", "the control plane has its own"),
    ("APIService", "it would be asked for the kinds that it names"),
    ("ComponentStatus", "it cannot be written"),
    ("CertificateSigningRequest", "nothing of its specification can be changed"),
];

/// The name that an object of this kind must have, if the kind restricts names.
pub(super) fn name(kind: &str, number: u64) -> Option<String> {
    (kind == "IPAddress").then(|| format!("10.77.{}.{}", number / 250 % 250, number % 250 + 1))
}

/// The members besides `apiVersion`, `kind` and `metadata`, or `None` if they are generated.
pub(super) fn sample(kind: &str, version: &str) -> Option<Value> {
    let selector = json!({"matchLabels": {"app": "web"}});
    let pod = |restart: &str| {
        json!({"metadata": {"labels": {"app": "web"}}, "spec": {
            "restartPolicy": restart,
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "tolerations": [{"key": "a", "operator": "Exists"}],
            "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1,
                "preference": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}}]}},
            "containers": [{"name": "web", "image": IMAGE, "args": ["a"], "ports": [{"containerPort": 80}],
                "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}],
                "resources": {"limits": {"cpu": "100m"}}, "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                "securityContext": {"capabilities": {"drop": ["ALL"]}}}],
            "volumes": [{"name": "v", "configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}},
                {"name": "e", "emptyDir": {}}]}})
    };
    let rules = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["a"]}]);
    let subjects = json!([{"kind": "User", "name": "nobody", "apiGroup": "rbac.authorization.k8s.io"}]);
    let role = |kind: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "view"});
    // No object belongs to this group, so the webhook is never called.
    let webhooks = json!([{"name": "none.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore",
        "clientConfig": {"url": "https://127.0.0.1:1/none"},
        "rules": [{"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nones"]}],
        "namespaceSelector": {"matchLabels": {"none": "none"}},
        "matchConditions": [{"name": "none", "expression": "false"}]}]);
    let constraints = json!({"resourceRules": [{"apiGroups": ["none.example.com"], "apiVersions": ["v1"],
        "operations": ["CREATE"], "resources": ["nones"]}]});
    Some(match kind {
        "ConfigMap" => json!({"data": {"a": "1"}, "binaryData": {"b": "YQ=="}}),
        "Secret" => json!({"type": "Opaque", "data": {"a": "YQ=="}}),
        "ServiceAccount" => json!({"imagePullSecrets": [{"name": "a"}], "automountServiceAccountToken": false}),
        "Service" => json!({"spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}),
        "Endpoints" => json!({"subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]}),
        "LimitRange" => json!({"spec": {"limits": [{"type": "Container", "max": {"cpu": "64"}}]}}),
        "ResourceQuota" => json!({"spec": {"hard": {"count/none.example.com": "5"}, "scopes": ["NotTerminating"]}}),
        "PersistentVolumeClaim" => json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "none",
            "resources": {"requests": {"storage": "1Gi"}}}}),
        "PersistentVolume" => json!({"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "storageClassName": "none", "csi": {"driver": "none.example.com", "volumeHandle": "a",
            "volumeAttributes": {"a": "b"}}}}),
        "Pod" => {
            json!({"spec": {"containers": [{"name": "web", "image": IMAGE}], "tolerations": [{"key": "a", "operator": "Exists"}]}})
        }
        "PodTemplate" => json!({"template": pod("Always")}),
        "ReplicationController" => {
            json!({"spec": {"replicas": 0, "selector": {"app": "web"}, "template": pod("Always")}})
        }
        "ReplicaSet" | "Deployment" => {
            json!({"spec": {"replicas": 0, "selector": selector, "template": pod("Always")}})
        }
        "DaemonSet" => json!({"spec": {"selector": selector, "template": pod("Always")}}),
        "StatefulSet" => {
            json!({"spec": {"replicas": 0, "serviceName": "web", "selector": selector, "template": pod("Always"),
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}}}}]}})
        }
        "ControllerRevision" => json!({"revision": 1, "data": {"a": {"b": "c"}}}),
        "Job" => json!({"spec": {"suspend": true, "template": pod("Never")}}),
        "CronJob" => {
            json!({"spec": {"schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": {"spec": {"template": pod("Never")}}}})
        }
        "HorizontalPodAutoscaler" if version == "v1" => json!({"spec": {"maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"}}}),
        "HorizontalPodAutoscaler" => json!({"spec": {"maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]}}),
        "PodDisruptionBudget" => json!({"spec": {"minAvailable": 1, "selector": selector}}),
        "NetworkPolicy" => json!({"spec": {"podSelector": selector, "policyTypes": ["Ingress"],
            "ingress": [{"from": [{"podSelector": selector}], "ports": [{"port": 80}]}]}}),
        "Ingress" => {
            json!({"spec": {"rules": [{"host": "a.example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix",
            "backend": {"service": {"name": "web", "port": {"number": 80}}}}]}}], "tls": [{"hosts": ["a.example.com"], "secretName": "t"}]}})
        }
        "IngressClass" => json!({"spec": {"controller": "example.com/none",
            "parameters": {"kind": "ConfigMap", "name": "a", "scope": "Cluster"}}}),
        "IPAddress" => json!({"spec": {"parentRef": {"resource": "services", "namespace": "none", "name": "none"}}}),
        "ServiceCIDR" => json!({"spec": {"cidrs": ["10.99.0.0/24"]}}),
        "Role" | "ClusterRole" => json!({"rules": rules}),
        "RoleBinding" => json!({"roleRef": role("Role"), "subjects": subjects}),
        "ClusterRoleBinding" => json!({"roleRef": role("ClusterRole"), "subjects": subjects}),
        "StorageClass" => json!({"provisioner": "none.example.com", "parameters": {"a": "b"}, "mountOptions": ["ro"],
            "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}]}),
        "CSIDriver" => json!({"spec": {"attachRequired": false, "tokenRequests": [{"audience": "a"}]}}),
        "CSINode" => {
            json!({"spec": {"drivers": [{"name": "none.example.com", "nodeID": "a", "topologyKeys": ["zone"]}]}})
        }
        "CSIStorageCapacity" => json!({"storageClassName": "none", "capacity": "1Gi", "nodeTopology": selector}),
        "VolumeAttachment" => json!({"spec": {"attacher": "none.example.com", "nodeName": "none",
            "source": {"persistentVolumeName": "none"}}}),
        "VolumeAttributesClass" => json!({"driverName": "none.example.com", "parameters": {"a": "b"}}),
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => json!({"webhooks": webhooks}),
        "ValidatingAdmissionPolicy" => json!({"spec": {"matchConstraints": constraints, "failurePolicy": "Ignore",
            "validations": [{"expression": "true"}]}}),
        "ValidatingAdmissionPolicyBinding" => json!({"spec": {"policyName": "none", "validationActions": ["Audit"]}}),
        "MutatingAdmissionPolicy" => json!({"spec": {"matchConstraints": constraints, "failurePolicy": "Ignore",
            "reinvocationPolicy": "Never", "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression":
                "[JSONPatch{op: \"test\", path: \"/none\", value: \"none\"}]"}}]}}),
        "MutatingAdmissionPolicyBinding" => json!({"spec": {"policyName": "none"}}),
        "PriorityClass" => json!({"value": 1, "description": "none"}),
        "Lease" => json!({"spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}}),
        "RuntimeClass" => json!({"handler": "none", "overhead": {"podFixed": {"cpu": "1m"}},
            "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "a", "operator": "Exists"}]}}),
        "EndpointSlice" => {
            json!({"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": [{"port": 80}]})
        }
        "FlowSchema" => json!({"spec": {"priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 9000,
            "rules": [{"subjects": [{"kind": "User", "user": {"name": "nobody"}}],
                "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/none"]}]}]}}),
        "PriorityLevelConfiguration" => json!({"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 1,
            "limitResponse": {"type": "Reject"}}}}),
        "DeviceClass" => json!({"spec": {"selectors": [{"cel": {"expression": "true"}}]}}),
        "ResourceClaim" => {
            json!({"spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "none"}}]}}})
        }
        "ResourceClaimTemplate" => {
            json!({"spec": {"spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "none"}}]}}}})
        }
        "ResourceSlice" => json!({"spec": {"driver": "none.example.com", "nodeName": "none",
            "pool": {"name": "none", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "a", "attributes": {"x": {"string": "y"}}}]}}),
        _ => return None,
    })
}
