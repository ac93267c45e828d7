//! `chandler uninstall`.

use std::{collections::BTreeSet, time::Duration};

use chandler_api::{BundleDeployment, CrdDeletion, OwnKind};
use chandler_controller::options::INSTALLATIONS_NAMESPACE;
use chandler_core::ObjectKey;
use chandler_manifests::TENANT_NAMESPACE;
use chandler_rollout::deletion_plan;
use kube::{Client, api::ApiResource};

use self::{plan::Mode, refusals::Agreed};
use super::delete::Crds;
use crate::{
    CommandError,
    arguments::{
        connection::Connection, controller_namespace::ControllerNamespaceArguments, format::DataFormat, values,
    },
    confirmation,
    read::{
        cluster,
        installation_evidence::{self, InstallationEvidence},
        installation_parts::{self, Parts, Place},
        namespace_objects::namespace_objects,
        preview,
        uninstallation::{self, Controller, Decision, Held, Part},
    },
    signals,
    view::{
        self, output,
        progress::seconds,
        terminal::Terminal,
        uninstallation::{OwnObject, Uninstallation},
    },
};

mod namespace;
mod plan;
mod refusals;
mod steps;

/// Remove the controller from the cluster, and keep or delete what it installed
///
/// Deletes all objects of the kinds of Chandler in the right order while the controller still works, so that no finalizer is left behind:
/// what installs others first, sets before their members. Then it deletes the controller, its admission policies, CRDs, permissions and
/// namespace. Choose what happens to the installed software. The preview lists these objects, and the command asks before it changes
/// anything. It refuses to delete a namespace with other software: `--keep-namespace` keeps it. Run again, it continues where it stopped.
/// To delete one bundle, use `chandler delete NAME`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[command(group = clap::ArgGroup::new("installed").required(true).multiple(true).args(["keep_installed", "delete_installed", "name"]))]
#[command(override_usage = "chandler uninstall <--keep-installed|--delete-installed> [OPTIONS]")]
#[command(after_long_help = "\
Output:
  The preview on standard output; with -o json, every object.
  Progress and the result on standard error.

Exit codes: 0 uninstalled, not confirmed or --dry-run; 1 failed; 2 wrong usage; 3 not uninstalled
  before the timeout; 8 refused: no controller works, custom resources exist that would be
  deleted, Chandler is not in this namespace, or other software is in it; 130 interrupted. Run
  again, it continues

Examples:
  Preview:
    chandler uninstall --delete-installed --dry-run
  Remove Chandler, and keep what it installed:
    chandler uninstall --keep-installed
  Remove everything, but keep the CRDs of the bundles with all custom resources:
    chandler uninstall --delete-installed --crds Keep
  The controller is gone, and finalizers hold its objects:
    chandler uninstall --keep-installed --without-controller")]
pub struct Uninstall {
    /// Not an argument: `chandler delete NAME` deletes a bundle
    #[arg(hide = true, value_name = "BUNDLE_DEPLOYMENT")]
    pub name: Option<String>,

    /// Keep the objects of all bundles, without the owner references and labels of Chandler (sets spec.deletion.policy to Orphan)
    #[arg(long)]
    pub keep_installed: bool,

    /// Delete the objects of all bundles, except for BundleDeployments whose spec.deletion.policy is Orphan
    #[arg(long, conflicts_with = "keep_installed")]
    pub delete_installed: bool,

    /// Keep the CRDs of bundles, or delete them with all their custom resources (sets spec.deletion.crds)
    #[arg(long, value_enum, value_name = "POLICY", ignore_case = true, conflicts_with = "keep_installed")]
    pub crds: Option<Crds>,

    /// Remove the finalizers of Chandler without its controller. Everything that bundles installed stays, with its labels
    #[arg(long, requires = "keep_installed", conflicts_with = "delete_installed")]
    pub without_controller: bool,

    /// Keep the namespace of the controller with its Secrets, ConfigMaps and volumes, including the records of Chandler: a later
    /// installation then continues with objects that stayed
    #[arg(long)]
    pub keep_namespace: bool,

    /// Namespace of the Lease that all controllers on the cluster have in common; by default, the one that the Deployment names, or kube-system
    #[arg(long, value_name = "NAMESPACE", value_parser = values::dns_label)]
    pub cluster_lease_namespace: Option<String>,

