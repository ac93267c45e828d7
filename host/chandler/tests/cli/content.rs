//! The content service: files are uploaded to it and read from it.

use std::fs;

use chandler_api::BundleDeployment;
use kube::{Api, api::PostParams};

use crate::{
    approvals::client,
    dev::Kept,
    support::{documents, root},
};

const BUNDLE: &str = "./tests/fixtures/plain/lighthouse";

#[test]
fn files_are_uploaded_and_read_back() {
    let kept = Kept::start(&[]);
    let of = |arguments: &[&str]| kept.run(arguments);
    let installed = of(&["install", "lighthouse", BUNDLE, "--upload", "--create-namespace"]);
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    let digest = installed.stderr.lines().find_map(|line| line.strip_prefix("files uploaded ")).unwrap().to_owned();
    assert!(!installed.stderr.contains("ConfigMap"), "{}", installed.stderr);

    let listed = of(&["content", "lighthouse"]).data();
    assert!(listed.starts_with("SIZE") && listed.contains("manifests/") && listed.contains(&digest), "{listed}");
    let directory = tempfile::tempdir().unwrap();
    let (files, archive) = (directory.path().join("files"), directory.path().join("lighthouse.tgz"));
    let written = of(&["content", "lighthouse", "--to", files.to_str().unwrap()]);
    assert_eq!(written.code, Some(0), "{}", written.stderr);
    for entry in fs::read_dir(root().join(BUNDLE).join("manifests")).unwrap() {
        let path = entry.unwrap().path();
        let copy = files.join("manifests").join(path.file_name().unwrap());
        assert_eq!(fs::read(&path).unwrap(), fs::read(&copy).unwrap(), "{}", copy.display());
    }
    // Nothing is overwritten.
    let again = of(&["content", "lighthouse", "--to", files.to_str().unwrap()]);
    assert_eq!(again.code, Some(2), "{}", again.stderr);
    assert!(again.stderr.contains("is not empty"), "{}", again.stderr);
    assert_eq!(of(&["content", "lighthouse", "--to", archive.to_str().unwrap()]).code, Some(0));
    assert_eq!(fs::read(&archive).unwrap()[..2], [0x1f, 0x8b]);
    let again = of(&["content", "lighthouse", "--to", archive.to_str().unwrap()]);
    assert_eq!(again.code, Some(1), "{}", again.stderr);

    // An upgrade uploads first; the same files are not uploaded twice.
    fs::write(files.join("manifests/more.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n").unwrap();
    let upgraded = of(&["upgrade", "lighthouse", files.to_str().unwrap(), "--upload"]);
    assert_eq!(upgraded.code, Some(0), "{}", upgraded.stderr);
    assert!(upgraded.stderr.contains("files uploaded sha256:"), "{}", upgraded.stderr);
    assert!(of(&["content", "lighthouse"]).data().contains("more.yaml"));
    let back = of(&["upgrade", "lighthouse", BUNDLE, "--upload"]);
    assert!(back.stderr.contains("files were uploaded before: "), "{}", back.stderr);

    // Commands that render the bundle read it there, too, and say what helps without the service.
    let same = of(&["diff", "lighthouse"]);
    assert_eq!(same.code, Some(0), "{}", same.stderr);
    assert_eq!(of(&["diff", "lighthouse", BUNDLE]).code, Some(0));
    let without = of(&["diff", "lighthouse", "--content-service", "none"]).stderr.replace('\n', " ");
    assert!(without.contains("start the controller with --content-address"), "{without}");
    assert!(without.contains("`chandler diff lighthouse ./FILES`"), "{without}");
    let approve = ["approve", "lighthouse", "--findings"];
    let none = of(&approve).stderr;
    assert!(none.contains("no finding"), "{none}");
    assert_eq!(of(&[&approve[..], &["--bundle", BUNDLE]].concat()).stderr, none);
    let without = of(&[&approve[..], &["--content-service", "none"]].concat()).stderr.replace('\n', " ");
    assert!(without.contains("`chandler approve lighthouse --findings --bundle ./FILES`"), "{without}");
    let unread = of(&["adopt", "lighthouse"]).stderr.replace('\n', " ");
    assert!(unread.contains("this command does not read them there"), "{unread}");

    for (arguments, code, part) in [
        (vec!["content", "nobody"], 7, "bundledeployments.core.rukpak.io \"nobody\" not found"),
        (vec!["content", "lighthouse", "--content-service", "none"], 1, "start the controller with --content-address"),
        (
            vec!["install", "other", BUNDLE, "--upload", "--create-namespace", "--content-service", "none"],
            1,
            "start the controller with --content-address",
        ),
        // Nothing was created for it.
        (vec!["status", "other"], 7, "not found"),
        (vec!["content", "lighthouse", "--content-url", "http://localhost"], 2, "it is not an https URL"),
        (vec!["install", "x", "quay.io/example/a:v1", "--upload"], 2, "--upload is for files of this machine"),
    ] {
        let outcome = of(&arguments);
        assert_eq!(outcome.code, Some(code), "{arguments:?}: {}", outcome.stderr);
        assert!(outcome.stderr.replace('\n', " ").contains(part), "{arguments:?}: {}", outcome.stderr);
    }
}

/// The command that the status names while files are awaited.
#[test]
fn an_upgrade_uploads_files_that_the_spec_names_already() {
    let kept = Kept::start(&[]);
    let of = |arguments: &[&str]| kept.run(arguments);
    let directory = tempfile::tempdir().unwrap();
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n";
    fs::create_dir(directory.path().join("manifests")).unwrap();
    fs::write(directory.path().join("manifests/map.yaml"), map).unwrap();
    let files = directory.path().to_str().unwrap();
    let install =
        ["install", "map", files, "--upload", "-n", "default", "--class", "core-rukpak-io-plain", "--dry-run"];
    let written = of(&install).data();
    let deployment = documents(&written).into_iter().find(|object| object["kind"] == "BundleDeployment").unwrap();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let deployments: Api<BundleDeployment> = Api::all(client(&kept).await);
        deployments.create(&PostParams::default(), &serde_json::from_value(deployment).unwrap()).await.unwrap();
    });
    let upgraded = of(&["upgrade", "map", files, "--upload"]);
    assert_eq!(upgraded.code, Some(0), "{}", upgraded.stderr);
    assert!(upgraded.stderr.contains("already has this spec"), "{}", upgraded.stderr);
    assert!(upgraded.stderr.contains("files uploaded sha256:"), "{}", upgraded.stderr);
}

