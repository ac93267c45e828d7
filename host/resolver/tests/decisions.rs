//! Decisions and explanations, example by example.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot continue panics")]

use chandler_resolver::{Answer, Change, Edge, Line, MemoryCatalogs, Problem, ResolveError, resolve};
use serde_json::{Value, json};

use crate::support::examples::{Bundle, catalog, metas};

fn ask(catalogs: &[(&str, Vec<Bundle>)], problem: &Value) -> Result<Answer, ResolveError> {
    let problem: Problem = serde_json::from_value(problem.clone()).unwrap();
    resolve(&problem, &catalog(catalogs))
}

/// The chosen members as `package version`.
fn chosen(answer: &Result<Answer, ResolveError>) -> Vec<String> {
    let decision = answer.as_ref().unwrap().decision();
    let decision = decision.unwrap_or_else(|| panic!("{}", answer.as_ref().unwrap().refusal().unwrap().message));
    decision.members.iter().map(|member| format!("{} {}", member.package, member.version)).collect()
}

fn refused(answer: &Result<Answer, ResolveError>) -> String {
    answer.as_ref().unwrap().refusal().unwrap_or_else(|| panic!("{answer:?}")).message.clone()
}

fn one() -> Value {
    json!([{"name": "c"}])
}

#[test]
fn the_default_channel_comes_before_the_highest_version() {
    let bundles = vec![
        Bundle::new("a", "1.0.0").channel("stable"),
        Bundle::new("a", "1.1.0").channel("stable").deprecated(),
        Bundle::new("a", "2.0.0").channel("edge"),
    ];
    let catalogs = [("c", bundles)];
    let of = |required: Value| chosen(&ask(&catalogs, &json!({"required": [required], "catalogs": one()})));
    assert_eq!(of(json!({"package": "a"})), ["a 1.0.0"]);
    assert_eq!(of(json!({"package": "a", "channels": ["edge"]})), ["a 2.0.0"]);
    assert_eq!(of(json!({"package": "a", "range": ">=1.1.0 <2"})), ["a 1.1.0"]);
    assert_eq!(of(json!({"package": "a", "range": ">=2"})), ["a 2.0.0"]);
    let strict =
        json!({"required": [{"package": "a", "range": "1.1.0"}], "catalogs": one(), "policy": {"deprecated": false}});
    let message = refused(&ask(&catalogs, &strict));
    assert!(message.contains("a 1.1.0 is deprecated, and the policy excludes deprecated bundles"), "{message}");
}

#[test]
fn prereleases_are_chosen_when_they_are_named_or_allowed() {
    let bundles = vec![Bundle::new("a", "1.0.0"), Bundle::new("a", "2.0.0-rc.1")];
    let catalogs = [("c", bundles)];
    let of = |range: &str, policy: Value| {
        chosen(&ask(
            &catalogs,
            &json!({"required": [{"package": "a", "range": range}], "catalogs": one(), "policy": policy}),
        ))
    };
    assert_eq!(of("", json!({})), ["a 1.0.0"]);
    assert_eq!(of(">=2.0.0-0", json!({})), ["a 2.0.0-rc.1"]);
    assert_eq!(of("", json!({"prereleases": true})), ["a 2.0.0-rc.1"]);
}

#[test]
fn dependencies_are_part_of_the_answer_with_who_needs_them() {
    let bundles = vec![
        Bundle::new("app", "1.0.0").requires_package("db", ">=1.0.0 <2.0.0").requires_kind("Certificate"),
        Bundle::new("db", "1.5.0"),
        Bundle::new("db", "2.0.0"),
        Bundle::new("certs", "0.9.0").provides("Certificate"),
        Bundle::new("other", "1.0.0"),
    ];
    let catalogs = [("c", bundles)];
    let ask =
        |policy: Value| ask(&catalogs, &json!({"required": [{"package": "app"}], "catalogs": one(), "policy": policy}));
    let answer = ask(json!({}));
    assert_eq!(chosen(&answer), ["app 1.0.0", "certs 0.9.0", "db 1.5.0"]);
    let decision = answer.unwrap().decision().unwrap().clone();
    let reasons = serde_json::to_value(&decision.member("certs").unwrap().reasons).unwrap();
    let reason = json!({"package": "app", "version": "1.0.0", "need": "kind example.com/v1/Certificate"});
    assert_eq!(reasons, json!([{"neededBy": reason}]));
    let reported = ask(json!({"dependencies": "Report"}));
    assert_eq!(chosen(&reported), ["app 1.0.0"]);
    assert_eq!(reported.unwrap().decision().unwrap().missing.len(), 2);
    assert_eq!(chosen(&ask(json!({"dependencies": "Ignore"}))), ["app 1.0.0"]);
}

