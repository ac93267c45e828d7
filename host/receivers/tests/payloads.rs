//! Payloads are untrusted: no body makes a reader fail in another way than it says.

use chandler_api::ReceiverType;
use chandler_receivers::{Named, Repository, Token, is_authentic, payload::MOST_REPOSITORIES, read};
use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// JSON with the members that the readers look for, in places where they do and do not expect them.
fn any_json() -> impl Strategy<Value = Value> {
    let text = prop::sample::select(vec![
        "push",
        "pull",
        "PUSH_ARTIFACT",
        "https://a/b/c.git",
        "a.io/b/c:v1",
        "git@a:b",
        "é/☃",
        "",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text.prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    let name = prop::sample::select(vec![
        "repository",
        "image",
        "clone_url",
        "ssh_url",
        "full_name",
        "project",
        "git_http_url",
        "path_with_namespace",
        "object_kind",
        "repo_name",
        "docker_url",
        "type",
        "event_data",
        "resources",
        "resource_url",
        "repo_full_name",
        "events",
        "action",
        "target",
        "package",
        "registry_package",
        "package_version",
        "package_url",
    ]);
    leaf.prop_recursive(5, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::Array),
            prop::collection::vec((name.clone(), inner), 0..8).prop_map(|members| Value::Object(
                members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>()
            )),
        ]
    })
}

fn any_headers() -> impl Strategy<Value = HeaderMap> {
    let names = [
        "x-github-event",
        "x-gitea-event",
        "x-forgejo-event",
        "x-gitlab-event",
        "x-signature",
        "x-hub-signature-256",
        "x-gitea-signature",
        "x-forgejo-signature",
        "x-gitlab-token",
        "authorization",
    ];
    let value = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..80),
        Just(b"push".to_vec()),
        "sha(256|512|1)=[0-9a-f]{0,130}".prop_map(String::into_bytes),
        "Bearer .{0,40}".prop_map(String::into_bytes),
    ];
    prop::collection::vec((prop::sample::select(names.to_vec()), value), 0..6).prop_map(|pairs| {
        let pairs = pairs
            .into_iter()
            .filter_map(|(name, value)| Some((HeaderName::from_static(name), HeaderValue::from_bytes(&value).ok()?)));
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, value);
        }
        headers
    })
}

fn is_bounded(named: &Named) -> bool {
    match named {
        Named::Nothing | Named::Anything => true,
        Named::Repositories(named) => !named.is_empty() && named.len() <= MOST_REPOSITORIES,
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        kind in prop::sample::select(ReceiverType::ALL.to_vec()),
        headers in any_headers(),
        body in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        prop_assert!(read(kind, &headers, &body, &[]).is_ok_and(|named| is_bounded(&named)) || !body.is_empty() || kind != ReceiverType::GenericHmac);
    }

    #[test]
    fn any_json_is_read_or_refused(
        kind in prop::sample::select(ReceiverType::ALL.to_vec()),
        headers in any_headers(),
        body in any_json(),
    ) {
        if let Ok(named) = read(kind, &headers, body.to_string().as_bytes(), &[]) {
            prop_assert!(is_bounded(&named));
        }
    }

    #[test]
    fn nothing_made_up_is_authentic(
        kind in prop::sample::select(ReceiverType::ALL.to_vec()),
        headers in any_headers(),
        body in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let token = Token::new(b"0123456789abcdef0123456789abcdef").unwrap();
        let is_path_alone = matches!(kind, ReceiverType::Dockerhub | ReceiverType::Quay);
        prop_assert_eq!(is_authentic(kind, &token, &headers, &body), is_path_alone);
    }

    #[test]
    fn any_text_is_a_repository_or_none(text in ".{0,300}") {
        let all = [Repository::of_text(&text), Repository::of_url(&text), Repository::of_image(&text)];
        prop_assert!(all.len() == 3);
        prop_assert_eq!(Repository::of_path(&text), Repository::of_path(&text.to_ascii_lowercase()));
    }
}

#[test]
fn what_a_sender_cannot_choose_is_never_read() {
    let body = json!({"events": [{"action": "push", "target": {"repository": "team/shop", "digest": "sha256:0", "url": "http://evil/"}}]});
    let found = read(ReceiverType::Distribution, &HeaderMap::new(), body.to_string().as_bytes(), &[]).unwrap();
    assert_eq!(found, Named::Repositories([Repository::of_path("team/shop").unwrap()].into()));
}
