//! The members of a set as manifests.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeMap;

use chandler_api::{ResolveSetOutput, ServiceAccountReference};
use chandler_resolution::{Manifests, PlannedMember, SetError, installation::Placement, names::deployment_name};
use serde_json::json;

fn member(package: &str, needs: &[&str]) -> PlannedMember {
    PlannedMember {
        package: package.to_owned(),
        bundle: format!("{package}.v1.0.0"),
        version: "1.0.0".to_owned(),
        catalog: Some("ours".to_owned()),
        channel: Some("stable".to_owned()),
        image: format!("quay.io/example/{package}@sha256:{}", "0".repeat(64)),
        needs: needs.iter().map(|needed| (*needed).to_owned()).collect(),
        ..PlannedMember::default()
    }
}

#[test]
fn a_member_is_a_bundle_deployment() {
    let output = ResolveSetOutput {
        install_namespace: "shop".to_owned(),
        namespaces: [("app".to_owned(), "apps".to_owned())].into(),
        service_account: Some(ServiceAccountReference { name: "deployer".to_owned(), namespace: None }),
        config: [("app".to_owned(), json!({"replicas": 2}).as_object().unwrap().clone())].into(),
        ..ResolveSetOutput::default()
    };
    let labels = BTreeMap::from([("team".to_owned(), "a".to_owned())]);
    let members = [member("app", &["base", "cache"]), member("base", &[])];
    let manifests = Manifests::of(members.iter(), &output, &labels, None, &BTreeMap::new()).unwrap();
    insta::assert_snapshot!(manifests.0["app.yaml"]);
    // Only members of the set count as dependencies within it.
    let members = members.map(|it| PlannedMember { rests_on: ["elsewhere".to_owned()].into(), ..it });
    let manifests = Manifests::of(members.iter(), &output, &labels, None, &BTreeMap::new()).unwrap();
    let needs = |it: &PlannedMember| it.needs.iter().filter(|needed| *needed == "base").cloned().collect();
    let read = manifests.members();
    assert_eq!(read, members.map(|it| PlannedMember { needs: needs(&it), deployment: Some(it.package.clone()), ..it }));
}

#[test]
fn a_member_that_was_taken_over_stays_where_it_is_unless_the_output_says_otherwise() {
    let config = json!({"replicas": 2}).as_object().unwrap().clone();
    let image = member("base", &[]).image;
    let placement = Placement { install_namespace: "first".to_owned(), config: Some(config.clone()), image };
    let members = [PlannedMember {
        placement: Some(placement.clone()),
        deployment: Some("first-base".to_owned()),
        ..member("base", &[])
    }];
    let output = ResolveSetOutput {
        install_namespace: "shop".to_owned(),
        service_account: Some(ServiceAccountReference { name: "deployer".to_owned(), namespace: None }),
        ..ResolveSetOutput::default()
    };
    let manifests = Manifests::of(members.iter(), &output, &BTreeMap::new(), None, &BTreeMap::new()).unwrap();
    assert_eq!(manifests.members(), members);
    let deployments = manifests.deployments();
    let spec = &deployments[0].spec;
    assert_eq!((spec.install_namespace.as_str(), spec.config.as_ref()), ("first", Some(&config)));
    // It keeps the account of the set that has it now.
    let account = spec.service_account.as_ref().unwrap();
    assert_eq!((account.name.as_str(), account.namespace.as_deref()), ("deployer", Some("shop")));

    let namespaces = [("base".to_owned(), "elsewhere".to_owned())].into();
    let other = json!({"replicas": 3}).as_object().unwrap().clone();
    let config = [("base".to_owned(), other.clone())].into();
    let output = ResolveSetOutput { namespaces, config, ..output };
    let deployments =
        Manifests::of(members.iter(), &output, &BTreeMap::new(), None, &BTreeMap::new()).unwrap().deployments();
    let spec = &deployments[0].spec;
    assert_eq!((spec.install_namespace.as_str(), spec.config.as_ref()), ("elsewhere", Some(&other)));
}

#[test]
fn a_set_that_does_not_fit_into_a_config_map_is_refused() {
    let long: Vec<PlannedMember> = (0..2_000).map(|number| member(&format!("package-{number}"), &[])).collect();
    let refused =
        Manifests::of(long.iter(), &ResolveSetOutput::default(), &BTreeMap::new(), None, &BTreeMap::new()).unwrap_err();
    assert!(matches!(refused, SetError::Size(_)), "{refused}");
}

#[test]
fn long_packages_have_short_names() {
    let long = "a".repeat(60);
    let name = deployment_name(&long);
    assert!(name.len() <= 52 && name.starts_with("aaaa"), "{name}");
    assert_ne!(name, deployment_name(&"a".repeat(61)));
    assert_eq!(deployment_name("cert-manager"), "cert-manager");
}
