//! A channel as a graph: which bundle updates which, as text and as a Mermaid flowchart. Pure.
//!
//! Names come from untrusted catalogs: each format escapes them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use chandler_core::text;

use crate::{
    Channel, ChannelEntry,
    lint::{self, Head},
};

/// What to mark in a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks<'a> {
    /// The bundle that is installed.
    pub installed: Option<&'a str>,
    /// The bundle that would be installed next.
    pub next: Option<&'a str>,
}

/// Why one bundle updates another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edge {
    /// It replaces it.
    Replaces,
    /// It skips it.
    Skips,
}

/// The entries of a channel, newest first: the head and what it replaces, then all others by name.
pub fn newest_first(channel: &Channel) -> Vec<&ChannelEntry> {
    let by_name: BTreeMap<&str, &ChannelEntry> = channel.entries.iter().map(|it| (it.name.as_str(), it)).collect();
    let mut rest = by_name.clone();
    let mut ordered = Vec::new();
    let mut next = match lint::head(channel) {
        Head::One(head) => Some(head),
        Head::None | Head::Several(_) => None,
    };
    // A cycle ends where it began, since entries leave the rest.
    while let Some(entry) = next.and_then(|name| rest.remove(name)) {
        next = entry.replaces.as_deref();
        ordered.push(entry);
    }
    ordered.extend(rest.into_values());
    ordered
}

/// All edges, each from the bundle that updates to the one that is updated, which may not be in the channel.
pub fn edges(channel: &Channel) -> BTreeSet<(&str, &str, Edge)> {
    let mut edges = BTreeSet::new();
    for entry in &channel.entries {
        edges.extend(entry.replaces.iter().map(|other| (entry.name.as_str(), other.as_str(), Edge::Replaces)));
        edges.extend(entry.skips.iter().map(|other| (entry.name.as_str(), other.as_str(), Edge::Skips)));
    }
    edges
}

/// The versions that an entry updates by its `skipRange`, in words; `None` without a `skipRange`.
pub fn range_note(entry: &ChannelEntry) -> Option<String> {
    let range = text::one_line(entry.skip_range.as_deref()?);
    Some(if entry.has_invalid_skip_range() {
        format!("skipRange {range} is not valid and updates nothing")
    } else {
        format!("updates versions {range}")
    })
}

/// How much of a long channel is text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Every entry.
    Whole,
    /// The newest entries, the oldest one, and those around marks; the first names that an entry skips.
    Folded,
}

/// A channel with more entries is folded.
const LONG: usize = 20;
/// The newest entries that a folded channel has.
const NEWEST: usize = 8;
/// The names that an entry of a folded channel skips.
const SKIPS: usize = 4;

/// A line for each entry, newest first, with what it updates. In a folded channel, a line stands for several entries.
pub fn as_text(channel: &Channel, marks: &Marks<'_>, extent: Extent) -> String {
    let mut output = String::new();
    let known: BTreeSet<&str> = channel.entries.iter().map(|entry| entry.name.as_str()).collect();
    let entries = newest_first(channel);
    let shown = shown(&entries, marks, extent);
    let mut hidden = 0;
    for (entry, is_shown) in entries.into_iter().zip(shown) {
        if !is_shown {
            hidden += 1;
            continue;
        }
        push_hidden(&mut output, &mut hidden);
        let notes = notes(entry, marks, &known, extent);
        output.push_str(&text::one_line(&entry.name));
        // Writing to a string cannot fail.
        let _ = writeln!(output, "{}{}", if notes.is_empty() { "" } else { "  " }, notes.join("; "));
    }
    output
}

/// Adds a line for entries that are not shown, and counts from zero again.
fn push_hidden(output: &mut String, hidden: &mut usize) {
    if *hidden > 0 {
        let _ = writeln!(output, "... {} more", *hidden);
        *hidden = 0;
    }
}

/// Which entries are shown.
fn shown(entries: &[&ChannelEntry], marks: &Marks<'_>, extent: Extent) -> Vec<bool> {
    let is_folded = extent == Extent::Folded && entries.len() > LONG;
    let marked = entries.iter().enumerate().filter(|(_, entry)| mark(&entry.name, marks).is_some());
    let marked: Vec<usize> = marked.map(|(index, _)| index).collect();
    let is_kept = |index: usize| {
        let is_near = marked.iter().any(|marked| marked.abs_diff(index) <= 1);
        index < NEWEST || index + 1 == entries.len() || is_near
    };
    (0..entries.len()).map(|index| !is_folded || is_kept(index)).collect()
}

