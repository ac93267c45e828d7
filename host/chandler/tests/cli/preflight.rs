//! `chandler preflight`: what another version of Chandler would do, read from a directory, a binary, an image and an OCI image layout.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use chandler::read::release_files::{self, INDEX, LABEL};
use chandler_core::Digest;
use chandler_devregistry::{Options, Registry};
use k8s_openapi::api::rbac::v1::Role;
use kube::{Api, api::PostParams};
use serde_json::{Value, json};

use crate::{
    commands::{OLD, Session},
    support::chandler,
};

type Files = BTreeMap<String, Vec<u8>>;

/// Replaces a text in a component by another one of the same length, so that it renders other objects.
fn replaced(component: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = component.to_vec();
    let places: Vec<usize> = memchr::memmem::find_iter(component, from).collect();
    assert!(!places.is_empty(), "{from} is in the component");
    for place in places {
        bytes[place..place + to.len()].copy_from_slice(to.as_bytes());
    }
    bytes
}

/// The files of a later version: its registry provisioner is changed, and `edit` changes the files with objects.
fn later(component: impl FnOnce(&[u8]) -> Vec<u8>, edit: impl Fn(&str, &mut Value)) -> Files {
    let mut files = release_files::files().unwrap();
    let name = "provisioners/registry.wasm";
    files.insert(name.to_owned(), component(&files[name]));
    for name in ["crds.json", "roles.json"] {
        let mut list: Value = serde_json::from_slice(&files[name]).unwrap();
        edit(name, &mut list);
        files.insert(name.to_owned(), serde_json::to_vec(&list).unwrap());
    }
    let mut index: Value = serde_json::from_slice(&files[INDEX]).unwrap();
    index["version"] = json!("0.2.0");
    let digest = |file: &Value| json!(Digest::of(&files[file.as_str().unwrap()]).as_str());
    for provisioner in index["provisioners"].as_array_mut().unwrap() {
        provisioner["digest"] = digest(&provisioner["file"]);
    }
    for list in ["crds", "roles"] {
        index[list]["digest"] = digest(&index[list]["file"]);
    }
    files.insert(INDEX.to_owned(), serde_json::to_vec(&index).unwrap());
    files
}

fn other_annotation(component: &[u8]) -> Vec<u8> {
    replaced(component, "olm.targetNamespaces", "olm.TargetNamespaces")
}

