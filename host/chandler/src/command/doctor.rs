//! `chandler doctor`.

use crate::{
    CommandError,
    arguments::{connection::Connection, controller_namespace::ControllerNamespaceArguments, format::ListFormat},
    read::{cluster, doctor},
    view::{
        doctor::{State, text},
        output,
    },
};

/// Check the installation of Chandler on a cluster
///
/// Compares the CRDs, permissions, admission policies and the FlowSchema with this version of the command, looks for a controller that
/// holds its Lease, and counts the objects that are not ready. It writes nothing. What the caller may not read is reported as Unknown.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  A table of findings on standard output, and the commands that help.

  A Warning is not an error: optional objects are missing, or an object differs from this version
  of the command, for example because another version is installed.

Exit codes: 0 no problem, 1 a problem was found, 2 wrong usage

Examples:
  chandler doctor
  The findings that are not OK:
    chandler doctor -o json | jq '.[] | select(.state != \"OK\")'")]
pub struct Doctor {
    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = ListFormat::Text)]
    pub output: ListFormat,

    /// Where the controller is.
    #[command(flatten)]
    pub controller: ControllerNamespaceArguments,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl Doctor {
    /// Prints the findings.
    pub async fn run(&self) -> Result<(), CommandError> {
        let client = cluster::client(&self.connection.options()).await?;
        let findings = doctor::findings(&client, &self.controller.system_namespace).await;
        let findings =
            findings.map_err(|error| CommandError::failed("failed to check the installation").because(&error))?;
        let table = || text(&findings, self.output.frame());
        output::print(&output::data(&findings, self.output.data(), table)?)?;
        match findings.iter().filter(|finding| finding.state == State::Problem).count() {
            0 => Ok(()),
            1 => Err(CommandError::failed("one problem was found")),
            count => Err(CommandError::failed(format!("{count} problems were found"))),
        }
    }
}
