use chandler_api::{PackageRequest, ResolutionSpec};
use chandler_resolver::{Answer, Cluster, Installed, MemoryCatalogs, Source, resolve};
use serde_json::{Value, json};

use super::*;
use crate::question::ask;

/// A bundle: package, version, what it needs, what it replaces.
type Bundle = (&'static str, &'static str, &'static [&'static str], Option<&'static str>);

const BUNDLES: &[Bundle] = &[
    ("app", "1.0.0", &["left", "right"], None),
    ("app", "1.1.0", &["left"], Some("1.0.0")),
    ("app", "1.2.0", &[], Some("1.1.0")),
    ("left", "1.0.0", &["base"], None),
    ("right", "1.0.0", &["base"], None),
    ("base", "1.0.0", &[], None),
];

fn catalogs() -> MemoryCatalogs {
    let packages: BTreeSet<&str> = BUNDLES.iter().map(|bundle| bundle.0).collect();
    let mut metas = Vec::new();
    for package in packages {
        let of = || BUNDLES.iter().filter(|bundle| bundle.0 == package);
        let entry = |(_, version, _, replaces): &Bundle| {
            let mut entry = json!({"name": format!("{package}.v{version}")});
            if let Some(replaces) = replaces {
                entry["replaces"] = json!(format!("{package}.v{replaces}"));
            }
            entry
        };
        let entries: Vec<Value> = of().map(entry).collect();
        metas.push(json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"}));
        metas.push(json!({"schema": "olm.channel", "package": package, "name": "stable", "entries": entries}));
        for (_, version, needs, _) in of() {
            let needed = needs.iter().map(|needed| {
                json!({"type": "olm.package.required", "value": {"packageName": needed, "versionRange": ">=0.0.0"}})
            });
            let own = json!({"type": "olm.package", "value": {"packageName": package, "version": version}});
            let properties: Vec<Value> = std::iter::once(own).chain(needed).collect();
            metas.push(json!({"schema": "olm.bundle", "package": package, "name": format!("{package}.v{version}"),
                              "image": format!("example.com/{package}:{version}"), "properties": properties}));
        }
    }
    MemoryCatalogs::new().with("main", metas)
}

fn installation(package: &str, version: &str, is_ready: bool) -> Installation {
    let name = format!("{package}.v{version}");
    let bundle = Installed { package: package.to_owned(), name, version: version.to_owned(), ..Installed::default() };
    Installation { deployment: package.to_owned(), bundle, is_ready, placement: None }
}

/// The plan for wanted packages, a line for each package: what it gets, the way on, and what it needs.
fn planned(
    wanted: &[(&str, &str)],
    members: &[Installation],
    others: &[Installation],
    is_of_this_spec: bool,
) -> String {
    let request = |(name, version): &(&str, &str)| PackageRequest {
        name: (*name).to_owned(),
        version: Some((*version).to_owned()).filter(|version| !version.is_empty()),
        ..PackageRequest::default()
    };
    let spec = ResolutionSpec { packages: wanted.iter().map(request).collect(), ..ResolutionSpec::default() };
    let sources = [Source { name: "main".to_owned(), ..Source::default() }];
    let question = match ask(&spec, members, others, &sources, Cluster::default()) {
        Ok(question) => question,
        Err(refused) => return refused.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
    };
    let decision = match resolve(&question.problem, &catalogs()).unwrap() {
        Answer::Decision(decision) => decision,
        Answer::Refusal(explanation) => return explanation.message,
    };
    let before: Vec<PlannedMember> = members
        .iter()
        .map(|it| PlannedMember {
            package: it.bundle.package.clone(),
            bundle: it.bundle.name.clone(),
            version: it.bundle.version.clone(),
            ..PlannedMember::default()
        })
        .collect();
    let current = Current { members: &before, is_of_this_spec };
    let installed: Vec<Installation> = members.iter().chain(others).cloned().collect();
    let plan = plan(&decision, &question, &installed, &current).unwrap();
    let line = |member: &PlannedMember| {
        let needs: Vec<&str> = member.needs.iter().map(String::as_str).collect();
        let parts = [
            Some(format!("{} {}", member.package, member.version)),
            member.elsewhere.as_ref().map(|deployment| format!("of {deployment}")),
            (!member.path.is_empty()).then(|| format!("on the way {}", member.path.join(" "))),
            (!needs.is_empty()).then(|| format!("needs {}", needs.join(" "))),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    plan.members.iter().map(line).chain(plan.waiting.iter().cloned()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_diamond_has_an_order() {
    insta::assert_snapshot!(planned(&[("app", "<1.1")], &[], &[], true), @r"
    app 1.0.0 needs left right
    base 1.0.0
    left 1.0.0 needs base
    right 1.0.0 needs base
    ");
}

#[test]
fn what_nothing_needs_any_more_goes_at_once_with_what_only_it_needs() {
    let members = ["app", "base", "left", "right"].map(|package| installation(package, "1.0.0", true));
    insta::assert_snapshot!(planned(&[("left", "")], &members, &[], false), @r"
    base 1.0.0
    left 1.0.0 needs base
    ");
    assert_eq!(planned(&[], &members, &[], false), "");
}

#[test]
fn an_upgrade_goes_step_by_step_and_waits_for_each() {
    let members = |version: &str, is_ready| {
        let others = ["base", "left", "right"].map(|package| installation(package, "1.0.0", true));
        [vec![installation("app", version, is_ready)], others.to_vec()].concat()
    };
    insta::assert_snapshot!(planned(&[("app", "")], &members("1.0.0", true), &[], true), @r"
    app 1.1.0 on the way 1.1.0 1.2.0
    base 1.0.0
    left 1.0.0
    right 1.0.0
    ");
    insta::assert_snapshot!(planned(&[("app", "")], &members("1.1.0", false), &[], true), @r"
    app 1.1.0
    base 1.0.0
    left 1.0.0
    right 1.0.0
    the upgrade of app to 1.2.0 waits until 1.1.0 is healthy
    ");
    insta::assert_snapshot!(planned(&[("app", "")], &members("1.1.0", false), &[], false), @"app 1.2.0 on the way 1.2.0");
}

#[test]
fn what_others_installed_counts_and_is_left_alone() {
    let base = [installation("base", "1.0.0", true), installation("right", "1.0.0", false)];
    insta::assert_snapshot!(planned(&[("left", ""), ("base", "")], &[], &base, true), @r"
    base 1.0.0 of base
    left 1.0.0
    ");
    insta::assert_snapshot!(planned(&[("base", ">=2")], &[], &base, true), @"package base is wanted in >=2, but BundleDeployment base, which does not belong to this Resolution, has 1.0.0: upgrade it with `chandler upgrade base base`, or delete it");
}

#[test]
fn what_only_others_need_is_not_reported() {
    let others = ["app", "left", "base"]
        .map(|package| installation(package, if package == "app" { "1.1.0" } else { "1.0.0" }, true));
    insta::assert_snapshot!(planned(&[("right", "")], &[], &others, true), @r"
    base 1.0.0 of base
    right 1.0.0
    ");
}

#[test]
fn changes_are_a_line_for_each_package() {
    let member = |package: &str, version: &str| PlannedMember {
        package: package.to_owned(),
        version: version.to_owned(),
        ..PlannedMember::default()
    };
    let before = [member("a", "1"), member("b", "1"), member("c", "1")];
    let after = [member("b", "2"), member("c", "1"), member("d", "1")];
    assert_eq!(changes(&before, &after), ["remove a 1", "change b from 1 to 2", "install d 1"]);
}

#[test]
fn packages_are_kept_with_all_that_they_need() {
    let member = |package: &str, needs: &[&str]| PlannedMember {
        package: package.to_owned(),
        needs: needs.iter().map(|needed| (*needed).to_owned()).collect(),
        ..PlannedMember::default()
    };
    let members = [
        member("top", &["left", "right"]),
        member("left", &["base", "top"]),
        member("right", &["gone"]),
        member("base", &[]),
    ];
    let of = |packages: &[&str]| {
        let packages: Vec<String> = packages.iter().map(|package| (*package).to_owned()).collect();
        with_needs(&members, packages.iter()).into_iter().collect::<Vec<_>>()
    };
    assert_eq!(of(&["top"]), ["base", "left", "right", "top"]);
    assert_eq!(of(&["right", "unknown"]), ["right"]);
    assert_eq!(of(&[]), [""; 0]);
}

#[test]
fn what_is_taken_over_stays_as_it_is_until_the_set_has_it() {
    let mut app = installation("app", "1.0.0", true);
    app.bundle.image = "example.com/app:1.0.0".to_owned();
    app.placement = Some(Placement::default());
    insta::assert_snapshot!(planned(&[("app", "")], &[app.clone()], &[], true), @"app 1.0.0 on the way 1.0.0 1.1.0 1.2.0");
    let upgraded = Placement { image: "example.com/app:1.1.0".to_owned(), ..Placement::default() };
    app = Installation { placement: Some(upgraded), is_ready: false, ..app };
    insta::assert_snapshot!(planned(&[("app", "")], &[app.clone()], &[], false), @"app 1.1.0 on the way 1.1.0 1.2.0");
    app.placement = None;
    insta::assert_snapshot!(planned(&[("app", "")], &[app], &[], false), @"app 1.1.0 on the way 1.1.0 1.2.0");
}
