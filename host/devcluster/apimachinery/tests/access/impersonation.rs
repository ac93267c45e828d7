//! Impersonation: the permissions that each mode needs, and the error messages.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot continue fails")]

use chandler_devcluster_apimachinery::access::{
    PolicySet, User, authorize,
    impersonation::{Mode, impersonate, wanted},
    refusal::refusal,
    user::{MASTERS, NODE_NAME_KEY},
};

use super::common::{binding, policy, role, wants};

fn user(text: &str) -> User {
    let headers = text.split_whitespace().map(|word| word.split_once('=').expect("name=value"));
    wanted(headers).unwrap().expect("a user to impersonate")
}

/// A policy in which `joe` has these rules everywhere.
fn joe(rules: &[&str]) -> PolicySet {
    policy(&[role("", "r", rules)], &[binding("", "b", ("ClusterRole", "r"), &["User:joe"])])
}

fn attempt(policy: &PolicySet, who: &User, first: Option<Mode>) -> Result<(User, Mode), String> {
    attempt_by(policy, &User::new("joe", &[]), who, first)
}

fn attempt_by(policy: &PolicySet, joe: &User, who: &User, first: Option<Mode>) -> Result<(User, Mode), String> {
    let request = wants("shop", "list core pods");
    impersonate(&|user, attributes| authorize(policy, user, attributes), joe, who, &request, first)
        .map_err(|refused| refusal(joe, &refused.attributes, &refused.reason))
}

