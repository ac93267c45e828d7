//! An index gives the resolver the same answers as the documents that it was built from.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot continue panics")]

use std::{fs, sync::Arc};

use chandler_catalog::{CatalogError, Index, IndexCatalogs, Indexes, Item, Limits, lint, read};
use chandler_core::{Content, MemoryContent};
use chandler_resolver::{
    Catalogs as _, Installed, Kind, MemoryCatalogs, Mode, Problem, Required, ResolveError, Source, resolve,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{
    examples::{Bundle, metas},
    random::{CATALOGS, Random},
};

/// The documents of a file-based catalog as JSON.
fn documents(content: &dyn Content) -> Vec<Value> {
    let mut documents = Vec::new();
    read(content, &Limits::default(), |item| {
        if let Item::Meta(meta) = item {
            let json = meta.span.json(content, &Limits::default()).unwrap();
            documents.push(serde_json::from_slice(&json).unwrap());
        }
        Ok::<_, CatalogError>(())
    })
    .unwrap();
    documents
}

fn content(metas: &[Value]) -> MemoryContent {
    let text: Vec<String> = metas.iter().map(Value::to_string).collect();
    MemoryContent::new([("catalog.json", text.join("\n"))])
}

fn index(indexes: &Indexes, content: &dyn Content) -> Arc<Index> {
    Arc::new(indexes.get_or_build(content, &Limits::default()).unwrap())
}

/// One set of catalogs, read both ways.
fn both(catalogs: Vec<(Source, Vec<Value>)>) -> (MemoryCatalogs, IndexCatalogs) {
    let directory = tempfile::tempdir().unwrap();
    let indexes = Indexes::open(directory.path().join("indexes")).unwrap();
    let (mut memory, mut on_disk) = (MemoryCatalogs::new(), IndexCatalogs::new());
    for (source, metas) in catalogs {
        on_disk = on_disk.with(source.clone(), index(&indexes, &content(&metas)));
        memory = memory.with(&source.name, metas);
    }
    (memory, on_disk)
}

fn source(name: &str, priority: i32) -> Source {
    Source { name: name.to_owned(), priority, ..Source::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn random_catalogs(seed in any::<u64>(), packages in 1_usize..6) {
        let question = Random::new(seed, packages, 14);
        let problem: Problem = serde_json::from_value(question.problem()).unwrap();
        let catalogs = CATALOGS.map(|(name, priority)| (source(name, priority), metas(&question.bundles(name))));
        let (memory, indexed) = both(catalogs.into());
        match resolve(&problem, &indexed) {
            // Documents in memory are not checked. Half of the questions lead to channels that break the rules.
            Err(ResolveError::Catalog(error)) => prop_assert!(breaks_rules(&indexed), "{error}: {question:#?}"),
            answer => prop_assert_eq!(resolve(&problem, &memory), answer, "{:#?}", question),
        }
    }
}

fn breaks_rules(catalogs: &IndexCatalogs) -> bool {
    catalogs.indexes().any(|(_, index)| !lint::errors(index, 1).unwrap().is_empty())
}

/// As `chandler catalog lint` refuses them; OLM v1 looks at no channel as a whole.
#[test]
fn channels_that_cannot_be_followed_are_refused_with_their_line() {
    let bundles = |replaces: &str| [Bundle::new("a", "1.0.0"), Bundle::new("a", "1.1.0").replaces(replaces)];
    let ask = |bundles: &[Bundle], mode: Mode| {
        let (_, indexed) = both(vec![(source("c", 0), metas(bundles))]);
        let required = vec![Required { package: "a".to_owned(), ..Required::default() }];
        resolve(&Problem { required, mode, catalogs: indexed.sources(), ..Problem::default() }, &indexed)
    };
    let sound = ask(&bundles("1.0.0"), Mode::Default).unwrap();
    assert_eq!(sound.decision().unwrap().members[0].version, "1.1.0");
    let broken = bundles("0.9.0");
    let error = ask(&broken, Mode::Default).unwrap_err().to_string();
    for part in ["\"c\"", "package \"a\"", "catalog.json:4", "a.v1.0.0", "a.v1.1.0"] {
        assert!(error.contains(part), "{part:?} is not in {error}");
    }
    let single = ask(&broken, Mode::Single).unwrap();
    assert_eq!(single.decision().unwrap().members[0].version, "1.1.0");
}

/// A ClusterServiceVersion counts where the properties are silent, whether it is metadata or a manifest.
#[test]
fn what_stays_in_the_files_counts() {
    let object = |manifest: Value| json!({"data": base64(&manifest.to_string())});
    let manifest = json!({"kind": "ClusterServiceVersion", "spec": {
        "customresourcedefinitions": {"required": [{"name": "dbs.example.com", "version": "v1", "kind": "Db"}]}}});
    let metadata = json!({"crdDescriptions": {"owned": [{"name": "dbs.example.com", "version": "v1", "kind": "Db"}]},
        "minKubeVersion": "1.30.0"});
    let bundles = [
        Bundle::new("shop", "1.0.0").property("olm.bundle.object", object(manifest)),
        Bundle::new("database", "1.0.0").property("olm.csv.metadata", metadata.clone()),
        Bundle::new("database", "2.0.0")
            .replaces("1.0.0")
            .property("olm.csv.metadata", json!({"minKubeVersion": "1.99.0"})),
    ];
    let (memory, indexed) = both(vec![(source("c", 0), metas(&bundles))]);
    let problem = Problem {
        required: vec![Required { package: "shop".to_owned(), ..Required::default() }],
        catalogs: indexed.sources(),
        cluster: chandler_resolver::Cluster { kubernetes: Some("1.36.0".to_owned()), ..Default::default() },
        ..Problem::default()
    };
    let answer = resolve(&problem, &indexed).unwrap();
    assert_eq!(answer, resolve(&problem, &memory).unwrap());
    assert_eq!(answer.decision().unwrap().member("database").unwrap().version, "1.0.0");
    let kind = Kind::new("example.com", "v1", "Db");
    assert_eq!(indexed.providers("c", &kind).unwrap(), memory.providers("c", &kind).unwrap());
    assert_eq!(indexed.packages("c").unwrap(), memory.packages("c").unwrap());
}

fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let sextets = text.as_bytes().chunks(3).flat_map(|chunk| {
        let number = (0..3).fold(0_usize, |number, at| number << 8 | usize::from(*chunk.get(at).unwrap_or(&0)));
        (0..4).map(move |at| if at <= chunk.len() { char::from(DIGITS[number >> (18 - 6 * at) & 63]) } else { '=' })
    });
    sextets.collect()
}

/// After the index is opened, every byte that belongs to other packages is destroyed.
#[test]
fn a_question_about_one_package_reads_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let indexes = Indexes::open(directory.path().join("indexes")).unwrap();
    let of = |package: &str| {
        let next = Bundle::new(package, "1.1.0").replaces("1.0.0").provides(&format!("Kind-of-{package}"));
        [Bundle::new(package, "1.0.0"), next]
    };
    let bundles: Vec<Bundle> = ["alpha", "beta", "gamma"].into_iter().flat_map(of).collect();
    let content = content(&metas(&bundles));
    let index = index(&indexes, &content);
    let catalogs = IndexCatalogs::new().with(source("c", 0), index);
    let path = directory.path().join("indexes").join(format!("{}.index", content.digest().hex()));
    let mut bytes = fs::read(&path).unwrap();
    for name in ["alpha", "gamma"] {
        // Values hold the JSON of a document; keys stay, because a search compares some of them.
        let needle = format!("{{\"bundle\":{{\"name\":\"{name}");
        let places: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(needle.as_bytes())).collect();
        assert_eq!(places.len(), 2, "{name}");
        for at in places {
            bytes[at..at + needle.len()].fill(b'?');
        }
    }
    // In place: the open index reads the same file.
    fs::write(&path, bytes).unwrap();
    let ask = |package: &str| {
        let required = vec![Required { package: package.to_owned(), ..Required::default() }];
        resolve(&Problem { required, catalogs: catalogs.sources(), ..Problem::default() }, &catalogs)
    };
    assert_eq!(ask("beta").unwrap().decision().unwrap().members[0].version, "1.1.0");
    let Err(ResolveError::Catalog(error)) = ask("alpha") else { panic!("alpha was not read") };
    assert!(error.to_string().contains("damaged"), "{error}");
}

