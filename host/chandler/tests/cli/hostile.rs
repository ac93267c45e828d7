//! Catalogs, servers and arguments with text that is meant to deceive: what is read, written and printed.

use std::{fs, path::Path, process::Command};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, api::ListParams};
use serde_json::{Value, json};

use crate::{
    commands::Session,
    support::{self, chandler},
};

/// A catalog of packages with one bundle each: the name, the image, and a package that it needs.
fn catalog(directory: &Path, packages: &[(&str, &str, Option<&str>)]) -> String {
    let mut documents: Vec<Value> = Vec::new();
    for (package, image, needed) in packages {
        let name = format!("{package}.v1.0.0");
        let own = json!({"type": "olm.package", "value": {"packageName": package, "version": "1.0.0"}});
        let needs = needed.map(|needed| {
            json!({"type": "olm.package.required", "value": {"packageName": needed, "versionRange": ">=1.0.0"}})
        });
        let properties: Vec<Value> = std::iter::once(own).chain(needs).collect();
        documents.push(json!({"schema": "olm.package", "name": package, "defaultChannel": "s"}));
        documents.push(json!({"schema": "olm.channel", "package": package, "name": "s", "entries": [{"name": name}]}));
        documents.push(json!({"schema": "olm.bundle", "package": package, "name": name, "image": image,
            "properties": properties}));
    }
    let text = documents.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    fs::create_dir_all(directory).unwrap();
    fs::write(directory.join("catalog.json"), text).unwrap();
    directory.to_str().unwrap().to_owned()
}

