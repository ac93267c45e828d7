//! `chandler rbac`.

use std::{collections::BTreeMap, path::PathBuf};

use chandler_api::{BundleDeployment, Reason};
use chandler_certificates::Declarations;
use chandler_core::Release;
use chandler_permissions::{Account, Escalation, ExistingRoles, PolicyRule, RoleKey, roles};
use chandler_source::Source;
use k8s_openapi::api::{
    core::v1::Namespace,
    rbac::v1::{ClusterRole, Role},
};
use kube::{Api, Client, ResourceExt as _};

use crate::{
    CommandError, deployed, live,
    output::{self, Format},
    permissions::{self, Needed, Planned, role_name, supplement_name},
    rendering::Rendering,
    terminal::Terminal,
    text::count,
};

/// Print the roles that a ServiceAccount needs to install a bundle
///
/// Of a BundleDeployment in the cluster, what its spec.serviceAccount lacks, as the controller found it at the last
/// reconcile; with --all everything that it needs. Of a bundle everything that it needs, without a cluster.
#[derive(Debug, clap::Args)]
#[command(mut_arg("bundle", |argument| argument.value_name("NAME|BUNDLE").help(
    "The name of a BundleDeployment; or a bundle: a directory, an archive or an image, written with a slash, such as \
     `./my-operator`")))]
#[command(after_long_help = "\
Output:
  Roles and bindings on standard output, in the formats yaml and json fit for `kubectl apply -f -`; as text each rule
  with the objects that need it. Nothing where nothing is missing.
  What is granted more widely than it is needed, a warning where the roles are as good as every right or allow acting as
  others, and a summary line, on standard error.

Exit codes: 0 printed, 1 refused or not readable, 2 wrong usage

Examples:
  What is missing, applied at once:
    chandler rbac my-operator | kubectl apply -f -
  Everything, before the BundleDeployment exists:
    chandler rbac ./my-operator --namespace shop --service-account deployer
  Why each rule is needed:
    chandler rbac ./my-operator --service-account deployer -o text")]
pub struct Rbac {
    /// Which bundle, and how.
    #[command(flatten)]
    pub rendering: Rendering,

    /// Everything that is needed, also what is not missing
    #[arg(long)]
    pub all: bool,

    /// The ServiceAccount, in the namespace to install into unless it says another one
    /// [default: that of the BundleDeployment]
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    pub service_account: Option<String>,

    /// Allow passing on any permission (`escalate`, `bind`) instead of each that the roles and bindings of the bundle pass
    /// on: shorter, and as good as everything
    #[arg(long)]
    pub allow_escalation: bool,

    /// The form of the output
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = RbacFormat::Yaml)]
    pub output: RbacFormat,

    /// The kubeconfig to use [default: $KUBECONFIG, else ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

/// The form of permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum RbacFormat {
    /// YAML, one document per object
    Yaml,
    /// JSON, one `List` that holds the objects
    Json,
    /// For people: each rule, and what it is needed for
    Text,
}

