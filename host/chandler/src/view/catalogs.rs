//! Packages, channels and versions of catalogs, as tables and pictures.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use chandler_catalog::{
    Channel,
    difference::{Change, PackageDifference, Parts},
    graph::{self, Edge, Marks},
    overview::{ChannelOverview, PackageOverview, VersionOverview},
};
use serde::Serialize;

use super::{
    invocation::quoted,
    picture::{self, Arrow},
    table::{self, Column, Fit},
    text::{count, one_line},
    tree::{Branch, Mark},
};

/// The most versions that `show` prints.
const NEWEST: usize = 10;

/// A package in a list.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageRow<'a> {
    catalog: &'a str,
    name: &'a str,
    display_name: &'a str,
    version: Option<&'a str>,
    default_channel: &'a str,
    channels: Vec<&'a str>,
    versions: usize,
    deprecated: Option<&'a str>,
    summary: &'a str,
}

impl<'a> From<&'a PackageOverview> for PackageRow<'a> {
    fn from(package: &'a PackageOverview) -> Self {
        Self {
            catalog: &package.catalog,
            name: &package.name,
            display_name: &package.display_name,
            version: package.version.as_deref(),
            default_channel: &package.default_channel,
            channels: package.channels.iter().map(|channel| channel.name.as_str()).collect(),
            versions: package.versions.len(),
            deprecated: package.deprecated.as_deref(),
            summary: if package.summary.is_empty() { &package.description } else { &package.summary },
        }
    }
}

impl PackageRow<'_> {
    fn version_text(&self) -> String {
        let version = self.version.unwrap_or_default();
        cell(&if self.deprecated.is_some() { format!("{version} (deprecated)") } else { version.to_owned() })
    }

    /// The summary; of a package that has only a description, which may have many paragraphs, its first line that is not a heading.
    fn title(&self) -> &str {
        let mut lines = self.summary.lines().map(str::trim);
        lines.find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or(self.display_name)
    }
}

/// A text in a cell; a dash if there is none.
fn cell(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

/// The table of packages.
pub fn packages(rows: &[PackageRow<'_>], width: Option<usize>) -> String {
    let columns: [Column<PackageRow<'_>>; 6] = [
        Column::new("PACKAGE", Fit::Full, |row| cell(row.name)),
        Column::new("VERSION", Fit::Full, PackageRow::version_text),
        Column::new("CHANNEL", Fit::End(8), |row| cell(row.default_channel)),
        Column::new("VERSIONS", Fit::Drop, |row| row.versions.to_string()),
        Column::new("CATALOG", Fit::Drop, |row| cell(row.catalog)),
        Column::new("SUMMARY", Fit::Extra(20), |row| cell(row.summary)),
    ];
    table::text(&columns, rows, width)
}

/// The table of packages that were found, each with the text that says what it is.
pub fn found(rows: &[PackageRow<'_>], width: Option<usize>) -> String {
    let columns: [Column<PackageRow<'_>>; 5] = [
        Column::new("PACKAGE", Fit::Full, |row| cell(row.name)),
        Column::new("VERSION", Fit::Full, PackageRow::version_text),
        Column::new("CHANNEL", Fit::Drop, |row| cell(row.default_channel)),
        Column::new("CATALOG", Fit::Drop, |row| cell(row.catalog)),
        Column::new("DESCRIPTION", Fit::End(20), |row| cell(row.title())),
    ];
    table::text(&columns, rows, width)
}

/// Everything about a package that fits a page.
pub fn package(package: &PackageOverview, width: Option<usize>) -> String {
    let mut lines = vec![format!("{} in catalog {}", one_line(&package.name), one_line(&package.catalog))];
    let newest = package.versions.first();
    let list = |texts: Vec<String>| texts.join(", ");
    for (name, value) in [
        ("name", package.display_name.clone()),
        ("summary", package.summary.clone()),
        ("provider", package.provider.clone()),
        ("keywords", package.keywords.join(", ")),
        ("deprecated", package.deprecated.clone().unwrap_or_default()),
        ("default channel", package.default_channel.clone()),
        ("version", package.version.clone().unwrap_or_default()),
        ("provides", newest.map(|it| list(it.provides.iter().map(ToString::to_string).collect())).unwrap_or_default()),
        ("requires", newest.map(|it| it.requires.join(", ")).unwrap_or_default()),
    ] {
        if !value.is_empty() {
            lines.push(format!("  {name}: {}", one_line(&value)));
        }
    }
    let mut text = lines.join("\n") + "\n";
    if !package.description.is_empty() {
        text.push('\n');
        for line in super::text::printable(package.description.trim()).lines() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}", format!("  {line}").trim_end());
        }
    }
    text.push('\n');
    text.push_str(&channels(&[package], width));
    text.push('\n');
    let shown: Vec<&VersionOverview> = package.versions.iter().take(NEWEST).collect();
    text.push_str(&versions(&[(package.catalog.as_str(), shown)], &Marks::default(), width));
    let more = package.versions.len().saturating_sub(NEWEST);
    if more > 0 {
        let command = format!("chandler catalog versions {}", quoted(&one_line(&package.name)));
        let _ = writeln!(text, "{} more: `{command}`", count(more, "version"));
    }
    text
}

/// The table of channels.
pub fn channels(packages: &[&PackageOverview], width: Option<usize>) -> String {
    let columns: [Column<(&PackageOverview, &ChannelOverview)>; 6] = [
        Column::new("CHANNEL", Fit::Full, |(_, channel)| {
            let default = if channel.default { " (default)" } else { "" };
            let deprecated = if channel.deprecated.is_some() { " (deprecated)" } else { "" };
            channel.name.clone() + default + deprecated
        }),
        Column::new("VERSION", Fit::Full, |(_, channel)| cell(channel.version.as_deref().unwrap_or_default())),
        Column::new("HEAD", Fit::Middle(12), |(_, channel)| cell(channel.head.as_deref().unwrap_or_default())),
        Column::new("BUNDLES", Fit::Drop, |(_, channel)| channel.bundles.to_string()),
        Column::new("CATALOG", Fit::Drop, |(package, _)| cell(&package.catalog)),
        Column::new("DEPRECATED", Fit::Extra(20), |(_, channel)| {
            cell(channel.deprecated.as_deref().unwrap_or_default())
        }),
    ];
    let rows = packages.iter().flat_map(|package| package.channels.iter().map(|channel| (*package, channel)));
    table::text(&columns, &rows.collect::<Vec<_>>(), width)
}

/// A version of a catalog, and what it is to the installed one.
struct VersionRow<'a> {
    catalog: &'a str,
    version: &'a VersionOverview,
    state: &'static str,
}

