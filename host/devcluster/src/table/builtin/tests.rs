//! Columns and cells as kube-apiserver has them.

use chandler_devcluster_apimachinery::schema::{Builtins, GroupVersionKind};
use serde_json::{Value, json};
use time::macros::datetime;

use super::columns;
use crate::table::column::Row;

/// The cells of an object, each behind its heading; empty ones are omitted.
fn cells(group: &str, kind: &str, object: &Value) -> String {
    let row = Row { object, now: datetime!(2026-01-01 00:10:00 UTC) };
    let columns = columns(&GroupVersionKind::new(group, "v1", kind)).iter();
    let shown = columns.map(|column| {
        let definition = column.definition();
        let wide = if definition["priority"] == 1 { "*" } else { "" };
        format!("{}{wide}={}", definition["name"].as_str().unwrap(), column.cell(row))
    });
    shown.collect::<Vec<_>>().join(" | ")
}

#[test]
fn every_kind_has_columns_and_no_cell_needs_any_field() {
    for resource in Builtins::get().resources() {
        let kind = &resource.group_version_kind;
        let columns = columns(kind);
        assert!(columns.len() >= 2, "{kind}");
        for object in [json!({}), json!({"metadata": [], "spec": 1, "status": {"conditions": {}}})] {
            let row = Row { object: &object, now: datetime!(2026-01-01 00:00:00 UTC) };
            for column in columns {
                drop(column.cell(row));
            }
        }
    }
}

