//! The mode `Single` on published catalogs: 10,000 random questions, each also answered by the rules of OLM v1, one after the other.
//!
//! The catalogs are the shared fixtures and the ones that `CHANDLER_CATALOGS` names: directories or files of YAML, or of JSON as
//! `opm render -o json` prints it, with `:` between them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot continue panics")]

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
};

use chandler_resolver::{Answer, MemoryCatalogs, Problem, resolve};
use chandler_test_support::needs::fixture;
use semver::Version;
use serde_json::{Value, json};

use crate::support::random::Dice;

const QUESTIONS: u64 = 10_000;

/// The properties that OLM v1 refuses.
const REFUSED: [&str; 3] = ["olm.package.required", "olm.gvk.required", "olm.constraint"];

/// A catalog in the terms of the oracle: packages by name.
struct Catalog {
    name: String,
    metas: Vec<Value>,
    packages: BTreeMap<String, Package>,
}

#[derive(Default)]
struct Package {
    bundles: BTreeMap<String, Bundle>,
    /// The entries by channel.
    channels: BTreeMap<String, Vec<Value>>,
}

struct Bundle {
    name: String,
    text: String,
    version: Version,
    deprecated: bool,
    refused: Option<String>,
}

fn documents(path: &Path) -> Vec<Value> {
    if path.is_dir() {
        let mut children: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        children.sort();
        return children.iter().flat_map(|child| documents(child)).collect();
    }
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("yaml" | "yml") => serde_saphyr::from_multiple(&fs::read_to_string(path).unwrap()).unwrap(),
        Some("json" | "jsonl") => {
            let bytes = fs::read(path).unwrap();
            serde_json::Deserializer::from_slice(&bytes).into_iter().map(Result::unwrap).collect()
        }
        _ => Vec::new(),
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

impl Catalog {
    fn read(name: String, path: &Path) -> Self {
        let metas = documents(path);
        let mut packages: BTreeMap<String, Package> = BTreeMap::new();
        for meta in &metas {
            let package = packages.entry(text(meta, "package").to_owned()).or_default();
            match text(meta, "schema") {
                "olm.channel" => {
                    package.channels.insert(text(meta, "name").to_owned(), meta["entries"].as_array().unwrap().clone());
                }
                "olm.bundle" => {
                    let Some(bundle) = Bundle::read(meta) else { continue };
                    package.bundles.insert(bundle.name.clone(), bundle);
                }
                _ => {}
            }
        }
        let deprecations = metas.iter().filter(|meta| text(meta, "schema") == "olm.deprecations");
        for meta in deprecations {
            let bundles = &mut packages.get_mut(text(meta, "package")).unwrap().bundles;
            for entry in meta["entries"].as_array().unwrap() {
                if let Some(bundle) = bundles.get_mut(text(&entry["reference"], "name")) {
                    bundle.deprecated |= text(&entry["reference"], "schema") == "olm.bundle";
                }
            }
        }
        packages.retain(|_, package| !package.bundles.is_empty());
        Self { name, metas, packages }
    }
}

impl Bundle {
    /// The bundle, unless its version is none.
    fn read(meta: &Value) -> Option<Self> {
        let properties = meta["properties"].as_array()?;
        let package = properties.iter().find(|property| text(property, "type") == "olm.package")?;
        let version = text(&package["value"], "version");
        let refused = properties.iter().map(|property| text(property, "type")).find(|kind| REFUSED.contains(kind));
        Some(Self {
            name: text(meta, "name").to_owned(),
            text: version.to_owned(),
            version: version.parse().ok()?,
            deprecated: false,
            refused: refused.map(str::to_owned),
        })
    }

    /// Version and release (K7).
    fn order(&self, other: &Self) -> Ordering {
        let release = |version: &Version| -> Vec<(u8, u64, String)> {
            let parts = version.build.as_str().split('.').filter(|part| !part.is_empty());
            parts
                .map(|part| part.parse().map_or_else(|_| (1, 0, part.to_owned()), |number| (0, number, String::new())))
                .collect()
        };
        let by_version = self.version.cmp_precedence(&other.version);
        by_version.then_with(|| release(&self.version).cmp(&release(&other.version)))
    }
}

/// One comparison of a range.
#[derive(Clone, Debug)]
struct Comparison {
    operator: String,
    version: Version,
}

impl Comparison {
    fn holds(&self, found: &Version) -> bool {
        let wanted = &self.version;
        let order = found.cmp_precedence(wanted);
        match self.operator.as_str() {
            "" | "=" => order.is_eq(),
            ">=" => order.is_ge(),
            "<" => order.is_lt(),
            "!=" => order.is_ne(),
            "~" => order.is_ge() && (found.major, found.minor) == (wanted.major, wanted.minor),
            "^" if wanted.major > 0 => order.is_ge() && found.major == wanted.major,
            "^" if wanted.minor > 0 => order.is_ge() && (found.major, found.minor) == (0, wanted.minor),
            "^" => order.is_ge() && (found.major, found.minor, found.patch) == (0, 0, wanted.patch),
            other => panic!("no operator {other}"),
        }
    }
}

/// Whether a version is in a range in the syntax of blang/semver, or `None` if the range has a rare form.
fn in_skip_range(range: &str, version: &Version) -> Option<bool> {
    let mut any = false;
    for all in range.split("||") {
        let mut holds = true;
        let mut operator = String::new();
        for word in all.split_whitespace() {
            let digits = word.find(|c: char| c.is_ascii_digit()).unwrap_or(word.len());
            operator.push_str(&word[..digits]);
            if digits == word.len() {
                continue;
            }
            let wanted: Version = word[digits..].parse().ok()?;
            let order = version.cmp_precedence(&wanted);
            holds &= match operator.as_str() {
                "" | "=" | "==" => order.is_eq(),
                ">" => order.is_gt(),
                ">=" => order.is_ge(),
                "<" => order.is_lt(),
                "<=" => order.is_le(),
                "!" | "!=" => order.is_ne(),
                _ => return None,
            };
            operator.clear();
        }
        any |= holds;
    }
    Some(any)
}

struct Question<'a> {
    catalogs: Vec<(&'a Catalog, i64)>,
    package: String,
    range: Vec<Comparison>,
    channels: Vec<String>,
    installed: Option<&'a Bundle>,
    self_certified: bool,
}

impl<'a> Question<'a> {
    fn new(seed: u64, all: &'a [Catalog]) -> Self {
        let mut dice = Dice::new(seed + 1);
        let names: BTreeSet<&String> = all.iter().flat_map(|catalog| catalog.packages.keys()).collect();
        let names: Vec<&String> = names.into_iter().collect();
        let package = (*dice.one_of(&names)).clone();
        let mut catalogs: Vec<(&Catalog, i64)> = Vec::new();
        for catalog in all {
            if dice.percent(40) {
                catalogs.push((catalog, if dice.percent(50) { 0 } else { i64::try_from(dice.below(4)).unwrap() }));
            }
        }
        let of_package: Vec<&Package> = all.iter().filter_map(|catalog| catalog.packages.get(&package)).collect();
        let bundles: Vec<&Bundle> = of_package.iter().flat_map(|package| package.bundles.values()).collect();
        let mut channels: Vec<String> =
            of_package.iter().flat_map(|package| package.channels.keys()).cloned().collect();
        channels.push("no-such-channel".to_owned());
        let mut comparison = |operators: &[&str]| {
            let mut version = dice.one_of(&bundles).version.clone();
            version.build = semver::BuildMetadata::EMPTY;
            if dice.percent(30) {
                version.patch += 1;
            }
            Comparison { operator: (*dice.one_of(operators)).to_owned(), version }
        };
        let mut range = vec![comparison(&["", "=", ">=", "<", "!=", "~", "^"]), comparison(&[">=", "<"])];
        range.truncate(usize::try_from(dice.below(3)).unwrap());
        let count = usize::try_from(dice.below(5)).unwrap().saturating_sub(2);
        Self {
            catalogs,
            range,
            channels: (0..count).map(|_| dice.one_of(&channels).clone()).collect::<BTreeSet<_>>().into_iter().collect(),
            installed: dice.percent(60).then(|| *dice.one_of(&bundles)),
            self_certified: dice.percent(15),
            package,
        }
    }

    fn range(&self) -> String {
        let parts = self.range.iter().map(|one| format!("{}{}", one.operator, one.version));
        parts.collect::<Vec<_>>().join(", ")
    }

    fn problem(&self) -> Problem {
        let catalogs: Vec<Value> = self
            .catalogs
            .iter()
            .map(|(catalog, priority)| json!({"name": catalog.name, "priority": priority}))
            .collect();
        let installed: Vec<Value> = self
            .installed
            .iter()
            .map(|bundle| json!({"package": self.package, "name": bundle.name, "version": bundle.text}))
            .collect();
        serde_json::from_value(json!({
            "mode": "Single", "required": [{"package": self.package, "range": self.range(), "channels": self.channels}],
            "installed": installed, "catalogs": catalogs,
            "policy": {"upgrades": if self.self_certified { "SelfCertified" } else { "CatalogProvided" }},
        }))
        .unwrap()
    }

    /// Whether some channel that counts has an edge from what is installed, or `None` if a range has a rare form.
    fn succeeds(&self, package: &Package, bundle: &Bundle, installed: &Bundle) -> Option<bool> {
        for (channel, entries) in &package.channels {
            if !self.channels.is_empty() && !self.channels.contains(channel) {
                continue;
            }
            for entry in entries.iter().filter(|entry| text(entry, "name") == bundle.name) {
                let skips = entry["skips"].as_array().into_iter().flatten().any(|name| *name == json!(installed.name));
                let range = text(entry, "skipRange");
                if text(entry, "replaces") == installed.name
                    || skips
                    || (!range.is_empty() && in_skip_range(range, &installed.version)?)
                {
                    return Some(true);
                }
            }
        }
        Some(false)
    }

    /// As Masterminds: a range has pre-releases only if it names one.
    fn in_range(&self, version: &Version) -> bool {
        let pre = self.range.is_empty() || self.range.iter().any(|one| !one.version.pre.is_empty());
        (pre || version.pre.is_empty()) && self.range.iter().all(|one| one.holds(version))
    }

    fn fits(&self, package: &Package, bundle: &Bundle) -> Option<bool> {
        let in_channel = self.channels.is_empty()
            || self
                .channels
                .iter()
                .filter_map(|channel| package.channels.get(channel))
                .flatten()
                .any(|entry| text(entry, "name") == bundle.name);
        let follows = match self.installed {
            Some(installed) if !self.self_certified => {
                installed.order(bundle).is_eq() || self.succeeds(package, bundle, installed)?
            }
            _ => true,
        };
        Some(in_channel && follows && self.in_range(&bundle.version))
    }

    /// The rules of OLM v1 (facts K1 to K8), one after the other: catalog and bundle, or the refusal.
    fn oracle(&self) -> Option<Result<(String, String), String>> {
        let mut found: Vec<(&Catalog, i64, &Bundle)> = Vec::new();
        let mut catalogs = self.catalogs.clone();
        catalogs.sort_by_key(|(catalog, _)| &catalog.name);
        for (catalog, priority) in catalogs {
            let Some(package) = catalog.packages.get(&self.package) else { continue };
            let mut bundles = Vec::new();
            for bundle in package.bundles.values() {
                if self.fits(package, bundle)? {
                    bundles.push(bundle);
                }
            }
            bundles.sort_by(|one, other| one.deprecated.cmp(&other.deprecated).then_with(|| other.order(one)));
            let Some(best) = bundles.first() else { continue };
            match found.last().map(|(_, _, bundle)| bundle.deprecated) {
                Some(false) if best.deprecated => continue,
                Some(true) if !best.deprecated => found.clear(),
                _ => {}
            }
            found.push((catalog, priority, best));
        }
        found.sort_by_key(|(_, priority, _)| -priority);
        let (package, range) = (&self.package, self.range());
        if let Some((catalog, priority, bundle)) = found.first()
            && found.get(1).is_none_or(|(_, other, _)| other != priority)
        {
            let name = &bundle.name;
            return Some(match &bundle.refused {
                Some(property) => Err(format!(
                    "validating bundle {name:?}: bundle {name:?} has a dependency declared via property {property:?} which is \
                     currently not supported"
                )),
                None => Ok((catalog.name.clone(), name.clone())),
            });
        }
        let mut words = Vec::new();
        if let Some(installed) = self.installed {
            words.push(format!("error upgrading from currently installed version {:?}:", installed.text));
        }
        words.push(if found.is_empty() { "no bundles found" } else { "found bundles" }.to_owned());
        words.push(format!("for package {package:?}"));
        if !range.is_empty() {
            words.push(format!("matching version {range:?}"));
        }
        if !self.channels.is_empty() {
            words.push(format!("in channels [{}]", self.channels.join(" ")));
        }
        if !found.is_empty() {
            let mut names: Vec<&str> = found.iter().map(|(catalog, ..)| catalog.name.as_str()).collect();
            names.sort_unstable();
            words.push(format!("in multiple catalogs with the same priority [{}]", names.join(" ")));
        }
        Some(Err(words.join(" ")))
    }
}

#[test]
fn published_catalogs_give_what_olm_v1_gives() {
    let Some(fixtures) = fixture("catalogs") else { return };
    let mut places: Vec<PathBuf> = fs::read_dir(fixtures).unwrap().map(|entry| entry.unwrap().path()).collect();
    if let Some(more) = env::var_os("CHANDLER_CATALOGS") {
        places = env::split_paths(&more).collect();
    }
    places.sort();
    let catalogs: Vec<Catalog> =
        places.iter().enumerate().map(|(number, path)| Catalog::read(format!("catalog-{number}"), path)).collect();
    let memory = catalogs.iter().fold(MemoryCatalogs::new(), |all, one| all.with(&one.name, one.metas.clone()));
    let (mut decisions, mut refusals, mut rare) = (0, 0, 0);
    for seed in 0..QUESTIONS {
        let question = Question::new(seed, &catalogs);
        let Some(wanted) = question.oracle() else {
            rare += 1;
            continue;
        };
        let answer = match resolve(&question.problem(), &memory).unwrap() {
            Answer::Decision(decision) => {
                let member = &decision.members[0];
                Ok((member.catalog.clone().unwrap(), member.name.clone()))
            }
            Answer::Refusal(explanation) => Err(explanation.message),
        };
        assert_eq!(answer, wanted, "question {seed}: {:?}", question.problem());
        *(if answer.is_ok() { &mut decisions } else { &mut refusals }) += 1;
    }
    println!("{decisions} decisions, {refusals} refusals, {rare} not asked");
    assert!(decisions > QUESTIONS / 20 && refusals > QUESTIONS / 20 && rare < QUESTIONS / 20);
}
