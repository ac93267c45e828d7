//! The index of a Helm repository (<https://helm.sh/docs/topics/chart_repository/>).
//!
//! Indexes have up to tens of megabytes, nearly all of it descriptions. So an index is read once for each change, as a stream, and becomes a tree with a
//! small file for each chart.

use std::{
    collections::BTreeMap,
    fmt,
    fs::File,
    io::{self, BufReader, Read},
};

use chandler_core::{Content, Digest};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use super::{ChartError, ChartVersion, select};
use crate::{
    ArchiveError, ArchiveUrl, ContentError, LimitExceeded, Limits, StoreError, Tree, blocking::Cancel,
    store::workspace::Workspace, tree::Stored, unpack,
};

/// The longest index. The largest of public repositories have about 25 MiB.
pub(crate) const INDEX_BYTES: u64 = 64 << 20;
/// The most versions of all charts of an index.
const VERSIONS: usize = 200_000;
/// The most values in an index: a version has about forty.
const NODES: usize = 8_000_000;
/// The longest version, URL or digest.
const TEXT_BYTES: usize = 2048;

/// A version of a chart, as an index lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Published {
    /// The version, as it is written.
    pub(super) version: String,
    /// Where its archive is: a URL, or a path below the repository. Helm uses the first one as well.
    pub(super) url: Option<String>,
    /// The SHA-256 digest of its archive, in hexadecimal digits.
    pub(super) digest: Option<String>,
}

/// Whether a text can be the name of a chart (<https://helm.sh/docs/chart_best_practices/conventions/>; Helm accepts upper case and `_` as well).
pub fn is_chart_name(text: &str) -> bool {
    let is_usable = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=250).contains(&text.len()) && text.chars().all(is_usable) && text != "." && text != ".."
}

/// The files of an index: for each chart the list of its versions.
///
/// # Errors
/// It is not an index, or exceeds a limit.
pub(crate) fn unpack(
    file: File,
    work: &mut Workspace,
    limits: &Limits,
) -> Result<BTreeMap<String, Stored>, ContentError> {
    let HelmIndex { charts } = HelmIndex::read(BufReader::new(Cancelled { file, cancel: work.cancel().clone() }))?;
    if charts.len() > limits.entries {
        return Err(ArchiveError::from(LimitExceeded::Entries(limits.entries)).into());
    }
    let mut files = BTreeMap::new();
    for (name, versions) in charts {
        let text = serde_json::to_vec(&versions).map_err(|error| StoreError::at("write", &name)(error.into()))?;
        let stored = unpack::stored(work, &mut text.as_slice(), name.as_bytes(), limits)?;
        files.insert(name, stored);
    }
    Ok(files)
}

/// A file that ends with an error once nothing waits for its reader.
struct Cancelled {
    file: File,
    cancel: Cancel,
}

impl Read for Cancelled {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.cancel.check()?;
        self.file.read(buffer)
    }
}

/// The versions of a chart, in the tree of an index.
pub(super) fn versions(tree: &Tree, chart: &str) -> Result<Vec<Published>, ChartError> {
    let text = tree.read_all(chart).map_err(|_| ChartError::NoChart(chart.to_owned()))?;
    serde_json::from_slice(&text).map_err(|_| ChartError::NoChart(chart.to_owned()))
}

/// What an index lists: the versions of all charts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelmIndex {
    charts: BTreeMap<String, Vec<Published>>,
}

impl HelmIndex {
    /// Reads an index, as a stream.
    ///
    /// # Errors
    /// It is not an index, or exceeds a limit. The text quotes nothing of what was read.
    pub fn read(input: impl Read) -> Result<Self, ArchiveError> {
        read(input).map(|charts| Self { charts })
    }

    /// The names of the charts.
    pub fn charts(&self) -> impl Iterator<Item = &str> {
        self.charts.keys().map(String::as_str)
    }

    /// The version of a chart that a source names, where its archive is, and its digest, if the index has it.
    ///
    /// # Errors
    /// The index does not have the chart or the version, or what it says about the version cannot be used.
    pub fn find(
        &self,
        repository: &ArchiveUrl,
        chart: &str,
        version: &ChartVersion,
    ) -> Result<(String, ArchiveUrl, Option<Digest>), ChartError> {
        let versions = self.charts.get(chart).ok_or_else(|| ChartError::NoChart(chart.to_owned()))?;
        let published = select::select(versions, chart, version)?;
        Ok((published.version.clone(), published.archive(repository)?, published.digest()?))
    }
}

