use chandler_api::{PackageRequest, ResolutionSpec};
use chandler_resolver::{Cluster, MemoryCatalogs, Source, resolve};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{Installation, question::ask};

/// Packages with their versions, and for each version the ranges of other packages that it needs.
type Package = (&'static str, &'static [(&'static str, &'static [(&'static str, &'static str)])]);

const PACKAGES: &[Package] = &[
    ("old", &[("1.0.0", &[("base", "<2.0.0")])]),
    ("new", &[("1.0.0", &[("base", ">=2.0.0")])]),
    ("base", &[("1.0.0", &[]), ("2.0.0", &[])]),
    ("alone", &[("1.0.0", &[]), ("1.1.0", &[])]),
    ("broken", &[("1.0.0", &[("nothing", ">=1.0.0")])]),
];

fn catalogs() -> MemoryCatalogs {
    let mut metas = Vec::new();
    for (package, versions) in PACKAGES {
        let names = || versions.iter().map(|(version, _)| format!("{package}.v{version}"));
        let replaced = std::iter::once(None).chain(names().map(Some));
        let entries: Vec<Value> = names()
            .zip(replaced)
            .map(|(name, replaces)| json!({"name": name, "replaces": replaces.unwrap_or_default()}))
            .collect();
        metas.push(json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"}));
        metas.push(json!({"schema": "olm.channel", "package": package, "name": "stable", "entries": entries}));
        for (version, needs) in *versions {
            let own = json!({"type": "olm.package", "value": {"packageName": package, "version": version}});
            let needed = needs.iter().map(|(package, range)| {
                json!({"type": "olm.package.required", "value": {"packageName": package, "versionRange": range}})
            });
            let properties: Vec<Value> = std::iter::once(own).chain(needed).collect();
            metas.push(json!({"schema": "olm.bundle", "package": package, "name": format!("{package}.v{version}"),
                              "image": format!("example.com/{package}:{version}"), "properties": properties}));
        }
    }
    MemoryCatalogs::new().with("main", metas)
}

fn installation(package: &str, version: &str) -> Installation {
    let name = format!("{package}.v{version}");
    let bundle = Installed { package: package.to_owned(), name, version: version.to_owned(), ..Installed::default() };
    Installation { deployment: package.to_owned(), bundle, is_ready: true, placement: None }
}

/// Wanted packages: `package` or `package range`, with `!` before those that are required.
fn question(wanted: &[&str], members: &[Installation], others: &[Installation]) -> Question {
    let request = |text: &&str| {
        let (name, range) = text.trim_start_matches('!').split_once(' ').unwrap_or((text.trim_start_matches('!'), ""));
        let version = Some(range.to_owned()).filter(|range| !range.is_empty());
        PackageRequest { name: name.to_owned(), version, optional: !text.starts_with('!'), ..PackageRequest::default() }
    };
    let spec = ResolutionSpec { packages: wanted.iter().map(request).collect(), ..ResolutionSpec::default() };
    let sources = [Source { name: "main".to_owned(), ..Source::default() }];
    ask(&spec, members, others, &sources, Cluster::default()).unwrap()
}

fn settled(wanted: &[&str], members: &[Installation], may_remove: bool) -> (Settled, usize) {
    let (asked, catalogs) = (question(wanted, members, &[]), catalogs());
    let mut questions = 0;
    let settled = settle(&asked, may_remove, |problem| {
        questions += 1;
        resolve(problem, &catalogs)
    });
    (settled, questions)
}

/// What is chosen, and what is left out with the reasons, a line each.
pub(crate) fn text(settled: &Settled) -> String {
    let chosen = match &settled.answer {
        Ok(Answer::Decision(decision)) => {
            let members = decision.members.iter().map(|member| format!("{} {}", member.package, member.version));
            members.collect::<Vec<_>>().join(", ")
        }
        Ok(Answer::Refusal(explanation)) => format!("refused: {}", explanation.message),
        Err(error) => format!("failed: {error}"),
    };
    let left_out = settled.left_out.iter().map(|it| format!("{}: {}", it.package, it.explanation.join("; ")));
    std::iter::once(chosen).chain(left_out).collect::<Vec<_>>().join("\n")
}

#[test]
fn all_that_fit_take_one_question() {
    let (settled, questions) = settled(&["old", "alone"], &[], true);
    assert_eq!((text(&settled).as_str(), questions), ("alone 1.1.0, base 1.0.0, old 1.0.0", 1));
}

#[test]
fn the_order_of_the_list_decides_what_is_left_out() {
    let (first, _) = settled(&["old", "new", "alone"], &[], true);
    insta::assert_snapshot!(text(&first), @r"
    alone 1.1.0, base 1.0.0, old 1.0.0
    new: package new is required; package old is required; new 1.0.0 needs package base >=2.0.0; old 1.0.0 needs package base <2.0.0; only one version of base can be installed
    ");
    let (second, _) = settled(&["new", "old", "alone"], &[], true);
    insta::assert_snapshot!(text(&second), @r"
    alone 1.1.0, base 2.0.0, new 1.0.0
    old: package new is required; package old is required; new 1.0.0 needs package base >=2.0.0; old 1.0.0 needs package base <2.0.0; only one version of base can be installed
    ");
}

#[test]
fn what_is_required_comes_first_wherever_it_is() {
    let (first, _) = settled(&["old", "alone", "!new"], &[], true);
    insta::assert_snapshot!(text(&first), @r"
    alone 1.1.0, base 2.0.0, new 1.0.0
    old: package new is required; package old is required; new 1.0.0 needs package base >=2.0.0; old 1.0.0 needs package base <2.0.0; only one version of base can be installed
    ");
    let (refused, _) = settled(&["alone", "!broken"], &[], true);
    insta::assert_snapshot!(text(&refused), @"refused: package broken is required; broken 1.0.0 needs package nothing >=1.0.0; broken 1.0.0 would do but needs package nothing >=1.0.0, no catalog has package nothing");
}

#[test]
fn what_can_never_fit_is_left_out_with_the_reason() {
    let (settled, _) = settled(&["missing", "alone >=2", "broken", "alone-too", "base not a range", "old"], &[], true);
    insta::assert_snapshot!(text(&settled), @r#"
    base 1.0.0, old 1.0.0
    missing: package missing is required, and no version in catalog main matches; no catalog has package missing
    alone: package alone >=2 is required, and no version in catalog main matches; catalog main has alone 1.0.0 and 1.1.0 in channel stable
    broken: package broken is required; broken 1.0.0 needs package nothing >=1.0.0; broken 1.0.0 would do but needs package nothing >=1.0.0, no catalog has package nothing
    alone-too: package alone-too is required, and no version in catalog main matches; no catalog has package alone-too
    base: desired version range "not a range" is invalid: improper constraint: "not a range"
    "#);
}

#[test]
fn a_member_that_is_left_out_stays_unless_what_is_preferred_needs_its_place() {
    let members = [installation("alone", "1.0.0"), installation("old", "1.0.0"), installation("base", "1.0.0")];
    let (stays, _) = settled(&["alone >=7", "old"], &members, true);
    insta::assert_snapshot!(text(&stays), @r"
    alone 1.0.0, base 1.0.0, old 1.0.0
    alone: package alone >=7 is required, and no version in catalog main matches; catalog main has alone 1.0.0 and 1.1.0 in channel stable; alone 1.0.0 stays installed
    ");
    assert_eq!(stays.staying.iter().collect::<Vec<_>>(), ["alone"]);
    let (goes, _) = settled(&["new", "old"], &members, true);
    insta::assert_snapshot!(text(&goes), @r"
    alone 1.1.0, base 2.0.0, new 1.0.0
    old: package old is required; package new is required; old 1.0.0 needs package base <2.0.0; new 1.0.0 needs package base >=2.0.0; only one version of base can be installed; old 1.0.0 does not fit with what is preferred, and is removed
    ");
    let (refused, _) = settled(&["new", "old"], &members, false);
    assert!(matches!(refused.answer, Ok(Answer::Refusal(_))), "{refused:?}");
}

#[test]
fn a_package_of_others_in_an_unwanted_version_is_left_out() {
    let asked = question(&["alone >=1.1", "old"], &[], &[installation("alone", "1.0.0")]);
    let settled = settle(&asked, true, |problem| resolve(problem, &catalogs()));
    let left_out = settled.question(&asked).left_out;
    assert_eq!(left_out.len(), 1);
    assert!(left_out[0].explanation[0].contains("BundleDeployment alone"), "{left_out:?}");
    assert!(settled.answer.unwrap().decision().unwrap().member("old").is_some());
}

#[test]
fn the_questions_grow_with_what_is_left_out() {
    let names: Vec<String> =
        (0..200).map(|index| if index == 77 { "broken".to_owned() } else { format!("p{index}") }).collect();
    let metas = names.iter().filter(|name| *name != "broken").flat_map(|name| {
        [
            json!({"schema": "olm.package", "name": name, "defaultChannel": "stable"}),
            json!({"schema": "olm.channel", "package": name, "name": "stable", "entries": [{"name": format!("{name}.v1")}]}),
            json!({"schema": "olm.bundle", "package": name, "name": format!("{name}.v1"), "image": "example.com/a",
                   "properties": [{"type": "olm.package", "value": {"packageName": name, "version": "1.0.0"}}]}),
        ]
    });
    let catalogs = MemoryCatalogs::new().with("main", metas);
    let wanted: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut questions = 0;
    let settled = settle(&question(&wanted, &[], &[]), true, |problem| {
        questions += 1;
        resolve(problem, &catalogs)
    });
    assert_eq!(settled.left_out.iter().map(|it| it.package.as_str()).collect::<Vec<_>>(), ["broken"]);
    assert!(questions < 20, "{questions}");
}

/// Any list of wanted packages, each once.
fn wanted() -> impl Strategy<Value = Vec<&'static str>> {
    let all = ["old", "new", "base", "base <2", "base >=2", "alone", "alone <1.1", "broken", "missing"];
    let package = |text: &&str| text.split(' ').next().unwrap_or_default().to_owned();
    prop::sample::subsequence(all.to_vec(), 0..=all.len()).prop_shuffle().prop_map(move |mut wanted| {
        let mut seen = BTreeSet::new();
        wanted.retain(|text| seen.insert(package(text)));
        wanted
    })
}

proptest! {
    #[test]
    fn a_package_that_cannot_fit_changes_nothing_for_the_others(wanted in wanted(), at in 0_usize..9) {
        let (before, _) = settled(&wanted, &[], true);
        let mut more = wanted.clone();
        more.insert(at.min(wanted.len()), "unknown >=1");
        let (after, _) = settled(&more, &[], true);
        prop_assert_eq!(&before.answer, &after.answer);
        let others: Vec<_> = after.left_out.iter().filter(|it| it.package != "unknown").map(|it| &it.package).collect();
        prop_assert_eq!(before.left_out.iter().map(|it| &it.package).collect::<Vec<_>>(), others);
    }

    #[test]
    fn a_package_is_in_if_it_fits_with_those_before_it(wanted in wanted()) {
        let (found, _) = settled(&wanted, &[], true);
        let mut kept: Vec<&str> = Vec::new();
        for text in wanted {
            let with: Vec<String> = kept.iter().chain([&text]).map(|text| format!("!{text}")).collect();
            let asked = question(&with.iter().map(String::as_str).collect::<Vec<_>>(), &[], &[]);
            if matches!(resolve(&asked.problem, &catalogs()), Ok(Answer::Decision(_))) {
                kept.push(text);
            }
        }
        let kept: BTreeSet<&str> = kept.iter().filter_map(|text| text.split(' ').next()).collect();
        let required: BTreeSet<&str> = found.problem.required.iter().map(|it| it.package.as_str()).collect();
        prop_assert_eq!(kept, required);
    }
}

/// What is chosen when the checks refuse optional packages.
fn checked(wanted: &[&str], members: &[Installation], refused: &[&str]) -> (Settled, usize) {
    let (mut asked, catalogs) = (question(wanted, members, &[]), catalogs());
    let reason =
        |package: &&str| ((*package).to_owned(), vec![format!("{package}: the image is gone"), "twice".to_owned()]);
    asked.refused = refused.iter().map(reason).collect();
    let mut questions = 0;
    let settled = settle(&asked, true, |problem| {
        questions += 1;
        resolve(problem, &catalogs)
    });
    (settled, questions)
}

#[test]
fn what_the_checks_refuse_does_not_fit() {
    let (settled, questions) = checked(&["old", "alone", "new"], &[], &["old"]);
    insta::assert_snapshot!(text(&settled), @r"
    alone 1.1.0, base 2.0.0, new 1.0.0
    old: old: the image is gone; twice
    ");
    assert_eq!(settled.left_out.iter().map(|it| it.reason.as_str()).collect::<Vec<_>>(), ["PreflightFailed"]);
    assert_eq!(questions, 2, "without optional packages, and with the others");
    let (settled, _) = checked(&["old", "alone", "new"], &[], &["old", "new", "alone"]);
    assert_eq!(settled.left_out.len(), 3);
    assert!(matches!(&settled.answer, Ok(Answer::Decision(decision)) if decision.members.is_empty()));
}

#[test]
fn an_installed_package_stays_as_it_is_if_the_checks_refuse_its_upgrade() {
    let (settled, _) = checked(&["alone", "old"], &[installation("alone", "1.0.0")], &["alone"]);
    insta::assert_snapshot!(text(&settled), @r"
    alone 1.0.0, base 1.0.0, old 1.0.0
    alone: alone: the image is gone; twice; alone 1.0.0 stays installed
    ");
    assert!(settled.staying.contains("alone"));
}
