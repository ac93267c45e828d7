use chandler_devcluster_apimachinery::access::{NonResourceAttributes, ResourceAttributes};
use http::HeaderValue;
use serde_json::json;

use super::*;
use crate::store::{Expected, Key};

fn attributes(verb: &str, plural: &str, name: &str) -> Attributes {
    let own = str::to_owned;
    Attributes::Resource(ResourceAttributes {
        namespace: own("shop"),
        verb: own(verb),
        resource: own(plural),
        name: own(name),
        ..ResourceAttributes::default()
    })
}

fn role_key() -> Key {
    Key::new("clusterroles.rbac.authorization.k8s.io".into(), "", "reader")
}

fn role(verb: &str) -> Value {
    json!({"metadata": {"name": "reader"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}]})
}

/// A store in which jane may list Pods of the shop.
fn store() -> Store {
    let store = Store::default();
    store.put(role_key(), Expected::Absent, role("list")).unwrap();
    let binding = Key::new("rolebindings.rbac.authorization.k8s.io".into(), "shop", "readers");
    let object = json!({
        "metadata": {"name": "readers", "namespace": "shop"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"kind": "User", "name": "jane"}],
    });
    store.put(binding, Expected::Absent, object).unwrap();
    store
}

#[test]
fn a_write_is_seen_by_the_next_decision() {
    let (store, authorizer) = (store(), Authorizer::default());
    let jane = User::new("jane", &[]);
    let may = |verb: &str| authorizer.decide(&store, &jane, &attributes(verb, "pods", "")).allowed;
    assert!(may("list") && !may("delete"));
    let before = authorizer.policy(&store);
    store.put(Key::new("pods".into(), "shop", "a"), Expected::Absent, json!({})).unwrap();
    assert!(Arc::ptr_eq(&before, &authorizer.policy(&store)), "other writes read nothing anew");

    let revision = store.get(&role_key()).unwrap().revision();
    let changed = store.put(role_key(), Expected::Revision(revision), role("delete")).unwrap();
    assert!(may("delete") && !may("list"));
    store.delete(&role_key(), changed.revision(), None).unwrap();
    assert!(!may("delete"));
    store.put(role_key(), Expected::Absent, role("watch")).unwrap();
    store.compact(store.revision());
    assert!(may("watch"), "also where the history is gone");
}

#[test]
fn refusals_are_statuses() {
    let (store, authorizer) = (store(), Authorizer::default());
    let jane = User::new("jane", &[]);
    let refuse = |wanted: &Attributes| authorizer.authorize(&store, &jane, wanted).unwrap_err().to_value();
    insta::assert_json_snapshot!(refuse(&attributes("delete", "pods", "a")), @r#"
    {
      "apiVersion": "v1",
      "code": 403,
      "details": {
        "kind": "pods",
        "name": "a"
      },
      "kind": "Status",
      "message": "pods \"a\" is forbidden: User \"jane\" cannot delete resource \"pods\" in API group \"\" in the namespace \"shop\"",
      "metadata": {},
      "reason": "Forbidden",
      "status": "Failure"
    }
    "#);
    let path = Attributes::NonResource(NonResourceAttributes { path: "/metrics".into(), verb: "get".into() });
    let refused = refuse(&path);
    assert_eq!(refused["message"], r#"forbidden: User "jane" cannot get path "/metrics""#);
    assert_eq!(refused["details"], json!({}));
}

#[test]
fn headers_change_the_user_and_the_last_mode_is_tried_first() {
    let (store, authorizer) = (store(), Authorizer::default());
    let admin = User::new("admin", &["system:masters"]);
    let wanted = attributes("list", "pods", "");
    let mut headers = HeaderMap::new();
    assert_eq!(authorizer.impersonate(&store, admin.clone(), &headers, &wanted).unwrap(), admin);
    headers.insert("Impersonate-Group", "crew".parse().unwrap());
    let error = authorizer.impersonate(&store, admin.clone(), &headers, &wanted).unwrap_err();
    assert_eq!(error.code, StatusCode::BAD_REQUEST);
    headers.insert("Impersonate-User", "bob".parse().unwrap());
    let bob = authorizer.impersonate(&store, admin, &headers, &wanted).unwrap();
    assert_eq!((bob.name.as_str(), bob.groups.join(" ")), ("bob", "crew system:authenticated".to_owned()));

    for (bytes, name) in [(&b"j\xc3\xbcrgen"[..], "j\u{fc}rgen"), (b"j\xfc", "j\u{fffd}")] {
        headers.insert("Impersonate-User", HeaderValue::from_bytes(bytes).unwrap());
        let admin = User::new("admin", &["system:masters"]);
        assert_eq!(authorizer.impersonate(&store, admin, &headers, &wanted).unwrap().name, name);
    }
    headers.insert("Impersonate-User", "bob".parse().unwrap());

    let jane = || User::new("jane", &[]);
    let refused = authorizer.impersonate(&store, jane(), &headers, &wanted).unwrap_err();
    assert!(refused.message.contains("cannot impersonate-on:user-info:list"), "{refused}");
    authorizer.remember("jane".to_owned(), Mode::Legacy);
    let refused = authorizer.impersonate(&store, jane(), &headers, &wanted).unwrap_err();
    insta::assert_snapshot!(refused.message, @r#"users "bob" is forbidden: User "jane" cannot impersonate resource "users" in API group "" at the cluster scope"#);
}

/// Writes or deletes one of a few roles and bindings.
fn change(store: &Store, table: usize, namespace: usize, name: usize, content: Option<u8>) {
    let (resource, namespaced) = [
        ("roles.rbac.authorization.k8s.io", true),
        ("clusterroles.rbac.authorization.k8s.io", false),
        ("rolebindings.rbac.authorization.k8s.io", true),
        ("clusterrolebindings.rbac.authorization.k8s.io", false),
    ][table];
    let namespace = if namespaced { ["shop", "office"][namespace] } else { "" };
    let name = ["a", "b", "c"][name];
    let key = Key::new(resource.into(), namespace, name);
    let known = store.get(&key).map(|object| object.revision());
    match (content, known) {
        (None, None) => {}
        (None, Some(revision)) => {
            store.delete(&key, revision, None).unwrap();
        }
        (Some(content), known) => {
            let object = json!({
                "metadata": {"name": name, "namespace": namespace},
                "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": [format!("verb-{content}")]}],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": format!("role-{content}")},
                "subjects": [{"kind": "User", "name": format!("user-{content}")}],
            });
            store.put(key, known.map_or(Expected::Absent, Expected::Revision), object).unwrap();
        }
    }
}

proptest::proptest! {
    #[test]
    fn a_policy_that_follows_the_log_is_that_of_all_objects(
        changes in proptest::collection::vec((0..4_usize, 0..2_usize, 0..3_usize, proptest::option::of(0..3_u8), 0..9_u8), 0..60),
    ) {
        let (store, following) = (Store::default(), cache::new());
        for (table, namespace, name, content, next) in changes {
            change(&store, table, namespace, name, content);
            match next {
                // A request may be decided at any time, and hold the policy for a while.
                0..5 => proptest::prop_assert_eq!(following.current(&store), cache::new().current(&store)),
                5 => store.compact(store.revision()),
                _ => {}
            }
        }
        proptest::prop_assert_eq!(following.current(&store), cache::new().current(&store));
    }
}
