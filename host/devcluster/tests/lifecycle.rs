//! The lifecycle of objects: finalizers, owners, namespaces, CRDs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test that cannot continue fails"
)]

use std::time::Duration;

use chandler_devcluster::{Options, PutError};
use kube::Client;
use serde_json::{Value, json};

use crate::common::{
    self, CONFIG_MAPS, CRDS, MERGE, WIDGETS, config_map, establish_widgets, get, ok, quiet, send, start, until,
    until_gone, widget, widgets,
};

fn path(name: &str) -> String {
    format!("{CONFIG_MAPS}/{name}")
}

/// Creates a ConfigMap that these own.
async fn owned(client: &Client, name: &str, owners: &[&Value], blocks: bool) -> Value {
    let reference = |owner: &&Value| {
        json!({
            "apiVersion": owner["apiVersion"], "kind": owner["kind"],
            "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "blockOwnerDeletion": blocks,
        })
    };
    let mut object = config_map(name, &json!({}));
    object["metadata"]["ownerReferences"] = owners.iter().map(reference).collect();
    ok(client, "POST", CONFIG_MAPS, "", object).await
}

async fn plain(client: &Client, name: &str) -> Value {
    owned(client, name, &[], false).await
}

#[tokio::test]
async fn finalizers_keep_an_object_until_the_last_one_is_gone() {
    let cluster = quiet().await;
    let client = cluster.client();
    let mut object = config_map("a", &json!({}));
    object["metadata"]["finalizers"] = json!(["example.com/one", "example.com/two"]);
    ok(&client, "POST", CONFIG_MAPS, "", object).await;
    let waiting = ok(&client, "DELETE", &path("a"), "", Value::Null).await;
    assert!(waiting["metadata"]["deletionTimestamp"].is_string());
    let revision = cluster.revision();
    ok(&client, "DELETE", &path("a"), "", Value::Null).await;
    assert_eq!(cluster.revision(), revision, "a second delete changes nothing");

    let added = json!({"metadata": {"finalizers": ["example.com/one", "example.com/two", "example.com/three"]}});
    assert_eq!(send(&client, "PATCH", &path("a"), MERGE, added).await.0, 422);
    ok(
        &client,
        "PATCH",
        &path("a"),
        MERGE,
        json!({"metadata": {"finalizers": ["example.com/two"]}, "data": {"x": "1"}}),
    )
    .await;
    let still = ok(&client, "GET", &path("a"), "", Value::Null).await;
    assert_eq!(still["data"]["x"], "1", "it can be changed while it waits");
    let mut events =
        common::watch(&client, &format!("{CONFIG_MAPS}?watch=true&resourceVersion={}", cluster.revision())).await;
    ok(&client, "PATCH", &path("a"), MERGE, json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(events.summary(1).await, ["DELETED a"]);
    assert_eq!(get(&client, &path("a")).await.0, 404);
}

#[tokio::test]
async fn dependants_go_after_their_owner() {
    let cluster = quiet().await;
    let client = cluster.client();
    let owner = plain(&client, "owner").await;
    let child = owned(&client, "child", &[&owner], false).await;
    owned(&client, "grandchild", &[&child], false).await;
    ok(&client, "DELETE", &path("owner"), "", json!({"propagationPolicy": "Background"})).await;
    until_gone(&client, &path("grandchild")).await;
    until_gone(&client, &path("child")).await;
}

#[tokio::test]
async fn dependants_go_before_their_owner_in_the_foreground() {
    let cluster = quiet().await;
    let client = cluster.client();
    let owner = plain(&client, "owner").await;
    let mut child = config_map("child", &json!({}));
    child["metadata"]["finalizers"] = json!(["example.com/slow"]);
    child["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true}]);
    ok(&client, "POST", CONFIG_MAPS, "", child).await;
    let (status, waiting) =
        send(&client, "DELETE", &path("owner"), "", json!({"propagationPolicy": "Foreground"})).await;
    assert_eq!((status, &waiting["metadata"]["finalizers"]), (202, &json!(["foregroundDeletion"])));
    until(&client, &path("child"), |_, child| child["metadata"]["deletionTimestamp"].is_string()).await;
    assert_eq!(get(&client, &path("owner")).await.0, 200, "the owner waits");
    ok(&client, "PATCH", &path("child"), MERGE, json!({"metadata": {"finalizers": null}})).await;
    until_gone(&client, &path("owner")).await;
    assert_eq!(get(&client, &path("child")).await.0, 404);
}

#[tokio::test]
async fn orphans_stay_and_forget_their_owner() {
    let cluster = quiet().await;
    let client = cluster.client();
    let owner = plain(&client, "owner").await;
    owned(&client, "child", &[&owner], false).await;
    ok(&client, "DELETE", &path("owner"), "", json!({"propagationPolicy": "Orphan"})).await;
    until_gone(&client, &path("owner")).await;
    let child = ok(&client, "GET", &path("child"), "", Value::Null).await;
    assert_eq!(child["metadata"].get("ownerReferences"), None);
}

#[tokio::test]
async fn policies_see_the_garbage_collector() {
    const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
    let cluster = quiet().await;
    let client = cluster.client();
    let spec = json!({
        "matchConstraints": {"resourceRules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE", "DELETE"], "resources": ["configmaps"]}]},
        "validations": [{"expression": "oldObject.metadata.name != 'child' \
            || request.userInfo.username != 'system:serviceaccount:kube-system:generic-garbage-collector'"}],
    });
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
                        "metadata": {"name": "keep"}, "spec": spec});
    ok(&client, "POST", POLICIES, "", policy).await;
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
                         "metadata": {"name": "keep"}, "spec": {"policyName": "keep", "validationActions": ["Deny"]}});
    ok(&client, "POST", BINDINGS, "", binding).await;
    let owner = plain(&client, "owner").await;
    owned(&client, "child", &[&owner], false).await;
    let orphan = json!({"propagationPolicy": "Orphan"});
    ok(&client, "DELETE", &path("owner"), "", orphan.clone()).await;
    // A later deletion that nothing denies.
    let other = plain(&client, "other").await;
    owned(&client, "free", &[&other], false).await;
    ok(&client, "DELETE", &path("other"), "", orphan).await;
    until_gone(&client, &path("other")).await;
    assert_eq!(get(&client, &path("owner")).await.0, 200, "the child still names it");
    let child = ok(&client, "GET", &path("child"), "", Value::Null).await;
    assert_eq!(child["metadata"]["ownerReferences"][0]["name"], "owner");

    ok(&client, "DELETE", &format!("{BINDINGS}/keep"), "", Value::Null).await;
    until_gone(&client, &path("owner")).await;
    let child = ok(&client, "GET", &path("child"), "", Value::Null).await;
    assert_eq!(child["metadata"].get("ownerReferences"), None);
}