impl<'a> VersionRow<'a> {
    fn new(catalog: &'a str, version: &'a VersionOverview, marks: &Marks<'_>) -> Self {
        let state = match version.name.as_str() {
            name if marks.installed == Some(name) => "installed",
            name if marks.next == Some(name) => "next",
            _ if version.deprecated.is_some() => "deprecated",
            _ => "",
        };
        Self { catalog, version, state }
    }
}

/// The table of versions, by catalog.
pub fn versions(rows: &[(&str, Vec<&VersionOverview>)], marks: &Marks<'_>, width: Option<usize>) -> String {
    let columns: [Column<VersionRow<'_>>; 7] = [
        Column::new("VERSION", Fit::Full, |row| cell(&row.version.version)),
        Column::new("BUNDLE", Fit::Middle(12), |row| cell(&row.version.name)),
        Column::new("STATE", Fit::Full, |row| cell(row.state)),
        Column::new("CHANNELS", Fit::End(8), |row| cell(&row.version.channels.join(", "))),
        Column::new("KUBERNETES", Fit::Drop, |row| cell(&row.version.min_kube_version)),
        Column::new("CATALOG", Fit::Drop, |row| cell(row.catalog)),
        Column::new("IMAGE", Fit::Extra(30), |row| cell(&row.version.image)),
    ];
    let rows = rows
        .iter()
        .flat_map(|(catalog, versions)| versions.iter().map(|version| VersionRow::new(catalog, version, marks)));
    table::text(&columns, &rows.collect::<Vec<_>>(), width)
}

/// What differs, a line for each package and each part of it.
pub fn differences(differences: &[PackageDifference]) -> String {
    let mut lines = Vec::new();
    for difference in differences {
        let sign = match difference.change {
            Change::Added => "+",
            Change::Removed => "-",
            Change::Changed => "~",
        };
        lines.push(format!("{sign} package {}", difference.package));
        if let Some(moved) = &difference.default_channel {
            lines.push(format!("  ~ default channel {} instead of {}", moved.to, moved.from));
        }
        for (what, parts) in [("channel", &difference.channels), ("bundle", &difference.bundles)] {
            let Parts { added, removed, changed } = parts;
            for (sign, names) in [("+", added), ("-", removed), ("~", changed)] {
                lines.extend(names.iter().map(|name| format!("  {sign} {what} {name}")));
            }
        }
        lines.extend(difference.deprecated.iter().map(|name| format!("  ! {name} is deprecated")));
    }
    lines.iter().map(|line| one_line(line).clone() + "\n").collect()
}