/// Lines of an error that the command itself did not write.
fn forged(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with("error: forged") || line.starts_with("  hint: forged")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_catalog_installs_images_and_no_files_of_the_user() {
    let session = Session::start().await;
    let directory = tempfile::tempdir().unwrap();
    let victim = directory.path().join("victim");
    fs::create_dir_all(victim.join("manifests")).unwrap();
    let secret = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: victim}\ndata: {key: s3cret}\n";
    fs::write(victim.join("manifests/a.yaml"), secret).unwrap();
    let url = format!("http://localhost:1/{}.tgz", session.world.run());
    let forge = "x y\nerror: forged\n  hint: forged";
    let packages = [
        ("path", victim.to_str().unwrap(), None),
        ("url", &url, None),
        ("forge", forge, None),
        ("password", "u:s3cret@localhost:1/a:v1", None),
    ];
    let place = catalog(&directory.path().join("catalog"), &packages);
    let from = ["--catalog", &format!("evil={place}")];
    let name = session.world.name();
    for (package, ..) in packages {
        for command in ["install", "resolve"] {
            let refused = match command {
                "install" => session.install(&name, package, &from).await,
                _ => session.run(&[&["resolve", package], &from[..]].concat()).await,
            };
            let said = &refused.stderr;
            assert_eq!(refused.code, Some(5), "{said}");
            assert!(said.contains("is malformed: its image is not an image reference"), "{command} {package}: {said}");
            assert!(!said.contains("s3cret") && forged(said).is_empty(), "{command} {package}: {said}");
        }
    }
    assert!(session.world.deployments().get_opt(&name).await.unwrap().is_none());
    let config_maps: Api<ConfigMap> = Api::all(session.world.client.clone());
    let written = config_maps.list(&ListParams::default()).await.unwrap().items;
    assert!(!written.iter().any(|it| format!("{it:?}").contains("s3cret")), "nothing of this machine is written");
    let linted = chandler(["catalog", "lint", &place, "-o", "json"], "");
    assert_eq!(linted.code, Some(1), "{}", linted.stderr);
    let findings: Value = serde_json::from_str(&linted.stdout).unwrap();
    let codes: Vec<&str> =
        findings["findings"].as_array().unwrap().iter().map(|it| it["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["ImageInvalid"; 4]);
    assert!(!linted.stdout.contains("s3cret"), "{}", linted.stdout);
    session.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_a_catalog_are_quoted_in_printed_commands() {
    let session = Session::start().await;
    let directory = tempfile::tempdir().unwrap();
    let pwned = directory.path().join("pwned");
    let hostile = format!("x;touch {};$(id)", pwned.display());
    let packages = [("a", "localhost:1/a:1", Some(hostile.as_str())), (hostile.as_str(), "localhost:1/x:1", None)];
    let place = catalog(&directory.path().join("catalog"), &packages);
    let refused = session.install(&session.world.name(), "a", &["--catalog", &format!("evil={place}")]).await;
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    let hint = format!("  hint: first: `chandler install '{hostile}@1.0.0'`;");
    assert!(refused.stderr.contains(&hint), "{}", refused.stderr);
    // A shell passes the name on, and runs nothing.
    let command = refused.stderr.split('`').nth(1).unwrap().replacen("chandler", "printf %s\\\\n", 1);
    let output = Command::new("sh").args(["-c", &command]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("install\n{hostile}@1.0.0\n"));
    assert!(!pwned.exists());
    session.world.finish().await;
}

#[test]
fn no_password_of_an_argument_is_shown() {
    let places = [
        "oci://user:pa55w0rd@localhost:1/x:v1",
        "docker://user:pa55w0rd@localhost:1/x:v1",
        "ftp://user:pa55w0rd@localhost:1/x.tgz",
        "https://user:pa55w0rd@localhost:1/x:v1",
        "https://user:pa55w0rd@localhost:1/x.tgz",
        "https://localhost:1/x.tgz?token=pa55w0rd",
        "git+file://user:pa55w0rd@localhost/x.git?branch=main",
        "git+ssh://user:pa55w0rd@localhost:1/x.git?branch=main",
        "git+https://user:pa55w0rd@localhost:1/x.git?branch=main",
        "user:pa55w0rd@localhost:1/x:v1",
        "user:pa55w0rd@localhost:1/X:v1",
    ];
    for place in places {
        for command in [&["render"][..], &["lint"], &["catalog", "lint"], &["catalog", "show", "a", "--catalog"]] {
            let outcome = chandler([command, &[place]].concat(), "");
            let said = outcome.stdout + &outcome.stderr;
            assert!(said.contains("error: "), "{command:?} {place}: {said}");
            assert!(!said.contains("pa55w0rd"), "{command:?} {place}: {said}");
        }
    }
    let outcome = chandler(["render", "user:pa55w0rd@localhost:1/x:v1"], "");
    assert!(outcome.stderr.contains("an image reference has no user name and no password"), "{}", outcome.stderr);
}

#[test]
fn devices_and_pipes_are_no_catalogs() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("catalog.yaml");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for place in ["/dev/stdin", "/dev/zero", pipe.to_str().unwrap()] {
        let outcome = chandler(["catalog", "lint", place], "schema: olm.package\nname: a\n");
        assert_eq!(outcome.code, Some(2), "{place}: {}", outcome.stderr);
        let expected = format!("error: {place} is neither a file nor a directory\n  hint: write the catalog to a file");
        assert!(outcome.stderr.starts_with(&expected), "{}", outcome.stderr);
    }
}

#[test]
fn contexts_that_a_shell_would_read_are_not_completed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config");
    let names = ["kind-a", "x;touch pwned", "*", "a\u{1b}[2J", "a\u{202e}b"];
    let contexts: Vec<Value> =
        names.iter().map(|name| json!({"name": name, "context": {"cluster": "c", "user": "u"}})).collect();
    fs::write(&path, json!({"apiVersion": "v1", "kind": "Config", "contexts": contexts}).to_string()).unwrap();
    let output = support::command(&support::cache())
        .args(["--", "chandler", "status", "--context", ""])
        .env("CHANDLER_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", "3")
        .env("_CLAP_IFS", "\n")
        .env("KUBECONFIG", &path)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "kind-a", "{}", String::from_utf8_lossy(&output.stderr));
}