#[test]
fn constraints_hold_for_the_whole_set() {
    let bundles = vec![
        Bundle::new("app", "1.0.0"),
        Bundle::new("app", "2.0.0").requires_package("db", ">=1.0.0"),
        Bundle::new("db", "1.5.0"),
        Bundle::new("db", "2.0.0"),
        Bundle::new("certs", "0.9.0").provides("Certificate"),
    ];
    let catalogs = [("c", bundles)];
    let ask = |constraints: Value, policy: Value| {
        let problem = json!({
            "required": [{"package": "app"}], "constraints": constraints, "catalogs": one(), "policy": policy,
        });
        ask(&catalogs, &problem)
    };
    let package =
        |range: &str| json!({"type": "olm.package.required", "value": {"packageName": "db", "versionRange": range}});
    let kind =
        json!({"type": "olm.gvk.required", "value": {"group": "example.com", "version": "v1", "kind": "Certificate"}});
    let none_of_db = json!({"type": "olm.constraint", "value": {
        "failureMessage": "no database", "not": {"constraints": [{"package": {"packageName": "db", "versionRange": ">=0.0.0"}}]},
    }});
    assert_eq!(chosen(&ask(json!([]), json!({}))), ["app 2.0.0", "db 2.0.0"]);
    let answer = ask(json!([package("<2.0.0"), kind]), json!({}));
    assert_eq!(chosen(&answer), ["app 2.0.0", "certs 0.9.0", "db 1.5.0"]);
    let decision = answer.unwrap().decision().unwrap().clone();
    let reasons = serde_json::to_value(&decision.member("certs").unwrap().reasons).unwrap();
    assert_eq!(reasons, json!([{"constraint": {"need": "kind example.com/v1/Certificate"}}]));
    assert_eq!(chosen(&ask(json!([none_of_db]), json!({}))), ["app 1.0.0"], "what would bring db is passed over");
    // Packages that a constraint requires count as requested by the user, whatever the dependency policy.
    for policy in ["Report", "Ignore"] {
        let answer = ask(json!([kind]), json!({"dependencies": policy}));
        assert_eq!(chosen(&answer), ["app 2.0.0", "certs 0.9.0"], "{policy}");
    }
    let message = refused(&ask(json!([package(">=3.0.0")]), json!({})));
    assert!(message.contains("a constraint of the request asks for package db >=3.0.0"), "{message}");
    let malformed = ask(json!([{"type": "olm.constraint", "value": {"nothing": {}}}]), json!({}));
    assert!(
        malformed.unwrap_err().to_string().starts_with("the constraints are invalid: "),
        "a fault is not a decision"
    );
}

#[test]
fn kinds_that_the_cluster_serves_need_no_package() {
    let bundles = vec![Bundle::new("app", "1.0.0").requires_kind("K"), Bundle::new("k", "1.0.0").provides("K")];
    let catalogs = [("c", bundles)];
    let kind = json!([{"group": "example.com", "version": "v1", "kind": "K"}]);
    let mut problem = json!({"required": [{"package": "app"}], "catalogs": one(), "cluster": {"kinds": kind}});
    assert_eq!(chosen(&ask(&catalogs, &problem)), ["app 1.0.0"]);
    // The kind of an installed package is the package's, not the cluster's.
    problem["installed"] = json!([{"package": "k", "name": "k.v1.0.0", "version": "1.0.0"}]);
    problem["required"] = json!([{"package": "app"}]);
    let answer = ask(&catalogs, &problem);
    assert_eq!(chosen(&answer), ["app 1.0.0", "k 1.0.0"]);
    assert_eq!(answer.unwrap().decision().unwrap().member("k").unwrap().change, Change::Keep);
}