fn read(input: impl Read) -> Result<BTreeMap<String, Vec<Published>>, ArchiveError> {
    let bytes = usize::try_from(INDEX_BYTES).unwrap_or(usize::MAX);
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_reader_input_bytes: Some(bytes),
            max_events: 2 * NODES,
            max_nodes: NODES,
            max_total_scalar_bytes: bytes,
            // No program writes them into an index, and they multiply.
            max_aliases: 0,
            max_anchors: 0,
            max_merge_keys: 0,
            max_documents: 1,
        },
        with_snippet: false,
    };
    let index: Index = serde_saphyr::from_reader_with_options(input, options).map_err(|error| invalid(&error))?;
    if index.api_version.is_none_or(|version| version.is_empty()) {
        return Err(ArchiveError::HelmIndex("it has no apiVersion".to_owned()));
    }
    let charts = index.entries.ok_or_else(|| ArchiveError::HelmIndex("it has no entries".to_owned()))?;
    Ok(charts.0)
}

/// What is wrong, without a word of what was read: it may be the answer of a service in this network, to which the author of the source led the
/// controller.
fn invalid(error: &serde_saphyr::Error) -> ArchiveError {
    let place = error.location().map(|at| format!("line {}, column {}", at.line(), at.column()));
    ArchiveError::HelmIndex(place.map_or_else(
        || "it is not YAML with charts below the key entries, or is too large".to_owned(),
        |place| format!("{place} is not YAML with charts below the key entries, or the limits end there"),
    ))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Index {
    api_version: Option<String>,
    entries: Option<Entries>,
}

/// The charts with their versions. Those with names that no chart has, and versions without a number, are left out, as by Helm.
struct Entries(BTreeMap<String, Vec<Published>>);

#[derive(Deserialize)]
struct Entry {
    version: Option<String>,
    urls: Option<Urls>,
    digest: Option<String>,
}

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Charts;
        impl<'de> Visitor<'de> for Charts {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("charts by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let (mut charts, mut left) = (BTreeMap::new(), VERSIONS);
                while let Some(name) = map.next_key::<String>()? {
                    if is_chart_name(&name) {
                        let versions: Vec<Published> = map.next_value_seed(Versions(&mut left))?;
                        charts.insert(name, versions);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(Entries(charts))
            }

            fn visit_unit<E>(self) -> Result<Entries, E> {
                Ok(Entries(BTreeMap::new()))
            }
        }
        deserializer.deserialize_map(Charts)
    }
}

/// The versions of one chart, of which so many more may follow in the index.
struct Versions<'a>(&'a mut usize);

impl<'de> DeserializeSeed<'de> for Versions<'_> {
    type Value = Vec<Published>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Versions<'_> {
    type Value = Vec<Published>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of versions")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut versions = Vec::new();
        while let Some(entry) = list.next_element::<Entry>()? {
            let short = |text: &String| text.len() <= TEXT_BYTES;
            let Some(version) = entry.version.filter(|version| !version.is_empty() && short(version)) else { continue };
            *self.0 = self.0.checked_sub(1).ok_or_else(|| serde::de::Error::custom("too many versions"))?;
            let url = entry.urls.and_then(|urls| urls.0).filter(short);
            versions.push(Published { version, url, digest: entry.digest.filter(short) });
        }
        Ok(versions)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }
}

/// The first of the URLs of a version.
struct Urls(Option<String>);

