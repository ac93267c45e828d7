//! The vectors of OLM v1 and Deppy.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot continue panics")]

use std::collections::{BTreeMap, BTreeSet};

use chandler_resolver::{
    Answer, Installed, MemoryCatalogs, Mode, Policy, Problem, Required, Source, Upgrades,
    deppy::{self, Applied, DeppyError, Variable, Variables},
    resolve,
    version::masterminds::Range,
};
use chandler_test_support::needs::fixture;
use serde::Deserialize;
use serde_json::{Value, json};

fn read<T: serde::de::DeserializeOwned>(name: &str) -> Option<T> {
    let path = fixture(&format!("vectors/{name}.json"))?;
    Some(serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeppyCase {
    name: String,
    variables: Vec<Variable>,
    installed: Option<BTreeSet<String>>,
    not_satisfiable: Option<BTreeSet<Applied>>,
    error_text: Option<String>,
}

#[derive(Deserialize)]
struct Deppy {
    cases: Vec<DeppyCase>,
}

#[test]
fn deppy_chooses_the_same_variables() {
    let Some(vectors) = read::<Deppy>("deppy_solve") else { return };
    for case in vectors.cases {
        let question = Variables { variables: case.variables, ..Variables::default() };
        let name = case.name;
        match deppy::solve(&question) {
            Ok(chosen) => {
                let wanted = case.installed.unwrap_or_default();
                assert_eq!(chosen.iter().cloned().collect::<BTreeSet<_>>(), wanted, "{name}");
                let order: Vec<&String> = question.variables.iter().map(|variable| &variable.id).collect();
                let positions: Vec<_> = chosen.iter().map(|id| order.iter().position(|one| *one == id)).collect();
                assert!(positions.is_sorted(), "{name}: {chosen:?}");
            }
            Err(DeppyError::NotSatisfiable(core)) => {
                let text = DeppyError::NotSatisfiable(core.clone()).to_string();
                assert_eq!(Some(core.into_iter().collect()), case.not_satisfiable, "{name}");
                let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
                assert_eq!(lines(&text), lines(&case.error_text.unwrap_or_default()), "{name}");
            }
            Err(error) => assert_eq!(Some(error.to_string()), case.error_text, "{name}"),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Successor {
    entries: Vec<Value>,
    bundle_versions: Vec<String>,
    cases: Vec<SuccessorCase>,
    version_range: Vec<RangeCase>,
}

#[derive(Deserialize)]
struct SuccessorCase {
    installed: String,
    candidates: BTreeSet<String>,
}

#[derive(Deserialize)]
struct RangeCase {
    range: String,
    #[serde(default)]
    version: Option<String>,
    #[serde(default, rename = "match")]
    matches: bool,
    #[serde(default)]
    error: bool,
}

fn bundle(package: &str, version: &str) -> Value {
    json!({"schema": "olm.bundle", "package": package, "name": format!("{package}.v{version}"), "image": "",
        "properties": [{"type": "olm.package", "value": {"packageName": package, "version": version}}]})
}

/// All candidates, found one after the other by asking for one exact version.
#[test]
fn the_same_bundles_succeed_what_is_installed() {
    let Some(vectors) = read::<Successor>("successor") else { return };
    let package = "test-package";
    for case in vectors.cases {
        let mut found = BTreeSet::new();
        for version in &vectors.bundle_versions {
            // A catalog with all edges, and this one bundle: whatever is chosen is this bundle.
            let metas = [
                json!({"schema": "olm.package", "name": package}),
                json!({"schema": "olm.channel", "package": package, "name": "stable", "entries": vectors.entries}),
                bundle(package, version),
            ];
            let problem = Problem {
                mode: Mode::Single,
                required: vec![Required { package: package.to_owned(), ..Required::default() }],
                installed: vec![installed(package, &format!("{package}.v{}", case.installed), &case.installed)],
                catalogs: vec![Source { name: "c".to_owned(), ..Source::default() }],
                ..Problem::default()
            };
            let answer = resolve(&problem, &MemoryCatalogs::new().with("c", metas)).unwrap();
            found.extend(answer.decision().map(|decision| decision.members[0].version.clone()));
        }
        assert_eq!(found, case.candidates, "from {}", case.installed);
    }
    for case in vectors.version_range {
        let range = Range::parse(&case.range);
        assert_eq!(range.is_err(), case.error, "{}", case.range);
        if let (Ok(range), Some(version)) = (range, case.version) {
            assert_eq!(range.matches(&version.parse().unwrap()), case.matches, "{version} in {}", case.range);
        }
    }
}

fn installed(package: &str, name: &str, version: &str) -> Installed {
    let (package, name, version) = (package.to_owned(), name.to_owned(), version.to_owned());
    Installed { package, name, version, ..Installed::default() }
}

#[derive(Deserialize)]
struct Resolve {
    #[serde(rename = "GEN")]
    generated: Vec<Value>,
    cases: Vec<ResolveCase>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResolveCase {
    name: String,
    catalogs: BTreeMap<String, CatalogCase>,
    package: String,
    version: String,
    channels: Vec<String>,
    upgrade_constraint_policy: Upgrades,
    installed: Option<InstalledCase>,
    want_version: Option<String>,
    want_error: Option<String>,
    want_error_contains: Option<String>,
}

#[derive(Deserialize)]
struct CatalogCase {
    #[serde(default)]
    priority: i32,
    blobs: Value,
}

#[derive(Deserialize)]
struct InstalledCase {
    name: String,
    version: String,
}

#[test]
fn single_chooses_the_same_bundles() {
    let Some(vectors) = read::<Resolve>("resolve") else { return };
    for case in vectors.cases {
        let mut catalogs = MemoryCatalogs::new();
        let mut sources = Vec::new();
        for (name, catalog) in &case.catalogs {
            let metas = catalog.blobs.as_array().unwrap_or(&vectors.generated).clone();
            catalogs = catalogs.with(name, metas);
            sources.push(Source { name: name.clone(), priority: catalog.priority, ..Source::default() });
        }
        let problem = Problem {
            mode: Mode::Single,
            required: vec![Required {
                package: case.package.clone(),
                range: case.version,
                channels: case.channels,
                ..Required::default()
            }],
            installed: case.installed.iter().map(|one| installed(&case.package, &one.name, &one.version)).collect(),
            catalogs: sources,
            policy: Policy { upgrades: case.upgrade_constraint_policy, ..Policy::default() },
            ..Problem::default()
        };
        let (version, error) = match resolve(&problem, &catalogs) {
            Ok(Answer::Decision(decision)) => (Some(decision.members[0].version.clone()), None),
            Ok(Answer::Refusal(explanation)) => (None, Some(explanation.message)),
            Err(error) => (None, Some(error.to_string())),
        };
        let name = case.name;
        assert_eq!(version, case.want_version, "{name}: {error:?}");
        if let Some(wanted) = case.want_error {
            assert_eq!(error.as_deref(), Some(wanted.as_str()), "{name}");
        }
        if let Some(wanted) = case.want_error_contains {
            assert!(error.as_ref().is_some_and(|error| error.contains(&wanted)), "{name}: {error:?}");
        }
    }
}
