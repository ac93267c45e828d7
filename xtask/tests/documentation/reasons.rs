//! Tables of reasons list the reasons of their kind: only these, and where a table is complete, all of them.

use std::{collections::BTreeSet, fs};

use chandler_core::{Reason, Remedy, ReportingKind};

use crate::files;

/// What the tables below a heading list.
#[derive(Clone, Copy, Debug)]
enum Listed {
    /// All reasons that the controller reports on this kind for a problem or for work.
    All(ReportingKind),
    /// Some reasons of this kind.
    Some(ReportingKind),
}

/// The page and the heading of every table with a column of reasons.
const TABLES: &[(&str, &str, Listed)] = &[
    ("docs/operations.md", "Status", Listed::All(ReportingKind::BundleDeployment)),
    ("docs/operations.md", "Reasons of a ProvisionerClass", Listed::All(ReportingKind::ProvisionerClass)),
    ("docs/catalogs.md", "Status", Listed::All(ReportingKind::Catalog)),
    ("docs/resolutions.md", "Reasons", Listed::All(ReportingKind::Resolution)),
    ("docs/platform-operators.md", "Status", Listed::All(ReportingKind::PlatformOperator)),
    ("docs/receivers.md", "Status", Listed::All(ReportingKind::Receiver)),
    ("docs/notifications.md", "Status", Listed::All(ReportingKind::Alert)),
    ("docs/values.md", "Changes", Listed::Some(ReportingKind::BundleDeployment)),
];

/// Reasons of BundleDeployments that only RukPak sets.
const RUKPAK: &[Reason] = &[
    Reason::ProcessingFinalizerFailed,
    Reason::BundleLoadFailed,
    Reason::ErrorGettingClient,
    Reason::ErrorGettingReleaseState,
    Reason::CreateDynamicWatchFailed,
    Reason::InstallationStatusUnknown,
];

/// A table: the heading above it, and its rows of cells. The first row is the header.
struct Table<'a> {
    heading: &'a str,
    rows: Vec<Vec<String>>,
}

/// The tables of a page.
fn tables(page: &str) -> Vec<Table<'_>> {
    let (mut heading, mut tables, mut inside) = ("", Vec::new(), false);
    for line in files::prose(page) {
        if let Some(text) = line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#')) {
            heading = text.trim();
        }
        let row = line.strip_prefix("| ").and_then(|row| row.strip_suffix(" |"));
        let is_rule = line.starts_with("|--");
        if let Some(row) = row {
            if !inside {
                tables.push(Table { heading, rows: Vec::new() });
            }
            let cells = row.replace("\\|", "/").split(" | ").map(str::to_owned).collect();
            tables.last_mut().unwrap().rows.push(cells);
        }
        inside = row.is_some() || inside && is_rule;
    }
    tables
}

impl Table<'_> {
    /// The reasons in its column of reasons, if it has one with reasons of Chandler.
    fn reasons(&self) -> Option<BTreeSet<String>> {
        let [header, rows @ ..] = self.rows.as_slice() else { return None };
        let column = header.iter().position(|cell| cell == "reason" || cell == "status, reason")?;
        let cells = rows.iter().filter_map(|row| row.get(column));
        let quoted = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
        let names: BTreeSet<String> =
            quoted.filter(|quoted| quoted.starts_with(char::is_uppercase)).map(str::to_owned).collect();
        Some(names).filter(|names| names.iter().any(|name| Reason::from_name(name).is_some()))
    }
}

/// The reasons that a complete table has: all that the controller reports on the kind itself, except for what is wanted.
fn expected(kind: ReportingKind) -> BTreeSet<String> {
    let is_rukpaks = |reason: &Reason| {
        RUKPAK.contains(reason) || kind == ReportingKind::BundleDeployment && *reason == Reason::UnpackPending
    };
    let all = Reason::ALL.iter().filter(|reason| reason.kinds().contains(&kind));
    let all = all.filter(|reason| reason.remedy() != Remedy::Nothing && !is_rukpaks(reason));
    all.map(ToString::to_string).collect()
}

#[test]
fn tables_of_reasons_list_the_reasons_of_their_kind() {
    let (root, mut pages, mut wrong) = (files::root(), Vec::new(), Vec::new());
    files::find(&root.join("docs"), &["md"], &|_| false, &mut pages);
    let mut found: Vec<(String, String, BTreeSet<String>)> = Vec::new();
    for path in &pages {
        let page = fs::read_to_string(path).unwrap();
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        for table in tables(&page) {
            let Some(reasons) = table.reasons() else { continue };
            let heading = table.heading.to_owned();
            match found.iter_mut().find(|(page, of, _)| (page, of) == (&name, &heading)) {
                Some((.., known)) => known.extend(reasons),
                None => found.push((name.clone(), heading, reasons)),
            }
        }
    }
    for (page, heading, reasons) in &found {
        let listed = TABLES.iter().find(|(of, under, _)| (of, under) == (&page.as_str(), &heading.as_str()));
        let Some((.., listed)) = listed else {
            wrong.push(format!("{page}, {heading}: a table of reasons that this test does not know"));
            continue;
        };
        let (Listed::All(kind) | Listed::Some(kind)) = *listed;
        let is_of_kind = |reason: &String| Reason::from_name(reason).is_some_and(|reason| reason.is_reported_by(kind));
        wrong.extend(
            reasons
                .iter()
                .filter(|reason| !is_of_kind(reason))
                .map(|reason| format!("{page}, {heading}: {reason} is not a reason of a {kind}")),
        );
        if matches!(listed, Listed::All(_)) {
            wrong.extend(
                expected(kind).difference(reasons).map(|reason| format!("{page}, {heading}: {reason} is missing")),
            );
        }
    }
    let is_gone = |page: &str, heading: &str| !found.iter().any(|(of, under, _)| of == page && under == heading);
    wrong.extend(
        TABLES.iter().filter(|(page, heading, _)| is_gone(page, heading)).map(|it| format!("{it:?}: no table")),
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_column_of_reasons_is_found() {
    let page = "# Page\n## Status\n\n| `Ready` | reason | fix |\n|---|---|---|\n| False | `Suspended`, `B` | `Retrying` |\n\n| x | y |\n|---|---|\n| `D` | |\n";
    let found: Vec<_> = tables(page)
        .iter()
        .map(|table| (table.heading, table.reasons()))
        .map(|(heading, reasons)| (heading.to_owned(), reasons))
        .collect();
    let reasons = BTreeSet::from(["B".to_owned(), "Suspended".to_owned()]);
    assert_eq!(found, [("Status".to_owned(), Some(reasons)), ("Status".to_owned(), None)]);
}
