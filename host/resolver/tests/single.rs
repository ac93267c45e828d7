//! The mode `Single` against an oracle of OLM v1's rules, on random questions about one package.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot continue panics")]

use std::collections::{BTreeMap, BTreeSet};

use chandler_resolver::{Answer, MemoryCatalogs, Problem, resolve};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::random::Dice;

/// A bundle: a version with a release, in channels.
#[derive(Clone, Debug)]
struct Bundle {
    version: (u64, u64, u64),
    channels: BTreeSet<&'static str>,
    deprecated: bool,
    replaces: Option<(u64, u64, u64)>,
    skips: Option<(u64, u64, u64)>,
    /// Versions below this one upgrade to it.
    skip_below: Option<(u64, u64)>,
    depends: bool,
}

#[derive(Clone, Debug)]
struct Catalog {
    name: &'static str,
    priority: i64,
    unavailable: bool,
    bundles: Vec<Bundle>,
}

#[derive(Clone, Debug)]
struct Question {
    catalogs: Vec<Catalog>,
    range: &'static str,
    channels: Vec<&'static str>,
    installed: Option<(u64, u64, u64)>,
    self_certified: bool,
}

const RANGES: [&str; 6] = ["", ">=1.1.0", "<2.0.0", "1.1.0", ">=1.0.0, <2.0.0", ">=9.0.0"];

fn in_range(range: &str, (major, minor, _): (u64, u64, u64)) -> bool {
    match range {
        ">=1.1.0" => (major, minor) >= (1, 1),
        "<2.0.0" => major < 2,
        "1.1.0" => (major, minor) == (1, 1),
        ">=1.0.0, <2.0.0" => major == 1,
        ">=9.0.0" => false,
        _ => true,
    }
}

fn text((major, minor, release): (u64, u64, u64)) -> String {
    if release == 0 { format!("{major}.{minor}.0") } else { format!("{major}.{minor}.0+{release}") }
}

fn name(version: (u64, u64, u64)) -> String {
    format!("p.v{}", text(version))
}

fn version(dice: &mut Dice) -> (u64, u64, u64) {
    (1 + dice.below(2), dice.below(3), if dice.percent(25) { 1 + dice.below(2) } else { 0 })
}

