//! `chandler upgrade`.

mod newest;

use chandler_api::{BundleDeployment, ReportingKind, ValuesReference};
use kube::{Api, Client};
use serde_json::{Map, Value};

use super::install;
use crate::{
    CommandError,
    arguments::{catalogs::PackageArguments, installation::InstallationArguments, target::Takes, values},
    read::{
        cluster, configuration, configuration_check,
        delivery::{Delivered, Delivery},
        deployed, missing_kinds,
        named::NamedBundle,
        package,
        rendering::BundleOptions,
    },
    view::{secrets, summary, terminal::Terminal, text::one_line},
    write::{
        content,
        deployment::{self, Effect, SpecChange},
        upload::Upload,
    },
};

/// BundleDeployments. What a Resolution or a PlatformOperator asks for is in its spec.
pub(super) const TAKES: Takes = Takes::kinds(&[ReportingKind::BundleDeployment]).instead(&[
    (ReportingKind::Resolution, "`kubectl edit resolution NAME` changes the packages and versions in spec.packages"),
    (ReportingKind::PlatformOperator, "`kubectl edit platformoperator NAME` changes the versions in spec.version"),
]);

/// Upgrade a bundle, or change its configuration
///
/// Changes spec.source and spec.config of a BundleDeployment, and follows the rollout. The configuration of the spec stays, with the
/// arguments' configuration merged over it; --reset-config starts from an empty one. --values-from adds references to those in the spec. A
/// rollback (spec.rollout.toRevision) ends. The installed release runs until the new one is healthy. A configuration that the bundle does
/// not accept is refused before anything is written.
///
/// Of a package, the command chooses as `chandler install` does, among the versions that upgrades lead to. Where the way has several steps,
/// it takes the first one. Without BUNDLE and without a change of the configuration, it looks for the newest version of the package whose
/// image is installed, prints what would change, and asks.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  What was changed, the progress and the result on standard error; with --dry-run, the objects on
  standard output. Before the confirmation, the changes of an upgrade to the newest version on
  standard output.

Exit codes: 0 healthy, or changed with --wait=false; 1 failed; 2 wrong usage; 3 not healthy before the
  timeout; 5 no version of the package fits; 6 the change waits for approval
  (`chandler approve`), or for `chandler resume`; 7 not found; 8 refused

Examples:
  Upgrade to the newest version that the catalogs lead to, after a preview and a confirmation:
    chandler upgrade harbour
  Upgrade to another image:
    chandler upgrade harbour quay.io/example/harbour-bundle:v1.3.0
  Upgrade to the best version of its package in a range:
    chandler upgrade harbour harbour@'<2'
  Change one value:
    chandler upgrade harbour --set replicas=3
  Install or upgrade:
    chandler upgrade --install harbour ./harbour-operator -n tenant --create-namespace
  Show what an upgrade would change:
    chandler diff harbour ./harbour-operator")]
pub struct Upgrade {
    /// Name of the BundleDeployment
    #[arg(value_name = "NAME", value_parser = TAKES.name())]
    pub name: String,

    /// An image reference, a directory, an archive, or the package that is installed, as `PACKAGE` or `PACKAGE@RANGE`
    /// [default: the newest version of the installed package; with a change of the configuration, the source in the spec]
    #[arg(value_name = "BUNDLE")]
    pub bundle: Option<String>,

    /// Install the bundle if the BundleDeployment does not exist
    #[arg(short, long, requires = "bundle")]
    pub install: bool,

    /// Drop the configuration in the spec, and its references to values
    #[arg(long)]
    pub reset_config: bool,

    /// Upgrade to the newest version without a preview and a confirmation
    #[arg(short, long)]
    pub yes: bool,

    /// How a package is chosen.
    #[command(flatten)]
    pub package: PackageArguments,

    /// The fields of the BundleDeployment that are set.
    #[command(flatten)]
    pub installation: InstallationArguments,
}

