//! `chandler outdated`.

use chandler_api::BundleDeployment;
use chandler_catalog::IndexCatalogs;
use chandler_resolution::Claim;
use chandler_resolver::Catalogs as _;
use kube::{ResourceExt as _, api::ListParams};

use crate::{
    CommandError,
    arguments::{catalogs::CatalogArguments, format::ListFormat, values},
    read::{catalogs, cluster, cluster_catalogs::ClusterCatalogs, newer, package},
    view::{
        outdated::{self, Found},
        output,
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

impl Outdated {
    /// Prints the list.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let options = self.catalogs.options();
        let client = cluster::client(&options.connection).await?;
        let deployments = cluster::deployments(&client, &ListParams::default()).await?;
        let cluster = ClusterCatalogs::of(&options).with_client(&client).for_use_with(terminal);
        let catalogs = catalogs::selected(&options, &cluster).await?;
        let mut rows = Vec::new();
        let is_wanted = |deployment: &&BundleDeployment| {
            self.namespace.as_ref().is_none_or(|namespace| *namespace == deployment.spec.install_namespace)
        };
        for deployment in deployments.iter().filter(is_wanted) {
            let name = deployment.name_any();
            let Some(installed) = package::proven(deployment, &catalogs) else {
                if let Some(claim) = Claim::of(deployment).filter(|claim| is_offered(&claim.package, &catalogs)) {
                    terminal.line(claim.does_not_count("these catalogs"));
                }
                continue;
            };
            match newer::of(deployment, &catalogs) {
                Ok(Some(newer)) => match Found::new(deployment, installed.package, installed.version, newer) {
                    Found::Newer(row) => rows.push(*row),
                    Found::LeftOut(line) => terminal.line(line),
                },
                Ok(None) => {}
                Err(error) => terminal.line(one_line(&format!("{name} is left out: {error}"))),
            }
        }
        rows.sort_by(|one, other| one.name.cmp(&other.name));
        if rows.is_empty() && self.output.is_table() {
            terminal.line("no newer versions");
            return Ok(());
        }
        let text = || outdated::table(&rows, self.output.columns());
        output::print(&output::data(&rows, self.output.data(), text)?)?;
        if self.output.is_table() {
            for note in outdated::notes(&rows) {
                terminal.line(note);
            }
        }
        Ok(())
    }
}

/// Whether a catalog has a package.
fn is_offered(package: &str, catalogs: &IndexCatalogs) -> bool {
    catalogs.sources().iter().any(|source| matches!(catalogs.package(&source.name, package), Ok(Some(_))))
}
