//! `chandler history`.

use crate::{
    CommandError,
    arguments::{connection::Connection, format::OutputFormat},
    read::cluster,
    view::{output, revisions},
};

/// Show the revisions of a BundleDeployment
///
/// Each revision is a change that was rolled out, with its source, release digest, outcome, duration and failure.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  A table on standard output, oldest revision first.

Exit codes: 0 success, 1 failed, 2 wrong usage

Examples:
  chandler history my-operator
  The digests of all releases that succeeded:
    chandler history my-operator -o json |
      jq '.[] | select(.outcome == \"Succeeded\") | .releaseDigest'")]
pub struct History {
    /// Name of the BundleDeployment
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Text)]
    pub output: OutputFormat,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl History {
    /// Prints the revisions.
    pub async fn run(&self) -> Result<(), CommandError> {
        let client = cluster::client(&self.connection).await?;
        let deployment = cluster::deployment(&client, &self.name).await?;
        match self.output {
            OutputFormat::Text => output::print(&revisions::table(&deployment)),
            OutputFormat::Json => output::print(&output::json(&revisions::history(&deployment))?),
        }
    }
}