impl Upgrade {
    /// Changes the BundleDeployment, and follows it.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let (name, arguments) = (&self.name, &self.installation);
        let client = cluster::client(&arguments.connection.options()).await?;
        let existing = Api::<BundleDeployment>::all(client.clone()).get_opt(name).await;
        let existing = existing.map_err(|error| cluster::not_read(name, &error))?;
        if existing.is_none() && self.install {
            values::deployment_name(name).map_err(CommandError::usage)?;
        }
        match (existing, self.bundle.as_deref()) {
            (Some(existing), Some(text)) if self.is_package(text)? => {
                match self.newer(text, &client, &existing, terminal).await? {
                    Some(bundle) => Box::pin(self.upgrade(Some(&bundle), &client, &existing, terminal)).await,
                    None => Box::pin(self.without_newer(&client, &existing, terminal)).await,
                }
            }
            (Some(existing), None) if self.is_nothing_set() => {
                Box::pin(self.upgrade_to_newest(&client, &existing, terminal)).await
            }
            (Some(existing), text) => {
                let bundle = text.map(NamedBundle::of_user).transpose()?;
                Box::pin(self.upgrade(bundle.as_ref(), &client, &existing, terminal)).await
            }
            (None, Some(text)) if self.install && self.is_package(text)? => {
                let catalogs =
                    package::catalogs(text, &arguments.catalogs(&self.package.selection), &client, terminal).await?;
                let chosen = package::choose(text, &self.package.channels, &catalogs, &client).await?;
                chosen.report(terminal);
                Box::pin(install::install(&client, name, &chosen.image.into(), arguments, terminal)).await
            }
            (None, Some(text)) if self.install => {
                let bundle = NamedBundle::of_user(text)?;
                Box::pin(install::install(&client, name, &bundle, arguments, terminal)).await
            }
            (None, _) => Err(CommandError::not_found(format!("BundleDeployment {name} does not exist"))
                .hint("`chandler list` lists them all; --install installs a bundle under a new name")),
        }
    }

    /// Whether the text for a bundle is a package of a catalog.
    fn is_package(&self, text: &str) -> Result<bool, CommandError> {
        package::is_package(text, &self.package.channels, &self.package.selection.catalogs)
    }

    /// The version of a package to upgrade to, or `None` if the best one is installed.
    async fn newer(
        &self,
        text: &str,
        client: &Client,
        existing: &BundleDeployment,
        terminal: &Terminal,
    ) -> Result<Option<NamedBundle>, CommandError> {
        let catalogs =
            package::catalogs(text, &self.installation.catalogs(&self.package.selection), client, terminal).await?;
        let channels = &self.package.channels;
        let Some(chosen) = package::choose_upgrade(text, channels, &catalogs, client, existing).await? else {
            return Ok(None);
        };
        chosen.report(terminal);
        Ok(Some(chosen.image.into()))
    }

    /// Changes what else the arguments say, if they do.
    async fn without_newer(
        &self,
        client: &Client,
        existing: &BundleDeployment,
        terminal: &Terminal,
    ) -> Result<(), CommandError> {
        terminal.line(format!("{} already has the best version that fits; its source was not changed", self.name));
        if self.is_nothing_set() { Ok(()) } else { Box::pin(self.upgrade(None, client, existing, terminal)).await }
    }

    async fn upgrade(
        &self,
        bundle: Option<&NamedBundle>,
        client: &Client,
        existing: &BundleDeployment,
        terminal: &Terminal,
    ) -> Result<(), CommandError> {
        let (name, arguments) = (&self.name, &self.installation);
        self.check(existing)?;
        let base = if self.reset_config { Map::new() } else { existing.spec.config.clone().unwrap_or_default() };
        let config = configuration::combined(&arguments.configuration.options(), base)?;
        for warning in secrets::warnings(&config) {
            terminal.line(warning);
        }
        let references = self.references(existing);
        let delivered = if let Some(bundle) = bundle {
            let class = arguments.class.as_deref().or_else(|| class(existing, bundle));
            let delivery = Delivery {
                bundle,
                name,
                namespace: &existing.spec.install_namespace,
                class,
                config: &config,
                values_from: &references,
            };
            Some(delivery.prepare(client, &arguments.delivery()).await?)
        } else {
            self.check_configuration(client, existing, &config, &references, terminal).await?;
            None
        };
        if let Some(note) = delivered.as_ref().and_then(|delivered| delivered.note.as_ref()) {
            terminal.line(format!("note: {}", one_line(note)));
        }
        if let Some(delivered) = &delivered {
            missing_kinds::report(&delivered.missing, terminal);
        }
        let change = self.change(existing, config, &references, delivered.as_ref())?;
        if change.is_done(existing) {
            terminal.line(format!("{name} already has this spec; nothing was changed"));
            if arguments.dry_run {
                return Ok(());
            }
            // The content service may lack the files that the spec names.
            if let Some(upload) = Upload::of(delivered.as_ref(), client, &arguments.uploading()).await? {
                upload.send(name, terminal).await?;
            }
            return install::follow(client, name, arguments, terminal).await;
        }
        let checked = deployment::change(client, existing, &change, Effect::Check).await?;
        if arguments.dry_run {
            let nothing = Delivered::nothing();
            let objects = delivered.as_ref().unwrap_or(&nothing);
            return install::print(None, objects, &checked, arguments.output);
        }
        let upload = Upload::of(delivered.as_ref(), client, &arguments.uploading()).await?;
        let config_maps = delivered.as_ref().map(|delivered| delivered.config_maps.as_slice()).unwrap_or_default();
        let written = content::create(client, config_maps).await?;
        let changed = async {
            content::own(client, existing, config_maps).await?;
            deployment::change(client, existing, &change, Effect::Store).await
        };
        // Uploaded content is there before the spec names it, unless the content was not an upload until now.
        let takes_uploads = existing.spec.source.upload.is_some();
        if let Some(upload) = upload.as_ref().filter(|_| takes_uploads) {
            upload.send(name, terminal).await?;
        }
        let changed = match changed.await {
            Ok(changed) => changed,
            Err(error) => return Err(content::discard(client, &written, error).await),
        };
        if let Some(upload) = upload.as_ref().filter(|_| !takes_uploads) {
            upload.send(name, terminal).await?;
        }
        let files = delivered.as_ref().map(install::in_config_maps).unwrap_or_default();
        terminal.line(format!("changed BundleDeployment {name}{files}"));
        if let Some(revision) = deployment::to_revision(existing) {
            terminal.line(format!("the rollback to revision {revision} has ended: the spec is rolled out again"));
        }
        if changed.spec.suspend && !arguments.waiting.wait {
            terminal.line(format!("{name} is suspended: `chandler resume {name}` rolls out the change"));
            return Ok(());
        }
        install::follow(client, name, arguments, terminal).await?;
        if existing.spec.source.config_maps.is_some() {
            let current = cluster::deployment(client, name).await?;
            content::prune(client, &current, &arguments.system_namespace).await?;
        }
        Ok(())
    }

    /// Refuses a configuration that the bundle of the spec does not accept, as an installation does.
    async fn check_configuration(
        &self,
        client: &Client,
        existing: &BundleDeployment,
        config: &Map<String, Value>,
        references: &[ValuesReference],
        terminal: &Terminal,
    ) -> Result<(), CommandError> {
        let arguments = &self.installation;
        let before = existing.spec.config.as_ref();
        let is_same = before.map_or(config.is_empty(), |before| before == config);
        if is_same && existing.spec.values_from == references && arguments.class.is_none() {
            return Ok(());
        }
        let mut wanted = existing.clone();
        wanted.spec.config = Some(config.clone());
        wanted.spec.values_from = references.to_vec();
        let options = BundleOptions {
            provisioner: arguments.class.clone(),
            ..BundleOptions::of_deployment(arguments.registry.options(), arguments.cache_directory.clone())
        };
        let note = configuration_check::check(client, &arguments.system_namespace, &options, &wanted).await?;
        if let Some(note) = note {
            terminal.line(format!("note: {}", one_line(&note)));
        }
        Ok(())
    }

    /// Refuses what an upgrade cannot change.
    fn check(&self, existing: &BundleDeployment) -> Result<(), CommandError> {
        let (name, arguments) = (&self.name, &self.installation);
        deployed::check_namespace(existing, arguments.namespace.as_deref())?;
        if existing.metadata.deletion_timestamp.is_some() {
            return Err(CommandError::failed(format!("{name} is being deleted"))
                .hint(format!("`chandler status {name}` shows what the deletion waits for")));
        }
        Ok(())
    }

    /// Whether the arguments change nothing but the bundle.
    fn is_nothing_set(&self) -> bool {
        let arguments = &self.installation;
        let asks = arguments.class.is_some() || arguments.service_account.is_some() || arguments.pull_secret.is_some();
        let sets = !arguments.configuration.options().is_empty() || !arguments.values_from.is_empty();
        !sets && !self.reset_config && !asks
    }

    /// The references of the spec, followed by the arguments'.
    fn references(&self, existing: &BundleDeployment) -> Vec<ValuesReference> {
        let mut references = if self.reset_config { Vec::new() } else { existing.spec.values_from.clone() };
        for added in &self.installation.values_from {
            if !references.iter().any(|known| ValuesReference { optional: false, ..known.clone() } == *added) {
                references.push(added.clone());
            }
        }
        references
    }

    fn change(
        &self,
        existing: &BundleDeployment,
        config: Map<String, Value>,
        references: &[ValuesReference],
        delivered: Option<&Delivered>,
    ) -> Result<SpecChange, CommandError> {
        let failed = |error: serde_json::Error| CommandError::failed("failed to write the spec").because(&error);
        let mut change = SpecChange::default();
        change.set("config", (!config.is_empty()).then_some(Value::Object(config)));
        let references = (!references.is_empty()).then(|| serde_json::to_value(references)).transpose();
        change.set("valuesFrom", references.map_err(failed)?);
        if let Some(class) = &self.installation.class {
            change.set("provisionerClassName", Some(class.as_str().into()));
        } else if let Some(class) = delivered.and_then(|delivered| other_class(existing, &delivered.class)) {
            change.set("provisionerClassName", Some(class.into()));
        }
        if let Some(account) = self.installation.account() {
            change.set("serviceAccount", Some(serde_json::to_value(account).map_err(failed)?));
        }
        let mut source = delivered.map_or_else(|| existing.spec.source.clone(), |delivered| delivered.source.clone());
        if let Some(image) = &mut source.image {
            // Credentials and certificates of the registry stay.
            if let Some(before) = &existing.spec.source.image {
                *image = chandler_api::ImageSource { reference: image.reference.clone(), ..before.clone() };
            }
            if let Some(secret) = &self.installation.pull_secret {
                image.pull_secret = Some(secret.clone());
            }
        }
        change.set("source", Some(serde_json::to_value(source).map_err(failed)?));
        Ok(change)
    }
}

