//! `chandler diff`.

use chandler_api::{BundleCandidate, BundleDeployment};
use chandler_crd_upgrade::Upgrade;
use kube::Api;

use crate::{
    CommandError,
    arguments::{
        bundle::BundleArguments,
        connection::Connection,
        content_service::ContentClientArguments,
        format::DataFormat,
        system_namespace::SystemNamespaceArguments,
        target::{INSTALLED, class_name},
    },
    read::{
        cache,
        class_diff::ClassDiff,
        classes, cluster, deployed,
        origin::{Origin, is_bundle},
        preview,
        provisioner::{self, ChosenProvisioner},
        rendering::{self, BundleOptions},
        uploaded::BundleAccess,
    },
    view::{
        class_diff::{ClassReport, Summary},
        difference,
        failure::FailureKind,
        findings,
        findings::Findings,
        output, pending_change, preflight, summary,
        terminal::Terminal,
        text::one_line,
    },
};

/// Print what a rollout would change
///
/// Renders a bundle as the controller does, and compares each object in the cluster with the result of a server-side dry run, so that
/// defaulted fields are not reported as changes. It runs all checks that the controller runs before it writes. Nothing is changed.
/// Secret values are not shown. --config and --set are merged over the
/// configuration in the spec, as in an upgrade; values of spec.valuesFrom, and uploaded files in the content service, are read
/// with your permissions.
///
/// With class/NAME, every BundleDeployment that uses the class is rendered by the component that rendered its release and by the one that
/// the class has now (or --provisioner), and the objects that differ are printed as soon as they are known. Nothing is compared with
/// the cluster.
#[derive(Debug, clap::Args)]
#[command(mut_arg("bundle", |argument| argument.value_name("NAME|BUNDLE").value_parser(INSTALLED.deployment_bundle_or_class()).help(
    "Name of a BundleDeployment, to preview its spec (`resolution/NAME` for the set of a Resolution); `class/NAME`, to preview the update \
     of a ProvisionerClass; or a bundle, to preview that bundle: a directory, an archive or an image. A bundle is recognised by a slash, \
     dot or colon, as in `./my-operator`")))]
#[command(after_long_help = "\
Output:
  The changes on standard output; with -o json, every field.
  Reasons why the rollout would be refused, other findings, the versions and a summary on standard
  error.

Exit codes: 0 nothing would change, 1 failed, 2 wrong usage, 4 something would change, 7 not found,
  8 the rollout would be refused; with --findings: 0 no finding refuses a CRD upgrade, 8 one does;
  with class/NAME: 1 one could not be compared, 8 the component does not render one

Examples:
  Preview the pending change, or a change of the spec:
    chandler diff my-operator
  Preview a new version of the bundle, as `chandler upgrade` would install it:
    chandler diff my-operator ./my-operator-v2
  Preview another configuration:
    chandler diff my-operator --set replicas=3
  List all findings about upgrades of CRDs, and the command that allows them:
    chandler diff my-operator --findings
  Preview the update of a ProvisionerClass, with the component that it has now or with a file:
    chandler diff class/helm
    chandler diff class/helm --provisioner ./helm.wasm
  List the objects that would be deleted:
    chandler diff my-operator ./my-operator-v2 -o json |
      jq '.changes[] | select(.kind == \"remove\")'")]
pub struct Diff {
    /// The bundle, and how to render it.
    #[command(flatten)]
    pub bundle: BundleArguments,

    /// With NAME: the bundle to preview instead of the bundle in the spec
    #[arg(index = 2, value_name = "NEW_BUNDLE", conflicts_with = "name")]
    pub new_bundle: Option<String>,

    /// Show the descriptions in the schemas of CRDs, too; JSON always has them
    #[arg(long)]
    pub descriptions: bool,