#[test]
fn limits_of_the_cluster_are_explained_with_near_misses() {
    let bundles = vec![
        Bundle::new("a", "1.0.0").min_kubernetes("1.40.0"),
        Bundle::new("a", "1.4.0").requires_kind("X"),
        Bundle::new("y", "2.0.0").provides("X").max_openshift("4.10"),
    ];
    let problem = json!({"required": [{"package": "a"}], "catalogs": one(),
        "cluster": {"kubernetes": "v1.36.2", "openshift": "4.20.1"}});
    let answer = ask(&[("c", bundles)], &problem);
    let message = refused(&answer);
    for part in [
        "package a is required",
        "a 1.0.0 needs Kubernetes 1.40.0 or newer, and the cluster has v1.36.2",
        "a 1.4.0 needs kind example.com/v1/X",
        "y 2.0.0 runs on OpenShift up to 4.10, and the cluster has 4.20.1",
        "a 1.4.0 would do but needs kind example.com/v1/X, which package y in catalog c provides from 2.0.0, and that runs on \
         OpenShift up to 4.10",
    ] {
        assert!(message.contains(part), "{part:?} is not in {message}");
    }
}

#[test]
fn what_is_pinned_stays() {
    let bundles = vec![
        Bundle::new("app", "1.0.0").requires_package("db", ">=2.0.0"),
        Bundle::new("db", "1.0.0"),
        Bundle::new("db", "2.0.0").replaces("1.0.0"),
    ];
    let catalogs = [("c", bundles)];
    let db = json!({"package": "db", "name": "db.v1.0.0", "version": "1.0.0"});
    let mut problem = json!({"required": [{"package": "app"}], "catalogs": one(), "installed": [db]});
    let answer = ask(&catalogs, &problem);
    let message = refused(&answer);
    assert!(message.contains("db 1.0.0 is installed and pinned"), "{message}");
    assert!(message.contains("app 1.0.0 needs package db >=2.0.0"), "{message}");
    let lines = answer.unwrap().refusal().unwrap().lines.clone();
    assert!(lines.contains(&Line::OneVersion { package: "db".to_owned() }), "{lines:?}");
    problem["installed"][0]["hold"] = json!("Flexible");
    let answer = ask(&catalogs, &problem);
    assert_eq!(chosen(&answer), ["app 1.0.0", "db 2.0.0"]);
    let decision = answer.unwrap().decision().unwrap().clone();
    assert_eq!(decision.member("db").unwrap().change, Change::Upgrade);
    assert_eq!(decision.member("db").unwrap().steps[0].edge, Edge::Replaces);
    problem["installed"] = json!([]);
    problem["required"] = json!([{"package": "app"}, {"package": "db", "range": "<2"}]);
    let message = refused(&ask(&catalogs, &problem));
    assert!(message.contains("package db <2 is required"), "{message}");
}

#[test]
fn dependencies_are_upgraded_as_their_hold_says() {
    let bundles = vec![
        Bundle::new("base", "1.0.0"),
        Bundle::new("base", "1.1.0").replaces("1.0.0"),
        Bundle::new("base", "2.0.0").replaces("1.1.0"),
        Bundle::new("base", "2.1.0").replaces("2.0.0"),
        Bundle::new("left", "1.0.0").requires_package("base", ">=1.0.0"),
        Bundle::new("left", "1.1.0").replaces("1.0.0"),
        Bundle::new("top", "1.0.0").requires_package("base", ">=1.0.0").requires_package("left", ">=1.0.0"),
        Bundle::new("top", "1.1.0")
            .requires_package("base", ">=2.0.0")
            .requires_package("left", ">=1.0.0")
            .replaces("1.0.0"),
    ];
    let catalogs = [("c", bundles)];
    let problem = |hold: &str, range: &str| {
        let installed = ["base", "left", "top"]
            .map(|name| json!({"package": name, "name": format!("{name}.v1.0.0"), "version": "1.0.0", "hold": hold}));
        json!({"required": [{"package": "top", "range": range}], "catalogs": one(), "installed": installed})
    };
    for (hold, range, expected) in [
        ("Newest", "", ["base 2.1.0", "left 1.1.0", "top 1.1.0"]),
        ("Yielding", "", ["base 2.1.0", "left 1.0.0", "top 1.1.0"]),
        ("Flexible", "", ["base 1.0.0", "left 1.0.0", "top 1.0.0"]),
        ("Pinned", "", ["base 1.0.0", "left 1.0.0", "top 1.0.0"]),
        ("Newest", "<1.1", ["base 2.1.0", "left 1.1.0", "top 1.0.0"]),
        ("Yielding", "<1.1", ["base 1.0.0", "left 1.0.0", "top 1.0.0"]),
        ("Flexible", ">=1.1", ["base 2.1.0", "left 1.0.0", "top 1.1.0"]),
    ] {
        assert_eq!(chosen(&ask(&catalogs, &problem(hold, range))), expected, "{hold} {range}");
    }
}

