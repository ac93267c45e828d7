//! `chandler migrate helm`.

mod checks;
mod plan;

use chandler_api::BundleDeployment;
use chandler_permissions::DefaultAccount;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, ResourceExt as _};
use serde_json::Value;

use self::plan::Plan;
use super::handover::{self, After};
use crate::{
    CommandError,
    arguments::{
        catalogs::Fetching, connection::Connection, system_namespace::SystemNamespaceArguments, values, wait::Wait,
    },
    migrate::{
        ForeignObject,
        helm::{RevisionName, release_name},
        pending,
    },
    read::{
        cluster,
        helm_releases::{self, FoundRelease},
    },
    view::{
        invocation::quoted,
        manifest,
        output::{self, Format},
        terminal::Terminal,
        text::{count, one_line},
    },
    write::{content, helm_values},
};

/// The most releases that a message names.
const SHOWN: usize = 20;

/// Migrate releases of Helm, without recreating or restarting anything
///
/// Rebuilds the chart of each release from the Secret in which Helm keeps it, renders it, compares the result with the objects in the cluster, and prints
/// the BundleDeployment that adopts them. Nothing is changed.
///
/// With --apply, the command creates the BundleDeployment, waits until it has adopted the objects and is healthy, and only then deletes the Secrets of the
/// release; until then `helm` works as before. It refuses a release that is pending or has failed, a chart that Chandler refuses, objects that do not say
/// that they belong to the release, and every change: objects that would be created or left behind, and fields that would differ. Options allow what is
/// intended.
///
/// Helm does not store the charts within a chart. Name such a chart with --image; its image is one of `helm push` or `chandler push`.
///
/// The values of the release become a Secret, NAME-values, that spec.valuesFrom names: Helm keeps them in a Secret, and spec.config is not secret.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The BundleDeployments on standard output. What is adopted, created and deleted, and the progress, on standard
  error.

Exit codes: 0 printed, nothing to migrate, or with --apply healthy; 1 failed; 2 wrong usage;
  3 not healthy before the timeout; 7 no such release; 8 refused, and nothing was changed