    /// List the findings about upgrades of CRDs instead of the changes: all of them, by CRD and rule
    #[arg(long)]
    pub findings: bool,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = DataFormat::Text)]
    pub output: DataFormat,

    /// Where files in ConfigMaps are.
    #[command(flatten)]
    pub system: SystemNamespaceArguments,

    /// How the command reaches the content service, for uploaded files.
    #[command(flatten)]
    pub content: ContentClientArguments,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

/// The provisioner that rendered the installed release, and the one of the preview, where it is another one. The built-in ones of this
/// command may be of another version than the controller, which decides.
fn provisioners(deployment: Option<&BundleDeployment>, chosen: &ChosenProvisioner) -> Option<String> {
    let installed = deployment?.status.as_ref()?.history.last().map(|revision| &revision.provisioner)?;
    let new = chosen.in_use();
    (!chosen.is_builtin || installed.class != new.class).then(|| summary::provisioners(installed, &new))?
}

impl Diff {
    /// The bundle to preview: `NAME NEW_BUNDLE` is short for `NEW_BUNDLE --name NAME`.
    fn options(&self) -> Result<BundleOptions, CommandError> {
        let Some(bundle) = &self.new_bundle else { return Ok(self.bundle.options()) };
        let name = &self.bundle.bundle;
        if is_bundle(name) {
            return Err(CommandError::usage(format!("{name:?} is a bundle, and so is {bundle:?}"))
                .hint("`chandler diff NAME NEW_BUNDLE`: NAME must be a BundleDeployment"));
        }
        Ok(BundleOptions { bundle: bundle.clone(), name: Some(name.clone()), ..self.bundle.options() })
    }

    /// Prints the changes, and returns the exit code.
    pub async fn run(&self, terminal: &Terminal) -> Result<u8, CommandError> {
        if let Some(class) = class_name(&self.bundle.bundle) {
            return Box::pin(self.run_class(terminal, class)).await;
        }
        let options = self.options()?;
        let client = cluster::client(&self.connection.options()).await?;
        let is_bundle = self.new_bundle.is_some() || is_bundle(&options.bundle);
        let (deployment, mut opened) = if is_bundle {
            let name = rendering::name(&options);
            let deployments: Api<BundleDeployment> = Api::all(client.clone());
            let existing = deployments.get_opt(&name).await.map_err(|error| cluster::not_read(&name, &error))?;
            let origin = Origin::parse(&options.bundle)?;
            let opened = deployed::open_other(&client, &origin, &options, existing.as_ref()).await?;
            (existing, opened)
        } else {
            let deployment = cluster::deployment(&client, &options.bundle).await?;
            let access = BundleAccess {
                connection: self.connection.options(),
                system_namespace: &self.system.system_namespace,
                content: self.content.options(),
                instead: format!("chandler diff {} ./FILES", options.bundle),
            };
            let opened = access.open(&client, &options, &deployment, None).await?;
            (Some(deployment), opened)
        };
        let release = deployed::release(&client, &mut opened).await?;
        let target = &opened.request.target;
        let name = target.name.clone();
        let mut preview =
            preview::rollout(client, deployment.as_ref(), (&target.name, &target.namespace), &release).await?;
        difference::hide(&mut preview, opened.redactor());
        if self.findings {
            let pending =
                deployment.as_ref().filter(|_| !is_bundle).map(|deployment| pending_change::pending(deployment, None));
            let change = pending.and_then(Result::ok).map(|change| change.digest.as_str());
            return self.print_findings(terminal, (&name, change), &preview.crd_upgrades);
        }
        if let Some(refusal) = deployment.as_ref().filter(|_| !is_bundle).and_then(preview::account_refusal) {
            preview.refusals.insert(0, refusal);
        }
        let text = || difference::text(&preview, Terminal::output().look(), self.descriptions);
        output::print(&output::data(&preview, self.output, text)?)?;
        for refusal in &preview.refusals {
            terminal.line(difference::refusal(refusal));
        }
        for finding in &preview.findings {
            terminal.line(format!("finding: {}", one_line(finding)));
        }
        let rendered = BundleCandidate { version: release.description().version.clone(), ..BundleCandidate::default() };
        let installed = deployment.as_ref().and_then(|deployment| deployment.status.as_ref()?.bundle.as_ref());
        if let Some(versions) = summary::versions(installed, Some(&rendered).filter(|_| !preview.is_empty())) {
            terminal.line(format!("version: {}", one_line(&versions)));
        }
        if let Some(change) = provisioners(deployment.as_ref(), &opened.chosen) {
            terminal.line(format!("provisioner: {}", one_line(&change)));
        }
        terminal.line(difference::summary(&preview));
        Ok(match (preview.refusals.is_empty(), preview.is_empty()) {
            (false, _) => FailureKind::Refused.exit_code(),
            (true, true) => 0,
            (true, false) => FailureKind::Changes.exit_code(),
        })
    }

