use chandler_api::{PackageRequest, ResolutionSpec};
use chandler_resolver::{Cluster, Installed, MemoryCatalogs, Source, resolve};
use serde_json::{Value, json};

use super::*;
use crate::{Installation, optional::tests::text, question::ask};

/// `app` and `high` need `base`, and `low` an old one; `tool` and `plain` need nothing. All but `tool` are certified from 2.0.0 on.
fn catalogs() -> MemoryCatalogs {
    let mut metas = Vec::new();
    for package in ["app", "base", "tool", "plain", "high", "low"] {
        let names = ["1.0.0", "2.0.0"].map(|version| (version, format!("{package}.v{version}")));
        let entries = json!([{"name": names[0].1}, {"name": names[1].1, "replaces": names[0].1}]);
        metas.push(json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"}));
        metas.push(json!({"schema": "olm.channel", "package": package, "name": "stable", "entries": entries}));
        for (version, name) in names {
            let mut properties =
                vec![json!({"type": "olm.package", "value": {"packageName": package, "version": version}})];
            let range = match package {
                "app" => Some(">=1.0.0"),
                "high" => Some(">=2.0.0"),
                "low" => Some("<2.0.0"),
                _ => None,
            };
            if let Some(range) = range {
                let value = json!({"packageName": "base", "versionRange": range});
                properties.push(json!({"type": "olm.package.required", "value": value}));
            }
            if version == "2.0.0" && package != "tool" {
                properties.push(json!({"type": "certified", "value": true}));
            }
            metas.push(
                json!({"schema": "olm.bundle", "package": package, "name": name, "image": format!("example.com/{name}"),
                              "properties": properties}),
            );
        }
    }
    MemoryCatalogs::new().with("main", metas)
}

fn installation(package: &str) -> Installation {
    let (name, version) = (format!("{package}.v1.0.0"), "1.0.0".to_owned());
    let bundle = Installed { package: package.to_owned(), name, version, ..Installed::default() };
    Installation { deployment: package.to_owned(), bundle, is_ready: true, placement: None }
}

fn constraint_of(value: Value) -> SetConstraint {
    SetConstraint { kind: "olm.constraint".to_owned(), value }
}

fn package(name: &str) -> Value {
    json!({"package": {"packageName": name, "versionRange": ">=0.0.0"}})
}

/// Not both packages.
fn not_both(one: &str, other: &str) -> SetConstraint {
    let both = json!({"all": {"constraints": [package(one), package(other)]}});
    constraint_of(json!({"not": {"constraints": [both]}}))
}

fn settled(wanted: &[&str], members: &[&str], others: &[&str], constraints: &[SetConstraint]) -> Settled {
    let request =
        |name: &&str| PackageRequest { name: (*name).to_owned(), optional: true, ..PackageRequest::default() };
    let spec = ResolutionSpec { packages: wanted.iter().map(request).collect(), ..ResolutionSpec::default() };
    let sources = [Source { name: "main".to_owned(), ..Source::default() }];
    let installed = |names: &[&str]| names.iter().map(|name| installation(name)).collect::<Vec<_>>();
    let mut asked = ask(&spec, &installed(members), &installed(others), &sources, Cluster::default()).unwrap();
    asked.constrain("PlatformPolicy limits", constraints);
    settle_within(&asked, true, |problem| resolve(problem, &catalogs()))
}

#[test]
fn a_new_package_that_breaks_an_invariant_is_left_out_and_the_reason_names_its_source() {
    let settled = settled(&["plain", "tool"], &["plain"], &[], &[not_both("plain", "tool")]);
    insta::assert_snapshot!(text(&settled), @r"
    plain 2.0.0
    tool: package plain is required; package tool is required; a constraint of the request asks for none of (all of (package plain >=0.0.0 and package tool >=0.0.0)); the request includes constraints of PlatformPolicy limits
    ");
}

#[test]
fn what_is_installed_is_not_uninstalled_for_what_is_preferred() {
    let settled = settled(&["tool", "plain", "app"], &["plain"], &[], &[not_both("plain", "tool")]);
    insta::assert_snapshot!(text(&settled), @r"
    app 2.0.0, base 2.0.0, plain 2.0.0
    tool: package plain is required; package tool is required; a constraint of the request asks for none of (all of (package plain >=0.0.0 and package tool >=0.0.0)); the request includes constraints of PlatformPolicy limits
    ");
}

#[test]
fn an_invariant_that_what_is_installed_breaks_uninstalls_nothing_and_stops_everything() {
    let broken = settled(&["plain", "tool", "app"], &["plain", "tool"], &[], &[not_both("plain", "tool")]);
    insta::assert_snapshot!(text(&broken), @"refused: the constraints of PlatformPolicy limits do not hold for what is installed, and would uninstall tool. Nothing changes until the constraints or the wanted packages do");
    // One of the two is not wanted any more.
    let repaired = settled(&["plain", "app"], &["plain", "tool"], &[], &[not_both("plain", "tool")]);
    insta::assert_snapshot!(text(&repaired), @"app 2.0.0, base 2.0.0, plain 2.0.0");
    let never = |name: &str| constraint_of(json!({"not": {"constraints": [package(name)]}}));
    let repaired = settled(&["plain"], &["plain", "tool"], &[], &[never("tool")]);
    insta::assert_snapshot!(text(&repaired), @"plain 2.0.0");
    let alone = settled(&[], &["tool"], &[], &[never("tool")]);
    insta::assert_snapshot!(text(&alone), @"");
    let dependency = settled(&["app"], &["app", "base"], &[], &[never("base")]);
    insta::assert_snapshot!(text(&dependency), @"refused: a constraint of the request asks for none of (package base >=0.0.0); base 1.0.0 is installed; constraints of PlatformPolicy limits hold, too");
}

#[test]
fn what_would_be_uninstalled_anyway_is_no_reason_to_refuse() {
    let settled = settled(&["high", "low"], &["low", "base"], &[], &[not_both("plain", "tool")]);
    insta::assert_snapshot!(text(&settled), @r"
    base 2.0.0, high 2.0.0
    low: package low is required; package high is required; low 1.0.0 and 2.0.0 need package base <2.0.0; high 1.0.0 and 2.0.0 need package base >=2.0.0; only one version of base can be installed; low 1.0.0 does not fit with what is preferred, and is removed
    ");
}

#[test]
fn an_invariant_may_hold_for_another_version() {
    let rule = json!({"cel": {"rule": "properties.exists(p, p.type == 'certified')"}});
    let certified = constraint_of(json!({"all": {"constraints": [package("plain"), rule]}}));
    insta::assert_snapshot!(text(&settled(&["plain"], &["plain"], &[], &[certified])), @"plain 2.0.0");
}

#[test]
fn what_others_installed_counts() {
    let none = constraint_of(json!({"not": {"constraints": [package("tool")]}}));
    insta::assert_snapshot!(text(&settled(&["plain"], &[], &["tool"], &[none])), @"refused: a constraint of the request asks for none of (package tool >=0.0.0); tool 1.0.0 is installed and pinned; constraints of PlatformPolicy limits hold, too");
}
