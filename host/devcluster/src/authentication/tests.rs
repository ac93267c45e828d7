use serde_json::json;
use time::{Duration, macros::datetime};

use super::{
    claims::{Bound, Reference},
    *,
};
use crate::store::{Expected, Key};

const NOW: OffsetDateTime = datetime!(2026-01-02 03:04:05 UTC);

struct Fixture {
    store: Store,
    authenticator: Authenticator,
}

fn put(store: &Store, table: &str, namespace: &str, name: &str, uid: &str) -> Reference {
    let object = json!({"metadata": {"name": name, "namespace": namespace, "uid": uid}});
    store.put(Key::new(table.into(), namespace, name), Expected::Absent, object.clone()).unwrap();
    Reference::to(&object)
}

fn remove(store: &Store, table: &str, namespace: &str, name: &str) {
    let key = Key::new(table.into(), namespace, name);
    store.delete(&key, store.get(&key).unwrap().revision(), None).unwrap();
}

fn fixture() -> Fixture {
    let store = Store::default();
    put(&store, "serviceaccounts", "shop", "robot", "1");
    let authenticator = Authenticator::new("secret-token", SigningKey::generate().unwrap(), "https://127.0.0.1:1");
    Fixture { store, authenticator }
}

impl Fixture {
    fn token(&self, change: impl FnOnce(&mut Bound), audiences: &[&str]) -> String {
        let mut bound = Bound {
            namespace: "shop".into(),
            node: None,
            pod: None,
            secret: None,
            serviceaccount: Reference { name: "robot".into(), uid: "1".into() },
        };
        change(&mut bound);
        let audiences = audiences.iter().map(|audience| (*audience).to_owned()).collect();
        let claims = Claims::new(bound, audiences, NOW, 600);
        self.authenticator.key().unwrap().sign(&claims).unwrap()
    }

    fn user(&self, header: &str, now: OffsetDateTime) -> Result<User, String> {
        self.authenticator.authenticate(&self.store, now, Some(header.as_bytes())).map_err(|error| error.to_string())
    }

    fn by_token(&self, token: &str) -> Result<User, String> {
        self.user(&format!("Bearer {token}"), NOW)
    }
}

#[test]
fn authorization_headers_identify_users() {
    let fixture = fixture();
    let name = |header: &str| fixture.user(header, NOW).map(|user| user.name);
    for header in ["Bearer secret-token", "bearer  secret-token "] {
        assert_eq!(name(header).unwrap(), ADMINISTRATOR);
    }
    for header in ["", "Bearer", "Bearer ", "Basic secret-token", "secret-token"] {
        assert_eq!(name(header).unwrap(), "system:anonymous", "{header}");
    }
    for header in ["Bearer secret-toke", "Bearer secret-token2", "Bearer a.b.c", "Bearer \u{e9}"] {
        assert_eq!(name(header).unwrap_err(), "invalid bearer token", "{header}");
    }
    assert_eq!(Authenticator::default().authenticate(&fixture.store, NOW, None).unwrap(), User::anonymous());
    assert!(Authenticator::default().authenticate(&fixture.store, NOW, Some(b"Bearer x")).is_err());
    assert!(!format!("{:?}", fixture.authenticator).contains("secret"));
}

#[test]
fn tokens_of_service_accounts_are_valid_for_a_while_and_for_their_audience() {
    let fixture = fixture();
    let token = fixture.token(|_| {}, &[ISSUER, "vault"]);
    let user = fixture.by_token(&token).unwrap();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("system:serviceaccount:shop:robot", "1"));
    assert!(user.extra["authentication.kubernetes.io/credential-id"][0].starts_with("JTI="));
    let at = |now| fixture.user(&format!("Bearer {token}"), now).map(|user| user.name);
    assert!(at(NOW + Duration::seconds(650)).is_ok(), "clocks may be a minute apart");
    assert!(at(NOW + Duration::seconds(661)).unwrap_err().contains("has expired"));
    assert!(at(NOW - Duration::seconds(61)).unwrap_err().contains("not valid yet"));

    let other = fixture.token(|_| {}, &["vault"]);
    insta::assert_snapshot!(fixture.by_token(&other).unwrap_err(), @r#"[invalid bearer token, token audiences ["vault"] is invalid for the target audiences ["https://kubernetes.default.svc"]]"#);
    let audiences = ["x".to_owned(), "vault".to_owned()];
    let (_, meant) = fixture.authenticator.review(&fixture.store, NOW, other.as_bytes(), &audiences).unwrap();
    assert_eq!(meant, ["vault"]);
}