/// The class of a new bundle, where the installed release would keep another one: the controller changes it only for a name in the spec.
fn other_class<'a>(existing: &BundleDeployment, new: &'a str) -> Option<&'a str> {
    let installed = existing.status.as_ref().and_then(|status| status.history.last())?;
    let keeps = existing.spec.provisioner_class_name.is_empty() && installed.provisioner.class != new;
    (keeps && !new.is_empty()).then_some(new)
}

/// The class that a new bundle is checked with. A built-in class that was detected says nothing about files of this machine, which may
/// have another format, so that it is detected again. For a bundle on a server, the controller decides.
fn class<'a>(existing: &'a BundleDeployment, bundle: &NamedBundle) -> Option<&'a str> {
    let is_here = !bundle.origin().is_remote();
    let detects = existing.spec.provisioner_class_name.is_empty() && is_here;
    summary::class(existing).filter(|class| !detects || chandler_builtin::find(class).is_none())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_bundle_of_another_format_gets_its_class_named() {
        let installed = |named: &str, class: &str| -> BundleDeployment {
            let revision = json!({
                "number": 1, "source": {"type": "image"}, "contentDigest": "", "provisioner": {"class": class, "digest": ""},
                "installNamespace": "n", "configDigest": "", "releaseDigest": "", "outcome": "Succeeded",
            });
            serde_json::from_value(json!({
                "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "a"},
                "spec": {"installNamespace": "n", "provisionerClassName": named, "source": {"type": "image"}},
                "status": {"history": [revision]},
            }))
            .unwrap()
        };
        assert_eq!(other_class(&installed("", "plain"), "registry"), Some("registry"));
        assert_eq!(other_class(&installed("", "plain"), "plain"), None);
        assert_eq!(other_class(&installed("", "plain"), ""), None, "the controller detects it");
        assert_eq!(other_class(&installed("plain", "plain"), "registry"), None, "its author decides");
    }
}
