//! BundleDeployments for which catalogs have a newer version, for `chandler outdated`.

use chandler_api::BundleDeployment;
use chandler_catalog::upgrade::Newer;
use serde::Serialize;

use super::{
    overview::Overview,
    table::{self, Column, Fit},
    text::one_line,
};

/// A BundleDeployment that is outdated.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The name of the BundleDeployment.
    pub name: String,
    /// The package that is installed.
    pub package: String,
    /// The version that is installed.
    pub version: String,
    /// The newest version, and how to get there.
    pub newer: Newer,
    /// What waits, or keeps a newer spec from running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<String>,
}

/// What the catalogs mean for a BundleDeployment.
#[derive(Clone, Debug)]
pub enum Found {
    /// A newer version.
    Newer(Box<Row>),
    /// A newer version that is not listed, with the reason: an upgrade would end a rollback of the user.
    LeftOut(String),
}

impl Found {
    /// For a BundleDeployment with this package and version, which the catalogs have in a newer version.
    pub fn new(deployment: &BundleDeployment, package: String, version: String, newer: Newer) -> Self {
        let overview = Overview::of(deployment);
        if let Some(pinned) = overview.pinned_text() {
            return Self::LeftOut(one_line(&format!("{} is left out: {pinned}", overview.name)));
        }
        let waits = overview.waits();
        Self::Newer(Box::new(Row { name: overview.name, package, version, newer, waits }))
    }
}

const COLUMNS: [Column<Row>; 6] = [
    Column::new("NAME", Fit::Full, |row| row.name.clone()),
    Column::new("PACKAGE", Fit::Drop, |row| row.package.clone()),
    Column::new("VERSION", Fit::Full, |row| row.version.clone()),
    Column::new("NEWER", Fit::Full, |row| row.newer.version.clone()),
    Column::new("NEXT", Fit::Full, |row| row.newer.steps.first().unwrap_or(&row.newer.version).clone()),
    Column::new("CATALOG", Fit::Drop, |row| row.newer.catalog.clone()),
];

/// The table, in `width` columns where that is possible.
pub fn table(rows: &[Row], width: Option<usize>) -> String {
    table::text(&COLUMNS, rows, width)
}

/// A line for each row that waits.
pub fn notes(rows: &[Row]) -> Vec<String> {
    let waits = rows.iter().filter_map(|row| Some((&row.name, row.waits.as_ref()?)));
    waits.map(|(name, waits)| one_line(&format!("{name}: {waits}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_step_stands_beside_the_newest_version() {
        let newer = |steps: &[&str]| Newer {
            version: "2.0.0".to_owned(),
            catalog: "ours".to_owned(),
            image: "quay.io/example/shop:v2".to_owned(),
            steps: steps.iter().map(|step| (*step).to_owned()).collect(),
        };
        let row = |name: &str, steps: &[&str]| Row {
            name: name.to_owned(),
            package: "shop".to_owned(),
            version: "1.0.0".to_owned(),
            newer: newer(steps),
            waits: None,
        };
        insta::assert_snapshot!(table(&[row("a", &["1.5.0", "2.0.0"]), row("b", &["2.0.0"])], Some(80)), @r"
        NAME  PACKAGE  VERSION  NEWER  NEXT   CATALOG
        a     shop     1.0.0    2.0.0  1.5.0  ours
        b     shop     1.0.0    2.0.0  2.0.0  ours
        ");
    }
}