impl Rbac {
    /// Prints them.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        if is_bundle(&self.rendering.bundle) {
            return self.of_bundle(terminal).await;
        }
        let name = &self.rendering.bundle;
        let client = live::client(self.kubeconfig.as_deref()).await?;
        let deployment = live::deployment(&client, name).await?;
        let account = self.account_of(&deployment)?;
        if self.all {
            self.everything(&client, &deployment, &account, terminal).await
        } else {
            self.missing(&deployment, &account, terminal)
        }
    }

    /// What a bundle needs, as far as it can be told without a cluster.
    async fn of_bundle(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let Some(account) = &self.service_account else {
            return Err(CommandError::usage("a bundle does not say which ServiceAccount installs it")
                .hint("say it: `--service-account NAME`"));
        };
        let opened = self.rendering.open().await?;
        let target = &opened.request.target;
        let release = with_secrets(opened.release().await?, &target.namespace)?;
        let account = permissions::account(account, &target.namespace);
        let planned = Planned::new(&release, &target.namespace);
        let needed = planned.needs(&target.name, &account, &ExistingRoles::default(), self.escalation());
        self.print(&needed, &account, &target.name, terminal)
    }

    /// What the controller found missing.
    fn missing(
        &self,
        deployment: &BundleDeployment,
        account: &Account,
        terminal: &Terminal,
    ) -> Result<(), CommandError> {
        let status = deployment.status.clone().unwrap_or_default();
        let name = deployment.name_any();
        if self.output == RbacFormat::Text {
            return Err(CommandError::usage("what each missing rule is needed for is not known to the cluster")
                .hint(format!("ask for everything: `chandler rbac {name} --all -o text`")));
        }
        if status.observed_generation != deployment.metadata.generation {
            terminal.line(format!("note: the controller has not looked at the last change of {name} yet"));
        }
        let places: BTreeMap<Option<String>, Vec<PolicyRule>> = status
            .missing_permissions
            .into_iter()
            .map(|missing| (missing.namespace, missing.rules.into_iter().map(rule).collect()))
            .collect();
        if places.is_empty() {
            let reason = status.conditions.iter().find(|condition| condition.type_ == "Ready");
            let unknown = reason.is_some_and(|ready| ready.reason == Reason::ServiceAccountNotFound.as_str());
            terminal.line(if unknown {
                format!(
                    "the ServiceAccount {account} does not exist; `chandler rbac {name} --all` prints all it will need"
                )
            } else {
                format!("nothing is missing: no permission was found that the ServiceAccount {account} lacks")
            });
            return Ok(());
        }
        self.print_roles(&places, account, &supplement_name(&name, &places), terminal)
    }

    /// What the BundleDeployment needs: its image is rendered here, as the controller renders it.
    async fn everything(
        &self,
        client: &Client,
        deployment: &BundleDeployment,
        account: &Account,
        terminal: &Terminal,
    ) -> Result<(), CommandError> {
        let name = deployment.name_any();
        let spec = &deployment.spec;
        let resolved = deployment.status.as_ref().and_then(|status| status.resolved_source.as_ref());
        let source = resolved.into_iter().chain([&spec.source]).filter_map(|source| Source::parse(source).ok());
        let source = source.into_iter().find(|source| source.location().is_some());
        let image = source.as_ref().and_then(Source::location).ok_or_else(|| {
            CommandError::failed(format!("the content of {name} is not an image, so it cannot be rendered here"))
                .hint(format!("render its files: `chandler rbac ./FILES --name {name} --service-account {account}`"))
        })?;
        let mut opened = deployed::open(&self.rendering, deployment, Some(image)).await?;
        let release = deployed::release(client, &mut opened).await?;
        let release = with_secrets(release, &spec.install_namespace)?;
        let needed = self.needed(client, &release, deployment, account).await?;
        self.print(&needed, account, &name, terminal)
    }

    async fn needed(
        &self,
        client: &Client,
        release: &Release,
        deployment: &BundleDeployment,
        account: &Account,
    ) -> Result<Needed, CommandError> {
        let planned = Planned::new(release, &deployment.spec.install_namespace);
        let mut existing = ExistingRoles::default();
        for key in planned.references() {
            if let Some(role) = read_role(client, &key).await? {
                existing.insert(key, role);
            }
        }
        let mut needed = planned.needs(&deployment.name_any(), account, &existing, self.escalation());
        let namespaces: Api<Namespace> = Api::all(client.clone());
        for own in needed.own_namespaces.clone() {
            let found = namespaces.get_opt(&own).await;
            let found = found
                .map_err(|error| CommandError::failed(format!("failed to read namespace {own}")).because(&error))?;
            if found.is_some() {
                needed.own_namespaces.remove(&own);
            }
        }
        Ok(needed)
    }

    fn print(&self, needed: &Needed, account: &Account, name: &str, terminal: &Terminal) -> Result<(), CommandError> {
        for warning in needed.delegations() {
            terminal.line(format!("warning: {warning}"));
        }
        for note in needed.notes() {
            terminal.line(format!("note: {note}"));
        }
        if self.output == RbacFormat::Text {
            return output::print(&needed.text());
        }
        self.print_roles(&needed.places(), account, &role_name(name), terminal)
    }

    fn print_roles(
        &self,
        places: &BTreeMap<Option<String>, Vec<PolicyRule>>,
        account: &Account,
        name: &str,
        terminal: &Terminal,
    ) -> Result<(), CommandError> {
        for warning in permissions::warnings(places.values().flatten()) {
            terminal.line(format!("warning: {warning}"));
        }
        let format = if self.output == RbacFormat::Json { Format::Json } else { Format::Yaml };
        output::print(&output::write(&roles(places, account, name), format)?)?;
        let rules = places.values().map(Vec::len).sum();
        terminal.line(format!(
            "{} in {} for the ServiceAccount {account}",
            count(rules, "rule"),
            count(places.len(), "role")
        ));
        Ok(())
    }

    fn escalation(&self) -> Escalation {
        if self.allow_escalation { Escalation::Allow } else { Escalation::Hold }
    }

    fn account_of(&self, deployment: &BundleDeployment) -> Result<Account, CommandError> {
        let namespace = &deployment.spec.install_namespace;
        if let Some(account) = &self.service_account {
            return Ok(permissions::account(account, namespace));
        }
        let Some(named) = &deployment.spec.service_account else {
            let name = deployment.name_any();
            return Err(CommandError::failed(format!(
                "{name} names no ServiceAccount: the controller uses its own rights, or the account that its option \
                 --default-service-account names"
            ))
            .hint("set spec.serviceAccount.name, or say for which one: `--service-account NAME`, with --all for everything"));
        };
        let namespace = named.namespace.as_ref().unwrap_or(namespace);
        Ok(Account { namespace: namespace.clone(), name: named.name.clone() })
    }
}

