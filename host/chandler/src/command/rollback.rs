//! `chandler rollback`.

use crate::{
    CommandError,
    arguments::connection::Connection,
    read::cluster,
    view::{revisions, terminal::Terminal},
    write::rollback,
};

/// Roll back to an earlier revision
///
/// Sets spec.rollout.toRevision. The controller renders that revision again, checks that its release has the same digest, and rolls it
/// out as a new revision. While the field is set, other changes of the spec are not rolled out. --cancel removes the field.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The result on standard error.

Exit codes: 0 the field is set or removed, 1 failed, 2 wrong usage

Examples:
  Roll back to the last revision that succeeded with another release:
    chandler rollback my-operator
  Roll back to a revision of `chandler history`:
    chandler rollback my-operator --to 3
  Follow the rollout:
    chandler status my-operator --watch
  Cancel the rollback, and roll out the spec again:
    chandler rollback my-operator --cancel")]
pub struct Rollback {
    /// Name of the BundleDeployment
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Number of the revision [default: the last one that succeeded with another release]
    #[arg(long, value_name = "REVISION", value_parser = clap::value_parser!(i64).range(1..))]
    pub to: Option<i64>,

    /// Cancel a rollback, and roll out the spec again
    #[arg(long, conflicts_with = "to")]
    pub cancel: bool,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl Rollback {
    /// Sets or removes spec.rollout.toRevision.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let name = &self.name;
        let client = cluster::client(&self.connection).await?;
        let deployment = cluster::deployment(&client, name).await?;
        let number = if self.cancel { None } else { Some(revisions::target(&deployment, self.to)?.number) };
        rollback::set_revision(client, &deployment, number).await?;
        terminal.line(match number {
            Some(number) => format!(
                "rolling {name} back to revision {number}: `chandler status {name} --watch` follows the rollout, \
                 `chandler rollback {name} --cancel` cancels it"
            ),
            None => {
                format!("rolling out the spec of {name} again: `chandler status {name} --watch` follows the rollout")
            }
        });
        Ok(())
    }
}
