//! Layers, and what lies over what.

use chandler_content::FailureClass;
use chandler_devregistry::Options;

use crate::{
    common::{Tar, files},
    images::setup::{layer, owned, setup},
};

#[tokio::test]
async fn layers_lie_over_one_another() {
    let setup = setup(Options::default()).await;
    let lower = Tar::new()
        .file("kept", "lower")
        .file("replaced", "lower")
        .file("hidden", "lower")
        .file("directory/hidden", "lower")
        .file("emptied/old", "lower")
        .file("file-then-directory", "lower")
        .file("directory-then-file/a", "lower")
        .file("data/real", "lower");
    let upper = Tar::new()
        // The order in the layer does not matter.
        .file("emptied/new", "upper")
        .file("emptied/.wh..wh..opq", "")
        .file(".wh.hidden", "")
        .file(".wh.directory", "")
        .file(".wh.never-there", "")
        .file(".wh..wh.plnk", "")
        .file("replaced", "upper")
        .directory("file-then-directory")
        .file("file-then-directory/a", "upper")
        .file("directory-then-file", "upper")
        .hard_link("hard", "data/real")
        .hard_link("hard-absolute", "/data/real")
        .link("absolute", "/data/real");
    let tree = setup.fetch_layers(vec![lower.gzip(), upper.gzip()]).await.unwrap();
    assert_eq!(
        files(&tree),
        owned(&[
            ("absolute", "lower"),
            ("data/real", "lower"),
            ("directory-then-file", "upper"),
            ("emptied/new", "upper"),
            ("file-then-directory/a", "upper"),
            ("hard", "lower"),
            ("hard-absolute", "lower"),
            ("kept", "lower"),
            ("replaced", "upper"),
        ])
    );
}

#[tokio::test]
async fn hostile_layers_are_refused() {
    let setup = setup(Options::default()).await;
    let base = || Tar::new().file("b", "x").link("link", "b").gzip();
    let mut messages = Vec::new();
    for layers in [
        vec![Tar::new().file("../a", "x").gzip()],
        vec![Tar::new().file(".wh...", "").gzip()],
        vec![Tar::new().file("a/.wh.", "").gzip()],
        vec![Tar::new().file(".wh.a/b", "").link("c", "/../d").gzip()],
        vec![Tar::new().hard_link("e", "/../f").gzip()],
        vec![base(), Tar::new().file("link/a", "x").gzip()],
        vec![base(), Tar::new().file("b/a", "x").gzip()],
        vec![base(), Tar::new().file(".wh.b", "").gzip()],
        vec![Tar::new().file("a", "x").plain()[..700].to_vec()],
    ] {
        let error = setup.fetch_layers(layers).await.unwrap_err();
        assert_eq!(error.class(), FailureClass::Permanent, "{error}");
        messages.push(setup.message(&error));
    }
    insta::assert_snapshot!(messages.join("\n"), @r#"
    layer … of image registry/x@sha256:…: entry "../a": the path has a `..` part
    layer … of image registry/x@sha256:…: entry ".wh...": the path has a `..` part
    layer … of image registry/x@sha256:…: entry "a/.wh.": has no name
    image registry/x@sha256:…: entry "c": links to "/../d", which is outside
    layer … of image registry/x@sha256:…: entry "e": links to "/../f", which is outside
    layer … of image registry/x@sha256:…: entry "link/a": lies below "link", which is not a directory
    layer … of image registry/x@sha256:…: entry "b/a": lies below "b", which is not a directory
    image registry/x@sha256:…: entry "link": links to "b", which does not exist
    layer … of image registry/x@sha256:…: is not a readable tar archive: unexpected EOF during skip
    "#);
}

#[tokio::test]
async fn an_image_may_have_no_layer_or_the_same_twice() {
    let setup = setup(Options::default()).await;
    assert!(setup.fetch_layers(vec![]).await.unwrap().is_empty());
    assert_eq!(setup.fetch_layers(vec![layer(), layer()]).await.unwrap().len(), 1);
}