Examples:
  Show what would be adopted, and every difference:
    chandler migrate helm shop/web
  Migrate it, with the permissions of an account:
    chandler migrate helm shop/web --apply --service-account deployer
  A chart with other charts in it, which is in a registry:
    chandler migrate helm shop/web --image web=registry.example.com/charts/web:1.2.3
  A release whose name another BundleDeployment has:
    chandler migrate helm other/web --name other/web=other-web
  Keep the Secrets of Helm for now; the command without the option deletes them later:
    chandler migrate helm shop/web --apply --service-account deployer --keep-release")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct Helm {
    /// Releases to migrate [default: all]
    #[arg(value_name = "[NAMESPACE/]RELEASE")]
    pub releases: Vec<String>,

    /// Create the BundleDeployments, and let them adopt what runs
    #[arg(long)]
    pub apply: bool,

    /// With --apply: check everything, and change nothing. Without --apply, nothing is ever changed
    #[arg(long)]
    pub dry_run: bool,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Yaml)]
    pub output: Format,

    /// ProvisionerClass that renders charts
    #[arg(long, value_name = "CLASS", default_value = "helm", value_parser = values::deployment_name)]
    pub class: String,

    /// Name of the BundleDeployment of a release, whose name then is releaseName in the configuration. Repeatable [default: the name of the
    /// release]
    #[arg(long = "name", value_name = "[NAMESPACE/]RELEASE=NAME", value_parser = named)]
    pub names: Vec<(String, String)>,

    /// Image with the chart of a release. Repeatable [default: the files in the release, which are stored in ConfigMaps]
    #[arg(long = "image", value_name = "RELEASE=IMAGE", value_parser = super::image)]
    pub images: Vec<(String, String)>,

    /// Secret in the controller's namespace with the credentials for --image
    #[arg(long, value_name = "SECRET", requires = "images")]
    pub pull_secret: Option<String>,

    /// Write the values into spec.config, which is readable by all who may read BundleDeployments, instead of a Secret
    #[arg(long)]
    pub values_in_spec: bool,

    /// Migrate even if fields of the objects change
    #[arg(long)]
    pub allow_changes: bool,

    /// Migrate even if Pods restart
    #[arg(long, requires = "allow_changes")]
    pub allow_restart: bool,

    /// Create objects that do not exist, such as Jobs of hooks that Helm has deleted
    #[arg(long)]
    pub allow_new: bool,

    /// Adopt objects that no owner claims and that do not say that they belong to the release: Helm marks neither CRDs of crds/ nor hooks
    #[arg(long)]
    pub adopt_unmarked: bool,

    /// With --apply: leave the Secrets of the release. The command without this option deletes them later
    #[arg(long, requires = "apply")]
    pub keep_release: bool,

    /// ServiceAccount of the BundleDeployments (spec.serviceAccount). Without NAMESPACE it is in the namespace of the release
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    pub service_account: Option<DefaultAccount>,

    /// BundleDeployments without a ServiceAccount: the controller installs with its own permissions, or with the permissions of its
    /// --default-service-account
    #[arg(long, conflicts_with = "service_account")]
    pub no_service_account: bool,

    /// With --no-service-account: accept that users who may write Secrets in the namespace of a release decide what the controller installs with its own
    /// permissions
    #[arg(long, requires = "no_service_account")]
    pub install_with_controller_rights: bool,

    /// Do not ask for confirmation
    #[arg(short, long)]
    pub yes: bool,

    /// Label of the BundleDeployments. Repeatable
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = values::label)]
    pub labels: Vec<(String, String)>,

    /// Whether the command waits.
    #[command(flatten)]
    pub waiting: Wait,

    /// How images are fetched.
    #[command(flatten)]
    pub fetching: Fetching,

    /// Where the controller is.
    #[command(flatten)]
    pub system: SystemNamespaceArguments,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl Helm {
    /// Prints the BundleDeployments, and with `--apply` migrates the releases.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        self.check_permissions()?;
        let client = cluster::client(&self.connection.options()).await?;
        let begun = if self.apply { self.begun(&client).await? } else { Vec::new() };
        let found = helm_releases::find(&client, &self.releases).await?;
        let is_begun = |namespace: &str, name: &str| {
            begun.iter().any(|it| (it.spec.install_namespace.as_str(), release_name(it).as_str()) == (namespace, name))
        };
        let mut known: Vec<(String, String)> =
            found.iter().map(|release| (release.namespace.clone(), release.name().to_owned())).collect();
        known.extend(begun.iter().map(|it| (it.spec.install_namespace.clone(), release_name(it))));
        if let Some(by) = self.releases.iter().find(|by| !is_known(by, &known)) {
            return Err(CommandError::not_found(format!("release {} does not exist", one_line(by)))
                .hint("`helm list --all-namespaces` lists releases"));
        }
        for (option, of) in [("--name", &self.names), ("--image", &self.images)] {
            refuse_unknown(option, of, &known)?;
        }
        let mut plans = Vec::new();
        let mut refusals = Vec::new();
        for release in found.iter().filter(|release| !is_begun(&release.namespace, release.name())) {
            match Box::pin(plan::plan(self, &client, release)).await? {
                Ok(plan) => {
                    plan.report(self, terminal);
                    plans.push(plan);
                }
                Err(refusal) => refusals.push(refusal),
            }
        }
        if plans.is_empty() && refusals.is_empty() && begun.is_empty() {
            terminal.line("nothing to migrate: the cluster has no release of Helm");
            return Ok(());
        }
        self.print(&plans)?;
        refusals.extend(plans.iter().filter_map(|plan| checks::refusal(self, plan)));
        if let Some(first) = refusals.pop() {
            for other in refusals {
                other.report(terminal);
            }
            return Err(first);
        }
        if !self.apply {
            terminal.line("nothing was changed: --apply migrates");
            return Ok(());
        }
        let begun = Box::pin(self.continued(&client, &found, &begun, terminal)).await?;
        Box::pin(self.migrate(&client, &plans, &begun, terminal)).await
    }

    /// Refuses `--apply` unless the user says with whose permissions the chart is installed. With the permissions of the controller, that takes two
    /// options: what a release has was written by users of its namespace.
    fn check_permissions(&self) -> Result<(), CommandError> {
        let with_account = format!(
            "`chandler migrate helm {} --apply --service-account NAME` installs with the permissions of an account",
            self.releases.first().map_or_else(|| "NAMESPACE/RELEASE".to_owned(), |release| quoted(release))
        );
        if !self.apply || self.service_account.is_some() || self.install_with_controller_rights {
            return Ok(());
        }
        Err(if self.no_service_account {
            CommandError::usage(
                "with --no-service-account the controller installs the chart with its own permissions, and users who may write Secrets in the namespace of the \
                 release decide what it renders",
            )
            .hint(with_account)
            .hint("if you trust these users like administrators, add --install-with-controller-rights")
        } else {
            CommandError::usage("--apply needs to know with whose permissions the chart is installed")
                .hint(with_account)
        })
    }

    /// Asks, and carries out the migrations.
    async fn migrate(
        &self,
        client: &Client,
        plans: &[Plan],
        begun: &[&BundleDeployment],
        terminal: &Terminal,
    ) -> Result<(), CommandError> {
        let number = count(plans.len() + begun.len(), "release");
        if plans.is_empty() && begun.is_empty() {
            return Ok(());
        }
        if !handover::is_wanted(&number, self.dry_run, self.yes, terminal)? {
            return Ok(());
        }
        let after = After {
            waiting: self.waiting,
            system_namespace: &self.system.system_namespace,
            detach: !self.keep_release,
        };
        for deployment in begun {
            content::own_left(client, deployment, &self.system.system_namespace).await?;
            helm_values::own_left(client, deployment).await?;
            handover::carry_out(after, client, deployment, terminal).await?;
        }
        for plan in plans {
            let created = plan.create(client, terminal).await?;
            handover::carry_out(after, client, &created, terminal).await?;
        }
        Ok(())
    }

    /// Prints the BundleDeployments.
    fn print(&self, plans: &[Plan]) -> Result<(), CommandError> {
        let failed = |error: serde_json::Error| CommandError::failed("failed to write the objects").because(&error);
        let objects: Result<Vec<Value>, CommandError> = plans
            .iter()
            .map(|plan| serde_json::to_value(&plan.deployment).map(manifest::authored).map_err(failed))
            .collect();
        let objects = objects?;
        if objects.is_empty() { Ok(()) } else { output::print(&output::write(&objects, self.output)?) }
    }

    /// The BundleDeployments whose migration has begun.
    async fn begun(&self, client: &Client) -> Result<Vec<BundleDeployment>, CommandError> {
        let is_named = |deployment: &BundleDeployment| {
            let (namespace, name) = (&deployment.spec.install_namespace, release_name(deployment));
            self.releases.is_empty() || self.releases.iter().any(|by| helm_releases::is_named(by, namespace, &name))
        };
        handover::begun(client, |deployment, first| first.kind == "Secret" && is_named(deployment)).await
    }

    /// Refuses to continue a migration unless the BundleDeployment is the one that this command would create for the release, with all of its revisions: another
    /// user may have made it, and the Secrets of the release would be deleted for other content or another account.
    async fn check_begun(
        &self,
        client: &Client,
        found: &FoundRelease,
        deployment: &BundleDeployment,
        managers: &[ForeignObject],
    ) -> Result<(), CommandError> {
        let (name, release) = (deployment.name_any(), one_line(&format!("{}/{}", found.namespace, found.name())));
        let different = plan::differences(self, client, found, deployment).await??;
        let give_up = format!(
            "if the BundleDeployment is not yours, find out who made it; `chandler delete {name} --orphan` gives the migration up and leaves what runs alone"
        );
        if !different.is_empty() {
            let refused = CommandError::refused(format!(
                "BundleDeployment {name} is not what this command would create for release {release}; nothing was changed"
            ));
            let refused = different.into_iter().fold(refused, CommandError::cause);
            return Err(refused.hint("continue with the options of the first run, such as --service-account, --image and --class").hint(give_up).hint(
                format!(
                    "if you changed the BundleDeployment after it had adopted the objects, `kubectl delete secrets -n {} -l owner=helm,name={}` ends \
                     the migration",
                    found.namespace,
                    quoted(found.name())
                ),
            ));
        }
        if let Some(newer) = found.secrets.iter().find(|secret| !managers.contains(secret)) {
            return Err(CommandError::refused(format!(
                "release {release} was changed with Helm after the migration had begun: BundleDeployment {name} does not know {}; nothing was changed",
                one_line(&newer.to_string())
            ))
            .hint(give_up));
        }
        Ok(())
    }

    /// The migrations that have begun and are continued. An annotation lists the Secrets that are deleted, and any author of a BundleDeployment may have
    /// written it: they are Secrets of this release, without a question the user names it, and the BundleDeployment is the one that this command would
    /// create for the release.
    async fn continued<'a>(
        &self,
        client: &Client,
        found: &[FoundRelease],
        begun: &'a [BundleDeployment],
        terminal: &Terminal,
    ) -> Result<Vec<&'a BundleDeployment>, CommandError> {
        let mut continued = Vec::new();
        for deployment in begun {
            let name = deployment.name_any();
            let managers = pending::managers(deployment).unwrap_or_default();
            let release = release_name(deployment);
            if !managers.iter().all(|manager| is_of_release(manager, &deployment.spec.install_namespace, &release)) {
                return Err(CommandError::refused(format!(
                    "the annotation {} of BundleDeployment {name} lists objects other than the Secrets of release {}; nothing was changed",
                    pending::ANNOTATION,
                    one_line(&release)
                ))
                .hint("this command did not write it: find out who did, and remove the annotation"));
            }
            if self.yes && self.releases.is_empty() {
                terminal.line(format!(
                    "BundleDeployment {name} says that its migration has begun: name the release to continue it without a question"
                ));
                continue;
            }
            let is_it = |it: &&FoundRelease| it.namespace == deployment.spec.install_namespace && it.name() == release;
            match found.iter().find(is_it) {
                Some(found) => Box::pin(self.check_begun(client, found, deployment, &managers)).await?,
                None => check_gone(client, deployment, &managers).await?,
            }
            terminal.line(format!("continue the migration of BundleDeployment {name}"));
            if !self.keep_release {
                handover::report_managers(&managers, terminal);
            }
            continued.push(deployment);
        }
        Ok(continued)
    }
}

