//! Random small questions, by a seed.

use std::collections::BTreeSet;

use chandler_resolver::Hold;
use semver::Version;
use serde_json::{Value, json};

use super::examples::Bundle;

/// A generator of numbers (xorshift); the same seed gives the same question everywhere.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % most.max(1)
    }

    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub(crate) fn one_of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        let index = self.below(list.len() as u64);
        &list[usize::try_from(index).unwrap()]
    }
}

/// A requirement, in the terms of the oracle.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Need {
    Kind(String),
    /// A package at or above a version.
    Package(String, Version),
    Any(Vec<Need>),
    None(Vec<Need>),
}

impl Need {
    fn value(&self) -> Value {
        match self {
            Self::Kind(kind) => json!({"gvk": {"group": "example.com", "version": "v1", "kind": kind}}),
            Self::Package(name, least) => {
                json!({"package": {"packageName": name, "versionRange": format!(">={least}")}})
            }
            Self::Any(parts) => json!({"any": {"constraints": parts.iter().map(Self::value).collect::<Vec<_>>()}}),
            Self::None(parts) => json!({"not": {"constraints": parts.iter().map(Self::value).collect::<Vec<_>>()}}),
        }
    }

    /// The text of the resolver.
    pub(crate) fn text(&self) -> String {
        let list = |parts: &[Need]| parts.iter().map(Need::text).collect::<Vec<_>>().join(" or ");
        match self {
            Self::Kind(kind) => format!("kind example.com/v1/{kind}"),
            Self::Package(name, least) => format!("package {name} >={least}"),
            Self::Any(parts) => format!("any of ({})", list(parts)),
            Self::None(parts) => format!("none of ({})", list(parts)),
        }
    }
}

/// A candidate, in the terms of the oracle.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) catalog: String,
    pub(crate) package: String,
    pub(crate) version: Version,
    pub(crate) channels: BTreeSet<String>,
    pub(crate) deprecated: bool,
    pub(crate) provides: Option<String>,
    pub(crate) needs: Vec<Need>,
    /// Whether it needs a newer Kubernetes.
    pub(crate) limited: bool,
    pub(crate) replaces: Option<Version>,
    pub(crate) skips: Option<Version>,
}

impl Candidate {
    /// The version that it upgrades by name.
    pub(crate) fn upgrades(&self) -> Option<&Version> {
        self.replaces.as_ref().or(self.skips.as_ref())
    }

    pub(crate) fn bundle(&self) -> Bundle {
        let mut bundle = Bundle::new(&self.package, &self.version.to_string());
        bundle.channels.clone_from(&self.channels);
        bundle.deprecated = self.deprecated;
        if let Some(kind) = &self.provides {
            bundle = bundle.provides(kind);
        }
        if self.limited {
            bundle = bundle.min_kubernetes("9.0.0");
        }
        if let Some(version) = &self.replaces {
            bundle = bundle.replaces(&version.to_string());
        }
        if let Some(version) = &self.skips {
            bundle = bundle.skips(&version.to_string());
        }
        for need in &self.needs {
            bundle = match need {
                Need::Kind(kind) => bundle.requires_kind(kind),
                Need::Package(name, least) => bundle.requires_package(name, &format!(">={least}")),
                _ => bundle.property("olm.constraint", need.value()),
            };
        }
        // The resolver reads kinds, then packages, then constraints.
        bundle
    }
}

/// A question.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    pub(crate) candidates: Vec<Candidate>,
    /// The packages that are asked for, each with a lowest version and channels.
    pub(crate) required: Vec<(String, Version, Vec<String>)>,
    /// The package, version and hold of what is installed.
    pub(crate) installed: Option<(String, Version, Hold)>,
    pub(crate) served: BTreeSet<String>,
    pub(crate) self_certified: bool,
}

pub(crate) const CATALOGS: [(&str, i32); 2] = [("c", 0), ("d", 1)];

fn version(dice: &mut Dice) -> Version {
    Version::new(1 + dice.below(2), dice.below(2), 0)
}

fn need(dice: &mut Dice, packages: &[String], kinds: &[String], depth: u32) -> Need {
    match dice.below(if depth == 0 { 10 } else { 6 }) {
        0..3 => Need::Kind(dice.one_of(kinds).clone()),
        3..6 => Need::Package(dice.one_of(packages).clone(), version(dice)),
        6..8 => Need::Any((0..2).map(|_| need(dice, packages, kinds, depth + 1)).collect()),
        _ => Need::None(vec![need(dice, packages, kinds, depth + 1)]),
    }
}