impl<'de> Deserialize<'de> for Urls {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct First;
        impl<'de> Visitor<'de> for First {
            type Value = Urls;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of URLs")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Urls, A::Error> {
                let first = list.next_element::<String>()?;
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Urls(first))
            }
        }
        deserializer.deserialize_seq(First)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> Result<Vec<(String, Vec<Published>)>, String> {
        read(text.as_bytes()).map(|charts| charts.into_iter().collect()).map_err(|error| error.to_string())
    }

    fn published(version: &str, url: Option<&str>, digest: Option<&str>) -> Published {
        Published { version: version.to_owned(), url: url.map(str::to_owned), digest: digest.map(str::to_owned) }
    }

    #[test]
    fn charts_have_their_versions_as_they_are_written() {
        let index = "apiVersion: v1\nentries:\n  web:\n  - apiVersion: v2\n    annotations: {a: [b, {c: d}]}\n    version: 1.10\n    digest: 123456\n    \
                     urls:\n    - https://example.com/web-1.10.tgz\n    - other\n  - version: v1.2.3-rc.1+b\n    urls: [charts/web.tgz]\n  \
                     - version: \"2\"\n  - name: web\n  none: []\n  nothing: null\n  ../up:\n  - version: 1\ngenerated: \"2026-01-01\"\n";
        let web = vec![
            published("1.10", Some("https://example.com/web-1.10.tgz"), Some("123456")),
            published("v1.2.3-rc.1+b", Some("charts/web.tgz"), None),
            published("2", None, None),
        ];
        let expected = [("none", vec![]), ("nothing", vec![]), ("web", web)].map(|(name, of)| (name.to_owned(), of));
        assert_eq!(of(index), Ok(expected.to_vec()));
        let json = r#"{"apiVersion":"v1","entries":{"web":[{"version":"1.0.0","urls":["https:\/\/example.com\/a.tgz"],"digest":"00"}]}}"#;
        let web = vec![published("1.0.0", Some("https://example.com/a.tgz"), Some("00"))];
        assert_eq!(of(json), Ok(vec![("web".to_owned(), web)]));
        assert_eq!(of("apiVersion: v1\nentries: {}\n"), Ok(vec![]));
    }

    #[test]
    fn other_documents_are_refused_and_not_quoted() {
        for text in [
            "",
            "hunter2",
            "hunter2: hunter2",
            "apiVersion: v1\n",
            "entries: {}\n",
            "apiVersion: v1\nentries: hunter2\n",
            "apiVersion: v1\nentries: {a: hunter2}\n",
            "apiVersion: v1\nentries: {a: [hunter2]}\n",
            "apiVersion: v1\nentries: {a: [{version: [hunter2]}]}\n",
            "apiVersion: v1\nentries: &hunter2 {a: [{version: 1}]}\n",
            "apiVersion: v1\nentries: {a: &hunter2 [{version: 1}], b: *hunter2}\n",
            "apiVersion: v1\nentries: {a: [\n",
            "apiVersion: v1\n---\nentries: {}\n",
            "<html><body>hunter2</body></html>",
            "\u{feff}\u{0}hunter2",
        ] {
            let error = of(text).expect_err(text);
            assert!(error.starts_with("is not the index.yaml of a Helm repository: "), "{text}: {error}");
            assert!(!error.contains("hunter2") && error.len() < 200, "{text}: {error}");
        }
    }

    #[test]
    fn names_of_charts_are_names_of_files() {
        for (name, expected) in
            [("web", true), ("kube-prometheus_stack.2", true), ("", false), ("..", false), ("a/b", false), ("ä", false)]
        {
            assert_eq!(is_chart_name(name), expected, "{name}");
        }
        assert!(is_chart_name(&"a".repeat(250)) && !is_chart_name(&"a".repeat(251)));
    }

    #[test]
    fn an_index_is_read_within_its_limits() {
        let start = "apiVersion: v1\nentries:\n  web:\n";
        let many = format!("{start}{}", "  - {version: 1}\n".repeat(VERSIONS));
        assert_eq!(of(&many).unwrap()[0].1.len(), VERSIONS);
        assert!(of(&format!("{many}  - {{version: 1}}\n")).is_err());
        let deep = format!("{start}  - version: 1\n    a: {}{}\n", "[".repeat(10_000), "]".repeat(10_000));
        assert!(of(&deep).is_err());
        let long = "x".repeat(TEXT_BYTES + 1);
        let web = format!("{start}  - version: {long}\n  - version: 1\n    urls: [{long}]\n    digest: {long}\n");
        assert_eq!(of(&web).unwrap()[0].1, [published("1", None, None)]);
        // An endless index ends at the limit.
        let endless = std::io::repeat(b'#').take(2 * INDEX_BYTES);
        assert!(read(start.as_bytes().chain(endless)).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_an_index_or_refused(text in "(apiVersion: v1\n)?(entries:\n)?( {0,3}(a|version|urls|- |: |\\[|\\{|\\}|\\]|\"|1|\n|&x|\\*x|<<)){0,20}\\PC{0,10}") {
            if let Err(error) = of(&text) {
                prop_assert!(error.len() < 200, "{error}");
            }
        }
    }
}