/// The release with the Secrets that the host adds for serving certificates.
fn with_secrets(release: Release, namespace: &str) -> Result<Release, CommandError> {
    let failed = |error: &(dyn std::error::Error + 'static)| {
        CommandError::failed("the release asks for serving certificates that it cannot have").because(error)
    };
    let declarations = Declarations::of(&release, namespace).map_err(|error| failed(&error))?;
    declarations.outline(&release).map_err(|error| failed(&error))
}

/// Whether this is a bundle and not the name of a BundleDeployment, which has neither slashes, colons nor dots.
pub(super) fn is_bundle(text: &str) -> bool {
    text.contains(['/', ':', '.', std::path::MAIN_SEPARATOR])
}

async fn read_role(client: &Client, key: &RoleKey) -> Result<Option<serde_json::Value>, CommandError> {
    let value = if let Some(namespace) = &key.namespace {
        let role = Api::<Role>::namespaced(client.clone(), namespace).get_opt(&key.name).await;
        role.map(|role| role.map(|role| serde_json::to_value(role).unwrap_or_default()))
    } else {
        let role = Api::<ClusterRole>::all(client.clone()).get_opt(&key.name).await;
        role.map(|role| role.map(|role| serde_json::to_value(role).unwrap_or_default()))
    };
    value.map_err(|error| CommandError::failed(format!("failed to read {key}")).because(&error))
}

fn rule(rule: k8s_openapi::api::rbac::v1::PolicyRule) -> PolicyRule {
    PolicyRule {
        verbs: rule.verbs,
        api_groups: rule.api_groups.unwrap_or_default(),
        resources: rule.resources.unwrap_or_default(),
        resource_names: rule.resource_names.unwrap_or_default(),
        non_resource_urls: rule.non_resource_urls.unwrap_or_default(),
    }
}