impl Random {
    /// A question over up to `packages` packages with at most `most` candidates.
    pub(crate) fn new(seed: u64, packages: usize, most: usize) -> Self {
        let mut dice = Dice::new(seed);
        let packages: Vec<String> = (0..packages).map(|index| format!("p{index:02}")).collect();
        let kinds: Vec<String> = (0..3.max(packages.len() / 2)).map(|index| format!("K{index}")).collect();
        let mut candidates: Vec<Candidate> = Vec::new();
        for package in &packages {
            for (catalog, _) in CATALOGS {
                if catalog == "d" && !dice.percent(20) {
                    continue;
                }
                let mut before: Option<Version> = None;
                for (major, minor) in [(1, 0), (1, 1), (2, 0), (2, 1)] {
                    if dice.percent(45) || candidates.len() >= most {
                        continue;
                    }
                    let mut channels = BTreeSet::new();
                    for channel in ["edge", "stable"] {
                        if dice.percent(65) {
                            channels.insert(channel.to_owned());
                        }
                    }
                    if channels.is_empty() {
                        channels.insert("stable".to_owned());
                    }
                    let version = Version::new(major, minor, 0);
                    let needs = (0..2).filter(|_| dice.percent(40)).count();
                    candidates.push(Candidate {
                        catalog: catalog.to_owned(),
                        package: package.clone(),
                        channels,
                        deprecated: dice.percent(15),
                        provides: dice.percent(35).then(|| dice.one_of(&kinds).clone()),
                        needs: (0..needs).map(|_| need(&mut dice, &packages, &kinds, 0)).collect(),
                        limited: dice.percent(10),
                        replaces: before.filter(|_| dice.percent(75)),
                        skips: None,
                        version: version.clone(),
                    });
                    // Not drawn, so that a seed gives the question that it gave before.
                    if candidates.len() % 4 == 3
                        && let Some(last) = candidates.last_mut()
                    {
                        last.skips = last.replaces.take();
                    }
                    before = Some(version);
                }
            }
        }
        let mut required: Vec<(String, Version, Vec<String>)> = Vec::new();
        for _ in 0..=dice.below(2) {
            let package = dice.one_of(&packages).clone();
            let channels = if dice.percent(15) { vec!["edge".to_owned()] } else { Vec::new() };
            if required.iter().all(|(name, _, _)| *name != package) {
                let least = if dice.percent(60) { Version::new(1, 0, 0) } else { version(&mut dice) };
                required.push((package, least, channels));
            }
        }
        let installed = if candidates.is_empty() || dice.percent(55) {
            None
        } else {
            let one = dice.one_of(&candidates).clone();
            // Not drawn, so that a seed gives the question that it gave before.
            let other = [Hold::Flexible, Hold::Yielding, Hold::Newest][candidates.len() % 3];
            Some((one.package, one.version, if dice.percent(50) { other } else { Hold::Pinned }))
        };
        let served = kinds.iter().filter(|_| dice.percent(10)).cloned().collect();
        Self { candidates, required, installed, served, self_certified: dice.percent(25) }
    }

    /// The bundles of a catalog.
    pub(crate) fn bundles(&self, catalog: &str) -> Vec<Bundle> {
        self.candidates.iter().filter(|one| one.catalog == catalog).map(Candidate::bundle).collect()
    }

    /// The problem as JSON.
    pub(crate) fn problem(&self) -> Value {
        let required = self.required.iter().map(|(package, least, channels)| {
            json!({"package": package, "range": format!(">={least}"), "channels": channels})
        });
        let installed = self.installed.iter().map(|(package, version, hold)| {
            json!({"package": package, "name": format!("{package}.v{version}"), "version": version.to_string(), "hold": hold})
        });
        let kinds = self.served.iter().map(|kind| json!({"group": "example.com", "version": "v1", "kind": kind}));
        let catalogs = CATALOGS.map(|(name, priority)| json!({"name": name, "priority": priority}));
        json!({
            "required": required.collect::<Vec<_>>(), "installed": installed.collect::<Vec<_>>(), "catalogs": catalogs,
            "cluster": {"kubernetes": "1.36.0", "kinds": kinds.collect::<Vec<_>>()},
            "policy": {"upgrades": if self.self_certified { "SelfCertified" } else { "CatalogProvided" }},
        })
    }
}
