//! The choices of OLM v0 where its rules equal ours. The cases come from its resolver's tests, and are rewritten.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot continue panics")]

use chandler_resolver::{Answer, Package, Problem, ResolveError, resolve};
use serde_json::{Value, json};

use crate::support::examples::{Bundle, catalog, metas};

/// The answer for packages of catalogs, each with a priority.
fn ask(catalogs: &[(&str, i32, Vec<Bundle>)], required: &[&str]) -> Result<Answer, ResolveError> {
    answer(catalogs, &json!({"required": required.iter().map(|name| json!({"package": name})).collect::<Vec<_>>()}))
}

fn answer(catalogs: &[(&str, i32, Vec<Bundle>)], question: &Value) -> Result<Answer, ResolveError> {
    let mut question = question.clone();
    let source = |(name, priority, _): &(&str, i32, Vec<Bundle>)| json!({"name": name, "priority": priority});
    question["catalogs"] = catalogs.iter().map(source).collect();
    let problem: Problem = serde_json::from_value(question).unwrap();
    let bundles: Vec<(&str, Vec<Bundle>)> = catalogs.iter().map(|(name, _, it)| (*name, it.clone())).collect();
    resolve(&problem, &catalog(&bundles))
}

/// The members as `package version catalog`.
fn chosen(answer: Result<Answer, ResolveError>) -> Vec<String> {
    let answer = answer.unwrap();
    let decision = answer.decision().unwrap_or_else(|| panic!("{}", answer.refusal().unwrap().message));
    let each = |it: &chandler_resolver::Member| {
        format!("{} {} {}", it.package, it.version, it.catalog.as_deref().unwrap_or("-"))
    };
    decision.members.iter().map(each).collect()
}

fn refused(answer: Result<Answer, ResolveError>) -> String {
    let answer = answer.unwrap();
    answer.refusal().unwrap_or_else(|| panic!("{answer:?}")).message.clone()
}

#[test]
fn a_dependency_comes_from_the_catalog_of_what_needs_it() {
    let app = || Bundle::new("app", "1.0.0").requires_package("db", ">=1.0.0");
    let db = |version: &str| Bundle::new("db", version);
    let catalogs = |own: Vec<Bundle>| {
        let own = [vec![app()], own].concat();
        [("community", 0, own), ("low", -5, vec![db("1.0.0")]), ("other", 100, vec![db("1.0.0"), db("2.0.0")])]
    };
    // Where its own catalog has it, neither priority nor version of another one counts.
    assert_eq!(chosen(ask(&catalogs(vec![db("1.0.0")]), &["app"])), ["app 1.0.0 community", "db 1.0.0 community"]);
    // Where it does not, they do.
    assert_eq!(chosen(ask(&catalogs(Vec::new()), &["app"])), ["app 1.0.0 community", "db 2.0.0 other"]);
    // Requested packages may come from any catalog.
    let both = ask(&catalogs(vec![db("1.0.0")]), &["app", "db"]);
    assert_eq!(chosen(both), ["app 1.0.0 community", "db 2.0.0 other"]);
    // One version in several catalogs of equal priority was an ambiguity.
    let equal = [("community", 0, vec![app(), db("1.0.0")]), ("other", 0, vec![db("1.0.0")])];
    assert_eq!(chosen(ask(&equal, &["app"])), ["app 1.0.0 community", "db 1.0.0 community"]);
}

#[test]
fn the_provider_of_a_kind_comes_from_the_catalog_of_what_needs_it() {
    let app = Bundle::new("app", "1.0.0").requires_kind("Certificate");
    let (certs, vault) = (Bundle::new("certs", "1.0.0"), Bundle::new("vault", "1.0.0"));
    let (certs, vault) = (certs.provides("Certificate"), vault.provides("Certificate"));
    let apart = [("community", 0, vec![app, vault]), ("other", 100, vec![certs])];
    assert_eq!(chosen(ask(&apart, &["app"])), ["app 1.0.0 community", "vault 1.0.0 community"]);
}

