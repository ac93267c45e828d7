//! `chandler rollback`.

use std::time::Duration;

use chandler_api::Resolution;
use kube::Client;

use crate::{
    CommandError,
    arguments::{
        connection::Connection,
        target::{INSTALLED, Target},
        values,
    },
    read::{classes, cluster, reported},
    view::{decisions, revisions, terminal::Terminal, text::one_line},
    write::{resolution, rollback},
};

/// Roll back to an earlier revision, or a Resolution to an earlier decision
///
/// Sets spec.rollout.toRevision. The controller renders that revision again, checks that its release has the same digest, and rolls it
/// out as a new revision. While the field is set, other changes of the spec are not rolled out. --cancel removes the field. A revision that
/// another component of its provisioner class rendered needs that component: the controller takes it from its cache, or fetches it by digest.
///
/// Of a Resolution it sets spec.output.resolveSet.toDecision, and follows the rollout. While that field is set, nothing new is decided.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The result on standard error; for a Resolution, progress too.

Exit codes: 0 the field is set or removed, and the set of a Resolution is healthy; 1 failed; 2 wrong
  usage; 3 the set is not healthy before the timeout; 6 a change of the set waits for approval

Examples:
  Roll back to the last revision that succeeded with another release:
    chandler rollback my-operator
  Roll back to a revision of `chandler history`:
    chandler rollback my-operator --to 3
  Follow the rollout:
    chandler status my-operator --watch
  Cancel the rollback, and roll out the spec again:
    chandler rollback my-operator --cancel
  Install the decision before the current one again, then follow the catalogs again:
    chandler rollback resolution/shop
    chandler rollback resolution/shop --undo")]
pub struct Rollback {
    /// Name of the BundleDeployment, or `resolution/NAME`
    #[arg(value_name = "NAME", value_parser = INSTALLED.target())]
    pub name: Target,

    /// Number of the revision or decision [default: the last revision that succeeded with another release; the decision before the
    /// current one]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i64).range(1..))]
    pub to: Option<i64>,

    /// Cancel a rollback: roll out the spec again, or let a Resolution follow the catalogs again
    #[arg(long, visible_alias = "undo", conflicts_with = "to")]
    pub cancel: bool,

    /// Follow the set of a Resolution until it is healthy or waits for a user. `--wait=false` returns at once
    #[arg(long, value_name = "BOOL", default_value_t = true, default_missing_value = "true", num_args = 0..=1,
          require_equals = true, action = clap::ArgAction::Set)]
    pub wait: bool,

    /// Timeout of --wait
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = values::duration)]
    pub timeout: Duration,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl Rollback {
    /// Sets or removes the field.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let client = cluster::client(&self.connection.options()).await?;
        if self.name.is_resolution() {
            return self.roll_resolution(&client, terminal).await;
        }
        let name = &self.name.name;
        let deployment = cluster::deployment(&client, name).await?;
        let revision = if self.cancel { None } else { Some(revisions::target(&deployment, self.to)?) };
        if let Some(note) = match revision {
            Some(revision) => classes::rollback_note(&client, &deployment, revision).await?,
            None => None,
        } {
            terminal.line(format!("note: {}", one_line(&note)));
        }
        let number = revision.map(|revision| revision.number);
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

    /// Sets or removes the decision that a Resolution goes back to, and follows its set.
    async fn roll_resolution(&self, client: &Client, terminal: &Terminal) -> Result<(), CommandError> {
        let (target, name) = (&self.name, self.name.name.as_str());
        let found = reported::get::<Resolution>(client, name).await?;
        if self.cancel {
            if decisions::pinned(&found).is_none() {
                terminal.line(format!("{target} follows the catalogs already"));
                return Ok(());
            }
            resolution::set_decision(client, &found, None).await?;
            terminal.line(format!("{target} follows the catalogs again"));
        } else {
            let decision = decisions::target(&found, self.to)?;
            resolution::set_decision(client, &found, Some(decision.number)).await?;
            terminal.line(format!(
                "rolling {target} back to decision {}: nothing new is decided until `chandler rollback {target} --undo` lets it follow \
                 the catalogs again",
                decision.number
            ));
        }
        if self.wait {
            reported::until_ready::<Resolution>(client, name, terminal, self.timeout).await?;
        }
        Ok(())
    }
}