/// Refuses to end a migration whose release cannot be read, so that nothing shows what the BundleDeployment should be, while Secrets remain that would be
/// deleted.
async fn check_gone(
    client: &Client,
    deployment: &BundleDeployment,
    managers: &[ForeignObject],
) -> Result<(), CommandError> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &deployment.spec.install_namespace);
    for manager in managers {
        let found = secrets.get_metadata_opt(&manager.name).await;
        let found = found.map_err(|error| CommandError::failed(format!("failed to read {manager}")).because(&error))?;
        if found.is_some_and(|found| found.uid().as_deref() == Some(&manager.uid)) {
            return Err(CommandError::refused(format!(
                "{} lacks the labels that Helm gives to the Secrets of a release; nothing was changed",
                one_line(&manager.to_string())
            ))
            .hint("`kubectl label` restores them: owner=helm and name=RELEASE"));
        }
    }
    Ok(())
}

/// Whether a user means one of these releases, of which `known` has the namespaces and names.
fn is_known(by: &str, known: &[(String, String)]) -> bool {
    known.iter().any(|(namespace, name)| helm_releases::is_named(by, namespace, name))
}

/// Refuses an option for a release that is not migrated: a release with a wrong name in the option would be migrated without the option. `known` has the
/// namespaces and names of what is migrated; without any, the command says that there is nothing to do.
fn refuse_unknown(option: &str, of: &[(String, String)], known: &[(String, String)]) -> Result<(), CommandError> {
    let Some((by, _)) = of.iter().find(|(by, _)| !is_known(by, known)).filter(|_| !known.is_empty()) else {
        return Ok(());
    };
    let mut releases: Vec<String> =
        known.iter().map(|(namespace, name)| one_line(&format!("{namespace}/{name}"))).collect();
    releases.sort_unstable();
    releases.dedup();
    let more = releases.len().saturating_sub(SHOWN);
    releases.truncate(SHOWN);
    if more > 0 {
        releases.push(format!("{more} more"));
    }
    Err(CommandError::not_found(format!(
        "{option} names {}, which is not a release to migrate; nothing was changed",
        one_line(by)
    ))
    .cause(format!("the releases are {}", releases.join(", "))))
}

