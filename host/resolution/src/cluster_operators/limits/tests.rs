use chandler_api::PlatformOperator;
use kube::core::ObjectMeta;
use serde_json::{Value, json};

use super::*;

fn package(operator: &str, properties: &[(&str, Value)], deprecated: Option<&str>) -> Package {
    let metadata = ObjectMeta { name: Some(operator.to_owned()), ..ObjectMeta::default() };
    let properties =
        properties.iter().map(|(kind, value)| BundleProperty { kind: (*kind).to_owned(), value: value.clone() });
    let bundle = BundleDescription { properties: properties.collect(), ..BundleDescription::default() };
    let limits = Limits::of(Some(&bundle), deprecated);
    Package { limits, ..Package::of(&PlatformOperator { metadata, ..PlatformOperator::default() }, None, None) }
}

fn platform(openshift: Option<&str>) -> Platform {
    Platform {
        is_openshift: true,
        openshift: openshift.map(str::to_owned),
        kubernetes: Some("v1.33.4".to_owned()),
        is_installing: false,
        deprecated_blocks: false,
    }
}

fn seen(packages: &[Package], platform: &Platform) -> String {
    let packages: Vec<&Package> = packages.iter().collect();
    let Verdict { holds, reason, message } = upgradeable(&packages, platform);
    format!("{holds} {reason}: {message}")
}

#[test]
fn the_next_minor_version_is_compared() {
    let max = |version: Value| vec![package("p", &[(MAX_OPENSHIFT, version)], None)];
    for (value, current, permitted) in [
        (json!("4.20"), "4.19.3", true),
        (json!("\"4.20\""), "4.19.3", true),
        (json!("4.20"), "4.20.0-rc.1", false),
        (json!("4.9"), "4.9.1", false),
        (json!("5.0"), "4.22.1", true),
        (json!("4.23"), "4.22.1", true),
        (json!("4.23"), "5.0.0", false),
        (json!("4.22"), "4.22.0", false),
    ] {
        let seen = seen(&max(value.clone()), &platform(Some(current)));
        assert_eq!(seen.starts_with("true"), permitted, "{value} {current}: {seen}");
    }
}

#[test]
fn everything_that_blocks_is_named() {
    let packages = [
        package("free", &[], None),
        package("old", &[(MAX_OPENSHIFT, json!("4.19"))], Some("use new")),
        package("young", &[(CSV_METADATA, json!({"minKubeVersion": "1.35.0"}))], None),
    ];
    let now = platform(Some("4.19.8"));
    insta::assert_snapshot!(seen(&packages, &now), @r"
    false IncompatibleOperatorsInstalled: Platform operators blocking minor version upgrades to 4.20:
    - maximum supported OCP version for platform operator old is 4.19
    - minimum Kubernetes version for platform operator young is 1.35.0
    ");
    let deprecated = [package("old", &[], Some("use new"))];
    insta::assert_snapshot!(seen(&deprecated, &now), @r"
    true AsExpected: No platform operator prevents an upgrade of the cluster. Deprecated:
    - platform operator old is deprecated: use new
    ");
    let strict = Platform { deprecated_blocks: true, ..now };
    insta::assert_snapshot!(seen(&deprecated, &strict), @r"
    false DeprecatedOperatorsInstalled: Platform operators blocking minor version upgrades to 4.20:
    - platform operator old is deprecated: use new
    ");
}

#[test]
fn what_cannot_be_read_forbids_the_upgrade() {
    let numbers = [package("p", &[(MAX_OPENSHIFT, json!(4.20))], None)];
    insta::assert_snapshot!(seen(&numbers, &platform(Some("4.19.8"))), @r#"
    false ErrorCheckingOperatorCompatibility: Encountered errors while checking compatibility with 4.20:
    - platform operator p has an invalid property olm.maxOpenShiftVersion: 4.2 is not a string such as "4.20"
    "#);
    let twice = [
        package("p", &[(MAX_OPENSHIFT, json!("4.20")), (MAX_OPENSHIFT, json!("4.20"))], None),
        package("q", &[(MAX_OPENSHIFT, json!("4.19"))], None),
    ];
    insta::assert_snapshot!(seen(&twice, &platform(Some("4.19.8"))), @r"
    false ErrorCheckingOperatorCompatibility: Encountered errors while checking compatibility with 4.20:
    - platform operator p has an invalid property olm.maxOpenShiftVersion: it is there 2 times
    Platform operators blocking minor version upgrades to 4.20:
    - maximum supported OCP version for platform operator q is 4.19
    ");
    let one = [package("p", &[(MAX_OPENSHIFT, json!("4.20"))], None)];
    insta::assert_snapshot!(seen(&one, &platform(None)), @r"
    false ErrorCheckingOperatorCompatibility: Encountered errors while checking compatibility with the next minor version:
    - platform operator p runs up to OpenShift 4.20, and the version of OpenShift is not known
    ");
    let elsewhere = Platform { is_openshift: false, ..platform(None) };
    assert!(seen(&one, &elsewhere).starts_with("true AsExpected"), "without OpenShift nothing forbids it");
}
