use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::*;

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let pair =
        |(name, value): &(&'static str, &'static str)| (HeaderName::from_static(name), HeaderValue::from_static(value));
    pairs.iter().map(pair).collect()
}

fn repositories(texts: &[&str]) -> Named {
    Named::of(texts.iter().map(|text| Repository::of_text(text)))
}

#[test]
fn a_message_of_pubsub_is_read_for_the_images_of_artifact_registry() {
    let push = |data: &str, events: &[&str]| {
        let body = json!({"message": {"data": STANDARD.encode(data), "messageId": "1"}, "subscription": "s"});
        let events: Vec<String> = events.iter().map(|event| (*event).to_owned()).collect();
        read(ReceiverType::GooglePubsub, &HeaderMap::new(), body.to_string().as_bytes(), &events)
    };
    let image = "europe-docker.pkg.dev/project/repository/shop";
    let pushed = |action: &str| {
        format!(r#"{{"action":"{action}","digest":"{image}@sha256:{}","tag":"{image}:v1"}}"#, "0".repeat(64))
    };
    let shop = repositories(&[&format!("{image}:v1")]);
    assert!(matches!(&shop, Named::Repositories(named) if named.len() == 1));
    assert_eq!(push(&pushed("INSERT"), &[]), Ok(shop.clone()));
    assert_eq!(push(&pushed("INSERT"), &["INSERT"]), Ok(shop));
    assert_eq!(push(&pushed("INSERT"), &["OTHER"]), Ok(Named::Nothing));
    assert_eq!(push(&pushed("DELETE"), &[]), Ok(Named::Nothing));
    assert_eq!(push(&pushed("DELETE"), &["DELETE"]), Ok(Named::Nothing));
    assert_eq!(push("anything", &[]), Ok(Named::Anything));
    assert_eq!(push("anything", &["INSERT"]), Ok(Named::Nothing));
    for body in ["", "{}", "[]", r#"{"message":1}"#] {
        assert_eq!(read(ReceiverType::GooglePubsub, &HeaderMap::new(), body.as_bytes(), &[]), Err(Malformed), "{body}");
    }
}

#[test]
fn each_type_names_the_repository_that_was_pushed() {
    use ReceiverType::{Distribution, Dockerhub, Forgejo, GenericHmac, Gitea, Github, Gitlab, Harbor, Quay};
    let git = json!({"repository": {"clone_url": "https://git.example.com/team/shop.git", "full_name": "team/shop"}});
    let package = json!({"repository": {"full_name": "team/other"},
                         "registry_package": {"package_version": {"package_url": "ghcr.io/team/shop:v2"}}});
    let harbor = |kind: &str| {
        json!({"type": kind, "event_data": {"resources": [{"resource_url": "harbor.example.com/team/shop:v2"}],
                                            "repository": {"repo_full_name": "team/shop"}}})
    };
    let distribution = |action: &str| {
        json!({"events": [{"action": action, "target": {"repository": "team/shop", "tag": "v2"}},
                          {"action": "pull", "target": {"repository": "team/other"}}]})
    };
    let gitlab = json!({"object_kind": "push", "project": {"path_with_namespace": "team/shop",
                                                         "git_http_url": "https://git.example.com/team/shop.git"}});
    let hub = json!({"repository": {"repo_name": "team/shop"}, "push_data": {"tag": "v2"}});
    let quay = json!({"docker_url": "quay.io/team/shop", "updated_tags": ["v2"]});
    let shop = repositories(&["registry.example.com/team/shop"]);
    let on_hub = repositories(&["docker.io/team/shop:v1"]);
    for (kind, header, body, events, expected) in [
        (GenericHmac, ("x-a", "b"), json!({"image": "registry.example.com/team/shop:v2"}), &[][..], &shop),
        (GenericHmac, ("x-a", "b"), json!({}), &[], &Named::Anything),
        (GenericHmac, ("x-a", "b"), json!([1]), &[], &Named::Anything),
        (Github, ("x-github-event", "push"), git.clone(), &[], &shop),
        (Github, ("x-github-event", "push"), git.clone(), &["push"], &shop),
        (Github, ("x-github-event", "push"), git.clone(), &["package"], &Named::Nothing),
        (Github, ("x-github-event", "ping"), json!({}), &["ping"], &Named::Nothing),
        (Github, ("x-other", "push"), git.clone(), &[], &Named::Nothing),
        (Github, ("x-github-event", "registry_package"), package, &[], &shop),
        (Github, ("x-github-event", "push"), json!({}), &[], &Named::Anything),
        (Gitea, ("x-gitea-event", "push"), git.clone(), &[], &shop),
        (Gitea, ("x-gitea-event", "issues"), git.clone(), &["push"], &Named::Nothing),
        (Forgejo, ("x-forgejo-event", "push"), git.clone(), &["push"], &shop),
        (Gitlab, ("x-gitlab-event", "Push Hook"), gitlab.clone(), &["Push Hook"], &shop),
        (Gitlab, ("x-gitlab-event", "Push Hook"), gitlab.clone(), &["push"], &shop),
        (Gitlab, ("x-gitlab-event", "Push Hook"), gitlab, &["tag_push"], &Named::Nothing),
        (Dockerhub, ("x-a", "b"), hub, &[], &on_hub),
        (Quay, ("x-a", "b"), quay, &[], &shop),
        (Harbor, ("x-a", "b"), harbor("PUSH_ARTIFACT"), &[], &shop),
        (Harbor, ("x-a", "b"), harbor("PULL_ARTIFACT"), &["PULL_ARTIFACT"], &Named::Nothing),
        (Harbor, ("x-a", "b"), harbor("SCANNING_COMPLETED"), &["PUSH_ARTIFACT"], &Named::Nothing),
        (Distribution, ("x-a", "b"), distribution("push"), &[], &shop),
        (Distribution, ("x-a", "b"), distribution("pull"), &[], &Named::Nothing),
        (Distribution, ("x-a", "b"), distribution("delete"), &["delete"], &Named::Nothing),
    ] {
        let events: Vec<String> = events.iter().map(|event| (*event).to_owned()).collect();
        let found = read(kind, &headers(&[header]), body.to_string().as_bytes(), &events);
        assert_eq!(found.as_ref(), Ok(expected), "{kind:?} {header:?} {body}");
    }
}

#[test]
fn a_body_of_another_form_is_refused() {
    let event = headers(&[("x-github-event", "push"), ("x-gitea-event", "push")]);
    let other: [Value; 3] =
        [json!([]), json!({"repository": 1, "events": 1, "type": 1, "docker_url": 1, "project": 1}), json!("x")];
    let any_form = [ReceiverType::GenericHmac, ReceiverType::Oidc];
    for kind in ReceiverType::ALL.iter().filter(|kind| !any_form.contains(kind)) {
        for body in &other[1..] {
            assert_eq!(read(*kind, &event, body.to_string().as_bytes(), &[]), Err(Malformed), "{kind:?} {body}");
        }
        assert_eq!(read(*kind, &event, b"payload=%7B%7D", &[]), Err(Malformed), "{kind:?}");
        assert_eq!(read(*kind, &event, "[".repeat(100_000).as_bytes(), &[]), Err(Malformed), "{kind:?}");
    }
}

#[test]
fn a_request_concerns_the_named_repositories_and_everything_if_it_names_too_many() {
    let (shop, other) = (Repository::of_path("team/shop"), Repository::of_path("team/other"));
    let named = Named::of([shop.clone()]);
    assert!(named.concerns(shop.as_ref()) && !named.concerns(other.as_ref()) && !named.concerns(None));
    assert!(Named::Anything.concerns(None) && !Named::Nothing.concerns(shop.as_ref()));
    let many = |number: usize| Named::of((0..number).map(|number| Repository::of_path(&format!("team/{number}"))));
    assert_ne!(many(MOST_REPOSITORIES), Named::Anything);
    assert_eq!(many(MOST_REPOSITORIES + 1), Named::Anything);
}

#[test]
fn a_repository_counts_once_however_often_it_is_mentioned() {
    let event = |repository: &str| json!({"action": "push", "target": {"repository": repository}});
    let mut events = vec![event("team/a"); 2 * MOST_REPOSITORIES];
    events.push(event("team/b"));
    let expected = repositories(&["registry.example.com/team/a", "registry.example.com/team/b"]);
    for events in [events.clone(), events.into_iter().rev().collect()] {
        let body = json!({"events": events}).to_string();
        assert_eq!(read(ReceiverType::Distribution, &headers(&[]), body.as_bytes(), &[]), Ok(expected.clone()));
    }
}
