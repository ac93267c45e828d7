//! `chandler doctor`: an installation from the printed manifests has no problem, and each thing that is missing is found.

use chandler_devcluster::Options;
use chandler_tests::Cluster;
use k8s_openapi::{
    api::{
        admissionregistration::v1::ValidatingAdmissionPolicy,
        coordination::v1::{Lease, LeaseSpec},
        core::v1::ServiceAccount,
        rbac::v1::ClusterRole,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::{SignedDuration, Timestamp},
};
use kube::{
    Api, Client,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::installed::{apply, kubeconfig, objects, write};
use crate::support::{Outcome, chandler};

/// The states of a check.
fn states<'a>(findings: &'a Value, check: &str) -> Vec<&'a str> {
    let of_check = findings.as_array().unwrap().iter().filter(|finding| finding["check"] == check);
    of_check.map(|finding| finding["state"].as_str().unwrap()).collect()
}

/// A Lease that a controller renewed this long after now.
async fn renew(client: &Client, ahead: SignedDuration) {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "chandler-system");
    let _ = leases.delete("chandler-controller", &DeleteParams::default()).await;
    let spec = LeaseSpec {
        holder_identity: Some("pod-a".into()),
        lease_duration_seconds: Some(3600),
        renew_time: Some(MicroTime(Timestamp::now() + ahead)),
        ..LeaseSpec::default()
    };
    let metadata = ObjectMeta { name: Some("chandler-controller".into()), ..ObjectMeta::default() };
    leases.create(&PostParams::default(), &Lease { metadata, spec: Some(spec) }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_finds_what_is_missing_or_different() {
    let cluster = Cluster::embedded(Options::default()).await;
    let (client, dev) = (cluster.client(), cluster.devcluster().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    write(&place("admin"), &dev.kubeconfig());
    let doctor = |user: &str, format: &str| -> Outcome {
        let kubeconfig = place(user);
        chandler(["doctor", "-o", format, "--kubeconfig", kubeconfig.to_str().unwrap()], "")
    };
    let json = |run: &Outcome| -> Value { serde_json::from_str(&run.stdout).unwrap() };

    let empty = doctor("admin", "text");
    assert_eq!(empty.code, Some(1), "{}", empty.stderr);
    assert!(
        empty.stdout.contains("does not exist") && empty.stdout.contains("chandler manifests |"),
        "{}",
        empty.stdout
    );
    assert!(empty.stderr.contains("problems were found"), "{}", empty.stderr);

    apply(&client, &objects(&[]), false).await;
    let unled = doctor("admin", "json");
    assert_eq!((unled.code, states(&json(&unled), "controller")), (Some(1), vec!["Problem"]), "{}", unled.stdout);
    renew(&client, SignedDuration::ZERO).await;
    let healthy = doctor("admin", "json");
    assert_eq!(healthy.code, Some(0), "{}{}", healthy.stdout, healthy.stderr);
    assert!(json(&healthy).as_array().unwrap().iter().all(|finding| finding["state"] == "OK"), "{}", healthy.stdout);

    renew(&client, SignedDuration::from_mins(5)).await;
    let roles: Api<ClusterRole> = Api::all(client.clone());
    roles.delete("chandler", &DeleteParams::default()).await.unwrap();
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let weaker = Patch::Merge(json!({"spec": {"validations": [{"expression": "true"}]}}));
    policies.patch("chandler-records", &PatchParams::default(), &weaker).await.unwrap();
    policies.delete("chandler-accounts", &DeleteParams::default()).await.unwrap();
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let names = crds.list(&kube::api::ListParams::default()).await.unwrap();
    assert!(names.items.len() > 5);
    crds.delete("catalogs.chandler.dev", &DeleteParams::default()).await.unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    for tenant in ["team-a", "team-a-b"] {
        let annotations = json!({"chandler.dev/bundledeployments": format!("{tenant}-*")});
        let account = json!({"metadata": {"name": tenant, "annotations": annotations}});
        accounts.create(&PostParams::default(), &serde_json::from_value(account).unwrap()).await.unwrap();
    }
    let broken = doctor("admin", "json");
    let findings = json(&broken);
    assert_eq!(broken.code, Some(1));
    for (check, expected) in [
        ("clock", vec!["Warning"]),
        ("accounts", vec!["Warning"]),
        ("permissions", vec!["Problem"]),
        ("admission policies", vec!["Warning", "Warning"]),
        ("CRDs", vec!["Problem"]),
        ("API priority", vec!["OK"]),
    ] {
        assert_eq!(states(&findings, check), expected, "{check}: {}", broken.stdout);
    }
    for message in [
        "ClusterRole chandler does not exist",
        "ValidatingAdmissionPolicy chandler-accounts does not exist",
        "ValidatingAdmissionPolicy chandler-records is not as in this version of the command: spec.validations",
        "CustomResourceDefinition catalogs.chandler.dev does not exist",
        "default/team-a (team-a-*) and default/team-a-b (team-a-b-*) list the same names",
        "300 seconds ahead",
    ] {
        let is_near = message.contains("seconds") && broken.stdout.contains("seconds ahead");
        assert!(is_near || broken.stdout.contains(message), "{message}: {}", broken.stdout);
    }

    // A user without permissions sees what cannot be read, and no false alarm.
    kubeconfig(dev, &client, "chandler-system/default", &place("unprivileged")).await;
    let unprivileged = doctor("unprivileged", "json");
    assert_eq!(unprivileged.code, Some(0), "{}{}", unprivileged.stdout, unprivileged.stderr);
    assert_eq!(states(&json(&unprivileged), "permissions"), ["Unknown"; 4], "{}", unprivileged.stdout);
}