#[test]
fn what_is_held_back_says_by_what() {
    let bundles = vec![
        Bundle::new("base", "1.0.0"),
        Bundle::new("base", "2.0.0").replaces("1.0.0"),
        Bundle::new("top", "1.0.0").requires_package("base", ">=1.0.0"),
        Bundle::new("top", "1.1.0").requires_package("base", ">=2.0.0").replaces("1.0.0"),
        Bundle::new("other", "1.0.0").requires_package("base", "<2.0.0"),
    ];
    let catalogs = [("c", bundles)];
    let of = |hold: &str, required: &[&str], package: &str| -> Option<(String, String)> {
        let installed = ["base", "top"]
            .map(|name| json!({"package": name, "name": format!("{name}.v1.0.0"), "version": "1.0.0", "hold": hold}));
        let required: Vec<Value> = required.iter().map(|name| json!({"package": name})).collect();
        let answer = ask(&catalogs, &json!({"required": required, "catalogs": one(), "installed": installed})).unwrap();
        let held = answer.decision().unwrap().member(package).unwrap().held_back.clone()?;
        Some((held.version, held.by.join("; ")))
    };
    for hold in ["Newest", "Yielding"] {
        assert_eq!(of(hold, &["top"], "top"), None, "{hold}");
        assert_eq!(of(hold, &["top"], "base"), None, "{hold}");
    }
    let needs = "top 1.1.0 needs package base >=2.0.0; only one version of base can be installed; ";
    let (version, by) = of("Flexible", &["top"], "top").unwrap();
    assert_eq!((version.as_str(), by), ("1.1.0", format!("{needs}base 1.0.0 is installed and stays")));
    let (version, by) = of("Flexible", &["top"], "base").unwrap();
    assert_eq!(version, "2.0.0");
    assert_eq!(by, "base 1.0.0 is installed and changes only where others need it");
    let (_, by) = of("Pinned", &["top"], "top").unwrap();
    assert_eq!(
        by,
        "top 1.1.0 needs package base >=2.0.0; base 1.0.0 is installed and pinned; only one version of base can be installed"
    );
    assert_eq!(of("Pinned", &["top"], "base"), None, "it never changes");
    // Of two that are asked for, the first by name gets what it wants.
    let (_, by) = of("Newest", &["other", "top"], "top").unwrap();
    assert!(by.contains("other 1.0.0 needs package base <2.0.0") && by.contains("package other is required"), "{by}");
}

#[test]
fn upgrades_take_the_shortest_path() {
    let bundles = vec![
        Bundle::new("a", "1.0.0"),
        Bundle::new("a", "1.1.0").replaces("1.0.0"),
        Bundle::new("a", "1.2.0").replaces("1.1.0"),
        Bundle::new("a", "1.3.0").replaces("1.2.0").skip_range(">=1.1.0 <1.3.0"),
        Bundle::new("a", "2.0.0").min_kubernetes("2.0.0").replaces("1.3.0"),
        Bundle::new("a", "2.1.0").replaces("2.0.0"),
    ];
    let catalogs = [("c", bundles)];
    let installed = json!([{"package": "a", "name": "a.v1.0.0", "version": "1.0.0"}]);
    let mut problem = json!({"required": [{"package": "a"}], "catalogs": one(), "installed": installed,
        "cluster": {"kubernetes": "1.36.0"}});
    let answer = ask(&catalogs, &problem);
    assert_eq!(chosen(&answer), ["a 1.3.0"]);
    let steps = answer.unwrap().decision().unwrap().members[0].steps.clone();
    let steps: Vec<(&str, Edge)> = steps.iter().map(|step| (step.version.as_str(), step.edge)).collect();
    assert_eq!(steps, [("1.1.0", Edge::Replaces), ("1.3.0", Edge::SkipRange)]);
    problem["required"][0]["range"] = json!(">=2.1");
    let message = refused(&ask(&catalogs, &problem));
    assert!(message.contains("a 2.1.0 cannot be reached by upgrades from a.v1.0.0"), "{message}");
    assert!(message.contains("a.v2.0.0 on the way needs Kubernetes 2.0.0"), "{message}");
    problem["required"][0]["range"] = json!("<1.3");
    problem["installed"][0]["name"] = json!("a.v1.3.0");
    problem["installed"][0]["version"] = json!("1.3.0");
    refused(&ask(&catalogs, &problem));
    problem["policy"] = json!({"upgrades": "SelfCertified"});
    let answer = ask(&catalogs, &problem);
    assert_eq!(chosen(&answer), ["a 1.2.0"]);
    let member = answer.unwrap().decision().unwrap().members[0].clone();
    assert_eq!((member.change, member.steps[0].edge), (Change::Downgrade, Edge::Forced));
}