    /// Print the preview, and change nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Do not ask for confirmation
    #[arg(short, long)]
    pub yes: bool,

    /// How long everything may take. Each step waits for the one before it
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = values::duration)]
    pub timeout: Duration,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = DataFormat::Text)]
    pub output: DataFormat,

    /// Where the controller is.
    #[command(flatten)]
    pub controller: ControllerNamespaceArguments,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

/// What was found.
struct Found {
    held: Vec<Held>,
    decisions: Vec<Decision>,
    parts: Parts,
    is_locked: bool,
    controller: Controller,
    evidence: InstallationEvidence,
}

impl Found {
    /// Whether nothing of Chandler is on the cluster. A namespace in which it is not installed does not count, nor does what is in it.
    fn is_nothing(&self, namespace: &str) -> bool {
        let is_in_namespace =
            |part: &Part| steps::is_namespace(part, namespace) || part.key.namespace.as_deref() == Some(namespace);
        let has_parts = self.parts.ours.iter().any(|part| self.evidence.is_installed || !is_in_namespace(part));
        self.held.is_empty() && !has_parts && !self.is_locked
    }
}

impl Uninstall {
    /// Prints the preview, asks, and uninstalls.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        if let Some(name) = &self.name {
            return Err(CommandError::usage("`chandler uninstall` removes the controller, and takes no name")
                .hint(format!("`chandler delete {name}` deletes a BundleDeployment")));
        }
        let client = cluster::client(&self.connection.options()).await?;
        let system_namespace = &self.controller.system_namespace;
        let place =
            installation_parts::place(&client, system_namespace, self.cluster_lease_namespace.as_deref()).await?;
        let found = self.find(&client, &place).await?;
        if found.is_nothing(&self.controller.system_namespace) {
            output::print(&output::data(&Uninstallation::default(), self.output, String::new)?)?;
            terminal.line("Chandler is not installed on this cluster: nothing to uninstall");
            return Ok(());
        }
        self.check(&found, &place)?;
        let all = self.preview(&client, &found, terminal).await?;
        output::print(&output::data(&all, self.output, || view::uninstallation::text(&all))?)?;
        for line in view::uninstallation::summary(&all) {
            terminal.line(line);
        }
        self.check_preview(&client, &found, &all).await?;
        let question = if self.keep_installed {
            "uninstall Chandler, and keep what it installed?"
        } else {
            "uninstall Chandler, and delete everything that it installed?"
        };
        if self.dry_run || !confirmation::confirmed(terminal, question, self.yes)? {
            terminal.line("nothing was deleted");
            return Ok(());
        }
        let agreed = refusals::agreed(&all, &found.held, &found.parts.ours);
        self.uninstall(client, terminal, place, agreed, found.is_locked).await
    }

    /// Checks everything again once no new object is accepted: time has passed since the preview. Returns the UIDs of what may be in the
    /// namespace when it is deleted.
    async fn check_again(
        &self,
        client: &Client,
        place: &Place,
        agreed: &Agreed,
        terminal: &Terminal,
    ) -> Result<BTreeSet<String>, CommandError> {
        let found = self.find(client, place).await?;
        self.check(&found, place)?;
        let all = self.preview(client, &found, terminal).await?;
        let expected = self.check_preview(client, &found, &all).await?;
        refusals::check_nothing_new(agreed, &refusals::agreed(&all, &found.held, &found.parts.ours))?;
        Ok(expected)
    }

    async fn uninstall(
        &self,
        client: Client,
        terminal: &Terminal,
        place: Place,
        agreed: Agreed,
        was_locked: bool,
    ) -> Result<(), CommandError> {
        let command = self.command(&place);
        let mut removal = steps::Removal::new(client, self, terminal, place, agreed, was_locked);
        let work = tokio::time::timeout(self.timeout, Box::pin(removal.run()));
        let done = signals::unless_interrupted(work).await;
        let waiting = removal.ended();
        match done {
            Some(Ok(done)) => {
                done.map_err(|error| if removal.is_locked() { error.with_lock_hint() } else { error })?;
                terminal.line("uninstalled");
                Ok(())
            }
            Some(Err(_)) => {
                let after = seconds(self.timeout);
                let message = format!("Chandler is not uninstalled after {after}; waiting for: {waiting}");
                Err(CommandError::timeout(message).hint(format!("`{command}` continues")).with_lock_hint())
            }
            None => Err(CommandError::interrupted_uninstallation(&command, &waiting)),
        }
    }

    async fn find(&self, client: &Client, place: &Place) -> Result<Found, CommandError> {
        let namespace = &place.system_namespace;
        let parts = installation_parts::parts(client, place).await?;
        Ok(Found {
            held: uninstallation::held(client).await?,
            decisions: uninstallation::decisions(client, namespace).await?,
            is_locked: !uninstallation::lock(client).await?.is_empty(),
            controller: uninstallation::controller(client, namespace).await?,
            evidence: installation_evidence::evidence(client, place, &parts).await?,
            parts,
        })
    }

    fn mode(&self) -> Mode {
        match (self.keep_installed, self.without_controller) {
            (true, true) => Mode::KeepWithoutController,
            (true, false) => Mode::Keep,
            (false, _) => Mode::Delete(self.crds.map(|crds| match crds {
                Crds::Keep => CrdDeletion::Keep,
                Crds::Delete => CrdDeletion::Delete,
            })),
        }
    }

    /// The command that continues after an interruption.
    fn command(&self, place: &Place) -> String {
        let mut words = vec!["chandler uninstall".to_owned()];
        let flags = [
            (self.keep_installed, "--keep-installed"),
            (self.delete_installed, "--delete-installed"),
            (self.crds == Some(Crds::Keep), "--crds Keep"),
            (self.crds == Some(Crds::Delete), "--crds Delete"),
            (self.without_controller, "--without-controller"),
            (self.keep_namespace, "--keep-namespace"),
        ];
        words.extend(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| (*flag).to_owned()));
        if place.system_namespace != chandler_manifests::NAMESPACE {
            words.push(format!("--system-namespace {}", place.system_namespace));
        }
        // The Deployment, which names it, may be deleted.
        if place.lease_namespace != INSTALLATIONS_NAMESPACE {
            words.push(format!("--cluster-lease-namespace {}", place.lease_namespace));
        }
        words.join(" ")
    }

    /// Refuses to work without a controller that removes the finalizers, or beside one that does.
    fn check(&self, found: &Found, place: &Place) -> Result<(), CommandError> {
        let Place { system_namespace, lease_namespace } = place;
        refusals::check_place(&found.evidence, system_namespace, lease_namespace, self.keep_namespace)?;
        if self.without_controller {
            refusals::check_no_controller(&found.evidence, lease_namespace)?;
        }
        let needs_controller = refusals::needs_controller(&found.held, self.mode());
        match &found.controller {
            Controller::Holds(holder) if self.without_controller => {
                Err(CommandError::refused(format!("a controller works here: {holder} holds the Lease")).hint(format!(
                    "`{}` lets it remove its finalizers",
                    self.command(place).replace(" --without-controller", "")
                )))
            }
            Controller::Absent(message) if needs_controller && !self.without_controller => {
                let error = CommandError::refused("no controller removes the finalizers of the objects of Chandler")
                    .cause(message)
                    .hint("start the controller again: `chandler manifests` with your settings, and `kubectl apply`");
                Err(error.hint(
                    "or keep everything that bundles installed, and remove the finalizers without it: `chandler uninstall \
                     --keep-installed --without-controller`",
                ))
            }
            _ => Ok(()),
        }
    }

    /// Refuses what the preview shows, and what needs a decision of the user. Returns the UIDs of the objects in the namespace that are of
    /// Chandler and of bundles.
    async fn check_preview(
        &self,
        client: &Client,
        found: &Found,
        all: &Uninstallation,
    ) -> Result<BTreeSet<String>, CommandError> {
        let namespace = &self.controller.system_namespace;
        check_custom_resources(all)?;
        if self.keep_namespace || !found.parts.ours.iter().any(|part| steps::is_namespace(part, namespace)) {
            return Ok(BTreeSet::new());
        }
        refusals::check_kept(all, namespace)?;
        let objects = namespace_objects(client, namespace).await?;
        let ours = found.parts.ours.iter().map(|part| part.uid.clone()).collect();
        let previews = all.objects.iter().filter_map(|object| object.preview.as_ref());
        let of_bundles: Vec<&ObjectKey> = previews.flat_map(|it| it.deleted.iter().chain(&it.orphaned)).collect();
        let sorted = namespace::sort(&objects, &ours, &of_bundles);
        namespace::check(&sorted, namespace)?;
        Ok(sorted.expected)
    }

    async fn preview(
        &self,
        client: &Client,
        found: &Found,
        terminal: &Terminal,
    ) -> Result<Uninstallation, CommandError> {
        let (mode, namespace) = (self.mode(), &self.controller.system_namespace);
        let mut all = Uninstallation {
            keeps_installed: self.keep_installed,
            controller: matches!(found.controller, Controller::Holds(_)),
            ..Uninstallation::default()
        };
        for held in &found.held {
            all.objects.push(Box::pin(own_object(client, held, mode, terminal)).await?);
        }
        let decision = |decision: &Decision| namespaced("ConfigMap", &decision.namespace, &decision.name);
        all.decisions = found.decisions.iter().map(decision).collect();
        all.foreign.clone_from(&found.parts.foreign);
        let mut parts: Vec<&Part> = found.parts.ours.iter().collect();
        parts.sort_by_key(|part| steps::stage(part));
        for part in parts {
            let is_kept = self.keep_namespace && steps::is_of_namespace(part, namespace);
            let keys = if is_kept { &mut all.kept } else { &mut all.installation };
            keys.push(part.key.clone());
        }
        if found.parts.ours.iter().any(|part| steps::is_namespace(part, namespace)) {
            let content = uninstallation::namespace_content(client, namespace).await?;
            let keys = if self.keep_namespace { &mut all.kept } else { &mut all.with_namespace };
            for (kind, names) in [
                ("Secret", content.secrets),
                ("ConfigMap", content.config_maps),
                ("ServiceAccount", content.service_accounts),
                ("PersistentVolumeClaim", content.persistent_volume_claims),
            ] {
                keys.extend(names.iter().map(|name| namespaced(kind, namespace, name)));
            }
            refusals::list_once(&mut all);
        }
        let tenants = ObjectKey { namespace: None, ..namespaced("Namespace", "", TENANT_NAMESPACE) };
        if uninstallation::part(client, tenants.clone()).await?.is_some() {
            all.kept.push(tenants);
        }
        Ok(all)
    }
}

