//! `chandler history`.

use std::path::PathBuf;

use super::status::StatusFormat;
use crate::{CommandError, live, output, revisions};

/// Show the revisions of a BundleDeployment
///
/// Each change that was rolled out: what it was made from, what came out, how it went and why it failed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  A table on standard output, the oldest revision first.

Exit codes: 0 shown, 1 not readable, 2 wrong usage

Examples:
  chandler history my-operator
  The releases that ever succeeded:
    chandler history my-operator -o json | jq '.[] | select(.outcome == \"Succeeded\") | .releaseDigest'")]
pub struct History {
    /// The name of the BundleDeployment
    #[arg(value_name = "NAME")]
    pub name: String,

    /// The form of the output
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = StatusFormat::Text)]
    pub output: StatusFormat,

    /// The kubeconfig to use [default: $KUBECONFIG, else ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

impl History {
    /// Shows them.
    pub async fn run(&self) -> Result<(), CommandError> {
        let client = live::client(self.kubeconfig.as_deref()).await?;
        let deployment = live::deployment(&client, &self.name).await?;
        match self.output {
            StatusFormat::Text => output::print(&revisions::table(&deployment)),
            StatusFormat::Json => output::print(&output::json(&revisions::history(&deployment))?),
        }
    }
}