#[tokio::test]
async fn an_object_lives_while_one_of_its_owners_does() {
    let cluster = quiet().await;
    let client = cluster.client();
    let (first, second) = (plain(&client, "first").await, plain(&client, "second").await);
    owned(&client, "child", &[&first, &second], false).await;
    ok(&client, "DELETE", &path("first"), "", Value::Null).await;
    let one_left =
        |_: u16, child: &Value| child["metadata"]["ownerReferences"].as_array().is_some_and(|owners| owners.len() == 1);
    until(&client, &path("child"), one_left).await;
    ok(&client, "DELETE", &path("second"), "", Value::Null).await;
    until_gone(&client, &path("child")).await;
}

#[tokio::test]
async fn an_owner_that_never_was_or_is_elsewhere_does_not_keep_anything() {
    let cluster = quiet().await;
    let client = cluster.client();
    let absent = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nobody", "uid": "1-2-3"}});
    owned(&client, "a", &[&absent], false).await;
    until_gone(&client, &path("a")).await;

    let elsewhere =
        ok(&client, "POST", "/api/v1/namespaces/kube-system/configmaps", "", config_map("owner", &json!({}))).await;
    owned(&client, "b", &[&elsewhere], false).await;
    until_gone(&client, &path("b")).await;

    // A kind that is not served cannot be looked up: better to keep too much than to delete by mistake.
    let unknown =
        json!({"apiVersion": "nowhere.example.com/v1", "kind": "Thing", "metadata": {"name": "x", "uid": "4-5-6"}});
    owned(&client, "c", &[&unknown], false).await;
    let namespace = ok(&client, "GET", "/api/v1/namespaces/default", "", Value::Null).await;
    owned(&client, "d", &[&namespace], false).await;
    owned(&client, "marker", &[&absent], false).await;
    until_gone(&client, &path("marker")).await;
    assert_eq!(get(&client, &path("c")).await.0, 200);
    assert_eq!(get(&client, &path("d")).await.0, 200, "a cluster-scoped owner counts everywhere");
}

