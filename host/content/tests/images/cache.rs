//! What is cached, and for whom.

use std::{collections::BTreeMap, fs};

use chandler_content::{
    Credentials, FailureClass, ImageAccess, ImageOptions, ImageReference, Images, Limits, ResolvedImage, Store,
};
use chandler_core::Content;
use chandler_devregistry::{Authentication, Fault, FaultOn, Image, Layer, Options, Registry};

use crate::{
    common::{Tar, files},
    images::setup::{get, layer, owned, setup},
};

#[tokio::test]
async fn a_directory_comes_back_and_is_cached() {
    let source = tempfile::tempdir().unwrap();
    fs::create_dir(source.path().join("manifests")).unwrap();
    fs::write(source.path().join("manifests/a.yaml"), "a").unwrap();
    for tls in [false, true] {
        let setup = setup(Options { tls, ..Options::default() }).await;
        let labels = BTreeMap::new();
        let pushed = setup.registry.push_bundle_directory("team/app", "v1", source.path(), &labels).await.unwrap();
        let image = setup.resolve("team/app:v1").await.unwrap();
        assert_eq!(*image.digest(), pushed.digest);
        assert_eq!(image.pinned(), setup.reference(&format!("team/app@{}", pushed.digest)));
        let tree = setup.images.fetch(&image, &setup.access).await.unwrap();
        assert_eq!(files(&tree), owned(&[("manifests/a.yaml", "a")]));
        assert_eq!(setup.images.store().import_directory(source.path()).await.unwrap().digest(), tree.digest());
        // Nothing is asked for twice, and a digest not even once.
        let requests = setup.registry.requests();
        assert_eq!(requests.len(), 3, "{requests:?}");
        let pinned = setup.images.resolve(&image.pinned(), &setup.access).await.unwrap();
        drop(tree);
        setup.images.fetch(&pinned, &setup.access).await.unwrap();
        assert_eq!(setup.registry.requests(), requests);
    }
}

#[tokio::test]
async fn content_in_the_cache_is_for_those_to_whom_its_registry_gives_it() {
    let password =
        |password: &str| Some(Credentials::Basic { username: "user".to_owned(), password: password.to_owned() });
    let authentication = Authentication::Basic { username: "user".to_owned(), password: "s3cret".to_owned() };
    let mut setup = setup(Options { authentication, ..Options::default() }).await;
    setup.registry.push_image("x", "v1", Image::of_layers(vec![Layer::tar_gzip(layer())])).unwrap();
    setup.registry.push_component("plugin", "v1", b"\0asm".to_vec()).unwrap();
    setup.access.credentials = password("s3cret");
    let image = setup.resolve("x:v1").await.unwrap();
    let plugin = setup.resolve("plugin:v1").await.unwrap();
    setup.images.fetch(&image, &setup.access).await.unwrap();
    setup.images.fetch_component(&plugin, &setup.access, 9).await.unwrap();
    for credentials in [None, password("wr0ng")] {
        let access = ImageAccess { credentials, ..setup.access.clone() };
        // A tag, a digest, and a digest that a status named.
        let tag = setup.images.resolve(image.reference(), &access).await.unwrap_err();
        let pinned = setup.images.resolve(&image.pinned(), &access).await.unwrap();
        let digest = setup.images.fetch(&pinned, &access).await.unwrap_err();
        let component = setup.images.fetch_component(&plugin, &access, 9).await.unwrap_err();
        for error in [tag, digest, component] {
            assert_eq!((error.class(), error.reason()), (FailureClass::Unavailable, "Unauthorized"), "{error}");
        }
    }
    // Another process reads the records of granted access, and needs no registry.
    let requests = setup.registry.requests().len();
    let store = || Store::open(&setup.directory.path().join("cache"), Limits::default()).unwrap();
    Images::new(store(), ImageOptions::default()).fetch(&image, &setup.access).await.unwrap();
    assert_eq!(setup.registry.requests().len(), requests);
    // No file of the cache shows the credentials.
    for entry in fs::read_dir(setup.directory.path().join("cache/images")).unwrap() {
        let text = fs::read(entry.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&text).contains("s3cret"));
    }
}

#[tokio::test]
async fn other_credentials_are_proven_with_the_manifest_and_the_content_comes_from_the_cache() {
    let mut setup = setup(Options::default()).await;
    setup.registry.push_image("x", "v1", Image::of_layers(vec![Layer::tar_gzip(layer())])).unwrap();
    let image = setup.resolve("x:v1").await.unwrap();
    setup.images.fetch(&image, &setup.access).await.unwrap();
    setup.access.credentials = Some(Credentials::RegistryToken("t0ken".to_owned()));
    let before = setup.registry.requests().len();
    let asked = || setup.registry.requests()[before..].to_vec();
    setup.images.fetch(&image, &setup.access).await.unwrap();
    assert_eq!(asked(), [format!("GET /v2/x/manifests/{}", image.digest())]);
    setup.images.fetch(&image, &setup.access).await.unwrap();
    assert_eq!(asked().len(), 1);
    // Proven access is enough while the registry is unreachable; what was not does not.
    setup.registry.set_fault(Some((FaultOn::Everything, Fault::Status(503))));
    setup.images.fetch(&image, &setup.access).await.unwrap();
    setup.images.fetch(&image, &ImageAccess::default()).await.unwrap();
    setup.access.credentials = Some(Credentials::RegistryToken("0ther".to_owned()));
    let error = setup.images.fetch(&image, &setup.access).await.unwrap_err();
    assert_eq!((error.class(), error.reason()), (FailureClass::Transient, "RegistryUnavailable"));
}