#[test]
fn headers_name_a_user() {
    assert_eq!(wanted([("accept", "x")].into_iter()).unwrap(), None);
    let full = user(
        "impersonate-user=bob impersonate-group=a impersonate-group=b impersonate-uid=7 \
                     impersonate-extra-acme.io%2fscope=x impersonate-extra-acme.io%2Fscope=y impersonate-extra-100%=z",
    );
    assert_eq!((full.name.as_str(), full.uid.as_str(), full.groups.len()), ("bob", "7", 2));
    assert_eq!(full.extra["acme.io/scope"], ["x", "y"]);
    assert_eq!(full.extra["100%"], ["z"]);
    let headers = [("impersonate-group", "a\"b"), ("impersonate-extra-k", "v")];
    insta::assert_snapshot!(wanted(headers.into_iter()).unwrap_err(), @r#"requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"a\"b"}, Extra:map[string][]string{"k":[]string{"v"}}} without impersonating a user name"#);
    insta::assert_snapshot!(wanted([("impersonate-uid", "u")].into_iter()).unwrap_err(), @r#"requested &user.DefaultInfo{Name:"", UID:"u", Groups:[]string(nil), Extra:map[string][]string(nil)} without impersonating a user name"#);
}

#[test]
fn the_old_verb_is_needed_for_each_part() {
    let policy = joe(&["impersonate | core | users groups | bob crew", "impersonate | core | serviceaccounts"]);
    let (bob, mode) = attempt(&policy, &user("impersonate-user=bob impersonate-group=crew"), None).unwrap();
    assert_eq!((bob.groups, mode), (vec!["crew".to_owned(), "system:authenticated".to_owned()], Mode::Legacy));
    let (account, _) = attempt(&policy, &user("impersonate-user=system:serviceaccount:a:b"), None).unwrap();
    assert_eq!(account.groups, ["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"]);
    let own = |text: &str| attempt(&policy, &user(text), Some(Mode::Legacy)).unwrap_err();
    let cases = [
        ("impersonate-user=alice", r#"resource "users" in API group "" at the cluster scope"#),
        ("impersonate-user=bob impersonate-group=g", r#"resource "groups" in API group "" at the cluster scope"#),
        (
            "impersonate-user=bob impersonate-uid=7",
            r#"resource "uids" in API group "authentication.k8s.io" at the cluster scope"#,
        ),
        (
            "impersonate-user=bob impersonate-extra-a%2fb=c",
            r#"resource "userextras/a/b" in API group "authentication.k8s.io" at the cluster scope"#,
        ),
    ];
    for (who, expected) in cases {
        assert_eq!(own(who), format!(r#"User "joe" cannot impersonate {expected}"#));
    }
}

#[test]
fn the_first_refusal_is_that_of_the_mode_tried_first() {
    let nothing = PolicySet::default();
    let place = r#"resource "pods" in API group "" in the namespace "shop""#;
    let cases = [
        ("impersonate-user=bob", "user-info"),
        ("impersonate-user=system:serviceaccount:a:b", "serviceaccount"),
        ("impersonate-user=system:node:n", "arbitrary-node"),
    ];
    for (who, mode) in cases {
        let refused = attempt(&nothing, &user(who), None).unwrap_err();
        assert_eq!(refused, format!(r#"User "joe" cannot impersonate-on:{mode}:list {place}"#));
    }
    let groups = attempt(&nothing, &user("impersonate-user=system:node:n impersonate-group=g"), None).unwrap_err();
    assert_eq!(groups, r#"User "joe" cannot impersonate resource "users" in API group "" at the cluster scope"#);
}

#[test]
fn constrained_modes_need_both_permissions() {
    let authentication = "authentication.k8s.io";
    let on = "impersonate-on:user-info:list | core | pods";
    let as_bob = format!("impersonate:user-info | {authentication} | users groups | bob crew");
    let both = joe(&[on, &as_bob]);
    let (bob, mode) = attempt(&both, &user("impersonate-user=bob impersonate-group=crew"), None).unwrap();
    assert_eq!((bob.name.as_str(), mode), ("bob", Mode::UserInfo));
    assert!(attempt(&joe(&[on]), &user("impersonate-user=bob"), None).is_err());
    assert!(attempt(&joe(&[&as_bob]), &user("impersonate-user=bob"), None).is_err());

    let everything = joe(&["* | * | *"]);
    let masters = user(&format!("impersonate-user=bob impersonate-group={MASTERS}"));
    let (_, mode) = attempt(&everything, &masters, None).unwrap();
    assert_eq!(mode, Mode::Legacy, "no constrained mode gives the masters' group away");
    let refused = attempt(&both, &masters, None).unwrap_err();
    assert!(refused.ends_with("impersonating the system:masters group is not allowed"), "{refused}");
    let many =
        user("impersonate-user=bob impersonate-group=a impersonate-group=b impersonate-group=c impersonate-group=d");
    let all_groups = joe(&[on, &as_bob, &format!("impersonate:user-info | {authentication} | groups | *")]);
    assert!(attempt(&all_groups, &many, None).is_ok());
    let invalid = attempt(&both, &user("impersonate-user=bob impersonate-extra-scope=x"), None).unwrap_err();
    assert!(invalid.contains("impersonating an invalid key in extra is not allowed"), "{invalid}");
}

#[test]
fn a_pod_may_act_as_its_own_node() {
    let rules = [
        "impersonate-on:associated-node:list | core | pods",
        "impersonate:associated-node | authentication.k8s.io | nodes",
    ];
    let policy =
        policy(&[role("", "r", &rules)], &[binding("", "b", ("ClusterRole", "r"), &["ServiceAccount:a/agent"])]);
    let mut agent = User::service_account("a", "agent", "1");
    let node = |name: &str| user(&format!("impersonate-user=system:node:{name}"));
    assert!(attempt_by(&policy, &agent, &node("n1"), None).is_err());
    agent.extra.insert(NODE_NAME_KEY.to_owned(), vec!["n1".to_owned()]);
    let (user, mode) = attempt_by(&policy, &agent, &node("n1"), None).unwrap();
    assert_eq!((user.groups.join(" "), mode), ("system:nodes system:authenticated".to_owned(), Mode::AssociatedNode));
    assert!(attempt_by(&policy, &agent, &node("n2"), None).is_err());
}

#[test]
fn the_anonymous_user_stays_unauthenticated() {
    let everything = joe(&["* | * | *"]);
    let (user, _) = attempt(&everything, &user("impersonate-user=system:anonymous"), None).unwrap();
    assert_eq!(user.groups, ["system:unauthenticated"]);
}
