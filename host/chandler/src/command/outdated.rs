//! `chandler outdated`.

use chandler_api::BundleDeployment;
use chandler_catalog::{IndexCatalogs, upgrade::Newer};
use chandler_resolution::Claim;
use chandler_resolver::Catalogs as _;
use kube::{Api, ResourceExt as _, api::ListParams};
use serde::Serialize;

use crate::{
    CommandError,
    arguments::{catalogs::CatalogArguments, format::ListFormat, values},
    read::{catalogs, cluster, cluster_catalogs::ClusterCatalogs, newer, package},
    view::{
        output,
        overview::Overview,
        table::{self, Column, Fit},
        terminal::Terminal,
        text::one_line,
    },
};

/// List BundleDeployments for which catalogs have a newer version
///
/// A newer version is one that the upgrades of the channels lead to from the version that is installed, in the Catalogs of the cluster, or
/// in --catalog. Dependencies are ignored. A BundleDeployment that `chandler rollback` keeps at a revision is left out, since an upgrade would
/// end the rollback. A bundle is looked up by its image: a bundle that only claims to be a package of a catalog is
/// listed as skipped.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  A table on standard output; NEXT is the first step where an upgrade needs several. With -o json
  and yaml also the image of the newest version and all steps. What waits, such as a version that
  needs approval, is on standard error; in JSON it is `waits`.

Exit codes: 0 success, also if something is outdated; 1 failed; 2 wrong usage

Examples:
  chandler outdated
  Upgrade one of them:
    chandler upgrade harbour
  The commands that upgrade all:
    chandler outdated -o json | jq -r '.[] | \"chandler upgrade \\(.name) --yes\"'")]
pub struct Outdated {
    /// Only those that install into this namespace
    #[arg(short, long, value_name = "NAMESPACE", value_parser = values::dns_label)]
    pub namespace: Option<String>,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = ListFormat::Text)]
    pub output: ListFormat,

    /// The catalogs.
    #[command(flatten)]
    pub catalogs: CatalogArguments,
}

/// A BundleDeployment that is outdated.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    name: String,
    package: String,
    version: String,
    newer: Newer,
    /// What waits, or keeps a newer spec from running.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<String>,
}

impl Outdated {
    /// Prints the list.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let options = self.catalogs.options();
        let client = cluster::client(&options.connection).await?;
        let deployments = Api::<BundleDeployment>::all(client.clone()).list(&ListParams::default()).await;
        let deployments =
            deployments.map_err(|error| CommandError::failed("failed to list BundleDeployments").because(&error))?;
        let cluster = ClusterCatalogs::of(&options).with_client(&client).for_use_with(terminal);
        let catalogs = catalogs::selected(&options, &cluster).await?;
        let mut rows = Vec::new();
        let is_wanted = |deployment: &&BundleDeployment| {
            self.namespace.as_ref().is_none_or(|namespace| *namespace == deployment.spec.install_namespace)
        };
        for deployment in deployments.items.iter().filter(is_wanted) {
            let name = deployment.name_any();
            let Some(installed) = package::proven(deployment, &catalogs) else {
                if let Some(claim) = Claim::of(deployment).filter(|claim| is_offered(&claim.package, &catalogs)) {
                    terminal.line(claim.does_not_count("these catalogs"));
                }
                continue;
            };
            match newer::of(deployment, &catalogs) {
                Ok(Some(_)) if newer::is_pinned(deployment) => {
                    let pinned = Overview::of(deployment).pinned_text().unwrap_or_default();
                    terminal.line(one_line(&format!("{name} is left out: {pinned}")));
                }
                Ok(Some(newer)) => {
                    let waits = Overview::of(deployment).waits();
                    rows.push(Row { name, package: installed.package, version: installed.version, newer, waits });
                }
                Ok(None) => {}
                Err(error) => terminal.line(one_line(&format!("{name} is left out: {error}"))),
            }
        }
        rows.sort_by(|one, other| one.name.cmp(&other.name));
        if rows.is_empty() && self.output.is_table() {
            terminal.line("no newer versions");
            return Ok(());
        }
        output::print(&output::data(&rows, self.output.data(), || text(&rows, self.output.columns()))?)?;
        if self.output.is_table() {
            for Row { name, waits, .. } in &rows {
                if let Some(waits) = waits {
                    terminal.line(one_line(&format!("{name}: {waits}")));
                }
            }
        }
        Ok(())
    }
}

/// Whether a catalog has a package.
fn is_offered(package: &str, catalogs: &IndexCatalogs) -> bool {
    catalogs.sources().iter().any(|source| matches!(catalogs.package(&source.name, package), Ok(Some(_))))
}

const COLUMNS: [Column<Row>; 6] = [
    Column::new("NAME", Fit::Full, |row| row.name.clone()),
    Column::new("PACKAGE", Fit::Drop, |row| row.package.clone()),
    Column::new("VERSION", Fit::Full, |row| row.version.clone()),
    Column::new("NEWER", Fit::Full, |row| row.newer.version.clone()),
    Column::new("NEXT", Fit::Full, |row| row.newer.steps.first().unwrap_or(&row.newer.version).clone()),
    Column::new("CATALOG", Fit::Drop, |row| row.newer.catalog.clone()),
];

fn text(rows: &[Row], width: Option<usize>) -> String {
    table::text(&COLUMNS, rows, width)
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
        insta::assert_snapshot!(text(&[row("a", &["1.5.0", "2.0.0"]), row("b", &["2.0.0"])], Some(80)), @r"
        NAME  PACKAGE  VERSION  NEWER  NEXT   CATALOG
        a     shop     1.0.0    2.0.0  1.5.0  ours
        b     shop     1.0.0    2.0.0  2.0.0  ours
        ");
    }
}
