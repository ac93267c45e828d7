use chandler_api::{BundleDeploymentSpec, BundleSource, ImageSource, PackageRequest, ResolutionSpec};
use chandler_resolver::{Cluster, MemoryCatalogs, Source};
use kube::api::ObjectMeta;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{evidence, question::ask};

/// An image by digest.
fn image(repository: &str, content: &str) -> String {
    format!("{repository}@sha256:{}", chandler_core::Digest::of(content.as_bytes()).hex())
}

fn catalogs() -> MemoryCatalogs {
    let mut metas = Vec::new();
    for (package, versions) in [("app", ["1.0.0", "1.1.0"]), ("base", ["1.0.0", "2.0.0"])] {
        let entries: Vec<Value> = versions.iter().map(|it| json!({"name": format!("{package}.v{it}")})).collect();
        metas.push(json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"}));
        metas.push(json!({"schema": "olm.channel", "package": package, "name": "stable", "entries": entries}));
        for version in versions {
            let mut properties =
                vec![json!({"type": "olm.package", "value": {"packageName": package, "version": version}})];
            if package == "app" {
                let needed = json!({"packageName": "base", "versionRange": ">=1.0.0"});
                properties.push(json!({"type": "olm.package.required", "value": needed}));
            }
            metas.push(json!({"schema": "olm.bundle", "package": package, "name": format!("{package}.v{version}"),
                              "image": image("vendor.example/bundles", &format!("{package} {version}")), "properties": properties}));
        }
    }
    MemoryCatalogs::new().with("main", metas)
}

fn sources() -> Vec<Source> {
    vec![Source { name: "main".to_owned(), ..Source::default() }]
}

/// A BundleDeployment with a healthy revision, and what its bundle calls itself.
fn deployment(name: &str, image: &str, package: &str, version: &str) -> (BundleDeployment, Vec<Revision>) {
    let source = BundleSource::image(ImageSource { reference: image.to_owned(), ..ImageSource::default() });
    let status = json!({
        "bundle": {"package": package, "version": version},
        "conditions": [{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "",
                        "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    });
    let deployment = BundleDeployment {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: BundleDeploymentSpec { source: source.clone(), ..BundleDeploymentSpec::default() },
        status: serde_json::from_value(status).unwrap(),
    };
    let version = Some(version.to_owned());
    let revision = Revision { source, version, outcome: Outcome::Succeeded, ..Revision::default() };
    (deployment, vec![revision])
}

fn honest(name: &str, package: &str, version: &str) -> (BundleDeployment, Vec<Revision>) {
    deployment(name, &image("vendor.example/bundles", &format!("{package} {version}")), package, version)
}

fn seen(members: &[(BundleDeployment, Vec<Revision>)], others: &[(BundleDeployment, Vec<Revision>)]) -> Observed {
    let fact = |is_member: bool| {
        move |(deployment, history): &'_ (BundleDeployment, Vec<Revision>)| {
            (deployment.clone(), history.clone(), is_member)
        }
    };
    let all: Vec<_> = members.iter().map(fact(true)).chain(others.iter().map(fact(false))).collect();
    let facts: Vec<Fact<'_>> = all
        .iter()
        .map(|(deployment, history, is_member)| Fact { deployment, history: history.clone(), is_member: *is_member })
        .collect();
    let catalogs = catalogs();
    let entries: BTreeMap<String, Vec<evidence::Entry>> = packages(&facts, &decided())
        .into_iter()
        .map(|package| (package.clone(), evidence::entries(&catalogs, "main", &package).unwrap()))
        .collect();
    observe(&facts, &decided(), |image, package| {
        evidence::proven(image, package, &sources(), |_| entries.get(package).map(Vec::as_slice).unwrap_or_default())
    })
}

fn planned(package: &str, version: &str) -> PlannedMember {
    PlannedMember {
        package: package.to_owned(),
        bundle: format!("{package}.v{version}"),
        version: version.to_owned(),
        image: image("vendor.example/bundles", &format!("{package} {version}")),
        ..PlannedMember::default()
    }
}

/// The set has app 1.1.0, and had 1.0.0 before.
fn decided() -> Decided {
    Decided::of(vec![planned("app", "1.1.0")], [planned("app", "1.1.0"), planned("app", "1.0.0")].into_iter())
}

fn shown(installations: &[Installation]) -> Vec<String> {
    let line =
        |it: &Installation| format!("{}: {} {} {}", it.deployment, it.bundle.name, it.bundle.version, it.is_ready);
    installations.iter().map(line).collect()
}

#[test]
fn what_a_bundle_calls_itself_does_not_count() {
    let impostor = deployment("innocent", &image("tenant.example/fake", "x"), "base", "1.0.0");
    let copy = deployment("copy", &image("copies.example/base", "base 1.0.0"), "base", "1.0.0");
    let never_healthy = (honest("new", "base", "2.0.0").0, Vec::new());
    let renamed = honest("renamed", "app", "1.0.0");
    let renamed = (deployment("renamed", "", "base", "2.0.0").0, renamed.1);
    let observed = seen(&[], &[impostor, copy, never_healthy, renamed]);
    assert_eq!(
        shown(&observed.others),
        ["copy: base.v1.0.0 1.0.0 true"],
        "the digest names the content, wherever it came from"
    );
    let lines = observed.notes(&["base", "other"].into());
    assert_eq!(
        lines,
        [
            "BundleDeployment innocent calls itself base 1.0.0; it is not from a catalog of this Resolution, so it does not count",
            "BundleDeployment renamed calls itself base 2.0.0; it is not from a catalog of this Resolution, so it does not count",
        ]
    );
    assert!(observed.notes(&["other"].into()).is_empty());
}

#[test]
fn a_member_has_the_bundle_of_the_decision_that_its_image_belongs_to() {
    let of = |member: (BundleDeployment, Vec<Revision>)| {
        let observed = seen(&[member], &[]);
        (shown(&observed.members).join(""), observed.notes(&BTreeSet::new()).len())
    };
    let mut odd = honest("app", "app", "1.1.0");
    odd.0.status.as_mut().unwrap().bundle.as_mut().unwrap().package = Some("base".to_owned());
    assert_eq!(of(odd), ("app: app.v1.1.0 1.1.0 true".to_owned(), 0), "whatever it calls itself");
    assert_eq!(of(honest("app", "app", "1.0.0")), ("app: app.v1.0.0 1.0.0 true".to_owned(), 0));
    let foreign = deployment("app", &image("tenant.example/fake", "x"), "app", "99.0.0");
    assert_eq!(of(foreign), ("app: app.v1.1.0 1.1.0 false".to_owned(), 1), "the set restores it");
    assert_eq!(of(honest("gone", "base", "1.0.0")), (String::new(), 0), "it leaves the set");
}

#[test]
fn many_impostors_take_a_few_lines() {
    let impostor =
        |number: usize| deployment(&format!("i{number}"), "tenant.example/fake:v1", "base\u{202e}", &"9".repeat(500));
    let observed = seen(&[], &(0..20).map(impostor).collect::<Vec<_>>());
    let lines = observed.notes(&["base\u{202e}"].into());
    assert_eq!(lines.len(), 6);
    assert!(lines.iter().all(|line| line.len() < 400 && !line.contains('\u{202e}')), "{lines:?}");
    assert!(lines[5].starts_with("15 more BundleDeployments"), "{lines:?}");
}

fn any_impostor() -> impl Strategy<Value = (BundleDeployment, Vec<Revision>)> {
    let name = prop_oneof!["[a-z]{1,6}".boxed(), Just("app".to_owned()).boxed(), Just("base".to_owned()).boxed()];
    let package = prop_oneof![Just("app".to_owned()), Just("base".to_owned()), "[a-z]{1,4}".prop_map(|it| it)];
    let version = prop_oneof!["[0-9]{1,2}\\.[0-9]\\.0", "\\PC{0,10}"];
    let reference = prop_oneof![
        "[a-z]{1,8}".prop_map(|content| image("vendor.example/bundles", &content)),
        "[a-z]{1,8}".prop_map(|content| image("tenant.example/fake", &content)),
        Just("vendor.example/bundles:v1".to_owned()),
        "\\PC{0,20}".prop_map(|it| it),
    ];
    (name, package, version, reference, any::<bool>()).prop_map(|(name, package, version, reference, labelled)| {
        let (mut deployment, history) = deployment(&name, &reference, &package, &version);
        if labelled {
            let label = chandler_api::names::OWNER_NAME_LABEL.to_owned();
            deployment.metadata.labels = Some([(label, "resolveset-shop".to_owned())].into());
        }
        (deployment, history)
    })
}

proptest! {
    /// No BundleDeployments without evidence change the question, and so the decision.
    #[test]
    fn impostors_change_no_question(impostors in prop::collection::vec(any_impostor(), 0..8)) {
        let request = |name: &str, version: &str| PackageRequest {
            name: name.to_owned(), version: Some(version.to_owned()), ..PackageRequest::default()
        };
        let packages = vec![request("app", ">=1.0.0"), request("base", ">=1.0.0, <3")];
        let spec = ResolutionSpec { packages, ..ResolutionSpec::default() };
        let asked = |observed: &Observed| ask(&spec, &observed.members, &observed.others, &sources(), Cluster::default());
        let members = [honest("app", "app", "1.0.0")];
        let alone = seen(&members, &[honest("other", "base", "1.0.0")]);
        let others: Vec<_> = impostors.iter().cloned().chain([honest("other", "base", "1.0.0")]).collect();
        let beside = seen(&members, &others);
        prop_assert_eq!(&beside.members, &alone.members);
        prop_assert_eq!(&beside.others, &alone.others);
        prop_assert_eq!(asked(&beside), asked(&alone));
        let names: BTreeSet<&str> = beside.claims.iter().map(|claim| claim.package.as_str()).collect();
        prop_assert_eq!(beside.notes(&names).is_empty(), impostors.is_empty());
    }
}