#[test]
fn equal_catalogs_are_ambiguous() {
    let bundles = || vec![Bundle::new("a", "1.0.0")];
    let catalogs = [("c", bundles()), ("d", bundles())];
    let mut problem = json!({"required": [{"package": "a"}], "catalogs": [{"name": "c"}, {"name": "d"}]});
    let error = ask(&catalogs, &problem).unwrap_err();
    assert!(matches!(&error, ResolveError::Ambiguous { catalogs, .. } if catalogs == &["c", "d"]), "{error}");
    problem["catalogs"][1]["priority"] = json!(1);
    let answer = ask(&catalogs, &problem).unwrap();
    assert_eq!(answer.decision().unwrap().members[0].catalog.as_deref(), Some("d"));
    problem["catalogs"][1]["priority"] = json!(0);
    problem["required"][0]["catalogs"] = json!({"matchLabels": {"olm.operatorframework.io/metadata.name": "c"}});
    let answer = ask(&catalogs, &problem).unwrap();
    assert_eq!(answer.decision().unwrap().members[0].catalog.as_deref(), Some("c"));
}

#[test]
fn a_kind_has_one_owner() {
    let bundles = vec![
        Bundle::new("a", "1.0.0").provides("K"),
        Bundle::new("b", "1.0.0").provides("K"),
        Bundle::new("b", "0.9.0"),
    ];
    let catalogs = [("c", bundles)];
    let of = |range: &str| {
        ask(&catalogs, &json!({"required": [{"package": "a"}, {"package": "b", "range": range}], "catalogs": one()}))
    };
    assert_eq!(chosen(&of("")), ["a 1.0.0", "b 0.9.0"]);
    let message = refused(&of(">=1"));
    assert!(message.contains("only one of a and b may provide kind K.example.com"), "{message}");
}

#[test]
fn compound_constraints_and_rules_hold_for_the_set() {
    let certified = "properties.exists(p, p.type == 'certified' && p.value == 'yes') && \
                     semver_compare(properties.filter(p, p.type == 'olm.package')[0].value.version, '1.5.0') < 0";
    let package = |name: &str| json!({"package": {"packageName": name, "versionRange": ">=0.0.0"}});
    let constraint = |value: Value| {
        vec![
            Bundle::new("app", "1.0.0").property("olm.constraint", value),
            Bundle::new("db", "1.0.0").property("certified", json!("yes")),
            Bundle::new("db", "1.6.0").property("certified", json!("yes")),
            Bundle::new("db", "1.4.0"),
            Bundle::new("queue", "1.0.0").requires_package("bad", ">=0.0.0"),
            Bundle::new("cache", "1.0.0"),
            Bundle::new("bad", "1.0.0"),
        ]
    };
    let ask =
        |value: Value| ask(&[("c", constraint(value))], &json!({"required": [{"package": "app"}], "catalogs": one()}));
    let list = |name: &str, parts: Vec<Value>| json!({name: {"constraints": parts}});
    let rule = json!({"cel": {"rule": certified}});
    assert_eq!(chosen(&ask(list("all", vec![package("db"), rule.clone()]))), ["app 1.0.0", "db 1.0.0"]);
    assert_eq!(chosen(&ask(rule)), ["app 1.0.0", "db 1.0.0"]);
    assert_eq!(chosen(&ask(list("any", vec![package("queue"), package("cache")]))), ["app 1.0.0", "cache 1.0.0"]);
    let not_bad = list("all", vec![package("queue"), list("not", vec![package("bad")])]);
    let message = refused(&ask(not_bad));
    assert!(message.contains("queue 1.0.0 needs package bad"), "{message}");
    for rule in ["properties.all(a, properties.all(b, properties.all(c, true)))", "1 +", "'a'"] {
        refused(&ask(json!({"cel": {"rule": rule}})));
    }
}