/// What is said about an entry after its name.
fn notes(entry: &ChannelEntry, marks: &Marks<'_>, known: &BTreeSet<&str>, extent: Extent) -> Vec<String> {
    let mut notes: Vec<String> = mark(&entry.name, marks).into_iter().map(str::to_owned).collect();
    let name = |other: &String| {
        let absent = if known.contains(other.as_str()) { "" } else { " (not in the channel)" };
        text::one_line(other) + absent
    };
    notes.extend(entry.replaces.iter().map(|other| format!("replaces {}", name(other))));
    let most = if extent == Extent::Folded && entry.skips.len() > SKIPS + 1 { SKIPS } else { entry.skips.len() };
    let mut skips: Vec<String> = entry.skips.iter().take(most).map(name).collect();
    if entry.skips.len() > most {
        skips.push(format!("and {} more", entry.skips.len() - most));
    }
    if !skips.is_empty() {
        notes.push(format!("skips {}", skips.join(", ")));
    }
    notes.extend(range_note(entry));
    notes
}

/// A flowchart in the language of Mermaid: arrows lead to the newer bundle, dotted ones where it is skipped. Several channels are
/// drawn apart, each with its name.
pub fn as_mermaid(channels: &[&Channel], marks: &Marks<'_>) -> String {
    let mut output = String::from("flowchart BT\n");
    let mut first = 0;
    for (index, channel) in channels.iter().enumerate() {
        // Writing to a string cannot fail.
        if channels.len() > 1 {
            let _ = writeln!(output, "  subgraph c{index}[\"{}\"]", label(&channel.name));
        }
        first = mermaid_channel(&mut output, channel, marks, first);
        if channels.len() > 1 {
            output.push_str("  end\n");
        }
    }
    output.push_str(
        "  classDef installed stroke:#1a7f37,stroke-width:3px\n  classDef next stroke:#bf8700,stroke-width:3px\n  \
         classDef absent stroke-dasharray:4\n",
    );
    output
}

/// Draws a channel with numbers from `first`, and returns the next one.
fn mermaid_channel(output: &mut String, channel: &Channel, marks: &Marks<'_>, first: usize) -> usize {
    let mut ids: BTreeMap<&str, usize> = BTreeMap::new();
    let by_name: BTreeMap<&str, &ChannelEntry> = channel.entries.iter().map(|it| (it.name.as_str(), it)).collect();
    let entries = newest_first(channel);
    let edges = edges(channel);
    let names = entries.iter().map(|entry| entry.name.as_str()).chain(edges.iter().map(|(_, older, _)| *older));
    for name in names {
        let id = first + ids.len();
        if ids.contains_key(name) {
            continue;
        }
        ids.insert(name, id);
        let entry = by_name.get(name);
        let range = entry.and_then(|entry| {
            let range = entry.skip_range.as_deref()?;
            Some(if entry.has_invalid_skip_range() { format!("not a range: {range}") } else { range.to_owned() })
        });
        let range = range.map(|range| format!("<br/>{}", label(&range))).unwrap_or_default();
        let class = match (mark(name, marks), entry) {
            (Some(mark), _) => format!(":::{mark}"),
            (None, None) => ":::absent".to_owned(),
            (None, Some(_)) => String::new(),
        };
        let _ = writeln!(output, "  n{id}[\"{}{range}\"]{class}", label(name));
    }
    for (newer, older, edge) in &edges {
        let arrow = if *edge == Edge::Replaces { "-->" } else { "-.->" };
        if let (Some(newer), Some(older)) = (ids.get(newer), ids.get(older)) {
            let _ = writeln!(output, "  n{older} {arrow} n{newer}");
        }
    }
    first + ids.len()
}

