//! Renders sets with the provisioner.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

use chandler_resolveset::{FORMAT, ResolveSet};
use chandler_sdk::{
    Failure, Provisioner as _, Request,
    testing::{Bundle, run},
};
use serde_json::{Map, json};

fn member(name: &str, depends_on: &str) -> String {
    let annotations = match depends_on {
        "" => String::new(),
        names => format!(", annotations: {{resolveset.chandler.dev/depends-on: {names:?}}}"),
    };
    format!(
        "apiVersion: core.rukpak.io/v1alpha2\nkind: BundleDeployment\nmetadata: {{name: {name}{annotations}}}\n\
         spec:\n  installNamespace: shop\n  provisionerClassName: core-rukpak-io-plain\n  \
         source: {{type: image, image: {{ref: 'quay.io/example/{name}:v1'}}}}\n"
    )
}

fn rendered(bundle: &Bundle) -> String {
    let recorder =
        run::<ResolveSet>(bundle, &Request::default().with_name("set")).unwrap_or_else(|failure| panic!("{failure}"));
    let line = |object: &chandler_sdk::testing::Emitted| {
        let origin = object.origin.as_ref().map(ToString::to_string).unwrap_or_default();
        let name = object.value.pointer("/metadata/name").unwrap().as_str().unwrap();
        format!("{} {name} {origin}", object.stage.unwrap())
    };
    recorder.objects.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn refused(bundle: &Bundle) -> String {
    match run::<ResolveSet>(bundle, &Request::default().with_name("set")).unwrap_err() {
        Failure::InvalidContent(findings) => {
            assert!(findings.iter().all(|finding| finding.help.is_some()));
            findings.iter().map(|finding| format!("{} {finding}", finding.code)).collect::<Vec<_>>().join("\n")
        }
        other => panic!("{other}"),
    }
}

#[test]
fn members_are_emitted_in_stages() {
    let list = format!(
        "kind: List\napiVersion: v1\nitems:\n- {}\n- {}\n",
        member("left", "base").trim_end().replace('\n', "\n  "),
        member("other", "").trim_end().replace('\n', "\n  ")
    );
    let files = [
        ("app.yaml", format!("{}---\n{}", member("app", "left, right"), member("right", "base"))),
        ("base/base.yml", member("base", "")),
        ("list.yaml", list),
        ("README.md", "no manifest".to_owned()),
        (".hidden.yaml", "no: manifest".to_owned()),
    ];
    let bundle = Bundle::new(files);
    assert_eq!(ResolveSet::detect(&bundle).as_deref(), Some(FORMAT));
    insta::assert_snapshot!(rendered(&bundle));
}

#[test]
fn what_is_wrong_has_its_place() {
    let odd = |from: &str, to: &str| member("odd", "").replace(from, to);
    let files = [
        ("a.yaml", member("twice", "")),
        ("b.yaml", member("twice", "")),
        ("c.yaml", odd("v1alpha2", "v1alpha1")),
        ("d.yaml", odd("kind: BundleDeployment", "kind: ConfigMap")),
        ("e.yaml", odd("name: odd", "name: Odd")),
        ("f.yaml", odd("name: odd", "name: set")),
        ("g.yaml", odd("name: odd", "name: odd, namespace: shop, uid: x") + "status: {}\n"),
        ("h.yaml", "- 1\n".to_owned()),
        ("i.yaml", "a: [\n".to_owned()),
        ("j.yaml", "apiVersion: core.rukpak.io/v1alpha2\nkind: BundleDeployment\nmetadata: {name: empty}\n".to_owned()),
    ];
    insta::assert_snapshot!(refused(&Bundle::new(files)));
    insta::assert_snapshot!(
        "order",
        [
            refused(&Bundle::new([("a.yaml", member("a", "b")), ("b.yaml", member("b", "a"))])),
            refused(&Bundle::new([("a.yaml", member("a", "c"))])),
            refused(&Bundle::new([("README.md", "nothing")])),
            refused(&Bundle::new([("b.yaml", "---\n"), ("a.txt", "nothing")])),
        ]
        .join("\n")
    );
}

#[test]
fn there_is_no_configuration() {
    let config: Map<String, serde_json::Value> = json!({"members": {}}).as_object().unwrap().clone();
    let bundle = Bundle::new([("a.yaml", member("a", ""))]);
    let failure = run::<ResolveSet>(&bundle, &Request::default().with_config(config)).unwrap_err();
    assert!(matches!(failure, Failure::InvalidConfig(_)), "{failure}");
}

#[test]
fn other_content_is_no_set() {
    let detected = |files: &[(&str, String)]| ResolveSet::detect(&Bundle::new(files.to_vec()));
    let config_map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n".to_owned();
    assert_eq!(detected(&[]), None);
    assert_eq!(detected(&[("manifests/a.yaml", config_map.clone())]), None);
    assert_eq!(detected(&[("a.yaml", member("a", "")), ("b.yaml", config_map)]), None, "not all of them");
    assert_eq!(detected(&[("a.yaml", "BundleDeployment: [".to_owned())]), None);
}

#[test]
fn the_order_of_files_does_not_matter() {
    let emitted = |one: &str, other: &str| {
        let bundle = Bundle::new([(one, member("a", "b")), (other, member("b", ""))]);
        let recorder = run::<ResolveSet>(&bundle, &Request::default()).unwrap();
        let mut all: Vec<_> = recorder.objects.into_iter().map(|it| (it.stage, it.value.to_string())).collect();
        all.sort();
        all
    };
    assert_eq!(emitted("1.yaml", "2.yaml"), emitted("2.yaml", "1.yaml"));
}
