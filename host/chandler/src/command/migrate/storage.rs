//! `chandler migrate storage`.

use kube::Client;

use crate::{
    CommandError,
    arguments::{connection::Connection, format::DataFormat},
    confirmation,
    read::{
        cluster,
        stored_versions::{self, OutdatedCrd},
    },
    signals,
    view::{
        self,
        failure::FailureKind,
        output,
        progress::Progress,
        storage_migration::{Migrated, Refused},
        terminal::Terminal,
        text::count,
    },
    write::storage_migration::{self as write, Cleared},
};

/// The objects of one CRD that the API server may refuse before the rest is left as it is.
const MOST_REFUSED: usize = 20;

/// Store all objects of Chandler in the current version of their CRDs
///
/// For each CRD of Chandler whose status.storedVersions lists an old version, the command writes every object again as it is, so that the
/// API server stores it in the current version, and then removes the old versions from the list. A later CRD can drop only versions that
/// are not in the list. Nothing in the objects changes. Without --apply, the command prints what it would do.
///
/// It can run while the controller and users work. Run it a minute or more after the CRDs were applied, so that every API server of the
/// cluster stores the current version. After a failure, run it again: it begins anew with the CRDs that are left.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The CRDs with the number of objects on standard output. Progress and the result on standard error.

Exit codes: 0 migrated, nothing to migrate, or without --apply printed; 1 failed, or an object was refused; 2 wrong
  usage; 8 refused, and nothing was changed; 130 interrupted

Examples:
  Print which CRDs list old versions:
    chandler migrate storage
  Rewrite their objects, after a confirmation:
    chandler migrate storage --apply
  Without a question:
    chandler migrate storage --apply --yes")]
pub struct Storage {
    /// Rewrite the objects, and remove the old versions from status.storedVersions
    #[arg(long)]
    pub apply: bool,

    /// With --apply: print what would be done, and change nothing. Without --apply, nothing is ever changed
    #[arg(long)]
    pub dry_run: bool,

    /// Do not ask for confirmation
    #[arg(short, long)]
    pub yes: bool,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = DataFormat::Text)]
    pub output: DataFormat,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

/// A CRD with the names of its objects.
type Found = (OutdatedCrd, Vec<String>);

impl Storage {
    /// Prints what is to be done, and with `--apply` does it.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let client = cluster::client(&self.connection.options()).await?;
        let mut found: Vec<Found> = Vec::new();
        for crd in stored_versions::outdated(&client).await? {
            let names = stored_versions::names(&client, &crd).await?;
            found.push((crd, names));
        }
        let all: Vec<Migrated> = found.iter().map(migrated).collect();
        output::print(&output::data(&all, self.output, || view::storage_migration::text(&all))?)?;
        if found.is_empty() {
            terminal.line("nothing to migrate: all objects of Chandler are stored in the current versions");
            return Ok(());
        }
        if !self.apply {
            terminal.line("nothing was changed: --apply migrates");
            return Ok(());
        }
        let objects = count(all.iter().map(|crd| crd.objects).sum(), "object");
        let question = format!("rewrite {objects} of {}?", count(all.len(), "CRD"));
        if self.dry_run || !confirmation::confirmed(terminal, &question, self.yes)? {
            terminal.line("nothing was changed");
            return Ok(());
        }
        let mut migration = Migration { client, progress: Progress::new(terminal), has_written: false };
        let done = signals::unless_interrupted(Box::pin(migration.run(&found))).await;
        migration.progress.finish();
        done.unwrap_or_else(|| Err(CommandError::interrupted().hint(AGAIN)))?;
        terminal.line(format!("migrated {objects} of {}", count(all.len(), "CRD")));
        Ok(())
    }
}

/// How to continue.
const AGAIN: &str = "`chandler migrate storage --apply` begins anew with the CRDs that are left";

fn migrated((crd, names): &Found) -> Migrated {
    let OutdatedCrd { name, storage, old, .. } = crd;
    Migrated { crd: name.clone(), storage_version: storage.clone(), removed: old.clone(), objects: names.len() }
}

/// A migration in progress.
struct Migration {
    client: Client,
    progress: Progress,
    /// Whether an object or a CRD was written.
    has_written: bool,
}

impl Migration {
    /// Migrates all CRDs that can be migrated, and then reports the others.
    async fn run(&mut self, found: &[Found]) -> Result<(), CommandError> {
        let mut first = None;
        for (crd, names) in found {
            match self.migrate(crd, names).await {
                Ok(()) => {
                    let (objects, old) = (count(names.len(), "object"), crd.old.join(", "));
                    let text = format!("{}: {objects} as {}, removed {old}", crd.name, crd.storage);
                    self.progress.report("migrated", &text);
                }
                Err(error) => {
                    self.progress.report("failed", &crd.name);
                    first.get_or_insert(error);
                }
            }
        }
        first.map_or(Ok(()), Err)
    }

    async fn migrate(&mut self, crd: &OutdatedCrd, names: &[String]) -> Result<(), CommandError> {
        let (mut refused, mut is_denied) = (Refused::default(), true);
        for (name, number) in names.iter().zip(1_usize..) {
            self.progress.busy(&format!("{}: {number} of {}", crd.name, names.len()));
            match write::rewrite(&self.client, crd, name).await {
                Ok(()) => self.has_written = true,
                Err(kube::Error::Api(status)) => {
                    is_denied &= FailureKind::of_status(&status) == FailureKind::Refused;
                    refused.add(name, &cluster::cause(&kube::Error::Api(status)));
                    if refused.number == MOST_REFUSED {
                        break;
                    }
                }
                Err(error) => {
                    let failed = CommandError::failed(format!("failed to rewrite {name} of CRD {}", crd.name));
                    return Err(failed.because(&error).hint(AGAIN));
                }
            }
        }
        if refused.number > 0 {
            let objects = count(refused.number, "object");
            let stays = crd.old.join(", ");
            let message =
                format!("the API server refuses {objects} of CRD {}: status.storedVersions keeps {stays}", crd.name);
            let is_refusal = is_denied && !self.has_written;
            let error = if is_refusal { CommandError::refused(message) } else { CommandError::failed(message) };
            return Err(refused.causes().into_iter().fold(error, CommandError::cause).hint(AGAIN));
        }
        match write::clear(&self.client, crd).await? {
            Cleared::Yes => {
                self.has_written = true;
                Ok(())
            }
            Cleared::Changed => Err(CommandError::failed(format!(
                "CRD {} was changed while its objects were rewritten: status.storedVersions keeps {}",
                crd.name,
                crd.old.join(", ")
            ))
            .hint(AGAIN)),
        }
    }
}
