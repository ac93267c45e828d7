//! Images whose label names the directory of their files: catalogs.

use chandler_content::{ContentError, ImageError, Tree};
use chandler_devregistry::{Image, Layer, Options};
use serde_json::json;

use crate::{
    common::{Tar, files},
    images::setup::{Setup, owned, setup},
};

const LABEL: &str = "operators.operatorframework.io.index.configs.v1";

async fn fetch(setup: &Setup, value: Option<&str>, layers: Vec<Vec<u8>>) -> Result<Tree, ContentError> {
    let mut image = Image::of_layers(layers.into_iter().map(Layer::tar_gzip).collect());
    let labels = value.map_or(json!({}), |value| json!({LABEL: value}));
    image.config = json!({"architecture": "amd64", "os": "linux", "config": {"Labels": labels}});
    setup.registry.push_image("x", "v1", image).unwrap();
    let resolved = setup.resolve("x:v1").await?;
    setup.images.fetch_labelled(&resolved, &setup.access, LABEL).await
}

#[tokio::test]
async fn only_the_files_below_the_directory_are_read() {
    let setup = setup(Options::default()).await;
    let system = || {
        Tar::new()
            .file("bin/opm", "program")
            .link("bin/sh", "/bin/busybox-that-is-elsewhere")
            .link("lib", "usr/lib")
            .file("srv/configs/a/catalog.yaml", "old")
            .file("srv/configs/b/catalog.yaml", "b")
            .file("srv/configs-of-others/x", "x")
            // Names that nothing here reads are not judged.
            .file("var/lib/a\nb", "x")
            .file("/etc/passwd", "x")
            .gzip()
    };
    let upper = Tar::new().file("srv/configs/a/catalog.yaml", "new").file("srv/configs/.wh.b", "").gzip();
    let tree = fetch(&setup, Some("/srv/configs/"), vec![system(), upper]).await.unwrap();
    assert_eq!(files(&tree), owned(&[("a/catalog.yaml", "new")]));
    // The whole image is refused, and is not what the cache has for the label.
    assert!(setup.fetch("x:v1").await.is_err());
    let requests = setup.registry.requests().len();
    let again = setup.resolve("x:v1").await.unwrap();
    let again = setup.images.fetch_labelled(&again, &setup.access, LABEL).await.unwrap();
    assert_eq!(files(&again), files(&tree));
    assert_eq!(setup.registry.requests().len(), requests + 1, "only the tag is resolved");
    let elsewhere = fetch(&setup, Some("/configs"), vec![system()]).await.unwrap();
    assert_eq!(files(&elsewhere), owned(&[]));
}

#[tokio::test]
async fn names_below_the_directory_are_judged() {
    let setup = setup(Options::default()).await;
    for name in ["srv/configs/a\nb", "/srv/configs/a", "bin/../srv/configs/a"] {
        assert!(
            fetch(&setup, Some("/srv/configs"), vec![Tar::new().file(name, "x").gzip()]).await.is_err(),
            "{name:?}"
        );
    }
}

#[tokio::test]
async fn a_label_that_names_no_directory_is_refused() {
    let setup = setup(Options::default()).await;
    let layers = || vec![Tar::new().file("configs/a.yaml", "a").gzip()];
    let error = |result: Result<Tree, ContentError>| match result {
        Err(ContentError::Image { error, .. }) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(error(fetch(&setup, None, layers()).await), ImageError::NoLabel(LABEL.to_owned()));
    for value in ["/", "", "../configs", "/configs/../..", "a\nb"] {
        let expected = ImageError::LabelValue { label: LABEL.to_owned(), value: value.to_owned() };
        assert_eq!(error(fetch(&setup, Some(value), layers()).await), expected);
    }
    let below_a_link = vec![Tar::new().link("configs", "elsewhere").file("elsewhere/a.yaml", "a").gzip()];
    assert!(fetch(&setup, Some("/configs"), below_a_link).await.is_err(), "links to directories are not followed");
}
