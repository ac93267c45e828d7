//! `chandler migrate`.

mod handover;
pub mod helm;
mod payload;
pub mod storage;

use chandler_api::{BundleDeployment, ServiceAccountReference};
use chandler_content::ImageReference;
use chandler_permissions::DefaultAccount;
use kube::Client;
use serde_json::Value;

use crate::{
    CommandError,
    arguments::{
        catalogs::Fetching, connection::Connection, system_namespace::SystemNamespaceArguments, values, wait::Wait,
    },
    migrate::{ForeignObject, Migration, pending},
    read::{
        cluster, installations,
        installations::{Installations, Installer},
    },
    view::{
        invocation::quoted,
        manifest,
        output::{self, Format},
        terminal::Terminal,
        text::{count, one_line},
    },
};

/// Migrate from OLM or rukpak, or to the current versions of the CRDs
///
/// Reads the Subscriptions, ClusterExtensions or BundleDeployments (v1alpha1) of a cluster, and prints BundleDeployments that install the
/// same versions, with a note for everything that has no equivalent. Nothing is changed.
///
/// With --apply, the command creates these BundleDeployments and hands over to them what runs: it renders each bundle, lists
/// the objects that exist in spec.adopt, and refuses if one of them does not belong to the installation, if the catalog does not have the
/// image, if new objects would be created, if a Pod template would change, or if the ServiceAccount does not exist or lacks permissions.
/// Then it creates the BundleDeployment, waits until it has adopted the objects and is healthy, and only then deletes the objects of the
/// old installer, without what depends on them. After a failure the old installer is still in place: run the command again with the names
/// of the objects, and it continues. Stop the controllers of the old installer before, since they would restore what they own.
///
/// With cvo, the command asks no cluster: it prints the PlatformOperator of a component, which files become its bundle, and the steps
/// by which it moves from the release payload to a package while it keeps running.
///
/// `chandler migrate helm` is for releases of Helm. `chandler migrate storage` is for the objects of Chandler: it stores them in the current versions of
/// their CRDs.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_long_help = "\
Output:
  The objects on standard output, for `kubectl apply -f -`. The notes, and with --apply what is adopted and deleted
  and the progress, on standard error.

Exit codes: 0 translated, nothing to migrate, or with --apply healthy; 1 failed; 2 wrong usage;
  3 not healthy before the timeout; 7 not found; 8 refused, and nothing was changed

Examples:
  Print what Subscriptions amount to:
    chandler migrate olm
  The same as Resolutions, which follow channels and ranges:
    chandler migrate olm --as resolution
  Migrate one Subscription:
    chandler migrate olm operators/etcd --apply
  Migrate all ClusterExtensions, without a question:
    chandler migrate olmv1 --apply --yes
  Plan how a component leaves the release payload:
    chandler migrate cvo ./manifests service-mesh")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct Migrate {
    /// A migration of another kind.
    #[command(subcommand)]
    pub command: Option<MigrateCommand>,

    /// What installed the bundles
    #[arg(value_enum, value_name = "INSTALLER", required = true)]
    pub installer: Option<Installer>,

    /// Objects to migrate [default: all]. With cvo: the directory of the manifests, and the name of the package [default: the name of the
    /// directory]
    #[arg(value_name = "[NAMESPACE/]NAME")]
    pub objects: Vec<String>,

    /// What to print
    #[arg(long = "as", value_enum, value_name = "KIND", default_value_t = Target::BundleDeployment)]
    pub target: Target,

    /// Create the BundleDeployments, and let them adopt what runs
    #[arg(long)]
    pub apply: bool,

    /// With --apply: print the objects that would be adopted and deleted, check everything, and change nothing. Without --apply, nothing is
    /// ever changed
    #[arg(long)]
    pub dry_run: bool,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Yaml)]
    pub output: Format,

    /// Migrate even if Pods restart
    #[arg(long, requires = "apply")]
    pub allow_restart: bool,

    /// Create objects of the bundle that do not exist, also if they grant what OLM has not granted
    #[arg(long, requires = "apply")]
    pub allow_new: bool,

    /// ServiceAccount of the BundleDeployments (spec.serviceAccount). Without NAMESPACE it is in the namespace to install into [default:
    /// as the old installer has it]
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    pub service_account: Option<DefaultAccount>,

    /// BundleDeployments without a ServiceAccount: the controller installs with its own permissions, as OLM v1 does, or with the
    /// permissions of its --default-service-account
    #[arg(long, conflicts_with = "service_account")]
    pub no_service_account: bool,

    /// Do not ask for confirmation
    #[arg(short, long)]
    pub yes: bool,

    /// Image of the bundle of an object, where no catalog has it. Repeatable
    #[arg(long = "image", value_name = "NAME=IMAGE", value_parser = image)]
    pub images: Vec<(String, String)>,

    /// Label of the objects. Repeatable
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = values::label)]
    pub labels: Vec<(String, String)>,

    /// Whether the command waits.
    #[command(flatten)]
    pub waiting: Wait,

    /// How images and catalogs are fetched.
    #[command(flatten)]
    pub fetching: Fetching,

    /// Where the controller is.
    #[command(flatten)]
    pub system: SystemNamespaceArguments,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