/// Parses `[NAMESPACE/]RELEASE=NAME`.
fn named(text: &str) -> Result<(String, String), String> {
    match text.split_once('=').filter(|(release, _)| !release.is_empty()) {
        Some((release, name)) => Ok((release.to_owned(), values::deployment_name(name)?)),
        None => Err(format!("{text:?} does not name a BundleDeployment: write `RELEASE=NAME`")),
    }
}

/// Whether an object is a Secret of Helm for this release.
fn is_of_release(object: &ForeignObject, namespace: &str, name: &str) -> bool {
    object.api_version == "v1"
        && object.kind == "Secret"
        && object.namespace.as_deref() == Some(namespace)
        && RevisionName::of_secret(&object.name).is_some_and(|revision| revision.release == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_deployment_is_named_for_a_release() {
        assert_eq!(named("shop/web=shop-web"), Ok(("shop/web".to_owned(), "shop-web".to_owned())));
        for refused in ["web", "=web", "web=", "web=WEB", "web=a/b"] {
            assert!(named(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn an_option_for_another_release_is_refused() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let known = [pair("shop", "web"), pair("other", "web"), pair("shop", "db")];
        for by in ["web", "shop/web", "other/web", "db"] {
            assert!(refuse_unknown("--name", &[pair(by, "x")], &known).is_ok(), "{by}");
        }
        assert!(refuse_unknown("--name", &[], &known).is_ok());
        assert!(refuse_unknown("--name", &[pair("wep", "x")], &[]).is_ok(), "nothing is migrated");
        for by in ["wep", "other/db"] {
            let refused = refuse_unknown("--name", &[pair("db", "y"), pair(by, "x")], &known).unwrap_err().explained();
            assert!(refused.contains(by) && refused.contains("other/web, shop/db, shop/web"), "{refused}");
        }
    }

    #[test]
    fn only_secrets_of_the_release_are_deleted() {
        let secret = ForeignObject {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            namespace: Some("shop".to_owned()),
            name: "sh.helm.release.v1.web.v1".to_owned(),
            uid: "1".to_owned(),
        };
        assert!(is_of_release(&secret, "shop", "web"));
        for other in [
            ForeignObject { namespace: Some("vendor".to_owned()), ..secret.clone() },
            ForeignObject { namespace: None, ..secret.clone() },
            ForeignObject { name: "sh.helm.release.v1.vendor.v1".to_owned(), ..secret.clone() },
            ForeignObject { name: "password".to_owned(), ..secret.clone() },
            ForeignObject { kind: "ConfigMap".to_owned(), ..secret.clone() },
            ForeignObject { api_version: "example.com/v1".to_owned(), ..secret.clone() },
        ] {
            assert!(!is_of_release(&other, "shop", "web"), "{other}");
        }
    }
}
