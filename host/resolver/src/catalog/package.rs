//! A package of a catalog.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::Value;

use super::bundle::Bundle;
use crate::version::blang::Range;

/// A package: its channels, bundles and deprecations.
#[derive(Clone, Debug, Default)]
pub struct Package {
    /// The name.
    pub name: String,
    /// The channel that the catalog prefers.
    pub default_channel: Option<String>,
    /// The channels by name.
    pub channels: BTreeMap<String, Channel>,
    /// The bundles by name.
    pub bundles: BTreeMap<String, Arc<Bundle>>,
    /// What is deprecated.
    pub deprecations: Deprecations,
    /// Why its channels cannot be followed, as whatever reads the catalog found: no question that leads to it has an answer.
    pub fault: Option<String>,
}

/// A channel: a graph of upgrades.
#[derive(Clone, Debug, Default)]
pub struct Channel {
    /// The entries by the name of their bundle.
    pub entries: BTreeMap<String, Entry>,
    /// The bundles that entries skip, each with the first entry that does. They are not chosen from this channel.
    pub skipped: BTreeMap<String, String>,
}

/// An entry of a channel: a bundle and what it upgrades.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// The name of the bundle that it replaces.
    pub replaces: Option<String>,
    /// The names of other bundles that upgrade to it directly.
    pub skips: BTreeSet<String>,
    /// The versions that upgrade to it directly. A malformed range matches none.
    pub skip_range: Option<Range>,
}

/// Messages of deprecations.
#[derive(Clone, Debug, Default)]
pub struct Deprecations {
    /// Of the package.
    pub package: Option<String>,
    /// Of channels by name.
    pub channels: BTreeMap<String, String>,
    /// Of bundles by name.
    pub bundles: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChannelMeta {
    name: String,
    #[serde(default)]
    entries: Vec<EntryMeta>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntryMeta {
    name: String,
    #[serde(default)]
    replaces: Option<String>,
    #[serde(default)]
    skips: Vec<String>,
    #[serde(default)]
    skip_range: Option<String>,
}

#[derive(Deserialize)]
struct DeprecationsMeta {
    #[serde(default)]
    entries: Vec<DeprecationMeta>,
}

#[derive(Deserialize)]
struct DeprecationMeta {
    reference: ReferenceMeta,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct ReferenceMeta {
    schema: String,
    #[serde(default)]
    name: String,
}

impl Package {
    /// Collects a package from its metas: `olm.package`, `olm.channel`, `olm.bundle` and `olm.deprecations`. Metas of other
    /// schemas and other packages are ignored, and so are malformed ones: a catalog is validated where it is read.
    pub fn from_metas<'a>(name: &str, metas: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut package = Self { name: name.to_owned(), ..Self::default() };
        for meta in metas {
            package.add(meta);
        }
        package
    }

    fn add(&mut self, meta: &Value) {
        let text = |field: &str| meta.get(field).and_then(Value::as_str);
        let ours = text("package") == Some(&self.name);
        match text("schema") {
            Some("olm.package") if text("name") == Some(&self.name) => {
                self.default_channel = text("defaultChannel").filter(|name| !name.is_empty()).map(str::to_owned);
            }
            Some("olm.channel") if ours => {
                if let Ok(read) = ChannelMeta::deserialize(meta) {
                    self.channels.insert(read.name, Channel::of(read.entries.into_iter().map(entry).collect()));
                }
            }
            Some("olm.bundle") if ours => {
                if let Some(bundle) = Bundle::from_meta(meta) {
                    self.bundles.insert(bundle.name.clone(), Arc::new(bundle));
                }
            }
            Some("olm.deprecations") if ours => {
                if let Ok(read) = DeprecationsMeta::deserialize(meta) {
                    read.entries.into_iter().for_each(|entry| self.deprecations.add(entry));
                }
            }
            _ => {}
        }
    }

    /// The channels that hold a bundle, in alphabetical order. If the list is not empty, only channels of the list.
    pub fn channels_of<'a>(&'a self, bundle: &'a str, among: &'a BTreeSet<String>) -> impl Iterator<Item = &'a str> {
        let selected = self.channels.iter().filter(move |(name, _)| among.is_empty() || among.contains(*name));
        selected.filter(move |(_, channel)| channel.entries.contains_key(bundle)).map(|(name, _)| name.as_str())
    }

