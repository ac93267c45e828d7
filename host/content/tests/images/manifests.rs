//! Tags, digests, manifests and indexes.

use chandler_content::{ImageOptions, Images};
use chandler_core::Digest;
use chandler_devregistry::{Fault, FaultOn, Image, Layer, Options};
use serde_json::json;

use crate::{
    common::{Tar, files},
    images::setup::{layer, owned, setup},
};

#[tokio::test]
async fn a_tag_that_moves_between_resolving_and_fetching_changes_nothing() {
    let setup = setup(Options::default()).await;
    let old = setup.registry.push_image("x", "v1", Image::of_layers(vec![Layer::tar_gzip(layer())])).unwrap();
    let image = setup.resolve("x:v1").await.unwrap();
    let new = Tar::new().file("new", "x").gzip();
    setup.registry.push_image("x", "v1", Image::of_layers(vec![Layer::tar_gzip(new)])).unwrap();
    let tree = setup.images.fetch(&image, &setup.access).await.unwrap();
    assert_eq!(*image.digest(), old.digest);
    assert_eq!(files(&tree), owned(&[("manifests/a.yaml", "a")]));
    assert_eq!(files(&setup.fetch("x:v1").await.unwrap()), owned(&[("new", "x")]));
}

#[tokio::test]
async fn a_digest_is_made_where_none_is_announced() {
    let setup = setup(Options::default()).await;
    let pushed = setup.registry.push_image("x", "v1", Image::of_layers(vec![])).unwrap();
    setup.registry.set_fault(Some((FaultOn::Manifests, Fault::NoDigestHeader)));
    assert_eq!(*setup.resolve("x:v1").await.unwrap().digest(), pushed.digest);
}

#[tokio::test]
async fn an_index_leads_to_the_image_for_the_platform() {
    let setup = setup(Options::default()).await;
    let mut entries = Vec::new();
    for (os, architecture) in [("linux", "arm64"), ("linux", "amd64")] {
        let layer = Tar::new().file(architecture, os).gzip();
        let pushed =
            setup.registry.push_image("x", architecture, Image::of_layers(vec![Layer::tar_gzip(layer)])).unwrap();
        entries.push(json!({
            "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": pushed.digest, "size": 1,
            "platform": {"os": os, "architecture": architecture}
        }));
    }
    let push = |tag: &str, media_type: &str, manifests: &[serde_json::Value]| {
        let index = json!({"schemaVersion": 2, "mediaType": media_type, "manifests": manifests});
        setup.registry.push_manifest("x", tag, media_type, index.to_string().into_bytes()).unwrap()
    };
    let oci = "application/vnd.oci.image.index.v1+json";
    let docker = "application/vnd.docker.distribution.manifest.list.v2+json";
    for (tag, media_type) in [("oci", oci), ("docker", docker)] {
        let pushed = push(tag, media_type, &entries);
        let image = setup.resolve(&format!("x:{tag}")).await.unwrap();
        assert_eq!(*image.digest(), pushed.digest);
        assert_eq!(files(&setup.images.fetch(&image, &setup.access).await.unwrap()), owned(&[("amd64", "linux")]));
    }
    // Another platform is another tree of the same image.
    let options = ImageOptions { platform: "linux/arm64".parse().unwrap(), ..ImageOptions::default() };
    let images = Images::new(setup.images.store().clone(), options);
    let tree = images.fetch(&setup.resolve("x:oci").await.unwrap(), &setup.access).await.unwrap();
    assert_eq!(files(&tree), owned(&[("arm64", "linux")]));
    // Bundles contain the same files for all platforms. The image of an attestation is none of them.
    let mut attestation = entries[1].clone();
    attestation["platform"] = json!({"os": "unknown", "architecture": "unknown"});
    push("only", oci, &[entries[0].clone(), attestation]);
    let tree = setup.images.fetch(&setup.resolve("x:only").await.unwrap(), &setup.access).await.unwrap();
    assert_eq!(files(&tree), owned(&[("arm64", "linux")]));
    let mut s390x = entries[0].clone();
    s390x["platform"]["architecture"] = json!("s390x");
    push("other", oci, &[entries[0].clone(), s390x]);
    let nested = push("oci", oci, &entries);
    let platform = json!({"os": "linux", "architecture": "amd64"});
    push("nested", oci, &[json!({"mediaType": oci, "digest": nested.digest, "size": 1, "platform": platform})]);
    push("lying", oci, &[json!({"digest": nested.digest, "size": 1, "platform": platform})]);
    for (tag, expected) in [
        ("other", "the index has no image for linux/amd64; it has linux/arm64, linux/s390x"),
        ("nested", "the index has no image for linux/amd64; it has none that names its platform"),
        ("lying", "the index leads to another index"),
    ] {
        let error = setup.fetch(&format!("x:{tag}")).await.unwrap_err();
        assert!(error.to_string().ends_with(expected), "{error}");
    }
    let image = setup.resolve("x:oci").await.unwrap();
    let error = setup.images.fetch_component(&image, &setup.access, 1000).await.unwrap_err();
    assert!(error.to_string().ends_with("it is an index; a component is one manifest for all platforms"), "{error}");
}