#[tokio::test]
async fn a_digest_that_another_place_names_is_fetched_from_there() {
    let setup = setup(Options::default()).await;
    let pushed = setup.registry.push_image("x", "v1", Image::of_layers(vec![Layer::tar_gzip(layer())])).unwrap();
    let image = setup.resolve("x:v1").await.unwrap();
    setup.images.fetch(&image, &setup.access).await.unwrap();
    let other = Registry::start(Options::default()).await.unwrap();
    let at = |place: &str| {
        let reference: ImageReference = format!("{place}@{}", pushed.digest).parse().unwrap();
        ResolvedImage::new(reference, pushed.digest.clone())
    };
    for place in [format!("{}/y", setup.registry.host()), format!("{}/x", other.host())] {
        let error = setup.images.fetch(&at(&place), &setup.access).await.unwrap_err();
        assert_eq!(error.reason(), "ImageNotFound", "{place}: {error}");
    }
    // A registry of a tenant that has the manifest, which may be known, and none of the layers.
    let media_type = "application/vnd.oci.image.manifest.v1+json";
    let manifest = get(&setup.registry, &format!("/v2/x/manifests/{}", pushed.digest)).await;
    other.push_manifest("x", "v1", media_type, manifest).unwrap();
    let error = setup.images.fetch(&at(&format!("{}/x", other.host())), &setup.access).await.unwrap_err();
    assert_eq!(error.reason(), "ImageNotFound", "{error}");
    // One that has everything is asked for everything.
    other.push_image("x", "v1", Image::of_layers(vec![Layer::tar_gzip(layer())])).unwrap();
    let before = other.requests().len();
    setup.images.fetch(&at(&format!("{}/x", other.host())), &setup.access).await.unwrap();
    assert_eq!(other.requests().len(), before + 2);
}

#[tokio::test]
async fn an_altered_record_counts_as_absent() {
    let setup = setup(Options::default()).await;
    setup.registry.push_image("x", "v1", Image::of_layers(vec![Layer::tar_gzip(layer())])).unwrap();
    let image = setup.resolve("x:v1").await.unwrap();
    setup.images.fetch(&image, &setup.access).await.unwrap();
    let records = || fs::read_dir(setup.directory.path().join("cache/images")).unwrap();
    let path = records().next().unwrap().unwrap().path();
    let good = fs::read(&path).unwrap();
    for at in [0, 31, 32, good.len() / 2, good.len() - 1] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&path, bad).unwrap();
        let before = setup.registry.requests().len();
        setup.images.fetch(&image, &setup.access).await.unwrap();
        assert_eq!(setup.registry.requests().len(), before + 2, "{at}");
        assert_eq!(fs::read(&path).unwrap(), good);
    }
    // The record of another cache, made with another key.
    let other = tempfile::tempdir().unwrap();
    let root = other.path().join("cache");
    let images = Images::new(Store::open(&root, Limits::default()).unwrap(), ImageOptions::default());
    fs::copy(&path, root.join("images").join(path.file_name().unwrap())).unwrap();
    setup.registry.set_fault(Some((FaultOn::Everything, Fault::Status(503))));
    assert_eq!(images.fetch(&image, &setup.access).await.unwrap_err().reason(), "RegistryUnavailable");
}

#[tokio::test]
async fn the_same_image_is_fetched_once() {
    let setup = setup(Options::default()).await;
    setup.registry.push_image("x", "v1", Image::of_layers(vec![Layer::tar_gzip(layer())])).unwrap();
    let image = setup.resolve("x:v1").await.unwrap();
    let before = setup.registry.requests().len();
    let (one, two) = tokio::join!(setup.images.fetch(&image, &setup.access), setup.images.fetch(&image, &setup.access));
    assert_eq!(one.unwrap().digest(), two.unwrap().digest());
    assert_eq!(setup.registry.requests().len(), before + 2);
    // Another process, with a store of its own over the same directory, needs nothing more.
    let store = Store::open(&setup.directory.path().join("cache"), Limits::default()).unwrap();
    let images = Images::new(store, ImageOptions::default());
    images.fetch(&image, &setup.access).await.unwrap();
    assert_eq!(setup.registry.requests().len(), before + 2);
}

#[tokio::test]
async fn a_fetch_without_a_waiting_reconcile_ends_at_once() {
    let setup = setup(Options::default()).await;
    let file = |number: u8| (0..4_u32 << 20).map(|at| at.to_be_bytes()[2] ^ number).map(char::from).collect::<String>();
    let tar = (0..6).fold(Tar::new(), |tar, number| tar.file(&format!("{number}"), &file(number)));
    setup.registry.push_image("x", "v1", Image::of_layers(vec![Layer::tar_gzip(tar.plain())])).unwrap();
    let image = setup.resolve("x:v1").await.unwrap();
    let cache = setup.directory.path().join("cache");
    let below = |name: &str| fs::read_dir(cache.join(name)).unwrap().filter_map(Result::ok).map(|entry| entry.path());
    let begun = || {
        let mut packs = below("work").map(|work| work.join("tree/pack"));
        packs.any(|pack| fs::metadata(pack).is_ok_and(|metadata| metadata.len() > 0))
    };
    let mut fetch = Box::pin(setup.images.fetch(&image, &setup.access));
    while !begun() {
        tokio::select! {
            biased;
            ended = &mut fetch => panic!("{ended:?} before it was seen to unpack"),
            () = tokio::task::yield_now() => {}
        }
    }
    drop(fetch);
    while below("work").next().is_some() {
        std::thread::yield_now();
    }
    // It did not unpack to the end first.
    assert_eq!(below("trees").count(), 0);
    assert_eq!(setup.fetch("x:v1").await.unwrap().len(), 6);
}