#[tokio::test]
async fn namespaces_get_default_objects_and_are_deleted_with_their_content() {
    let cluster = quiet().await;
    let client = cluster.client();
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let created = ok(&client, "POST", "/api/v1/namespaces", "", namespace("shop")).await;
    assert_eq!(created["metadata"]["labels"]["kubernetes.io/metadata.name"], "shop");
    assert_eq!(
        (&created["spec"]["finalizers"], &created["status"]["phase"]),
        (&json!(["kubernetes"]), &json!("Active"))
    );
    let in_shop = "/api/v1/namespaces/shop/configmaps";
    until(&client, "/api/v1/namespaces/shop/serviceaccounts/default", |status, _| status == 200).await;
    let authority = until(&client, &format!("{in_shop}/kube-root-ca.crt"), |status, _| status == 200).await;
    assert!(authority["data"]["ca.crt"].as_str().unwrap().contains("BEGIN CERTIFICATE"));

    let mut held = config_map("held", &json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    ok(&client, "POST", in_shop, "", held).await;
    ok(&client, "POST", in_shop, "", config_map("free", &json!({}))).await;
    let ending = ok(&client, "DELETE", "/api/v1/namespaces/shop", "", Value::Null).await;
    assert_eq!(ending["status"]["phase"], "Terminating");
    until_gone(&client, &format!("{in_shop}/free")).await;
    let (status, refused) = send(&client, "POST", in_shop, "", config_map("late", &json!({}))).await;
    assert_eq!((status, &refused["reason"]), (403, &json!("Forbidden")));
    assert_eq!(refused["details"]["causes"][0]["reason"], "NamespaceTerminating");
    let remaining =
        until(&client, "/api/v1/namespaces/shop", |_, namespace| namespace["status"]["conditions"].is_array()).await;
    assert!(remaining["status"]["conditions"].to_string().contains("example.com/hold"), "{remaining}");

    ok(&client, "PATCH", &format!("{in_shop}/held"), MERGE, json!({"metadata": {"finalizers": null}})).await;
    until_gone(&client, "/api/v1/namespaces/shop").await;
    for protected in ["default", "kube-system"] {
        assert_eq!(send(&client, "DELETE", &format!("/api/v1/namespaces/{protected}"), "", Value::Null).await.0, 403);
    }
}

#[tokio::test]
async fn a_crd_is_established_after_a_delay_and_opens_its_api() {
    let delay = Duration::from_millis(300);
    let cluster = start(Options { workloads: false, established_delay: delay, ..Options::default() }).await;
    let client = cluster.client();
    ok(&client, "POST", CRDS, "", widgets()).await;
    assert_eq!(send(&client, "POST", WIDGETS, "", widget("w", &json!({}))).await.0, 404, "too early");
    let crd = format!("{CRDS}/widgets.example.com");
    let condition = |wanted: &'static str| {
        move |_: u16, crd: &Value| {
            let conditions = crd["status"]["conditions"].as_array();
            conditions.is_some_and(|all| all.iter().any(|found| found["type"] == wanted && found["status"] == "True"))
        }
    };
    until(&client, &crd, condition("NamesAccepted")).await;
    let established = until(&client, &crd, condition("Established")).await;
    assert_eq!(established["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(established["status"]["acceptedNames"]["listKind"], "WidgetList");
    ok(&client, "POST", WIDGETS, "", widget("w", &json!({}))).await;
    let groups = ok(&client, "GET", "/apis", "", Value::Null).await;
    assert!(groups["groups"].as_array().unwrap().iter().any(|group| group["name"] == "example.com"));
    let resources = ok(&client, "GET", "/apis/example.com/v1", "", Value::Null).await;
    assert_eq!(resources["resources"][0]["shortNames"], json!(["wd"]));
    assert_eq!(get(&client, "/openapi/v3/apis/example.com/v1").await.0, 200);
}

#[tokio::test]
async fn deleting_a_crd_deletes_its_objects() {
    let cluster = quiet().await;
    let client = cluster.client();
    establish_widgets(&client).await;
    let mut held = widget("held", &json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    ok(&client, "POST", WIDGETS, "", held).await;
    ok(&client, "POST", WIDGETS, "", widget("free", &json!({}))).await;
    let crd = format!("{CRDS}/widgets.example.com");
    ok(&client, "DELETE", &crd, "", Value::Null).await;
    until_gone(&client, &format!("{WIDGETS}/free")).await;
    assert_eq!(send(&client, "POST", WIDGETS, "", widget("late", &json!({}))).await.0, 403);
    assert_eq!(get(&client, &crd).await.0, 200, "it waits for the one that is held");
    ok(&client, "PATCH", &format!("{WIDGETS}/held"), MERGE, json!({"metadata": {"finalizers": null}})).await;
    until_gone(&client, &crd).await;
    until_gone(&client, "/apis/example.com/v1").await;
    // The CRD again: no objects of the first one are left.
    establish_widgets(&client).await;
    let list = ok(&client, "GET", WIDGETS, "", Value::Null).await;
    assert_eq!(list["items"], json!([]));
}

#[tokio::test]
async fn custom_objects_are_pruned_defaulted_and_validated() {
    let cluster = quiet().await;
    let client = cluster.client();
    establish_widgets(&client).await;
    let created = ok(&client, "POST", WIDGETS, "", widget("w", &json!({"color": "red", "unknown": 1}))).await;
    assert_eq!(created["spec"], json!({"color": "red", "size": 3}));
    assert_eq!(created["metadata"]["generation"], 1);
    let refused = [
        (json!({"spec": {"size": 0}}), "spec.size"),
        (json!({"spec": {"size": "large"}}), "spec.size"),
        (json!({"spec": {"color": "blue"}}), "spec.color"),
    ];
    for (patch, field) in refused {
        let (status, answer) = send(&client, "PATCH", &format!("{WIDGETS}/w"), MERGE, patch.clone()).await;
        assert_eq!((status, &answer["reason"]), (422, &json!("Invalid")), "{patch}");
        assert_eq!(answer["details"]["causes"][0]["field"], field, "{answer}");
    }
    let large = send(&client, "POST", WIDGETS, "", widget("large", &json!({"size": 11, "color": "blue"}))).await;
    assert_eq!(large.0, 422);
    assert!(large.1["message"].as_str().unwrap().contains("only red ones are large"), "{}", large.1);

    let status = ok(
        &client,
        "PATCH",
        &format!("{WIDGETS}/w/status"),
        MERGE,
        json!({"status": {"phase": "Done"}, "spec": {"size": 9}}),
    )
    .await;
    assert_eq!((&status["status"]["phase"], &status["spec"]["size"]), (&json!("Done"), &json!(3)));
    assert_eq!(status["metadata"]["generation"], 1);
    let (unversioned, _) =
        send(&client, "PUT", &format!("{WIDGETS}/w"), "", widget("w", &json!({"color": "red"}))).await;
    assert_eq!(unversioned, 422, "custom objects are not replaced blindly");
    let strategic =
        send(&client, "PATCH", &format!("{WIDGETS}/w"), "application/strategic-merge-patch+json", json!({})).await;
    assert_eq!(strategic.0, 415);
    let selected = ok(&client, "GET", &format!("{WIDGETS}?fieldSelector=spec.color%3Dred"), "", Value::Null).await;
    assert_eq!(selected["items"].as_array().unwrap().len(), 1);
    assert_eq!(selected["items"][0]["kind"], "Widget", "custom items carry their type");
}

#[tokio::test]
async fn stored_objects_keep_their_uids_and_owners() {
    let (one, other) = (quiet().await, quiet().await);
    let (from, to) = (one.client(), other.client());
    let owner = plain(&from, "owner").await;
    let dependent = owned(&from, "dependent", &[&owner], false).await;
    other.put_stored(vec![owner.clone(), dependent.clone()]).unwrap();
    for object in [&owner, &dependent] {
        let name = object["metadata"]["name"].as_str().unwrap();
        let mut found = ok(&to, "GET", &path(name), "", Value::Null).await;
        found["metadata"]["resourceVersion"] = object["metadata"]["resourceVersion"].clone();
        assert_eq!(found, *object);
    }
    assert!(matches!(other.put_stored(vec![owner]), Err(PutError::Exists(_))));
    let unknown = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
    assert!(matches!(other.put_stored(vec![unknown]), Err(PutError::NotServed(_))));
    // The garbage collector follows the UIDs.
    ok(&to, "DELETE", &path("owner"), "", Value::Null).await;
    until_gone(&to, &path("dependent")).await;
}

#[tokio::test]
async fn a_crd_can_serve_several_versions() {
    let cluster = quiet().await;
    let client = cluster.client();
    let mut crd = widgets();
    let mut beta = crd["spec"]["versions"][0].clone();
    beta["name"] = "v1beta1".into();
    beta["storage"] = false.into();
    beta["deprecated"] = true.into();
    crd["spec"]["versions"].as_array_mut().unwrap().push(beta);
    ok(&client, "POST", CRDS, "", crd).await;
    until(&client, "/apis/example.com/v1beta1", |status, _| status == 200).await;
    let old = "/apis/example.com/v1beta1/namespaces/default/widgets";
    let mut object = widget("w", &json!({"color": "red"}));
    object["apiVersion"] = "example.com/v1beta1".into();
    let created = ok(&client, "POST", old, "", object).await;
    assert_eq!(created["apiVersion"], "example.com/v1beta1");
    let stored = ok(&client, "GET", &format!("{WIDGETS}/w"), "", Value::Null).await;
    assert_eq!(stored["apiVersion"], "example.com/v1");
    let groups = ok(&client, "GET", "/apis/example.com", "", Value::Null).await;
    assert_eq!(groups["preferredVersion"]["version"], "v1");
}

#[tokio::test]
async fn taken_names_are_not_accepted() {
    let cluster = quiet().await;
    let client = cluster.client();
    establish_widgets(&client).await;
    let mut other = widgets();
    other["metadata"]["name"] = "gadgets.example.com".into();
    other["spec"]["names"] = json!({"kind": "Widget", "plural": "gadgets", "singular": "gadget"});
    ok(&client, "POST", CRDS, "", other).await;
    let refused =
        until(&client, &format!("{CRDS}/gadgets.example.com"), |_, crd| crd["status"]["conditions"].is_array()).await;
    let conditions = &refused["status"]["conditions"];
    assert_eq!(
        (&conditions[0]["type"], &conditions[0]["status"], &conditions[0]["reason"]),
        (&json!("NamesAccepted"), &json!("False"), &json!("KindConflict"))
    );
}

#[tokio::test]
async fn events_are_one_thing_in_two_groups() {
    let cluster = quiet().await;
    let client = cluster.client();
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "eventTime": "2026-01-01T00:00:00.000000Z",
        "note": "hello", "reason": "Tested", "type": "Normal", "action": "Test",
        "reportingController": "example.com/test", "reportingInstance": "test-0",
        "regarding": {"kind": "ConfigMap", "name": "a", "namespace": "default"},
    });
    ok(&client, "POST", "/apis/events.k8s.io/v1/namespaces/default/events", "", event).await;
    let selected = "fieldSelector=involvedObject.name%3Da";
    let core = ok(&client, "GET", &format!("/api/v1/namespaces/default/events?{selected}"), "", Value::Null).await;
    assert_eq!(core["items"][0]["message"], "hello");
    assert_eq!(core["items"][0]["involvedObject"]["name"], "a");
}