#[test]
fn the_dependency_of_a_dependency_comes_from_its_catalog() {
    let app = Bundle::new("app", "1.0.0").requires_package("db", ">=1.0.0");
    let db = Bundle::new("db", "1.0.0").requires_package("disk", ">=1.0.0");
    let disk = |version: &str| Bundle::new("disk", version);
    let catalogs = [("one", 0, vec![app]), ("three", 9, vec![disk("3.0.0")]), ("two", 0, vec![db, disk("1.0.0")])];
    assert_eq!(chosen(ask(&catalogs, &["app"])), ["app 1.0.0 one", "db 1.0.0 two", "disk 1.0.0 two"]);
}

#[test]
fn an_installed_dependency_stays_in_its_catalog() {
    let app = Bundle::new("app", "1.0.0").requires_package("db", ">=1.0.0");
    let db = |version: &str| Bundle::new("db", version).skip_range(&format!("<{version}"));
    let own = vec![app, db("1.0.0"), db("1.1.0")];
    let question = |hold: &str, catalog: &str| {
        json!({"required": [{"package": "app"}], "installed": [
            {"package": "app", "name": "app.v1.0.0", "version": "1.0.0", "catalog": "community"},
            {"package": "db", "name": "db.v1.0.0", "version": "1.0.0", "catalog": catalog, "hold": hold},
        ]})
    };
    let catalogs = [("community", 0, own), ("other", 100, vec![db("1.0.0"), db("2.0.0")])];
    for (hold, catalog, db) in [
        ("Newest", "community", "db 1.1.0 community"),
        ("Newest", "other", "db 2.0.0 other"),
        ("Newest", "gone", "db 1.1.0 community"),
        ("Yielding", "community", "db 1.0.0 community"),
        ("Flexible", "community", "db 1.0.0 community"),
    ] {
        assert_eq!(
            chosen(answer(&catalogs, &question(hold, catalog))),
            ["app 1.0.0 community", db],
            "{hold} {catalog}"
        );
    }
}

#[test]
fn what_a_channel_skips_is_not_chosen_for_a_new_installation() {
    let one = Bundle::new("a", "1.0.0").provides("K");
    let three = Bundle::new("a", "3.0.0").replaces("2.0.0").skips("1.0.0");
    let all = [("c", 0, vec![one, Bundle::new("a", "2.0.0").replaces("1.0.0"), three])];
    assert_eq!(chosen(ask(&all, &["a"])), ["a 3.0.0 c"]);
    let needs = Bundle::new("b", "1.0.0").requires_kind("K");
    let with = [("c", 0, [all[0].2.clone(), vec![needs]].concat())];
    let message = refused(ask(&with, &["b"]));
    let line = "a 1.0.0 is skipped by a.v3.0.0, and what a channel skips is not chosen";
    assert!(message.contains(line), "{message}");
    let range = |range: &str| json!({"required": [{"package": "a", "range": range}]});
    assert!(refused(answer(&all, &range("1.0.0"))).contains(line));
    assert_eq!(chosen(answer(&all, &range("<3"))), ["a 2.0.0 c"]);
}

#[test]
fn a_channel_that_skips_nothing_offers_what_another_one_skips() {
    let of = |version: &str, channels: &[&str]| {
        channels.iter().fold(Bundle::new("a", version), |bundle, channel| bundle.channel(channel))
    };
    let catalogs = [("c", 0, vec![of("1.0.0", &["edge", "stable"]), of("2.0.0", &["stable"]).skips("1.0.0")])];
    let of = |channel: &str| answer(&catalogs, &json!({"required": [{"package": "a", "channels": [channel]}]}));
    assert_eq!(chosen(of("edge")), ["a 1.0.0 c"]);
    assert_eq!(chosen(of("stable")), ["a 2.0.0 c"]);
    let old = answer(&catalogs, &json!({"required": [{"package": "a", "range": "<2"}]})).unwrap();
    assert_eq!(old.decision().unwrap().members[0].channel.as_deref(), Some("edge"));
}