/// Migrations of another kind.
#[derive(Debug, clap::Subcommand)]
#[expect(missing_docs, reason = "a doc comment would replace the help text of the arguments type")]
pub enum MigrateCommand {
    Helm(Box<helm::Helm>),
    Storage(storage::Storage),
}

/// What a foreign object is translated into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "lower")]
pub enum Target {
    /// BundleDeployments, which install what is installed
    BundleDeployment,
    /// Resolutions, which ask for the package, its channels and its range
    Resolution,
}

fn image(text: &str) -> Result<(String, String), String> {
    match text.split_once('=').filter(|(name, image)| !name.is_empty() && !image.is_empty()) {
        Some((name, image)) => Ok((name.to_owned(), image.to_owned())),
        None => Err(format!("{text:?} is not an image of an object: write `NAME=IMAGE`")),
    }
}

/// Whether two references name the same image: the same text, or the same content.
fn is_same_image(one: &str, other: &str) -> bool {
    let digest = |text: &str| text.parse::<ImageReference>().ok()?.digest().cloned();
    one == other || digest(one).is_some_and(|one| digest(other) == Some(one))
}

impl Migrate {
    /// Prints the translation, and with `--apply` carries it out.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        match &self.command {
            Some(MigrateCommand::Helm(helm)) => return Box::pin(helm.run(terminal)).await,
            Some(MigrateCommand::Storage(storage)) => return storage.run(terminal).await,
            None => {}
        }
        let installer = self.installer()?;
        self.check(installer)?;
        if installer == Installer::Cvo {
            return payload::run(self, terminal);
        }
        let client = cluster::client(&self.connection.options()).await?;
        self.run_on(client, terminal).await
    }

    /// What to migrate from. clap requires it without a subcommand.
    fn installer(&self) -> Result<Installer, CommandError> {
        self.installer.ok_or_else(|| CommandError::usage("the installer to migrate from is missing"))
    }

    /// Like [`run`](Self::run), with a client for the cluster.
    pub async fn run_on(&self, client: Client, terminal: &Terminal) -> Result<(), CommandError> {
        let installer = self.installer()?;
        let begun = if self.apply { self.begun(installer, &client).await? } else { Vec::new() };
        let kind = installer.kind();
        let found = installations::read(&client, installer).await?;
        if found.is_none() && begun.is_empty() {
            terminal.line(format!(
                "nothing to migrate: the cluster does not serve {}/{} {}",
                kind.group, kind.version, kind.kind
            ));
            return Ok(());
        }
        let Installations { migrations, notes } = found.unwrap_or_default();
        let mut migrations = self.selected(installer, migrations, &begun)?;
        if migrations.is_empty() && begun.is_empty() {
            terminal.line(format!("nothing to migrate: the cluster has no {}", kind.kind));
        }
        self.find_images(&client, &mut migrations).await;
        self.set_accounts(installer, &mut migrations);
        self.print(&migrations, terminal)?;
        for note in &notes {
            terminal.line(format!("note: {}", one_line(note)));
        }
        self.check_translated(&migrations)?;
        if self.apply && !(migrations.is_empty() && begun.is_empty()) {
            return Box::pin(handover::run(self, &client, &migrations, &begun, terminal)).await;
        }
        if !migrations.is_empty() {
            terminal.line("nothing was changed: --apply migrates");
        }
        Ok(())
    }

    /// Refuses combinations that cannot work.
    fn check(&self, installer: Installer) -> Result<(), CommandError> {
        if self.apply && self.target == Target::Resolution {
            return Err(CommandError::usage("--apply creates BundleDeployments, not Resolutions")
                .hint("migrate first; then create the Resolution that `--as resolution` prints"));
        }
        if self.apply && installer == Installer::Cvo {
            return Err(CommandError::usage(
                "--apply is not possible for a release payload: its next version drops the manifests",
            ));
        }
        if self.apply && installer == Installer::Rukpak {
            return Err(CommandError::usage(
                "--apply is not possible for rukpak: v1alpha1 and v1alpha2 of BundleDeployments have one CRD",
            )
            .hint("save the output without --apply, delete the old objects with --cascade=orphan, replace the CRDs, and apply the output")
            .hint("docs/coming-from-olm.md lists the steps"));
        }
        Ok(())
    }

    /// The BundleDeployments whose migration has begun.
    async fn begun(&self, installer: Installer, client: &Client) -> Result<Vec<BundleDeployment>, CommandError> {
        let kind = installer.kind().kind;
        let is_meant = |first: &ForeignObject| {
            first.kind == kind && (self.objects.is_empty() || self.objects.iter().any(|by| first.is_named(by)))
        };
        handover::begun(client, |_, first| is_meant(first)).await
    }

    /// The migrations that the arguments name, without those that have begun.
    fn selected(
        &self,
        installer: Installer,
        migrations: Vec<Migration>,
        begun: &[BundleDeployment],
    ) -> Result<Vec<Migration>, CommandError> {
        let begun: Vec<String> = begun
            .iter()
            .filter_map(pending::managers)
            .filter_map(|managers| managers.into_iter().next())
            .map(|manager| manager.uid)
            .collect();
        let missing = self.objects.iter().find(|by| !migrations.iter().any(|migration| migration.from.is_named(by)));
        if let Some(by) = missing.filter(|_| begun.is_empty()) {
            let kind = installer.kind().kind;
            return Err(CommandError::not_found(format!("there is no {kind} {by}")));
        }
        let named = |migration: &Migration| {
            self.objects.is_empty() || self.objects.iter().any(|by| migration.from.is_named(by))
        };
        Ok(migrations
            .into_iter()
            .filter(|migration| named(migration) && !begun.contains(&migration.from.uid))
            .collect())
    }

    /// Looks up the images in the catalogs. One that only the objects of the installation name is not confirmed; a note says why.
    async fn find_images(&self, client: &Client, migrations: &mut [Migration]) {
        let (connection, fetching) = (self.connection.options(), self.fetching.options());
        for migration in migrations {
            if let Some((_, image)) = self.images.iter().find(|(name, _)| migration.from.is_named(name)) {
                migration.set_image(image);
                continue;
            }
            let Some(wanted) = migration.image.clone().filter(|_| migration.spec.is_some()) else { continue };
            let place = (&connection, self.system.system_namespace.as_str());
            let listed = installations::image(client, place, &fetching, &wanted).await;
            let problem = match (listed, migration.known_image()) {
                (Ok(Some(image)), None) => {
                    migration.set_image(&image);
                    continue;
                }
                (Ok(Some(image)), Some(known)) if is_same_image(&image, known) => continue,
                (Ok(Some(image)), Some(known)) => {
                    format!(
                        "the catalog has image {image} for bundle {}, and an InstallPlan names {known}",
                        wanted.bundle
                    )
                }
                (Ok(None), _) => format!("no catalog has an image for bundle {}", wanted.bundle),
                (Err(error), None) => format!("the image of bundle {} is not known: {error}", wanted.bundle),
                (Err(error), Some(known)) => {
                    format!("no catalog confirms that image {known} belongs to bundle {}: {error}", wanted.bundle)
                }
            };
            migration.unconfirmed = migration.known_image().map(|_| problem.clone());
            migration.note(problem);
        }
    }

    /// Sets the ServiceAccount that the arguments name, and says what the one of the old installer has to be permitted.
    fn set_accounts(&self, installer: Installer, migrations: &mut [Migration]) {
        for migration in migrations {
            if self.no_service_account {
                migration.set_service_account(None);
            } else if let Some(DefaultAccount { namespace, name }) = self.service_account.clone() {
                migration.set_service_account(Some(ServiceAccountReference { name, namespace }));
            }
            if installer == Installer::Olmv1
                && let Some(command) = migration.rbac_command()
            {
                migration.note(format!(
                    "OLM v1 ignores spec.serviceAccount and installs with its own permissions, and Chandler uses only the account's permissions: \
                     `{command} | kubectl apply -f -` grants what it needs, --service-account names another one, and with \
                     --no-service-account the controller installs with its own permissions"
                ));
            }
        }
    }

    /// Prints the objects, and the notes.
    fn print(&self, migrations: &[Migration], terminal: &Terminal) -> Result<(), CommandError> {
        let objects: Result<Vec<Value>, CommandError> =
            migrations.iter().filter_map(|migration| self.object(migration).transpose()).collect();
        let objects = objects?;
        if !objects.is_empty() {
            output::print(&output::write(&objects, self.output)?)?;
        }
        for migration in migrations {
            for note in &migration.notes {
                terminal.line(format!("note: {}: {}", migration.from, one_line(note)));
            }
            if migration.spec.is_some() && self.target == Target::Resolution {
                terminal.line(format!(
                    "note: {}: a Resolution may choose another version than the installed one, and adopts nothing: use it after --apply",
                    migration.from
                ));
            }
        }
        Ok(())
    }

    /// What is printed of a migration.
    fn object(&self, migration: &Migration) -> Result<Option<Value>, CommandError> {
        let failed =
            |error: serde_json::Error| CommandError::failed("failed to write the objects as YAML").because(&error);
        let value = match self.target {
            Target::BundleDeployment => self.deployment(migration).map(serde_json::to_value),
            Target::Resolution => migration.resolution().map(|mut resolution| {
                kube::ResourceExt::labels_mut(&mut resolution).extend(self.labels.iter().cloned());
                serde_json::to_value(resolution)
            }),
        };
        Ok(value.transpose().map_err(failed)?.map(manifest::manifest))
    }

    /// The BundleDeployment of a migration.
    fn deployment(&self, migration: &Migration) -> Option<BundleDeployment> {
        let mut deployment = migration.deployment()?;
        if !self.labels.is_empty() {
            kube::ResourceExt::labels_mut(&mut deployment).extend(self.labels.iter().cloned());
        }
        Some(deployment)
    }

    /// Fails if an image is missing.
    fn check_translated(&self, migrations: &[Migration]) -> Result<(), CommandError> {
        if self.target == Target::Resolution {
            return Ok(());
        }
        let lacking: Vec<&Migration> = migrations.iter().filter(|migration| migration.lacks_image()).collect();
        let Some(first) = lacking.first() else { return Ok(()) };
        Err(CommandError::failed(format!(
            "the image of {} is not known, as the notes say",
            count(lacking.len(), "bundle")
        ))
        .hint(format!("name it: `--image {}=IMAGE`", quoted(&first.from.name))))
    }
}