/// `helm package` and archives have a chart below one directory, and so may a directory.
#[test]
fn a_directory_with_a_chart_is_uploaded_as_the_chart() {
    let kept = Kept::start(&[]);
    let of = |arguments: &[&str]| kept.run(arguments);
    let directory = tempfile::tempdir().unwrap();
    let web = directory.path().join("web");
    fs::create_dir_all(web.join("manifests")).unwrap();
    fs::write(web.join("Chart.yaml"), "apiVersion: v2\nname: web\nversion: 1.0.0\n").unwrap();
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n";
    fs::write(web.join("manifests/map.yaml"), map).unwrap();
    let install = ["install", "web", directory.path().to_str().unwrap(), "--upload", "--create-namespace"];
    let installed = of(&[&install[..], &["--class", "core-rukpak-io-plain"]].concat());
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    let digest = installed.stderr.lines().find_map(|line| line.strip_prefix("files uploaded ")).unwrap().to_owned();
    // The directory of the chart itself has the same content.
    let same = of(&["upgrade", "web", web.to_str().unwrap(), "--upload"]);
    assert_eq!(same.code, Some(0), "{}", same.stderr);
    assert!(same.stderr.contains("already has this spec") && same.stderr.contains(&digest), "{}", same.stderr);
    // Helm would not pack these files: they do not reach the cluster.
    fs::write(web.join(".helmignore"), ".env\n.git/\n").unwrap();
    fs::create_dir(web.join(".git")).unwrap();
    fs::write(web.join(".git/config"), "token\n").unwrap();
    fs::write(web.join(".env"), "PASSWORD=secret\n").unwrap();
    let upgraded = of(&["upgrade", "web", web.to_str().unwrap(), "--upload"]);
    assert_eq!(upgraded.code, Some(0), "{}", upgraded.stderr);
    let listed = of(&["content", "web"]).data();
    assert!(listed.contains(".helmignore") && listed.contains("manifests/map.yaml"), "{listed}");
    assert!(!listed.contains(".env") && !listed.contains(".git/"), "{listed}");
    let maps = of(&["upgrade", "web", web.to_str().unwrap(), "--dry-run", "-o", "yaml"]).stdout;
    assert!(maps.contains("Chart.yaml") && !maps.contains("PASSWORD") && !maps.contains("token"), "{maps}");
    // A file beside it makes it another bundle.
    fs::write(directory.path().join("README.md"), "a\n").unwrap();
    let beside = of(&["lint", directory.path().to_str().unwrap()]);
    assert_ne!(beside.code, Some(0), "{}", beside.stdout);
}