#[test]
fn what_is_skipped_stays_installed_and_is_on_the_way_only_where_nothing_else_is() {
    let question = |version: &str, kubernetes: &str| {
        json!({"required": [{"package": "a"}], "cluster": {"kubernetes": kubernetes},
            "installed": [{"package": "a", "name": format!("a.v{version}"), "version": version}]})
    };
    let all = [(
        "c",
        0,
        vec![
            Bundle::new("a", "1.0.0"),
            Bundle::new("a", "1.1.0").replaces("1.0.0"),
            Bundle::new("a", "1.2.0").replaces("1.1.0").skips("1.1.0").min_kubernetes("1.40.0"),
        ],
    )];
    let steps = |answer: Result<Answer, ResolveError>| -> Vec<String> {
        answer.unwrap().decision().unwrap().members[0].steps.iter().map(|step| step.version.clone()).collect()
    };
    assert_eq!(chosen(answer(&all, &question("1.1.0", "1.36.0"))), ["a 1.1.0 c"]);
    assert_eq!(chosen(answer(&all, &question("1.0.0", "1.36.0"))), ["a 1.0.0 c"]);
    assert_eq!(steps(answer(&all, &question("1.0.0", "1.41.0"))), ["1.1.0", "1.2.0"]);
    let around = [(
        "c",
        0,
        vec![
            Bundle::new("a", "1.0.0"),
            Bundle::new("a", "1.1.0").replaces("1.0.0"),
            Bundle::new("a", "1.0.5").skips("1.0.0"),
            Bundle::new("a", "1.2.0").replaces("1.1.0").skips("1.1.0").skips("1.0.5"),
            Bundle::new("a", "1.3.0").replaces("1.2.0"),
        ],
    )];
    assert_eq!(steps(answer(&around, &question("1.0.0", "1.36.0"))).len(), 3);
    let any = json!({"required": [{"package": "a", "range": "1.1.0"}], "policy": {"upgrades": "SelfCertified"},
        "installed": [{"package": "a", "name": "a.v1.0.0", "version": "1.0.0"}]});
    assert_eq!(chosen(answer(&all, &any)), ["a 1.1.0 c"], "the policy allows what no channel provides");
}

#[test]
fn a_withdrawn_bundle_is_never_chosen() {
    let withdrawn = |bundle: Bundle| bundle.property("olm.deprecated", json!({}));
    let alone = [("c", 0, vec![withdrawn(Bundle::new("a", "1.0.0"))])];
    let message = refused(ask(&alone, &["a"]));
    assert!(message.contains("a 1.0.0 has the property olm.deprecated"), "{message}");
    let inner = [(
        "c",
        0,
        vec![
            Bundle::new("a", "1.0.0"),
            withdrawn(Bundle::new("a", "2.0.0").replaces("1.0.0")),
            Bundle::new("a", "3.0.0").replaces("2.0.0"),
        ],
    )];
    assert_eq!(chosen(ask(&inner, &["a"])), ["a 3.0.0 c"]);
    let older = json!({"required": [{"package": "a", "range": "<3"}]});
    assert_eq!(chosen(answer(&inner, &older)), ["a 1.0.0 c"]);
    // Installed packages stay, and no upgrade path contains withdrawn versions.
    let installed = |version: &str| {
        json!({"required": [{"package": "a"}],
            "installed": [{"package": "a", "name": format!("a.v{version}"), "version": version}]})
    };
    assert_eq!(chosen(answer(&alone, &installed("1.0.0"))), ["a 1.0.0 c"]);
    assert_eq!(chosen(answer(&inner, &installed("1.0.0"))), ["a 1.0.0 c"]);
    assert_eq!(chosen(answer(&inner, &installed("2.0.0"))), ["a 3.0.0 c"]);
}

