//! Registries that fail, are silent or are away.

use std::time::Duration;

use chandler_content::{ContentError, FailureClass, ImageAccess, ImageOptions, ImageReference, Images, Limits};
use chandler_devregistry::{Fault, FaultOn, Image, Layer, Options, Registry};

use crate::{
    common::store,
    images::setup::{layer, setup},
};

#[tokio::test]
async fn failures_of_registries_differ_by_cause() {
    let setup = setup(Options::default()).await;
    setup.registry.push_image("x", "v1", Image::of_layers(vec![Layer::tar_gzip(layer())])).unwrap();
    let mut messages = Vec::new();
    for (on, fault, class, reason) in [
        (FaultOn::Everything, Fault::Status(500), FailureClass::Transient, "RegistryUnavailable"),
        (FaultOn::Everything, Fault::Status(429), FailureClass::Transient, "RateLimited"),
        (FaultOn::Everything, Fault::Status(401), FailureClass::Unavailable, "Unauthorized"),
        (FaultOn::Everything, Fault::Status(403), FailureClass::Unavailable, "Unauthorized"),
        (FaultOn::Blobs, Fault::Status(404), FailureClass::Unavailable, "ImageNotFound"),
        (FaultOn::Everything, Fault::Status(418), FailureClass::Permanent, "RegistryProtocol"),
        (FaultOn::Manifests, Fault::WrongBytes, FailureClass::Transient, "InvalidImage"),
        (FaultOn::Manifests, Fault::Truncated, FailureClass::Transient, "InvalidImage"),
        (FaultOn::Blobs, Fault::WrongBytes, FailureClass::Transient, "InvalidImage"),
        (FaultOn::Blobs, Fault::Truncated, FailureClass::Transient, "InvalidImage"),
        (FaultOn::Blobs, Fault::Longer, FailureClass::Transient, "InvalidImage"),
        (FaultOn::Blobs, Fault::Broken, FailureClass::Transient, "NetworkFailed"),
    ] {
        setup.registry.set_fault(Some((on, fault)));
        let error = setup.fetch("x:v1").await.unwrap_err();
        assert_eq!((error.class(), error.reason()), (class, reason), "{fault:?}: {error}");
        // The message is the same at each attempt.
        let again = setup.fetch("x:v1").await.unwrap_err();
        assert_eq!(error.to_string(), again.to_string());
        messages.push(format!("{on:?} {fault:?}: {}", setup.message(&error)));
    }
    setup.registry.set_fault(None);
    setup.fetch("x:v1").await.unwrap();
    for name in ["x:v2", "y:v1"] {
        let error = setup.fetch(name).await.unwrap_err();
        assert_eq!(error.class(), FailureClass::Unavailable);
        messages.push(setup.message(&error));
    }
    insta::assert_snapshot!(messages.join("\n"), @"
    Everything Status(500): image registry/x:v1: registry answered 500 Internal Server Error
    Everything Status(429): image registry/x:v1: registry answered 429 Too Many Requests
    Everything Status(401): image registry/x:v1: access to repository x is denied: registry answered 401 Unauthorized: injected fault
    Everything Status(403): image registry/x:v1: access to repository x is denied: registry answered 403 Forbidden: injected fault
    Blobs Status(404): image registry/x@sha256:…: registry answered 404 Not Found: injected fault
    Everything Status(418): image registry/x:v1: registry answered 418 I'm a teapot: injected fault
    Manifests WrongBytes: image registry/x@sha256:…: the manifest has the digest sha256:…; sha256:… was asked for
    Manifests Truncated: image registry/x@sha256:…: the manifest has the digest sha256:…; sha256:… was asked for
    Blobs WrongBytes: image registry/x@sha256:…: layer … has the digest sha256:…; sha256:… was asked for
    Blobs Truncated: image registry/x@sha256:…: layer … has 1280 bytes; the manifest says 2560
    Blobs Longer: image registry/x@sha256:…: layer … has more than 2560 bytes; the manifest says 2560
    Blobs Broken: image registry/x@sha256:…: registry broke the connection (asked without TLS): connection closed before message completed
    image registry/x:v2: repository x of registry has no tag v2
    image registry/y:v1: registry has no repository y
    ");
}

#[tokio::test]
async fn a_registry_that_wants_to_be_left_alone_is_heard() {
    let setup = setup(Options::default()).await;
    setup.registry.set_fault(Some((FaultOn::Everything, Fault::Status(429))));
    let Err(ContentError::Registry(error)) = setup.resolve("x:v1").await else { panic!("it answered") };
    assert_eq!(error.retry_after, Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn silence_and_absence_end_in_time() {
    let (_directory, store) = store(Limits::default());
    let registry = Registry::start(Options::default()).await.unwrap();
    registry.set_fault(Some((FaultOn::Everything, Fault::Silent)));
    let reference: ImageReference = format!("{}/x:v1", registry.host()).parse().unwrap();
    let short = Duration::from_millis(50);
    for (options, reason, message) in [
        (ImageOptions { idle_timeout: short, ..ImageOptions::default() }, "NetworkFailed", "did not answer in time"),
        (ImageOptions { total_timeout: short, ..ImageOptions::default() }, "Timeout", "not fetched within"),
    ] {
        let images = Images::new(store.clone(), options);
        let error = images.resolve(&reference, &ImageAccess::default()).await.unwrap_err();
        assert_eq!((error.class(), error.reason()), (FailureClass::Transient, reason));
        assert!(error.to_string().contains(message), "{error}");
    }
    // A port that was just given back.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let reference: ImageReference = format!("{gone}/x:v1").parse().unwrap();
    let images = Images::new(store, ImageOptions::default());
    let error = images.resolve(&reference, &ImageAccess::default()).await.unwrap_err();
    assert_eq!((error.class(), error.reason()), (FailureClass::Transient, "NetworkFailed"));
    let expected = format!("image {gone}/x:v1: {gone} cannot be reached: Connection refused");
    assert_eq!(error.to_string(), expected);
}