#[test]
fn workloads_show_progress_and_wide_their_containers() {
    let template = json!({"spec": {"containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "j"}]}});
    let deployment = json!({
        "metadata": {"name": "d", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "d"}}, "template": template},
        "status": {"readyReplicas": 1, "updatedReplicas": 3},
    });
    insta::assert_snapshot!(cells("apps", "Deployment", &deployment), @r#"Name="d" | Ready="1/3" | Up-to-date=3 | Available=0 | Age="10m" | Containers*="a,b" | Images*="i,j" | Selector*="app=d""#);
    let job = json!({
        "metadata": {"name": "j", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"completions": 2, "template": template, "selector": {"matchLabels": {"job": "j"}}},
        "status": {
            "succeeded": 2, "startTime": "2026-01-01T00:00:05Z", "completionTime": "2026-01-01T00:03:10Z",
            "conditions": [{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}],
        },
    });
    insta::assert_snapshot!(cells("batch", "Job", &job), @r#"Name="j" | Status="Complete" | Completions="2/2" | Duration="3m5s" | Age="10m" | Containers*="a,b" | Images*="i,j" | Selector*="job=j""#);
    let cron_job = json!({
        "metadata": {"name": "c"}, "spec": {"schedule": "* * * * *", "suspend": false, "jobTemplate": {"spec": {"template": template}}},
        "status": {"lastScheduleTime": "2026-01-01T00:09:30Z", "active": [{}]},
    });
    insta::assert_snapshot!(cells("batch", "CronJob", &cron_job), @r#"Name="c" | Schedule="* * * * *" | Timezone="<none>" | Suspend="False" | Active=1 | Last Schedule="30s" | Age="<unknown>" | Containers*="a,b" | Images*="i,j" | Selector*="<none>""#);
    let daemon_set = json!({
        "metadata": {"name": "d"},
        "spec": {"selector": {}, "template": {"spec": {"containers": [], "nodeSelector": {"os": "linux"}}}},
    });
    insta::assert_snapshot!(cells("apps", "DaemonSet", &daemon_set), @r#"Name="d" | Desired=0 | Current=0 | Ready=0 | Up-to-date=0 | Available=0 | Node Selector="os=linux" | Age="<unknown>" | Containers*="" | Images*="" | Selector*="<none>""#);
    let revision = json!({
        "metadata": {"name": "r", "ownerReferences": [
            {"kind": "Node", "apiVersion": "v1", "name": "n"},
            {"kind": "DaemonSet", "apiVersion": "apps/v1", "name": "d", "controller": true},
        ]},
        "revision": 3,
    });
    insta::assert_snapshot!(cells("apps", "ControllerRevision", &revision), @r#"Name="r" | Controller="daemonset.apps/d" | Revision=3 | Age="<unknown>""#);
}

#[test]
fn networks_show_addresses_and_ports() {
    let service = |spec: Value, ingress: Value| {
        cells(
            "",
            "Service",
            &json!({"metadata": {"name": "s"}, "spec": spec, "status": {"loadBalancer": {"ingress": ingress}}}),
        )
    };
    let ports = json!([{"port": 80, "protocol": "TCP", "nodePort": 30080}, {"port": 53, "protocol": "UDP"}]);
    let spec =
        json!({"type": "LoadBalancer", "clusterIPs": ["10.0.0.1"], "ports": ports, "selector": {"b": "2", "a": "1"}});
    insta::assert_snapshot!(service(spec.clone(), json!([])), @r#"Name="s" | Type="LoadBalancer" | Cluster-IP="10.0.0.1" | External-IP="<pending>" | Port(s)="80:30080/TCP,53/UDP" | Age="<unknown>" | Selector*="a=1,b=2""#);
    insta::assert_snapshot!(service(spec, json!([{"ip": "192.0.2.2"}, {"hostname": "lb.example.com"}, {"ip": "192.0.2.1"}])), @r#"Name="s" | Type="LoadBalancer" | Cluster-IP="10.0.0.1" | External-IP="192.0.2.1,192.0.2.2,lb.example.com" | Port(s)="80:30080/TCP,53/UDP" | Age="<unknown>" | Selector*="a=1,b=2""#);
    insta::assert_snapshot!(service(json!({"type": "ExternalName", "externalName": "x.example.com"}), json!(null)), @r#"Name="s" | Type="ExternalName" | Cluster-IP="<none>" | External-IP="x.example.com" | Port(s)="<none>" | Age="<unknown>" | Selector*="<none>""#);
    insta::assert_snapshot!(service(json!({"type": "ClusterIP", "clusterIP": "None", "externalIPs": ["192.0.2.9"]}), json!(null)), @r#"Name="s" | Type="ClusterIP" | Cluster-IP="None" | External-IP="192.0.2.9" | Port(s)="<none>" | Age="<unknown>" | Selector*="<none>""#);
    let host = |name: &str| json!({"host": name});
    let ingress = json!({
        "metadata": {"name": "i"},
        "spec": {"ingressClassName": "nginx", "rules": [host("a"), host("b"), host("c"), host("d"), {}], "tls": [{}]},
    });
    insta::assert_snapshot!(cells("networking.k8s.io", "Ingress", &ingress), @r#"Name="i" | Class="nginx" | Hosts="a,b,c + 2 more..." | Address="" | Ports="80, 443" | Age="<unknown>""#);
    let slice = json!({
        "metadata": {"name": "e"}, "addressType": "IPv4", "ports": [{"port": 80}, {"name": "web"}, {}],
        "endpoints": [{"addresses": ["10.0.0.1", "10.0.0.2"]}, {"addresses": ["10.0.0.3", "10.0.0.4"]}],
    });
    insta::assert_snapshot!(cells("discovery.k8s.io", "EndpointSlice", &slice), @r#"Name="e" | AddressType="IPv4" | Ports="80,web,*" | Endpoints="10.0.0.1,10.0.0.2,10.0.0.3 + 1 more..." | Age="<unknown>""#);
    let endpoints = json!({"metadata": {"name": "e"}, "subsets": [
        {"addresses": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}], "ports": [{"port": 80}, {"port": 443}]}]});
    insta::assert_snapshot!(cells("", "Endpoints", &endpoints), @r#"Name="e" | Endpoints="10.0.0.1:80,[fd00::1]:80,10.0.0.1:443 + 1 more..." | Age="<unknown>""#);
}

#[test]
fn storage_and_nodes() {
    let claim = json!({
        "metadata": {"name": "p", "annotations": {"volume.beta.kubernetes.io/storage-class": "old"}},
        "spec": {"volumeName": "v", "storageClassName": "new", "volumeMode": "Filesystem"},
        "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"]},
    });
    insta::assert_snapshot!(cells("", "PersistentVolumeClaim", &claim), @r#"Name="p" | Status="Bound" | Volume="v" | Capacity="1Gi" | Access Modes="RWO,RWX" | StorageClass="old" | VolumeAttributesClass="<unset>" | Age="<unknown>" | VolumeMode*="Filesystem""#);
    let node = json!({
        "metadata": {"name": "n", "labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "edge", "node-role.kubernetes.io/": ""}},
        "spec": {"unschedulable": true},
        "status": {
            "conditions": [{"type": "Ready", "status": "False"}], "addresses": [{"type": "InternalIP", "address": "10.0.0.9"}],
            "nodeInfo": {"kubeletVersion": "v1.36.2", "kernelVersion": "6.1", "architecture": "amd64"},
        },
    });
    insta::assert_snapshot!(cells("", "Node", &node), @r#"Name="n" | Status="NotReady,SchedulingDisabled" | Roles="edge,worker" | Age="<unknown>" | Version="v1.36.2" | Internal-IP*="10.0.0.9" | External-IP*="<none>" | OS-Image*="<unknown>" | Kernel-Version*="6.1 (amd64)" | Container-Runtime*="<unknown>""#);
    let class = json!({
        "metadata": {"name": "c", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "p",
    });
    insta::assert_snapshot!(cells("storage.k8s.io", "StorageClass", &class), @r#"Name="c (default)" | Provisioner="p" | ReclaimPolicy="Delete" | VolumeBindingMode="Immediate" | AllowVolumeExpansion=false | Age="<unknown>""#);
}

#[test]
fn events_show_time_and_object() {
    let event = json!({
        "metadata": {"name": "e"}, "type": "Warning", "reason": "Failed", "message": " it failed \n",
        "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec.containers{a}"},
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:09:00Z", "count": 4,
        "source": {"component": "kubelet", "host": "n"},
    });
    insta::assert_snapshot!(cells("", "Event", &event), @r#"Last Seen="60s" | Type="Warning" | Reason="Failed" | Object="pod/p" | Subobject*="spec.containers{a}" | Source*="kubelet, n" | Message="it failed" | First Seen*="10m" | Count*=4 | Name*="e""#);
    let series = json!({
        "metadata": {"name": "e"}, "involvedObject": {"kind": "Pod"}, "eventTime": "2026-01-01T00:00:00.000000Z",
        "series": {"count": 7, "lastObservedTime": "2026-01-01T00:09:58.500000Z"}, "reportingComponent": "c",
    });
    insta::assert_snapshot!(cells("", "Event", &series), @r#"Last Seen="1s" | Type="" | Reason="" | Object="pod" | Subobject*="" | Source*="c" | Message="" | First Seen*="10m" | Count*=7 | Name*="e""#);
}

#[test]
fn access_quotas_and_autoscalers() {
    let binding = json!({
        "metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "admin"},
        "subjects": [{"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"}, {"kind": "User", "name": "w"},
            {"kind": "ServiceAccount", "namespace": "ns", "name": "s"}],
    });
    insta::assert_snapshot!(cells("rbac.authorization.k8s.io", "ClusterRoleBinding", &binding), @r#"Name="b" | Role="ClusterRole/admin" | Age="<unknown>" | Users*="u, w" | Groups*="g" | ServiceAccounts*="ns/s""#);
    let quota = json!({
        "metadata": {"name": "q"},
        "status": {"hard": {"limits.cpu": "2", "pods": "3", "requests.cpu": "1"}, "used": {"pods": "1"}},
    });
    insta::assert_snapshot!(cells("", "ResourceQuota", &quota), @r#"Name="q" | Request="pods: 1/3, requests.cpu: 0/1" | Limit="limits.cpu: 0/2" | Age="<unknown>""#);
    let metric = |kind: &str, source: &str, content: Value| json!({"type": kind, source: content});
    let autoscaler = json!({
        "metadata": {"name": "h"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 5, "metrics": [
            metric("Resource", "resource", json!({"name": "cpu", "target": {"averageUtilization": 80}})),
            metric("External", "external", json!({"target": {"averageValue": "10"}})),
            metric("Pods", "pods", json!({"target": {"averageValue": "1"}})),
        ]},
        "status": {"currentReplicas": 2, "currentMetrics": [
            metric("Resource", "resource", json!({"name": "cpu", "current": {"averageUtilization": 33}}))]},
    });
    insta::assert_snapshot!(cells("autoscaling", "HorizontalPodAutoscaler", &autoscaler), @r#"Name="h" | Reference="Deployment/d" | Targets="cpu: 33%/80%, <unknown>/10 (avg) + 1 more..." | MinPods="<unset>" | MaxPods=5 | Replicas=2 | Age="<unknown>""#);
    let request = json!({
        "metadata": {"name": "r"}, "spec": {"signerName": "s", "username": "u", "expirationSeconds": 86400},
        "status": {"conditions": [{"type": "Approved"}], "certificate": "Yg=="},
    });
    insta::assert_snapshot!(cells("certificates.k8s.io", "CertificateSigningRequest", &request), @r#"Name="r" | Age="<unknown>" | SignerName="s" | Requestor="u" | RequestedDuration="24h" | Condition="Approved,Issued""#);
}
