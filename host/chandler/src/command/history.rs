//! `chandler history`.

use crate::{
    CommandError,
    arguments::{connection::Connection, format::OutputFormat},
    read::cluster,
    view::{output, revisions, terminal::Terminal},
};

/// Show the revisions of a BundleDeployment
///
/// Each revision is a change that was rolled out, with its version, source, release digest, outcome, duration and failure. The version
/// that the spec describes and that is not installed follows.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  A table on standard output, oldest revision first. On a narrow terminal it leaves out digests.

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
            OutputFormat::Text => output::print(&revisions::table(&deployment, Terminal::output().columns())),
            OutputFormat::Json => output::print(&output::json(&revisions::history(&deployment))?),
        }
    }
}
