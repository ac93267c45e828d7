//! Charts of Helm on the command line, wherever they are.

use std::{fs, path::Path, process::Command};

use chandler_core::Digest;
use chandler_devregistry::{Image, Layer, Options, Registry};
use serde_json::json;

use crate::support::{chandler, root, web_server};

/// A chart in a directory, and the archive that `helm package` would make of it.
fn chart(home: &Path) -> (String, String) {
    let web = home.join("web");
    fs::create_dir_all(web.join("templates")).unwrap();
    fs::write(web.join("Chart.yaml"), "apiVersion: v2\nname: web\nversion: 1.2.3\n").unwrap();
    fs::write(web.join("values.yaml"), "replicaCount: 1\n").unwrap();
    // Classes of Unicode are in the component, too, which does not have all tables.
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}\"}\ndata:\n  replicas: \"{{ .Values.replicaCount }}\"\n  letters: \"{{ regexMatch `^(?i:\\p{Greek}É)\\pL\\p{Nd}$` `αéa1` }}\"\n";
    fs::write(web.join("templates/config.yaml"), template).unwrap();
    // `helm package` leaves these out; the archive has them, and the provisioner ignores them.
    fs::write(web.join(".helmignore"), "*.bak\n/notes/\n").unwrap();
    fs::write(web.join("templates/config.yaml.bak"), "{{ fail \"it is ignored\" }}").unwrap();
    fs::create_dir_all(web.join("notes")).unwrap();
    fs::write(web.join("notes/a"), "").unwrap();
    let archive = home.join("web-1.2.3.tgz");
    let mut tar = Command::new("tar");
    tar.args(["--create", "--gzip", "--file"]).arg(&archive).arg("--directory").arg(home).arg("web");
    assert!(tar.status().unwrap().success());
    (web.to_str().unwrap().to_owned(), archive.to_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_renders_alike_from_every_source() {
    let home = tempfile::tempdir().unwrap();
    let (directory, archive) = chart(home.path());
    let component = root().join("target/plugins/helm.wasm").to_str().unwrap().to_owned();
    let registry = Registry::start(Options::default()).await.unwrap();
    let bytes = fs::read(&archive).unwrap();
    let layer = "application/vnd.cncf.helm.chart.content.v1.tar+gzip".to_owned();
    let mut image = Image::of_layers(vec![Layer { media_type: layer, bytes: bytes.clone() }]);
    image.config_media_type = "application/vnd.cncf.helm.config.v1+json".to_owned();
    image.config = json!({"name": "web", "version": "1.2.3", "apiVersion": "v2"});
    let of_helm = registry.push_image("charts/web", "1.2.3", image).unwrap().reference;
    let url = format!("http://{}/web-1.2.3.tgz#sha256={}", web_server(bytes.clone()), Digest::of(&bytes).hex());
    let of_chandler = format!("{}/bundles/web:1.2.3", registry.host());

    // The registry runs on the threads of this test.
    let run = move || {
        let pushed = chandler(["push", &archive, &of_chandler], "").data();
        let render = |bundle: &str| {
            let options = ["--name", "web", "--namespace", "shop", "--set", "values.replicaCount=3"];
            chandler([&["render", bundle, "--provisioner", &component][..], &options].concat(), "").data()
        };
        let expected = render(&directory);
        assert!(expected.contains("name: web") && expected.contains("replicas: \"3\""), "{expected}");
        assert!(expected.contains("letters: \"true\""), "{expected}");
        for bundle in [&archive, &of_helm, &url, pushed.trim()] {
            assert_eq!(render(bundle), expected, "{bundle}");
        }
        let linted = chandler(["lint", &archive, "--provisioner", &component], "");
        assert_eq!(linted.code, Some(0), "{}", linted.stderr);
        // Without `values`, as a user of Helm types it.
        let wrong = chandler(["render", &archive, "--provisioner", &component, "--set", "replicaCount=3"], "");
        assert!(wrong.code == Some(1) && wrong.stderr.contains("replicaCount"), "{}", wrong.stderr);
    };
    tokio::task::spawn_blocking(run).await.unwrap();
}