#[test]
fn tokens_are_invalid_after_their_bound_object_is_deleted() {
    let fixture = fixture();
    let store = &fixture.store;
    let plain = fixture.token(|_| {}, &[ISSUER]);
    let secret = put(store, "secrets", "shop", "s", "2");
    let by_secret = fixture.token(|bound| bound.secret = Some(secret), &[ISSUER]);
    let pod = put(store, "pods", "shop", "p", "3");
    let node = Some(Reference { name: "n".into(), uid: "4".into() });
    let by_pod = fixture.token(|bound| (bound.pod, bound.node) = (Some(pod), node.clone()), &[ISSUER]);
    let by_node = fixture.token(|bound| bound.node = node, &[ISSUER]);

    let user = fixture.by_token(&by_pod).unwrap();
    let extra: Vec<&str> = user.extra.keys().map(|key| key.split('/').next_back().unwrap()).collect();
    assert_eq!(extra, ["credential-id", "node-name", "node-uid", "pod-name", "pod-uid"]);
    assert!(fixture.by_token(&by_secret).is_ok());
    assert!(fixture.by_token(&by_node).is_err(), "there is no such node");
    put(store, "nodes", "", "n", "4");
    assert!(fixture.by_token(&by_node).is_ok());

    remove(store, "secrets", "shop", "s");
    insta::assert_snapshot!(fixture.by_token(&by_secret).unwrap_err(), @"[invalid bearer token, service account token has been invalidated]");
    put(store, "secrets", "shop", "s", "5");
    insta::assert_snapshot!(fixture.by_token(&by_secret).unwrap_err(), @"[invalid bearer token, secret UID (5) does not match service account secret ref claim (2)]");
    remove(store, "serviceaccounts", "shop", "robot");
    insta::assert_snapshot!(fixture.by_token(&plain).unwrap_err(), @r#"[invalid bearer token, serviceaccounts "robot" not found]"#);
    put(store, "serviceaccounts", "shop", "robot", "6");
    insta::assert_snapshot!(fixture.by_token(&plain).unwrap_err(), @"[invalid bearer token, service account UID (6) does not match claim (1)]");
}

#[test]
fn a_token_in_a_secret_is_valid_while_the_secret_holds_it() {
    let fixture = fixture();
    let account = Reference { name: "robot".into(), uid: "1".into() };
    let claims = LegacyClaims::new("shop", "kept", &account);
    let token = fixture.authenticator.key().unwrap().sign(&claims).unwrap();
    assert!(fixture.by_token(&token).unwrap_err().contains("has been invalidated"));
    let key = Key::new("secrets".into(), "shop", "kept");
    let secret = |token: &str| json!({"metadata": {"name": "kept"}, "data": {"token": STANDARD.encode(token)}});
    let stored = fixture.store.put(key.clone(), Expected::Absent, secret(&token)).unwrap();
    let user = fixture.by_token(&token).unwrap();
    assert_eq!((user.name.as_str(), user.extra.len()), ("system:serviceaccount:shop:robot", 0));
    assert!(fixture.authenticator.review(&fixture.store, NOW, token.as_bytes(), &["vault".to_owned()]).is_err());
    fixture.store.put(key, Expected::Revision(stored.revision()), secret("other")).unwrap();
    assert!(fixture.by_token(&token).is_err());
}