    /// Prints what the component of a class would change, and returns the exit code.
    async fn run_class(&self, terminal: &Terminal, name: &str) -> Result<u8, CommandError> {
        let bundle = &self.bundle;
        let has_other =
            self.new_bundle.is_some() || bundle.request.name.is_some() || bundle.request.namespace.is_some();
        if has_other || self.findings || !bundle.request.configuration.options().is_empty() {
            return Err(CommandError::usage(
                "class/NAME is about all BundleDeployments of the class: it takes no bundle, name, namespace, configuration or --findings",
            )
            .hint("`chandler diff NAME` previews one BundleDeployment"));
        }
        let cache = cache::directory(bundle.fetch.cache_directory.as_deref())?;
        let client = cluster::client(&self.connection.options()).await?;
        let class = classes::read(&client, name).await?;
        let provisioners = provisioner::provisioners(&cache)?;
        let mut newest = match &bundle.provisioner {
            Some(file) => provisioner::named(&provisioners, file).await?,
            None => classes::load(&class, &provisioners, &cache, &bundle.fetch.registry.options()).await?,
        };
        newest.defaults = class.spec.config.clone().unwrap_or_default();
        let options = bundle.fetch.of_deployment();
        let mut report = ClassReport::new(name, &summary::component(&newest.in_use()));
        let comparison = ClassDiff {
            client: &client,
            system_namespace: &self.system.system_namespace,
            options: &options,
            provisioners: &provisioners,
            cache: &cache,
            class: name,
            newest: &newest,
        };
        let is_text = self.output == DataFormat::Text;
        let look = Terminal::output().look();
        let each = |checked| {
            match report.count(checked) {
                Some(checked) if is_text => output::print(&preflight::block(&checked, look, self.descriptions))?,
                Some(checked) => report.keep(checked),
                None => {}
            }
            Ok(())
        };
        comparison.run(each).await?;
        if !is_text {
            output::print(&output::data(&report, self.output, String::new)?)?;
        }
        terminal.line(report.line());
        let Summary { changed, refused, unchecked, .. } = report.summary;
        Ok(match (refused, unchecked, changed) {
            (1.., ..) => FailureKind::Refused.exit_code(),
            (_, 1.., _) => FailureKind::Failed.exit_code(),
            (_, _, 1..) => FailureKind::Changes.exit_code(),
            _ => 0,
        })
    }

    /// Prints the findings about upgrades of CRDs, and returns the exit code.
    fn print_findings(
        &self,
        terminal: &Terminal,
        (name, change): (&str, Option<&str>),
        upgrades: &[Upgrade],
    ) -> Result<u8, CommandError> {
        let digest = findings::refused(upgrades);
        let findings = Findings::of(upgrades, digest.as_deref());
        output::print(&output::data(&findings, self.output, || findings.text())?)?;
        terminal.line(findings.summary(name, change));
        Ok(if digest.is_some() { FailureKind::Refused.exit_code() } else { 0 })
    }
}
