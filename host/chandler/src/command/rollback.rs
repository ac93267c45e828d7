//! `chandler rollback`.

use chandler_api::Resolution;
use kube::Client;

use crate::{
    CommandError,
    arguments::{
        connection::Connection,
        controller_namespace::ControllerNamespaceArguments,
        dry_run::DryRun,
        target::{INSTALLED, Target},
        wait::Wait,
    },
    read::{classes, cluster, reported, settled},
    view::{decisions, revisions, terminal::Terminal, text::one_line},
    write::{resolution, rollback},
};

/// Roll back to an earlier revision, or a Resolution to an earlier decision
///
/// Sets spec.rollout.toRevision, and follows the rollout. The controller renders that revision again, checks that its release has the same digest, and rolls it
/// out as a new revision. While the field is set, other changes of the spec are not rolled out. --cancel removes the field. A revision that
/// another component of its provisioner class rendered needs that component: the controller takes it from its cache, or fetches it by digest.
///
/// Of a Resolution it sets spec.output.resolveSet.toDecision, and follows the rollout. While that field is set, nothing new is decided.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  Progress and the result on standard error.

Exit codes: 0 healthy, or the field is set or removed with --wait=false; 1 failed; 2 wrong usage;
  3 not healthy before the timeout; 6 a change waits for approval; 7 not found; 8 refused

Examples:
  Roll back to the last revision that succeeded with another release:
    chandler rollback my-operator
  Roll back to a revision of `chandler history`:
    chandler rollback my-operator --to 3
  Without waiting:
    chandler rollback my-operator --wait=false
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

    /// Whether anything is written.
    #[command(flatten)]
    pub dry_run: DryRun,

    /// Whether and how long the command waits.
    #[command(flatten)]
    pub waiting: Wait,

    /// Where the Lease of the controller is.
    #[command(flatten)]
    pub controller: ControllerNamespaceArguments,

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
        rollback::set_revision(client.clone(), &deployment, number, self.dry_run.effect()).await?;
        let follow = if self.waiting.wait { "" } else { ": `chandler status NAME --watch` follows the rollout" };
        let follow = follow.replace("NAME", name);
        terminal.line(match number {
            Some(number) => self.dry_run.line(
                &format!(
                    "rolling {name} back to revision {number}; `chandler rollback {name} --cancel` cancels it{follow}"
                ),
                &format!("roll {name} back to revision {number}"),
            ),
            None => self.dry_run.line(
                &format!("rolling out the spec of {name} again{follow}"),
                &format!("roll out the spec of {name} again"),
            ),
        });
        if self.is_followed() {
            let namespace = Some(self.controller.system_namespace.as_str());
            settled::until_healthy(&client, name, namespace, terminal, self.waiting.timeout).await?;
        }
        Ok(())
    }

    /// Whether the command follows the rollout.
    fn is_followed(&self) -> bool {
        self.waiting.wait && !self.dry_run.dry_run
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
            resolution::set_decision(client, &found, None, self.dry_run.effect()).await?;
            let done = format!("{target} follows the catalogs again");
            terminal.line(self.dry_run.line(&done, &format!("let {target} follow the catalogs again")));
        } else {
            let decision = decisions::target(&found, self.to)?;
            let number = decision.number;
            resolution::set_decision(client, &found, Some(number), self.dry_run.effect()).await?;
            let done = format!(
                "rolling {target} back to decision {number}: nothing new is decided until `chandler rollback {target} --undo` lets it \
                 follow the catalogs again"
            );
            terminal.line(self.dry_run.line(&done, &format!("roll {target} back to decision {number}")));
        }
        if self.is_followed() {
            let namespace = self.controller.system_namespace.as_str();
            reported::until_ready::<Resolution>(client, name, namespace, terminal, self.waiting.timeout).await?;
        }
        Ok(())
    }
}