/// Refuses while custom resources exist whose CRDs would be deleted, without a decision of the user.
fn check_custom_resources(all: &Uninstallation) -> Result<(), CommandError> {
    let previews = all.objects.iter().filter_map(|object| object.preview.as_ref()).filter(|preview| preview.held);
    let in_use: Vec<_> = previews.flat_map(|preview| preview.in_use.iter().cloned()).collect();
    if in_use.is_empty() {
        return Ok(());
    }
    let refused = CommandError::refused(deletion_plan::held(&in_use));
    if all.keeps_installed {
        return Err(refused.hint(
            "its deletion was requested before; keep its objects, and run this command again: `kubectl patch bundledeployment NAME \
             --type=merge --patch '{\"spec\":{\"deletion\":{\"policy\":\"Orphan\"}}}'`",
        ));
    }
    Err(refused.hint(
        "keep the CRDs of bundles with `--crds Keep`, or delete them and all custom resources with `--crds Delete`",
    ))
}

/// An object with the preview of its deletion. Without a controller, a preview that fails does not prevent the way out.
async fn own_object(client: &Client, held: &Held, mode: Mode, terminal: &Terminal) -> Result<OwnObject, CommandError> {
    let ApiResource { group, version, kind, .. } = uninstallation::resource(held.kind);
    let key = ObjectKey { group, version, kind, namespace: None, name: held.name.clone() };
    if held.kind != OwnKind::BundleDeployment {
        return Ok(OwnObject { key, preview: None });
    }
    let options = if held.is_deleting && mode == Mode::Keep { held.deletion } else { plan::wanted(held, mode) };
    let decoded: Result<BundleDeployment, _> = serde_json::from_value(held.object.clone());
    let preview = match decoded {
        Ok(deployment) => preview::deletion(client.clone(), &deployment, options).await,
        Err(error) => Err(CommandError::failed(format!("failed to decode {key}")).because(&error)),
    };
    match preview {
        Ok(preview) => Ok(OwnObject { key, preview: Some(preview) }),
        Err(error) if mode == Mode::KeepWithoutController => {
            terminal.line(error.explained());
            Ok(OwnObject { key, preview: None })
        }
        Err(error) => Err(error),
    }
}

fn namespaced(kind: &str, namespace: &str, name: &str) -> ObjectKey {
    ObjectKey {
        group: String::new(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
    }
}