/// Channels as an SVG image: a row for each bundle, newest first; arrows lead to the newer bundle, dashed ones where it is skipped.
pub fn svg(package: &str, channels: &[&Channel], marks: &Marks<'_>) -> String {
    let (mut branches, mut arrows, mut row) = (Vec::new(), Vec::new(), 0);
    for channel in channels {
        row += 1;
        let (names, rows) = entries(channel, marks);
        let index: BTreeMap<&str, usize> = names.iter().enumerate().map(|(at, name)| (*name, row + at)).collect();
        for (newer, older, edge) in graph::edges(channel) {
            if let (Some(from), Some(to)) = (index.get(older), index.get(newer)) {
                arrows.push(Arrow { from: *from, to: *to, dashed: edge == Edge::Skips });
            }
        }
        row += rows.len();
        let label = one_line(&format!("channel {}", channel.name));
        branches.push(Branch { label, mark: None, message: None, branches: rows });
    }
    picture::graph_svg(&format!("Package {}", one_line(package)), &branches, &arrows)
}

/// The bundles of a channel, and those that it only mentions.
fn entries<'a>(channel: &'a Channel, marks: &Marks<'_>) -> (Vec<&'a str>, Vec<Branch>) {
    let ordered = graph::newest_first(channel);
    let known: BTreeSet<&str> = ordered.iter().map(|entry| entry.name.as_str()).collect();
    let mut names: Vec<&str> = ordered.iter().map(|entry| entry.name.as_str()).collect();
    let mut rows: Vec<Branch> = ordered
        .iter()
        .map(|entry| {
            let mark = match entry.name.as_str() {
                name if marks.installed == Some(name) => Some(Mark::Installed),
                name if marks.next == Some(name) => Some(Mark::Next),
                _ => None,
            };
            let range = graph::range_note(entry);
            let word = match mark {
                Some(Mark::Installed) => Some("installed".to_owned()),
                Some(Mark::Next) => Some("next".to_owned()),
                _ => None,
            };
            let message: Vec<String> = word.into_iter().chain(range).collect();
            let message = (!message.is_empty()).then(|| message.join("; "));
            Branch { label: one_line(&entry.name), mark, message, branches: Vec::new() }
        })
        .collect();
    let absent: BTreeSet<&str> = graph::edges(channel).into_iter().map(|(_, older, _)| older).collect();
    for name in absent.difference(&known) {
        names.push(name);
        let message = Some("not in the channel".to_owned());
        rows.push(Branch { label: one_line(name), mark: None, message, branches: Vec::new() });
    }
    (names, rows)
}

#[cfg(test)]
mod tests {
    use chandler_catalog::ChannelEntry;

    use super::*;

    #[test]
    fn a_picture_of_channels_has_a_row_for_each_bundle_and_an_arrow_for_each_update() {
        let entry = |name: &str, replaces: Option<&str>, skips: &[&str]| ChannelEntry {
            name: name.to_owned(),
            replaces: replaces.map(str::to_owned),
            skips: skips.iter().map(|&skip| skip.to_owned()).collect(),
            ..ChannelEntry::default()
        };
        let entries =
            vec![entry("a.v2", Some("a.v1"), &["a.v0"]), entry("a.v1", Some("a.v0"), &[]), entry("a.<", None, &[])];
        let channel = Channel { name: "stable".to_owned(), entries, ..Channel::default() };
        let marks = Marks { installed: Some("a.v1"), next: Some("a.v2") };
        let image = svg("a", &[&channel, &channel], &marks);
        assert_eq!(image.matches("marker-end").count(), 6, "{image}");
        assert_eq!(image.matches("class=\"dashed\"").count(), 2, "{image}");
        assert_eq!((image.matches("not in the channel").count(), image.matches("a.&lt;").count()), (4, 2), "{image}");
        assert_eq!((image.matches("class=\"installed\"").count(), image.matches("class=\"next\"").count()), (2, 2));
    }
}