#[test]
fn a_package_with_a_document_that_cannot_be_decoded_is_an_error_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let indexes = Indexes::open(directory.path().join("indexes")).unwrap();
    let text = "schema: olm.package\nname: a\n---\nschema: olm.channel\npackage: a\nname: stable\nentries: 7\n";
    let index = index(&indexes, &MemoryContent::new([("a.yaml", text)]));
    let catalogs = IndexCatalogs::new().with(source("c", 0), index);
    let error = catalogs.package("c", "a").unwrap_err().to_string();
    assert!(error.contains("a.yaml:7") && error.contains("\"a\""), "{error}");
    assert!(catalogs.package("c", "b").unwrap().is_none());
    assert!(catalogs.package("d", "b").unwrap_err().to_string().contains("no such catalog"));
}

mod fixtures {
    //! Questions about the catalogs of the fixtures, against OLM v1's rules in the most obvious words.

    use std::path::PathBuf;

    use chandler_catalog::Directory;
    use chandler_resolver::{Answer, Policy, Upgrades};
    use chandler_test_support::needs::fixture;
    use semver::Version;

    use super::*;
    use crate::support::random::Dice;

    /// The documents of each catalog of the fixtures, and those that the vectors of OLM v1 are about.
    fn catalogs() -> Option<Vec<(String, Vec<Value>)>> {
        let root = fixture("catalogs")?;
        let mut files: Vec<PathBuf> = Vec::new();
        let mut open = vec![root];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { open.push(path) } else { files.push(path) }
            }
        }
        files.sort();
        let mut catalogs = Vec::new();
        for file in files {
            let directory = tempfile::tempdir().unwrap();
            fs::copy(&file, directory.path().join(file.file_name().unwrap())).unwrap();
            let content = Directory::open(directory.path(), 10).unwrap();
            catalogs.push((file.file_stem().unwrap().to_str().unwrap().to_owned(), documents(&content)));
        }
        let vectors = fs::read(fixture("vectors/resolve.json")?).unwrap();
        let vectors: Value = serde_json::from_slice(&vectors).unwrap();
        catalogs.push(("generated".to_owned(), vectors["GEN"].as_array().unwrap().clone()));
        for case in vectors["cases"].as_array().unwrap() {
            for (name, catalog) in case["catalogs"].as_object().unwrap() {
                if let Some(blobs) = catalog["blobs"].as_array().filter(|blobs| !blobs.is_empty()) {
                    catalogs.push((format!("{name}-{}", catalogs.len()), blobs.clone()));
                }
            }
        }
        Some(catalogs)
    }

    /// A range of the questions: a comparison of OLM v1's language that needs no parser.
    #[derive(Clone, Debug)]
    enum Range {
        All,
        Is(Version),
        AtLeast(Version),
        Below(Version),
    }

    impl Range {
        fn text(&self) -> String {
            match self {
                Self::All => String::new(),
                Self::Is(version) => version.to_string(),
                Self::AtLeast(version) => format!(">={version}"),
                Self::Below(version) => format!("<{version}"),
            }
        }

        /// Build metadata is ignored, and pre-releases need a range that names one.
        fn matches(&self, version: &Version) -> bool {
            let bound = match self {
                Self::All => return true,
                Self::Is(bound) | Self::AtLeast(bound) | Self::Below(bound) => bound,
            };
            if !version.pre.is_empty() && bound.pre.is_empty() {
                return false;
            }
            match (self, version.cmp_precedence(bound)) {
                (Self::Is(_), order) => order.is_eq(),
                (Self::AtLeast(_), order) => order.is_ge(),
                (_, order) => order.is_lt(),
            }
        }
    }

    /// Every part, separated by spaces, must hold.
    fn in_skip_range(range: &str, version: &Version) -> bool {
        range.split_whitespace().all(|part| {
            let digits = part.find(|c: char| c.is_ascii_digit()).unwrap();
            let order = version.cmp_precedence(&part[digits..].parse().unwrap());
            match &part[..digits] {
                "<" => order.is_lt(),
                "<=" => order.is_le(),
                ">" => order.is_gt(),
                ">=" => order.is_ge(),
                _ => order.is_eq(),
            }
        })
    }

    struct Question<'a> {
        catalogs: Vec<(Source, &'a [Value])>,
        package: String,
        range: Range,
        channels: Vec<String>,
        installed: Option<(String, Version)>,
        self_certified: bool,
    }

    fn of_schema<'a>(metas: &'a [Value], schema: &'a str, package: &'a str) -> impl Iterator<Item = &'a Value> {
        let field = if schema == "olm.package" { "name" } else { "package" };
        metas.iter().filter(move |meta| meta["schema"] == schema && meta[field] == package)
    }

    fn version(bundle: &Value) -> Version {
        let properties = bundle["properties"].as_array().unwrap();
        let property = properties.iter().find(|property| property["type"] == "olm.package").unwrap();
        property["value"]["version"].as_str().unwrap().parse().unwrap()
    }

    /// The order of versions with a release in the build metadata (K7); metadata of the fixtures is numeric or absent.
    fn key(version: &Version) -> (Version, Option<u64>) {
        let release = (!version.build.is_empty()).then(|| version.build.as_str().parse().unwrap());
        let mut plain = version.clone();
        plain.build = semver::BuildMetadata::EMPTY;
        (plain, release)
    }

    impl Question<'_> {
        fn problem(&self) -> Problem {
            let installed = |(name, version): &(String, Version)| Installed {
                package: self.package.clone(),
                name: name.clone(),
                version: version.to_string(),
                ..Installed::default()
            };
            let upgrades = if self.self_certified { Upgrades::SelfCertified } else { Upgrades::CatalogProvided };
            Problem {
                mode: Mode::Single,
                required: vec![Required {
                    package: self.package.clone(),
                    range: self.range.text(),
                    channels: self.channels.clone(),
                    ..Required::default()
                }],
                installed: self.installed.iter().map(installed).collect(),
                catalogs: self.catalogs.iter().map(|(source, _)| source.clone()).collect(),
                policy: Policy { upgrades, ..Policy::default() },
                ..Problem::default()
            }
        }

        fn entries(&self, metas: &[Value]) -> Vec<Value> {
            let channels = of_schema(metas, "olm.channel", &self.package);
            let chosen = channels.filter(|channel| {
                self.channels.is_empty() || self.channels.iter().any(|name| channel["name"] == name.as_str())
            });
            chosen.flat_map(|channel| channel["entries"].as_array().unwrap().clone()).collect()
        }

        /// K5.
        fn succeeds(&self, metas: &[Value], bundle: &str, from: &(String, Version)) -> bool {
            self.entries(metas).iter().filter(|entry| entry["name"] == bundle).any(|entry| {
                let skips =
                    entry["skips"].as_array().is_some_and(|skips| skips.iter().any(|it| *it == from.0.as_str()));
                let range = entry["skipRange"].as_str().filter(|range| !range.is_empty());
                entry["replaces"] == from.0.as_str()
                    || skips
                    || range.is_some_and(|range| in_skip_range(range, &from.1))
            })
        }

        /// The best bundle of a catalog (K1, K2): whether it is deprecated, its version, name and requirement that is refused.
        fn best(&self, metas: &[Value]) -> Option<(bool, Version, String)> {
            let deprecations: Vec<&Value> = of_schema(metas, "olm.deprecations", &self.package)
                .flat_map(|it| it["entries"].as_array().unwrap())
                .collect();
            let mut fitting = Vec::new();
            for bundle in of_schema(metas, "olm.bundle", &self.package) {
                let (name, version) = (bundle["name"].as_str().unwrap(), version(bundle));
                let in_channel = self.channels.is_empty() || self.entries(metas).iter().any(|it| it["name"] == name);
                let upgrade = self.self_certified
                    || self
                        .installed
                        .as_ref()
                        .is_none_or(|from| key(&from.1) == key(&version) || self.succeeds(metas, name, from));
                if in_channel && upgrade && self.range.matches(&version) {
                    let is_it = |entry: &&&Value| {
                        entry["reference"]["schema"] == "olm.bundle" && entry["reference"]["name"] == name
                    };
                    fitting.push((deprecations.iter().any(|entry| is_it(&entry)), version, name.to_owned()));
                }
            }
            fitting.sort_by(|one, other| one.0.cmp(&other.0).then_with(|| key(&other.1).cmp(&key(&one.1))));
            fitting.into_iter().next()
        }

        /// OLM v1's choice as catalog and bundle, or its refusal (K3, K4).
        fn oracle(&self) -> Result<(String, String), String> {
            let mut found: Vec<(&Source, bool, String)> = Vec::new();
            for (source, metas) in &self.catalogs {
                let Some((deprecated, _, name)) = self.best(metas) else { continue };
                found.push((source, deprecated, name));
            }
            if found.iter().any(|(_, deprecated, _)| !deprecated) {
                found.retain(|(_, deprecated, _)| !deprecated);
            }
            found.sort_by_key(|(source, _, _)| (-source.priority, source.name.clone()));
            let tops = found.iter().filter(|(source, _, _)| source.priority == found[0].0.priority).count();
            if tops == 1 {
                return Ok((found[0].0.name.clone(), found[0].2.clone()));
            }
            let mut text = Vec::new();
            if let Some((_, version)) = &self.installed {
                text.push(format!("error upgrading from currently installed version \"{version}\": "));
            }
            text.push(format!(
                "{} for package \"{}\"",
                if tops == 0 { "no bundles found" } else { "found bundles" },
                self.package
            ));
            if !matches!(self.range, Range::All) {
                text.push(format!(" matching version \"{}\"", self.range.text()));
            }
            if !self.channels.is_empty() {
                text.push(format!(" in channels [{}]", self.channels.join(" ")));
            }
            if tops > 1 {
                let mut names: Vec<&str> = found.iter().map(|(source, _, _)| source.name.as_str()).collect();
                names.sort_unstable();
                text.push(format!(" in multiple catalogs with the same priority [{}]", names.join(" ")));
            }
            Err(text.concat())
        }
    }

    fn question<'a>(dice: &mut Dice, all: &'a [(String, Vec<Value>)]) -> Question<'a> {
        let mut catalogs: Vec<(Source, &[Value])> = Vec::new();
        for _ in 0..=dice.below(3) {
            let (name, metas) = dice.one_of(all);
            if catalogs.iter().all(|(source, _)| source.name != *name) {
                catalogs.push((source(name, i32::try_from(dice.below(3)).unwrap()), metas));
            }
        }
        catalogs.sort_by(|one, other| one.0.name.cmp(&other.0.name));
        let names = |schema: &str, field: &str| -> Vec<String> {
            let metas = catalogs.iter().flat_map(|(_, metas)| metas.iter());
            let named = metas.filter(|meta| meta["schema"] == schema).filter_map(|meta| meta[field].as_str());
            named.map(str::to_owned).chain(["absent".to_owned()]).collect()
        };
        let package = dice.one_of(&names("olm.package", "name")).clone();
        let bundles: Vec<(String, Version)> = catalogs
            .iter()
            .flat_map(|(_, metas)| of_schema(metas, "olm.bundle", &package))
            .map(|bundle| (bundle["name"].as_str().unwrap().to_owned(), version(bundle)))
            .chain([("absent.v9.9.9".to_owned(), Version::new(9, 9, 9))])
            .collect();
        let bound = dice.one_of(&bundles).1.clone();
        let range = match dice.below(6) {
            0 => Range::Is(bound),
            1 => Range::AtLeast(bound),
            2 => Range::Below(bound),
            _ => Range::All,
        };
        let channels = (0..dice.below(3)).map(|_| dice.one_of(&names("olm.channel", "name")).clone()).collect();
        let installed = dice.percent(60).then(|| dice.one_of(&bundles).clone());
        Question { catalogs, package, range, channels, installed, self_certified: dice.percent(20) }
    }

    #[test]
    fn ten_thousand_questions_have_the_choice_or_the_refusal_of_olm_v1() {
        let Some(all) = catalogs() else { return };
        let directory = tempfile::tempdir().unwrap();
        let indexes = Indexes::open(directory.path().join("indexes")).unwrap();
        let opened: Vec<Arc<Index>> = all.iter().map(|(_, metas)| index(&indexes, &content(metas))).collect();
        let mut dice = Dice::new(17);
        let (mut chosen, mut refused) = (0, 0);
        for number in 0..10_000 {
            let question = question(&mut dice, &all);
            let of = |name: &str| all.iter().position(|(known, _)| known == name).unwrap();
            let catalogs = question.catalogs.iter().fold(IndexCatalogs::new(), |catalogs, (source, _)| {
                catalogs.with(source.clone(), Arc::clone(&opened[of(&source.name)]))
            });
            let problem = question.problem();
            let answer = match resolve(&problem, &catalogs).unwrap() {
                Answer::Decision(decision) => {
                    let member = decision.members.into_iter().next().unwrap();
                    Ok((member.catalog.unwrap(), member.name))
                }
                Answer::Refusal(explanation) => Err(explanation.message),
            };
            assert_eq!(answer, question.oracle(), "{number}: {problem:#?}");
            *(if answer.is_ok() { &mut chosen } else { &mut refused }) += 1;
        }
        // Both are common, or the questions ask for too little.
        assert!(chosen > 2_000 && refused > 2_000, "{chosen} chosen, {refused} refused");
    }
}
