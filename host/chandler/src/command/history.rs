//! `chandler history`.

use chandler_api::Resolution;

use crate::{
    CommandError,
    arguments::{
        connection::Connection,
        format::ListFormat,
        target::{INSTALLED, Target},
    },
    read::{cluster, reported},
    view::{decisions, output, revisions},
};

/// Show the revisions of a BundleDeployment, or the decisions of a Resolution
///
/// Each revision is a change that was rolled out, with its version, source, release digest, outcome, duration and failure. The version
/// that the spec describes and that is not installed follows. The decisions of a Resolution are those that are kept for a rollback, each
/// with its packages and versions.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  A table on standard output, the oldest first. On a narrow terminal it leaves out digests;
  -o wide never does.

Exit codes: 0 success, 1 failed, 2 wrong usage, 7 not found

Examples:
  chandler history my-operator
  chandler history resolution/shop
  The digests of all releases that succeeded:
    chandler history my-operator -o json |
      jq '.[] | select(.outcome == \"Succeeded\") | .releaseDigest'")]
pub struct History {
    /// Name of the BundleDeployment, or `resolution/NAME`
    #[arg(value_name = "NAME", value_parser = INSTALLED.target())]
    pub name: Target,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = ListFormat::Text)]
    pub output: ListFormat,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl History {
    /// Prints the revisions.
    pub async fn run(&self) -> Result<(), CommandError> {
        let client = cluster::client(&self.connection.options()).await?;
        if self.name.is_resolution() {
            let resolution = reported::get::<Resolution>(&client, &self.name.name).await?;
            let text = || decisions::table(&resolution, self.output.columns());
            return output::print(&output::data(&decisions::history(&resolution), self.output.data(), text)?);
        }
        let deployment = cluster::deployment(&client, &self.name.name).await?;
        let text = || revisions::table(&deployment, self.output.frame());
        output::print(&output::data(&revisions::history(&deployment), self.output.data(), text)?)
    }
}