impl Question {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let mut catalogs = Vec::new();
        for name in ["a", "b", "c"] {
            let mut bundles: BTreeMap<_, Bundle> = BTreeMap::new();
            for _ in 0..dice.below(6) {
                let one = version(&mut dice);
                let edge = |dice: &mut Dice| dice.percent(40).then(|| version(dice));
                bundles.insert(
                    one,
                    Bundle {
                        version: one,
                        channels: ["alpha", "beta"].into_iter().filter(|_| dice.percent(60)).collect(),
                        deprecated: dice.percent(30),
                        replaces: edge(&mut dice),
                        skips: edge(&mut dice),
                        skip_below: dice.percent(30).then(|| (1 + dice.below(2), dice.below(3))),
                        depends: dice.percent(10),
                    },
                );
            }
            let bundles = bundles.into_values().collect();
            let (priority, unavailable) = (i64::try_from(dice.below(2)).unwrap(), dice.percent(15));
            catalogs.push(Catalog { name, priority, unavailable, bundles });
        }
        Self {
            catalogs,
            range: RANGES[usize::try_from(dice.below(6)).unwrap()],
            channels: if dice.percent(30) { vec![*dice.one_of::<&str>(&["alpha", "beta"])] } else { Vec::new() },
            installed: dice.percent(50).then(|| version(&mut dice)),
            self_certified: dice.percent(20),
        }
    }

    fn metas(catalog: &Catalog) -> Vec<Value> {
        if catalog.bundles.is_empty() {
            return Vec::new();
        }
        let mut metas = vec![json!({"schema": "olm.package", "name": "p", "defaultChannel": "alpha"})];
        for channel in ["alpha", "beta"] {
            let entries = catalog.bundles.iter().filter(|one| one.channels.contains(channel)).map(|one| {
                let mut entry = json!({"name": name(one.version)});
                if let Some(replaces) = one.replaces {
                    entry["replaces"] = json!(name(replaces));
                }
                if let Some(skips) = one.skips {
                    entry["skips"] = json!([name(skips)]);
                }
                if let Some((major, minor)) = one.skip_below {
                    entry["skipRange"] = json!(format!("<{major}.{minor}.0"));
                }
                entry
            });
            metas.push(json!({"schema": "olm.channel", "package": "p", "name": channel,
                "entries": entries.collect::<Vec<_>>()}));
        }
        let mut deprecated = Vec::new();
        for one in &catalog.bundles {
            let mut properties =
                vec![json!({"type": "olm.package", "value": {"packageName": "p", "version": text(one.version)}})];
            if one.depends {
                let kind = json!({"group": "example.com", "version": "v1", "kind": "K"});
                properties.push(json!({"type": "olm.gvk.required", "value": kind}));
            }
            if one.deprecated {
                let reference = json!({"schema": "olm.bundle", "name": name(one.version)});
                deprecated.push(json!({"reference": reference, "message": "old"}));
            }
            metas.push(json!({"schema": "olm.bundle", "package": "p", "name": name(one.version), "image": "",
                "properties": properties}));
        }
        metas.push(json!({"schema": "olm.deprecations", "package": "p", "entries": deprecated}));
        metas
    }

    fn problem(&self) -> Problem {
        let catalogs = self.catalogs.iter().map(
            |catalog| json!({"name": catalog.name, "priority": catalog.priority, "unavailable": catalog.unavailable}),
        );
        let installed = self
            .installed
            .iter()
            .map(|version| json!({"package": "p", "name": name(*version), "version": text(*version)}));
        serde_json::from_value(json!({
            "mode": "Single", "required": [{"package": "p", "range": self.range, "channels": self.channels}],
            "installed": installed.collect::<Vec<_>>(), "catalogs": catalogs.collect::<Vec<_>>(),
            "policy": {"upgrades": if self.self_certified { "SelfCertified" } else { "CatalogProvided" }},
        }))
        .unwrap()
    }

    /// The rules of OLM v1, one after the other: the catalog and version, or the refusal.
    fn oracle(&self) -> Result<(&'static str, String), String> {
        let mut found: Vec<(&Catalog, &Bundle)> = Vec::new();
        for catalog in self.catalogs.iter().filter(|catalog| !catalog.unavailable) {
            let mut bundles: Vec<&Bundle> = catalog.bundles.iter().filter(|one| self.fits(one)).collect();
            bundles.sort_by_key(|one| std::cmp::Reverse(one.version));
            bundles.sort_by_key(|one| one.deprecated);
            let Some(best) = bundles.first() else { continue };
            let before = found.last().map(|(_, one)| one.deprecated);
            if best.deprecated && before == Some(false) {
                continue;
            }
            if !best.deprecated && before == Some(true) {
                found.clear();
            }
            found.push((catalog, best));
        }
        found.sort_by_key(|(catalog, _)| -catalog.priority);
        let lower = found.len() > 1 && found[0].0.priority != found[1].0.priority;
        if found.len() == 1 || lower {
            let (catalog, best) = found[0];
            let name = name(best.version);
            let refusal = format!(
                "validating bundle \"{name}\": bundle \"{name}\" has a dependency declared via property \"olm.gvk.required\" \
                 which is currently not supported"
            );
            return if best.depends { Err(refusal) } else { Ok((catalog.name, text(best.version))) };
        }
        let mut words = Vec::new();
        if let Some(installed) = self.installed {
            words.push(format!("error upgrading from currently installed version \"{}\":", text(installed)));
        }
        words.push(if found.is_empty() { "no bundles found" } else { "found bundles" }.to_owned());
        words.push("for package \"p\"".to_owned());
        if !self.range.is_empty() {
            words.push(format!("matching version \"{}\"", self.range));
        }
        if !self.channels.is_empty() {
            words.push(format!("in channels [{}]", self.channels.join(" ")));
        }
        if !found.is_empty() {
            let mut names: Vec<&str> = found.iter().map(|(catalog, _)| catalog.name).collect();
            names.sort_unstable();
            words.push(format!("in multiple catalogs with the same priority [{}]", names.join(" ")));
        }
        Err(words.join(" "))
    }

    fn fits(&self, one: &Bundle) -> bool {
        let listed = |channel: &&str| self.channels.is_empty() || self.channels.contains(channel);
        let in_channel = self.channels.is_empty() || one.channels.iter().any(&listed);
        let succeeds = |installed: (u64, u64, u64)| {
            let entry = one.channels.iter().any(&listed);
            let below = one.skip_below.is_some_and(|below| (installed.0, installed.1) < below);
            entry && (one.replaces == Some(installed) || one.skips == Some(installed) || below)
        };
        let allowed = |installed| self.self_certified || one.version == installed || succeeds(installed);
        in_channel && in_range(self.range, one.version) && self.installed.is_none_or(allowed)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

    #[test]
    fn single_gives_what_olm_v1_gives(seed in any::<u64>()) {
        let question = Question::new(seed);
        let catalogs = question.catalogs.iter().fold(MemoryCatalogs::new(), |all, one| all.with(one.name, Question::metas(one)));
        let answer = match resolve(&question.problem(), &catalogs).unwrap() {
            Answer::Decision(decision) => {
                let member = &decision.members[0];
                Ok((member.catalog.clone().unwrap(), member.version.clone()))
            }
            Answer::Refusal(explanation) => Err(explanation.message),
        };
        let wanted = question.oracle().map(|(catalog, version)| (catalog.to_owned(), version));
        prop_assert_eq!(answer, wanted, "{:#?}", question);
    }
}