#[test]
fn files_of_a_bundle_count_where_the_catalog_is_silent() {
    let bundles = vec![Bundle::new("app", "1.0.0"), Bundle::new("db", "1.0.0"), Bundle::new("k", "1.0.0")];
    let catalogs = [("c", bundles)];
    let crd = json!([{"name": "ks.example.com", "version": "v1", "kind": "K"}]);
    let csv = json!({"spec": {"minKubeVersion": "1.30.0", "customresourcedefinitions": {"required": crd}}});
    let provides = json!({"spec": {"customresourcedefinitions": {"owned": crd}}});
    let dependencies = json!([{"type": "olm.package", "value": {"packageName": "db", "version": ">=1.0.0"}}]);
    let mut problem = json!({"required": [{"package": "app"}], "catalogs": one(), "contents": [
        {"package": "app", "bundle": "app.v1.0.0", "csv": csv, "dependencies": dependencies},
        {"package": "k", "bundle": "k.v1.0.0", "csv": provides},
    ]});
    assert_eq!(chosen(&ask(&catalogs, &problem)), ["app 1.0.0", "db 1.0.0", "k 1.0.0"]);
    problem["cluster"] = json!({"kubernetes": "1.29.3"});
    let message = refused(&ask(&catalogs, &problem));
    assert!(message.contains("app 1.0.0 needs Kubernetes 1.30.0 or newer"), "{message}");
}

#[test]
fn what_the_files_exclude_is_not_chosen() {
    let bundles = vec![
        Bundle::new("a", "1.0.0"),
        Bundle::new("a", "1.1.0").replaces("1.0.0"),
        Bundle::new("a", "1.2.0").replaces("1.1.0"),
    ];
    let catalogs = [("c", bundles)];
    let excluded = |version: &str| json!({"package": "a", "bundle": format!("a.v{version}"), "why": "the operator needs Kubernetes 1.40.0"});
    let mut problem = json!({"required": [{"package": "a"}], "catalogs": one(), "excluded": [excluded("1.2.0")]});
    assert_eq!(chosen(&ask(&catalogs, &problem)), ["a 1.1.0"]);
    problem["required"][0]["range"] = json!("1.2.0");
    let message = refused(&ask(&catalogs, &problem));
    assert!(message.contains("a 1.2.0 is not possible here: the operator needs Kubernetes 1.40.0"), "{message}");
    // Installed packages stay, and no upgrade path contains excluded versions.
    problem["required"][0]["range"] = json!("");
    problem["excluded"] = json!([excluded("1.1.0"), excluded("1.0.0")]);
    problem["installed"] = json!([{"package": "a", "name": "a.v1.0.0", "version": "1.0.0"}]);
    assert_eq!(chosen(&ask(&catalogs, &problem)), ["a 1.0.0"]);
}

#[test]
fn what_no_catalog_has_is_named() {
    let catalogs = [("c", vec![Bundle::new("a", "1.0.0"), Bundle::new("a", "1.4.0")])];
    let of = |required: Value| refused(&ask(&catalogs, &json!({"required": [required], "catalogs": one()})));
    let message = of(json!({"package": "nothing"}));
    assert!(message.contains("no catalog has package nothing"), "{message}");
    let message = of(json!({"package": "a", "range": ">=2"}));
    assert!(message.contains("package a >=2 is required, and no version in catalog c matches"), "{message}");
    assert!(message.contains("catalog c has a 1.0.0 and 1.4.0 in channel stable"), "{message}");
}