#[tokio::test]
async fn manifests_that_lie_are_refused() {
    let setup = setup(Options::default()).await;
    let bytes = layer();
    setup.registry.push_blob("x", "", bytes.clone()).unwrap();
    let (digest, size) = (Digest::of(&bytes), bytes.len());
    let media_type = "application/vnd.oci.image.layer.v1.tar+gzip";
    let of = |layer: serde_json::Value| json!({"schemaVersion": 2, "config": {}, "layers": [layer]});
    let mut messages = Vec::new();
    for manifest in [
        json!({"schemaVersion": 1}),
        json!({"schemaVersion": 2, "config": {}, "layers": [], "manifests": []}),
        json!({"schemaVersion": 2, "mediaType": "text/plain", "layers": []}),
        json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "layers": []}),
        json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "manifests": []}),
        of(json!({"mediaType": "text/plain", "digest": digest, "size": size})),
        of(json!({"mediaType": media_type, "digest": "sha256:../../etc", "size": size})),
        of(json!({"mediaType": media_type, "digest": digest, "size": -1})),
        of(json!({"mediaType": media_type, "digest": digest, "size": 1_u64 << 40})),
        of(json!({"mediaType": media_type, "digest": digest, "size": size - 1})),
        of(json!({"mediaType": media_type, "digest": digest, "size": size + 1})),
        json!({"schemaVersion": 2, "config": {}, "layers": vec![json!({"mediaType": media_type, "digest": digest, "size": size}); 129]}),
    ] {
        setup.registry.push_manifest("x", "v1", "", manifest.to_string().into_bytes()).unwrap();
        messages.push(setup.message(&setup.fetch("x:v1").await.unwrap_err()));
    }
    setup.registry.push_manifest("x", "v1", "", vec![b' '; (4 << 20) + 1]).unwrap();
    messages.push(setup.message(&setup.fetch("x:v1").await.unwrap_err()));
    insta::assert_snapshot!(messages.join("\n"), @r#"
    image registry/x@sha256:…: the manifest cannot be read: it has the schema version 1
    image registry/x@sha256:…: the manifest is an image and an index at once
    image registry/x@sha256:…: the manifest has the media type "text/plain", which is not supported
    image registry/x@sha256:…: the manifest cannot be read: it is not what its media type says
    image registry/x@sha256:…: the manifest cannot be read: it is not what its media type says
    image registry/x@sha256:…: layer 0 has the media type "text/plain", which is not a bundle's
    image registry/x@sha256:…: the manifest cannot be read: "sha256:../../etc" is not a digest: want `sha256:` and 64 lower-case hexadecimal digits at line 1 column 51
    image registry/x@sha256:…: the manifest cannot be read: invalid value: integer `-1`, expected u64 at line 1 column 174
    image registry/x@sha256:…: its layers are larger than 256 MiB together
    image registry/x@sha256:…: layer … has more than 2559 bytes; the manifest says 2559
    image registry/x@sha256:…: layer … has 2560 bytes; the manifest says 2561
    image registry/x@sha256:…: it has more than 128 layers
    image registry/x@sha256:…: its manifest is larger than 4 MiB
    "#);
}

#[tokio::test]
async fn docker_manifests_are_read() {
    let setup = setup(Options::default()).await;
    let layer = setup.registry.push_blob("x", "application/vnd.docker.image.rootfs.diff.tar.gzip", layer()).unwrap();
    let media_type = "application/vnd.docker.distribution.manifest.v2+json";
    let manifest = json!({"schemaVersion": 2, "mediaType": media_type, "config": {}, "layers": [layer]});
    setup.registry.push_manifest("x", "v1", media_type, manifest.to_string().into_bytes()).unwrap();
    assert_eq!(setup.fetch("x:v1").await.unwrap().len(), 1);
}