fn write(files: &Files, directory: &Path) -> String {
    for (path, bytes) in files {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    directory.to_str().unwrap().to_owned()
}

/// An OCI image layout whose label names the directory of these files. Without a label, it is another image.
fn layout(directory: PathBuf, files: &Files, label: Option<&str>) -> String {
    let mut archive = tar::Builder::new(Vec::new());
    let program = ("usr/local/bin/chandler", b"#!/bin/sh\ntouch /tmp/chandler-preflight-was-run\n".as_slice());
    let files = files.iter().map(|(path, bytes)| (format!("usr/share/chandler/{path}"), bytes.as_slice()));
    for (path, bytes) in [(program.0.to_owned(), program.1)].into_iter().chain(files) {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o755);
        archive.append_data(&mut header, path, bytes).unwrap();
    }
    let layer = archive.into_inner().unwrap();
    let labels = label.map(|value| json!({LABEL: value}));
    let config = json!({"architecture": "amd64", "os": "linux", "config": {"Labels": labels}}).to_string();
    fs::create_dir_all(directory.join("blobs/sha256")).unwrap();
    let blob = |media_type: &str, bytes: &[u8]| {
        let digest = Digest::of(bytes);
        fs::write(directory.join("blobs/sha256").join(digest.hex()), bytes).unwrap();
        json!({"mediaType": format!("application/vnd.oci.image.{media_type}"), "digest": digest, "size": bytes.len()})
    };
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob("config.v1+json", config.as_bytes()),
        "layers": [blob("layer.v1.tar", &layer)],
    });
    let mut manifest = blob("manifest.v1+json", manifest.to_string().as_bytes());
    manifest["platform"] = json!({"architecture": "amd64", "os": "linux"});
    let index =
        json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest]});
    fs::write(directory.join("index.json"), index.to_string()).unwrap();
    fs::write(directory.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
    directory.to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_form_of_the_new_version_shows_the_same_changes_and_nothing_is_written() {
    let session = Session::start().await;
    let name = session.world.name();
    assert_eq!(session.install(&name, OLD, &[]).await.code, Some(0));
    let before = session.world.deployments().get(&name).await.unwrap().metadata.resource_version;
    let temporary = tempfile::tempdir().unwrap();
    let at = |name: &str| temporary.path().join(name);

    // This version against itself.
    let own = at("own").display().to_string();
    chandler(["provisioners", "--to", &own], "").data();
    let same = session.run(&["preflight", "--to", &own, &name]).await;
    assert!(same.stderr.contains("1 unchanged, 0 changed, 0 refused"), "{}{}", same.stdout, same.stderr);
    assert_eq!(same.code, Some(0), "{}", same.stdout);

    let files = later(other_annotation, |_, _| ());
    let directory = write(&files, &at("later"));
    let binary = at("binary");
    fs::write(&binary, format!("#!/bin/sh\n[ \"$1 $2\" = 'provisioners --to' ] && cp -r {directory} \"$3\"\n"))
        .unwrap();
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
    let registry = Registry::start(Options::default()).await.unwrap();
    let image = format!("{}/chandler:v0.2.0", registry.host());
    let image_directory = layout(at("image"), &files, Some("/usr/share/chandler"));
    let pushed = tokio::task::block_in_place(|| chandler(["push", &image_directory, &image], ""));
    assert_eq!(pushed.code, Some(0), "{}", pushed.stderr);
    let pinned = pushed.stdout.trim().to_owned();
    let binary = binary.display().to_string();
    let mut shown = Vec::new();
    for to in [&directory, &binary, &image_directory, &image, &pinned] {
        let outcome = session.run(&["preflight", "--to", to, &name, "-o", "json"]).await;
        let mut report: Value = serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{to}: {outcome:?}"));
        assert!(outcome.stderr.contains("0 unchanged, 1 changed, 0 refused"), "{to}: {}", outcome.stderr);
        assert_eq!((outcome.code, &report["to"]["version"]), (Some(4), &json!("0.2.0")), "{report:#}");
        let deployment = report["deployments"][0].take();
        let changes = deployment["changes"].as_array().unwrap();
        assert_eq!((changes.len(), &changes[0]["object"]["kind"]), (1, &json!("Deployment")), "{deployment}");
        let paths: Vec<&str> =
            changes[0]["fields"].as_array().unwrap().iter().map(|field| field["path"].as_str().unwrap()).collect();
        assert!(paths.iter().all(|path| path.contains("argetNamespaces")) && paths.len() == 2, "{paths:?}");
        shown.push(deployment);
    }
    assert!(shown.windows(2).all(|pair| pair[0] == pair[1]), "{shown:#?}");
    let text = session.run(&["preflight", "--to", &directory, &name]).await;
    assert!(
        text.stdout.contains(&format!("{name}: changed, class core-rukpak-io-registry\n  ~ change Deployment.apps")),
        "{}",
        text.stdout
    );
    assert!(!Path::new("/tmp/chandler-preflight-was-run").exists(), "no program of an image is run");
    let after = session.world.deployments().get(&name).await.unwrap().metadata.resource_version;
    assert_eq!(before, after);
    let absent = session.run(&["preflight", "--to", &own, "absent"]).await;
    assert_eq!(absent.code, Some(7), "{}", absent.stderr);
    session.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_new_version_refuses_and_what_cannot_be_checked_stop_nothing_else() {
    let session = Session::start().await;
    let name = session.world.name();
    let broken = format!("{name}-broken");
    assert_eq!(session.install(&name, OLD, &[]).await.code, Some(0));
    let source = json!({"type": "image", "image": {"ref": "127.0.0.1:1/none:v1"}});
    let class = "core-rukpak-io-registry";
    let spec = json!({"installNamespace": session.world.namespace, "source": source, "provisionerClassName": class});
    session.world.apply(&broken, spec).await;
    let temporary = tempfile::tempdir().unwrap();
    let trap = |component: &[u8]| {
        // The component detects nothing and renders nothing: it has no bundle format that it knows.
        replaced(component, "manifests/", "manifestz/")
    };
    let files = later(trap, |name, list| {
        if name == "crds.json" {
            let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
            let crd = list["items"]
                .as_array_mut()
                .unwrap()
                .iter_mut()
                .find(|crd| crd["metadata"]["name"] == "bundledeployments.core.rukpak.io");
            let spec = crd.unwrap().pointer_mut(spec).unwrap();
            spec["properties"]["installNamespace"]["maxLength"] = json!(1);
        } else {
            let role =
                list["items"].as_array_mut().unwrap().iter_mut().find(|role| role["kind"] == "ClusterRole").unwrap();
            role["rules"]
                .as_array_mut()
                .unwrap()
                .push(json!({"apiGroups": ["later.example.com"], "resources": ["tugs"], "verbs": ["list"]}));
        }
    });
    let directory = write(&files, &temporary.path().join("later"));
    let outcome = session.run(&["preflight", "--to", &directory, &name, &broken, "-o", "json"]).await;
    assert_eq!(outcome.code, Some(8), "{}", outcome.stderr);
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!((&report["summary"]["refused"], &report["summary"]["unchecked"]), (&json!(1), &json!(1)), "{report:#}");
    let of = |name: &str| {
        let all = report["deployments"].as_array().unwrap();
        all.iter().find(|deployment| deployment["name"] == name).unwrap().clone()
    };
    assert_eq!(of(&name)["outcome"], "Refused");
    assert_eq!(of(&broken)["outcome"], "Unchecked");
    assert!(of(&broken)["reasons"][0].as_str().unwrap().contains("127.0.0.1:1"), "{}", of(&broken));
    let findings = report["upgrade"].to_string();
    assert!(findings.contains("installNamespace") && findings.contains("maxLength"), "{findings}");
    assert!(findings.contains("existing custom object"), "the stored object is checked: {findings}");
    session.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_are_looked_for_in_the_namespace_of_the_controller() {
    let session = Session::start().await;
    let system = session.world.system_namespace.clone();
    assert_ne!(system, chandler_manifests::NAMESPACE);
    let files = release_files::files().unwrap();
    let roles: Value = serde_json::from_slice(&files["roles.json"]).unwrap();
    let api: Api<Role> = Api::namespaced(session.world.client.clone(), &system);
    let mut names = Vec::new();
    for role in roles["items"].as_array().unwrap() {
        if role["kind"] != "Role" || role["metadata"]["namespace"] != chandler_manifests::NAMESPACE {
            continue;
        }
        let name = role["metadata"]["name"].as_str().unwrap();
        // The first one lacks a rule.
        let given = usize::from(names.is_empty());
        let granted = &role["rules"].as_array().unwrap()[given..];
        let installed = json!({"metadata": {"name": name}, "rules": granted});
        api.create(&PostParams::default(), &serde_json::from_value(installed).unwrap()).await.unwrap();
        names.push(name);
    }
    let temporary = tempfile::tempdir().unwrap();
    let directory = write(&files, &temporary.path().join("own"));
    let outcome = session.run(&["preflight", "--to", &directory, "-o", "json"]).await;
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{outcome:?}"));
    let findings = report["upgrade"].to_string();
    assert!(!findings.contains(&format!("Role {}/", chandler_manifests::NAMESPACE)), "{findings}");
    assert!(findings.contains(&format!("Role {system}/{} lacks", names[0])), "{findings}");
    for name in &names[1..] {
        assert!(!findings.contains(&format!("Role {system}/{name} ")), "{findings}");
    }
    session.world.finish().await;
}

#[test]
fn what_is_not_a_version_of_chandler_is_refused_in_words() {
    let temporary = tempfile::tempdir().unwrap();
    let at = |name: &str| temporary.path().join(name);
    let missing = chandler(["preflight"], "");
    assert_eq!(missing.code, Some(2));
    assert!(
        missing.stderr.contains("--to is missing") && missing.stderr.contains("chandler doctor"),
        "{}",
        missing.stderr
    );
    let listed = chandler(["provisioners", "-o", "json"], "").data();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let classes: Vec<&str> = listed.as_array().unwrap().iter().map(|one| one["class"].as_str().unwrap()).collect();
    assert_eq!(classes, ["core-rukpak-io-registry", "core-rukpak-io-resolveset", "core-rukpak-io-plain"]);
    fs::create_dir(at("full")).unwrap();
    fs::write(at("full/file"), "").unwrap();
    let full = chandler(["provisioners", "--to", at("full").to_str().unwrap()], "");
    assert_eq!(full.code, Some(2), "{}", full.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_or_foreign_image_is_refused_in_words() {
    let session = Session::start().await;
    let temporary = tempfile::tempdir().unwrap();
    let at = |name: &str| temporary.path().join(name);
    let files = release_files::files().unwrap();
    let damaged = {
        let mut files = files.clone();
        files.get_mut("provisioners/plain.wasm").unwrap().push(0);
        files
    };
    let altered = layout(at("altered"), &files, Some("/usr/share/chandler"));
    for blob in fs::read_dir(at("altered").join("blobs/sha256")).unwrap() {
        let path = blob.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        if bytes.len() > 100_000 {
            bytes[1000] ^= 1;
            fs::write(path, bytes).unwrap();
        }
    }
    fs::write(at("text"), "no program").unwrap();
    fs::create_dir(at("empty")).unwrap();
    for (to, words) in [
        (layout(at("foreign"), &files, None), "has no label dev.chandler.release"),
        (layout(at("outside"), &files, Some("/../../etc")), "which is not a directory in it"),
        (layout(at("elsewhere"), &files, Some("/usr/local/bin")), "release.json cannot be read"),
        (layout(at("damaged"), &damaged, Some("/usr/share/chandler")), "plain.wasm has another digest"),
        (altered, "has the digest"),
        (at("text").display().to_string(), "failed to run"),
        (at("empty").display().to_string(), "neither an OCI image layout nor has it release.json"),
        ("/bin/false".to_owned(), "versions without `chandler preflight` lack this command"),
        ("not-there".to_owned(), "no such file or directory"),
    ] {
        let outcome = session.run(&["preflight", "--to", &to]).await;
        assert!(matches!(outcome.code, Some(1 | 2)) && outcome.stderr.contains(words), "{to}: {}", outcome.stderr);
        assert_eq!(outcome.stdout, "");
    }
    session.world.finish().await;
}
