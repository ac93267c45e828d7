//! Charts that `helm push` put into a registry.

use chandler_content::{ContentError, ImageError, LimitExceeded, Limits, Tree};
use chandler_core::Digest;
use chandler_devregistry::{Image, Layer, Options};
use serde_json::json;

use crate::{
    common::{Tar, files},
    images::setup::{Setup, owned, setup, setup_with},
};

const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const PROVENANCE: &str = "application/vnd.cncf.helm.chart.provenance.v1.prov";

async fn fetch(setup: &Setup, layers: Vec<(&str, Vec<u8>)>) -> Result<Tree, ContentError> {
    let layers = layers.into_iter().map(|(media_type, bytes)| Layer { media_type: media_type.to_owned(), bytes });
    let mut image = Image::of_layers(layers.collect());
    CONFIG.clone_into(&mut image.config_media_type);
    image.config = json!({"name": "web", "version": "1.2.3", "apiVersion": "v2"});
    setup.registry.push_image("charts/web", "1.2.3_build5", image).unwrap();
    setup.fetch("charts/web:1.2.3_build5").await
}

fn chart() -> Tar {
    // `.wh.` has no meaning in a chart.
    Tar::new().file("web/Chart.yaml", "name: web\n").file("web/templates/a.yaml", "a").file("web/.wh.b", "b")
}

#[tokio::test]
async fn the_bundle_of_a_chart_begins_in_its_directory() {
    let setup = setup(Options::default()).await;
    // The provenance comes before or after the chart, and is not read.
    let layers = vec![(PROVENANCE, b"signed".to_vec()), (CHART, chart().gzip())];
    let tree = fetch(&setup, layers).await.unwrap();
    assert_eq!(files(&tree), owned(&[(".wh.b", "b"), ("Chart.yaml", "name: web\n"), ("templates/a.yaml", "a")]));
    let requests = setup.registry.requests();
    assert!(!requests.iter().any(|it| it.contains(Digest::of(b"signed").hex())), "{requests:?}");
    // The second time, only the tag is resolved.
    setup.fetch("charts/web:1.2.3_build5").await.unwrap();
    assert_eq!(setup.registry.requests().len(), requests.len() + 1);
}

#[tokio::test]
async fn what_helm_would_not_read_is_refused() {
    let setup = setup(Options::default()).await;
    let layer = "application/vnd.oci.image.layer.v1.tar+gzip";
    let error = |result: Result<Tree, ContentError>| match result {
        Err(ContentError::Image { error, .. }) => error,
        other => panic!("{other:?}"),
    };
    for (layers, expected) in [
        (vec![], ImageError::ChartLayers(0)),
        (vec![(layer, chart().gzip())], ImageError::ChartLayers(0)),
        (vec![(CHART, chart().gzip()), (CHART, chart().file("web/c", "c").gzip())], ImageError::ChartLayers(2)),
        (vec![(CHART, Tar::new().file("Chart.yaml", "name: web\n").gzip())], ImageError::NoChart),
        (vec![(CHART, Tar::new().file("web/values.yaml", "a: 1\n").gzip())], ImageError::NoChart),
        (vec![(CHART, chart().file("other/a", "a").gzip())], ImageError::NoChart),
    ] {
        assert_eq!(error(fetch(&setup, layers).await), expected);
    }
    let escaping = fetch(&setup, vec![(CHART, chart().link("web/values.yaml", "../../../etc/passwd").gzip())]).await;
    assert!(matches!(error(escaping), ImageError::Archive(_)));
    let above = fetch(&setup, vec![(CHART, chart().file("web/../../a", "a").gzip())]).await;
    assert!(matches!(above, Err(ContentError::Layer { .. })), "{above:?}");
}

#[tokio::test]
async fn a_chart_is_not_larger_than_an_archive_may_be() {
    let setup = setup_with(Options::default(), Limits { download_bytes: 10, ..Limits::default() }).await;
    match fetch(&setup, vec![(CHART, chart().gzip())]).await {
        Err(ContentError::Image { error, .. }) => {
            assert_eq!(error, ImageError::Limit(LimitExceeded::DownloadBytes(10)));
        }
        other => panic!("{other:?}"),
    }
}