fn mark(name: &str, marks: &Marks<'_>) -> Option<&'static str> {
    match name {
        _ if marks.installed == Some(name) => Some("installed"),
        _ if marks.next == Some(name) => Some("next"),
        _ => None,
    }
}

/// Text in a quoted label. Everything that Mermaid or HTML may understand becomes a character code.
fn label(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text::one_line(text).chars() {
        if c.is_ascii_punctuation() && !matches!(c, '.' | ',' | ':' | '/' | '-' | '_') {
            let _ = write!(escaped, "#{};", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name, what it replaces, what it skips, and its skipRange.
    type Entry<'a> = (&'a str, Option<&'a str>, &'a [&'a str], Option<&'a str>);

    fn channel(entries: &[Entry<'_>]) -> Channel {
        let entry = |(name, replaces, skips, range): &Entry<'_>| ChannelEntry {
            name: (*name).to_owned(),
            replaces: replaces.map(str::to_owned),
            skips: skips.iter().map(|it| (*it).to_owned()).collect(),
            skip_range: range.map(str::to_owned),
            line: 1,
        };
        Channel { entries: entries.iter().map(entry).collect(), ..Channel::default() }
    }

    #[test]
    fn a_channel_is_drawn_newest_first() {
        let channel = channel(&[
            ("a.v1", Some("a.v0"), &[], None),
            ("a.v3", Some("a.v1"), &["a.v2"], Some(">=1.0.0 <3.0.0")),
            ("a.v2", Some("a.v1"), &[], None),
        ]);
        let marks = Marks { installed: Some("a.v1"), next: Some("a.v3") };
        insta::assert_snapshot!(as_text(&channel, &marks, Extent::Folded), @r"
        a.v3  next; replaces a.v1; skips a.v2; updates versions >=1.0.0 <3.0.0
        a.v1  installed; replaces a.v0 (not in the channel)
        a.v2  replaces a.v1
        ");
        insta::assert_snapshot!(as_mermaid(&[&channel], &marks), @r#"
        flowchart BT
          n0["a.v3<br/>#62;#61;1.0.0 #60;3.0.0"]:::next
          n1["a.v1"]:::installed
          n2["a.v2"]
          n3["a.v0"]:::absent
          n3 --> n1
          n1 --> n2
          n1 --> n0
          n2 -.-> n0
          classDef installed stroke:#1a7f37,stroke-width:3px
          classDef next stroke:#bf8700,stroke-width:3px
          classDef absent stroke-dasharray:4
        "#);
    }

    #[test]
    fn a_skip_range_that_is_not_valid_is_drawn_as_such() {
        let channel = channel(&[("a.v2", Some("a.v1"), &[], Some("<v1.1.0")), ("a.v1", None, &[], None)]);
        insta::assert_snapshot!(as_text(&channel, &Marks::default(), Extent::Folded), @r"
        a.v2  replaces a.v1; skipRange <v1.1.0 is not valid and updates nothing
        a.v1
        ");
        let drawn = as_mermaid(&[&channel], &Marks::default());
        assert!(drawn.contains("n0[\"a.v2<br/>not a range: #60;v1.1.0\"]"), "{drawn}");
    }

    #[test]
    fn several_channels_are_apart() {
        let of = |name: &str, entries: &[Entry<'_>]| Channel { name: name.to_owned(), ..channel(entries) };
        let (one, two) = (
            of("stable", &[("a", None, &[], None)]),
            of("edge \"x", &[("a", None, &[], None), ("b", Some("a"), &[], None)]),
        );
        insta::assert_snapshot!(as_mermaid(&[&one, &two], &Marks::default()), @r#"
        flowchart BT
          subgraph c0["stable"]
          n0["a"]
          end
          subgraph c1["edge #34;x"]
          n1["b"]
          n2["a"]
          n2 --> n1
          end
          classDef installed stroke:#1a7f37,stroke-width:3px
          classDef next stroke:#bf8700,stroke-width:3px
          classDef absent stroke-dasharray:4
        "#);
    }

    #[test]
    fn a_graph_with_mistakes_is_drawn_too() {
        let cycle = channel(&[("a", Some("b"), &[], None), ("b", Some("a"), &[], None), ("c", Some("b"), &[], None)]);
        assert_eq!(as_text(&cycle, &Marks::default(), Extent::Folded), "c  replaces b\nb  replaces a\na  replaces b\n");
        let heads = channel(&[("b\u{202e}\"", None, &[], None), ("a", None, &[], None)]);
        assert_eq!(as_text(&heads, &Marks::default(), Extent::Folded), "a\nb\\u{202E}\"\n");
        assert!(as_mermaid(&[&heads], &Marks::default()).contains("[\"b#92;u#123;202E#125;#34;\"]"));
    }

    #[test]
    fn a_long_channel_is_folded_around_what_is_marked() {
        let names: Vec<String> = (0..64).map(|number| format!("a.v{number:02}")).collect();
        let mut long = Channel::default();
        for (number, name) in names.iter().enumerate() {
            let replaces = number.checked_sub(1).and_then(|older| names.get(older).cloned());
            long.entries.push(ChannelEntry { name: name.clone(), replaces, ..ChannelEntry::default() });
        }
        if let Some(newest) = long.entries.last_mut() {
            newest.skips = names.iter().take(60).cloned().collect();
        }
        let marks = Marks { installed: Some("a.v30"), next: Some("a.v63") };
        insta::assert_snapshot!(as_text(&long, &marks, Extent::Folded), @r"
        a.v63  next; replaces a.v62; skips a.v00, a.v01, a.v02, a.v03, and 56 more
        a.v62  replaces a.v61
        a.v61  replaces a.v60
        a.v60  replaces a.v59
        a.v59  replaces a.v58
        a.v58  replaces a.v57
        a.v57  replaces a.v56
        a.v56  replaces a.v55
        ... 24 more
        a.v31  replaces a.v30
        a.v30  installed; replaces a.v29
        a.v29  replaces a.v28
        ... 28 more
        a.v00
        ");
        let whole = as_text(&long, &marks, Extent::Whole);
        assert_eq!(whole.lines().count(), 64);
        assert!(names.iter().all(|name| whole.contains(name.as_str())));
    }
}