    /// The channel that is named for a bundle: the default one, or else the first.
    pub fn channel_of(&self, bundle: &str, among: &BTreeSet<String>) -> Option<&str> {
        let is_default = |name: &&str| Some(*name) == self.default_channel.as_deref();
        let holds = |name: &&String| {
            (among.is_empty() || among.contains(*name))
                && self.channels.get(*name).is_some_and(|channel| channel.entries.contains_key(bundle))
        };
        let mut names = self.channels.keys().filter(holds).map(String::as_str);
        let first = names.next()?;
        Some(if is_default(&first) { first } else { names.find(is_default).unwrap_or(first) })
    }

    /// The channel that offers a bundle: the default one, or else the first. A channel does not offer what one of its entries skips.
    pub fn offer(&self, bundle: &str, among: &BTreeSet<String>) -> Option<&str> {
        let is_default = |name: &&str| Some(*name) == self.default_channel.as_deref();
        let offers = |(name, channel): &(&String, &Channel)| {
            (among.is_empty() || among.contains(*name))
                && channel.entries.contains_key(bundle)
                && !channel.skipped.contains_key(bundle)
        };
        let mut names = self.channels.iter().filter(offers).map(|(name, _)| name.as_str());
        let first = names.next()?;
        Some(if is_default(&first) { first } else { names.find(is_default).unwrap_or(first) })
    }

    /// The entry that skips a bundle, if every channel that holds the bundle has one.
    pub fn skipped_by(&self, bundle: &str, among: &BTreeSet<String>) -> Option<&str> {
        if self.offer(bundle, among).is_some() {
            return None;
        }
        let name = self.channel_of(bundle, among)?;
        Some(self.channels.get(name)?.skipped.get(bundle)?.as_str())
    }

    /// The message of the deprecation of a bundle: its own, or its channels' if all are deprecated.
    pub fn deprecated(&self, bundle: &str) -> Option<&str> {
        if let Some(message) = self.deprecations.bundles.get(bundle) {
            return Some(message);
        }
        let all = BTreeSet::new();
        let mut channels = self.channels_of(bundle, &all).map(|name| self.deprecations.channels.get(name)).peekable();
        channels.peek()?;
        let messages: Option<Vec<&String>> = channels.collect();
        messages?.first().map(|message| message.as_str())
    }
}

impl Channel {
    fn of(entries: BTreeMap<String, Entry>) -> Self {
        let mut skipped = BTreeMap::new();
        for (name, entry) in &entries {
            for bundle in entry.skips.iter().filter(|bundle| *bundle != name) {
                skipped.entry(bundle.clone()).or_insert_with(|| name.clone());
            }
        }
        Self { entries, skipped }
    }
}

impl Deprecations {
    fn add(&mut self, entry: DeprecationMeta) {
        match entry.reference.schema.as_str() {
            "olm.package" => self.package = Some(entry.message),
            "olm.channel" => drop(self.channels.insert(entry.reference.name, entry.message)),
            "olm.bundle" => drop(self.bundles.insert(entry.reference.name, entry.message)),
            _ => {}
        }
    }
}

fn entry(meta: EntryMeta) -> (String, Entry) {
    let skip_range = meta.skip_range.filter(|text| !text.is_empty()).and_then(|text| Range::parse(&text).ok());
    let replaces = meta.replaces.filter(|name| !name.is_empty());
    (meta.name, Entry { replaces, skips: meta.skips.into_iter().collect(), skip_range })
}