#[test]
fn a_required_label_is_met_by_a_bundle_that_has_it() {
    let needs = || Bundle::new("a", "1.0.0").property("olm.label.required", json!({"label": "lts"}));
    let b = Bundle::new("b", "1.0.0");
    let labelled = Bundle::new("z", "1.0.0").property("olm.label", json!({"label": "lts"}));
    let with = [("c", 0, vec![needs(), b.clone(), labelled])];
    assert_eq!(chosen(ask(&with, &["a"])), ["a 1.0.0 c", "z 1.0.0 c"]);
    let message = refused(ask(&[("c", 0, vec![needs(), b])], &["a"]));
    assert!(
        message.contains("a 1.0.0 would do but needs a bundle with label lts, which no catalog provides"),
        "{message}"
    );
    let malformed = Bundle::new("a", "1.0.0").property("olm.label.required", json!({}));
    assert!(refused(ask(&[("c", 0, vec![malformed])], &["a"])).contains("olm.label.required"));
    let file = json!({"required": [{"package": "b"}], "contents": [{"package": "b", "bundle": "b.v1.0.0",
        "dependencies": [{"type": "olm.label", "value": {"label": "lts"}}]}]});
    assert_eq!(chosen(answer(&with, &file)), ["b 1.0.0 c", "z 1.0.0 c"], "dependencies.yaml has it as well");
}

#[test]
fn the_package_that_needs_a_kind_cannot_provide_it() {
    let needs = Bundle::new("a", "1.0.0").requires_kind("K").requires_kind("L");
    let own = Bundle::new("a", "1.1.0").channel("alpha").provides("K").provides("L");
    let catalogs = [
        ("community", 0, vec![needs, own, Bundle::new("b", "1.0.0").provides("K")]),
        ("secondary", 0, vec![Bundle::new("b", "1.0.0").provides("L"), Bundle::new("c", "1.0.0").provides("L")]),
    ];
    let question = json!({"required": [{"package": "a", "channels": ["stable"]}]});
    assert_eq!(chosen(answer(&catalogs, &question)), ["a 1.0.0 community", "b 1.0.0 community", "c 1.0.0 secondary"]);
}

/// The reader of a catalog reports that the channels of a package cannot be followed: a question that leads there has no answer, and others
/// do.
#[test]
fn a_package_with_a_fault_answers_no_question() {
    struct Faulty(chandler_resolver::MemoryCatalogs);
    impl chandler_resolver::Catalogs for Faulty {
        fn package(
            &self,
            catalog: &str,
            package: &str,
        ) -> Result<Option<std::sync::Arc<Package>>, chandler_resolver::CatalogError> {
            let read = self.0.package(catalog, package)?;
            let fault = (package == "broken").then(|| "channel stable has two heads".to_owned());
            Ok(read.map(|it| std::sync::Arc::new(Package { fault, ..(*it).clone() })))
        }
        fn providers(
            &self,
            catalog: &str,
            kind: &chandler_resolver::Kind,
        ) -> Result<Vec<String>, chandler_resolver::CatalogError> {
            self.0.providers(catalog, kind)
        }
        fn packages(&self, catalog: &str) -> Result<Vec<String>, chandler_resolver::CatalogError> {
            self.0.packages(catalog)
        }
    }
    let bundles = [Bundle::new("broken", "1.0.0"), Bundle::new("sound", "1.0.0")];
    let catalogs = Faulty(chandler_resolver::MemoryCatalogs::new().with("c", metas(&bundles)));
    let ask = |package: &str, mode: &str| {
        let question = json!({"required": [{"package": package}], "catalogs": [{"name": "c"}], "mode": mode});
        resolve(&serde_json::from_value(question).unwrap(), &catalogs)
    };
    let error = ask("broken", "Default").unwrap_err().to_string();
    assert!(error.contains("\"c\": channel stable has two heads"), "{error}");
    assert_eq!(chosen(ask("sound", "Default")), ["sound 1.0.0 c"]);
    assert_eq!(chosen(ask("broken", "Single")), ["broken 1.0.0 c"], "OLM v1 does not look at it");
}
