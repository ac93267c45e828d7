//! An upload that is awaited is a pause, and not a failure.

use chandler_tests::{ContentClient, World, wait, world::condition};
use http::StatusCode;
use k8s_openapi::api::events::v1::Event;
use kube::{Api, api::ListParams};

use crate::content_service::{announced, archive, bell, serving, tone, updates, uploaded, user_with};

#[tokio::test]
async fn a_pending_upload_is_a_pause_and_other_files_are_a_failure() {
    let world = serving().await;
    let name = world.name();
    let path = format!("/uploads/{name}.tgz");
    let author = ContentClient::new(&announced(&world).await, Some(user_with(&world, "author", updates(&name)).await));
    let other = format!("sha256:{}", "0".repeat(64));
    world.apply(&name, uploaded(&world, Some(&other))).await;
    let waiting = world.condition(&name, "Unpacked", "False", "UploadPending").await;
    let progressing = condition(&waiting, "Progressing").expect("Progressing");
    assert_eq!((progressing.status.as_str(), progressing.reason.as_str()), ("True", "UploadPending"));
    assert!(progressing.message.contains(&format!("`chandler upgrade {name} DIR --upload`")), "{progressing:?}");
    assert!(condition(&waiting, "Stalled").is_none(), "{waiting:?}");

    // Files with another digest are not the awaited ones.
    let answer = author.put(&path, &archive(&bell("low"))).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
    let refused = world.condition(&name, "Unpacked", "False", "UnpackFailed").await;
    let message = &condition(&refused, "Unpacked").expect("Unpacked").message;
    assert!(message.contains(&other) && message.contains("was not uploaded for it"), "{message}");
    let warnings = |events: &[Event]| -> Vec<String> {
        let of = events.iter().filter(|event| event.regarding.as_ref().and_then(|it| it.name.as_ref()) == Some(&name));
        of.filter(|event| event.type_.as_deref() == Some("Warning")).filter_map(|event| event.reason.clone()).collect()
    };
    let events: Api<Event> = Api::all(world.client.clone());
    wait::eventually("only the failure is a warning", || async {
        let found = events.list(&ListParams::default()).await.expect("the Events").items;
        let warnings = warnings(&found);
        assert!(warnings.iter().all(|reason| reason == "UnpackFailed"), "{warnings:?}");
        !warnings.is_empty()
    })
    .await;

    // The awaited files are installed at once.
    world.apply(&name, uploaded(&world, Some(answer.text().trim()))).await;
    tone(&world, "low").await;
    world.ready(&name).await;
    world.finish().await;
}

#[tokio::test]
async fn an_upload_that_no_content_service_takes_is_a_failure() {
    let world = World::new().await;
    let name = world.name();
    world.apply(&name, uploaded(&world, None)).await;
    let refused = world.condition(&name, "Unpacked", "False", "UnpackFailed").await;
    let message = &condition(&refused, "Unpacked").expect("Unpacked").message;
    assert!(message.ends_with("the controller has no content service: start it with --content-address"), "{message}");
    world.finish().await;
}