#[test]
fn a_near_miss_names_what_it_lacks_once() {
    let required = json!({"required": [{"package": "a"}], "catalogs": one()});
    let needy = Bundle::new("a", "1.0.0").requires_kind("Ghost").requires_kind("Wraith");
    let message = refused(&ask(&[("c", vec![needy])], &required));
    let miss = "needs kind example.com/v1/Ghost and kind example.com/v1/Wraith, which no catalog provides";
    assert!(message.contains(miss), "{message}");
    let message = refused(&ask(&[("c", vec![Bundle::new("a", "1.0.0-rc.1")])], &required));
    assert!(message.contains("catalog c has a 1.0.0-rc.1 in channel stable, all of them pre-releases"), "{message}");
}

#[test]
fn what_is_broken_already_stays_and_is_noted() {
    let bundles = vec![Bundle::new("a", "1.0.0").requires_kind("Gone"), Bundle::new("b", "1.0.0")];
    let problem = json!({"required": [{"package": "b"}], "catalogs": one(),
        "installed": [{"package": "a", "name": "a.v1.0.0", "version": "1.0.0", "automatic": true}]});
    let answer = ask(&[("c", bundles)], &problem);
    assert_eq!(chosen(&answer), ["a 1.0.0", "b 1.0.0"]);
    let decision = answer.unwrap().decision().unwrap().clone();
    assert_eq!(decision.notes, ["a 1.0.0 is installed although nothing meets its need: kind example.com/v1/Gone"]);
    assert_eq!(decision.unneeded, ["a"]);
}

#[test]
fn malformed_questions_are_refused() {
    let catalogs = [("c", vec![Bundle::new("a", "1.0.0")])];
    for problem in [
        json!({"required": [{"package": "a", "range": "foobar"}]}),
        json!({"required": [{"package": "a"}, {"package": "a"}]}),
        json!({"catalogs": [{"name": "c"}, {"name": "c"}]}),
        json!({"catalogs": [{"name": "missing"}], "required": [{"package": "a"}]}),
        json!({"installed": [{"package": "a", "name": "a", "version": "one"}]}),
        json!({"cluster": {"kubernetes": "new"}}),
        json!({"mode": "Single"}),
    ] {
        assert!(ask(&catalogs, &problem).is_err(), "{problem}");
    }
    assert!(serde_json::from_value::<Problem>(json!({"requierd": []})).is_err());
}

/// A catalog that may not even be asked for the package has a bundle of the name of a step.
#[test]
fn the_image_of_a_step_is_that_of_the_catalog_of_the_member() {
    let good = metas(&[
        Bundle::new("a", "1.0.0"),
        Bundle::new("a", "2.0.0").replaces("1.0.0"),
        Bundle::new("a", "3.0.0").replaces("2.0.0"),
    ]);
    let mut evil = metas(&[Bundle::new("a", "0.0.1")]);
    for meta in &mut evil {
        if meta["schema"] == "olm.bundle" {
            meta["name"] = json!("a.v2.0.0");
            meta["image"] = json!("example.com/evil");
        } else if meta["schema"] == "olm.channel" {
            meta["entries"] = json!([{"name": "a.v2.0.0"}]);
        }
    }
    let installed = json!([{"package": "a", "name": "a.v1.0.0", "version": "1.0.0"}]);
    for (evil_priority, label) in [(-100, "trusted"), (100, "trusted"), (-100, "other")] {
        let all = MemoryCatalogs::new().with("a-evil", evil.clone()).with("good", good.clone());
        let problem = json!({
            "required": [{"package": "a", "catalogs": {"matchLabels": {"tier": label}}}], "installed": installed,
            "catalogs": [{"name": "a-evil", "priority": evil_priority, "labels": {"tier": "untrusted"}},
                         {"name": "good", "labels": {"tier": label}}],
        });
        let problem: Problem = serde_json::from_value(problem).unwrap();
        let answer = resolve(&problem, &all).unwrap();
        let member = answer.decision().unwrap_or_else(|| panic!("{answer:?}")).members[0].clone();
        assert_eq!(member.version, "3.0.0");
        let images: Vec<&str> = member.steps.iter().map(|step| step.image.as_str()).collect();
        assert_eq!(images, ["example.com/a.v2.0.0", "example.com/a.v3.0.0"]);
    }
}
