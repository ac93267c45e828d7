//! `chandler rbac`.

use std::collections::BTreeMap;

use chandler_api::{BundleDeployment, ConditionType, Reason, find_condition};
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
    CommandError,
    arguments::{
        bundle::BundleArguments, connection::Connection, system_namespace::SystemNamespaceArguments,
        target::DEPLOYMENTS,
    },
    read::{classes::ClusterClasses, cluster, deployed, origin::is_bundle, rendering},
    view::{
        output::{self, Format},
        permissions::{self, NeededPermissions, PlannedObjects, role_name, supplement_name},
        terminal::Terminal,
        text::count,
    },
};

/// Print the roles that a ServiceAccount needs to install a bundle
///
/// For a BundleDeployment, prints the permissions that its spec.serviceAccount lacked in the controller's last reconcile; with --all,
/// all permissions that it needs. For a bundle, prints all permissions that it needs; no cluster is required.
#[derive(Debug, clap::Args)]
#[command(mut_arg("bundle", |argument| argument.value_name("NAME|BUNDLE").value_parser(DEPLOYMENTS.deployment_or_bundle()).help(
    "Name of a BundleDeployment; or a bundle: a directory, an archive or an image. A bundle is recognised by a slash, dot \
     or colon, as in `./my-operator`")))]
#[command(after_long_help = "\
Output:
  Roles and bindings on standard output, as YAML or JSON for `kubectl apply -f -`; with -o text,
  each rule with the objects that need it. No output if no permission is missing.
  On standard error, notes about rules that grant more than needed, warnings about roles that grant
  all permissions or impersonation, and a summary.

Exit codes: 0 success, 1 failed, 2 wrong usage, 7 not found

Examples:
  Grant the missing permissions:
    chandler rbac my-operator | kubectl apply -f -
  Print all permissions before the BundleDeployment exists:
    chandler rbac ./my-operator --namespace shop --service-account deployer
  Let the status say why Pods do not start, too:
    chandler rbac my-operator --causes | kubectl apply -f -
  Show why each rule is needed:
    chandler rbac ./my-operator --service-account deployer -o text")]
pub struct Rbac {
    /// The bundle, and how to render it.
    #[command(flatten)]
    pub bundle: BundleArguments,

    /// Print all needed permissions, not only the missing ones
    #[arg(long)]
    pub all: bool,

    /// The ServiceAccount. Without NAMESPACE it is in the namespace to install into
    /// [default: spec.serviceAccount of the BundleDeployment]
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    pub service_account: Option<String>,

    /// Grant the verbs `escalate` and `bind` instead of each permission that the roles and bindings of the bundle grant. The rules are
    /// shorter, but the account can then grant itself any permission
    #[arg(long)]
    pub allow_escalation: bool,

    /// Also print the optional permissions with which the status names the cause below an unhealthy object: `list` on its Pods,
    /// ReplicaSets, Jobs and their Events, `get` on their claims
    #[arg(long)]
    pub causes: bool,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = RbacFormat::Yaml)]
    pub output: RbacFormat,

    /// Where files in ConfigMaps are.
    #[command(flatten)]
    pub system: SystemNamespaceArguments,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

/// The format of permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum RbacFormat {
    /// YAML, one document per object
    Yaml,
    /// JSON, one `List` with all objects
    Json,
    /// Human-readable text: each rule with the objects that need it
    Text,
}

/// Why the status says nothing about the permissions of the account.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
struct Unchecked(String);

/// Why the last reconcile did not come as far as the permissions of the account; `None` if it did.
fn unchecked(deployment: &BundleDeployment) -> Option<Unchecked> {
    let status = deployment.status.as_ref();
    let observed = status.is_some_and(|status| status.observed_generation == deployment.metadata.generation);
    let Some(status) = status.filter(|_| observed) else {
        return Some(Unchecked("the controller has not observed the current spec; is it running?".to_owned()));
    };
    // The reasons that are set only after the checks that precede the first write.
    let checked = [Reason::RollingOut, Reason::Succeeded, Reason::ProgressDeadlineExceeded, Reason::PermissionsMissing];
    let progressing = find_condition(&status.conditions, ConditionType::Progressing);
    match progressing {
        Some(condition) if Reason::from_name(&condition.reason).is_some_and(|reason| checked.contains(&reason)) => None,
        Some(condition) => Some(Unchecked(format!("{}: {}", condition.reason, condition.message))),
        None => Some(Unchecked("the controller has not reported its progress yet".to_owned())),
    }
}

/// Whether the missing permissions in the status are about the user of a kubeconfig: the controller reports an account that lacks some as
/// `PermissionsMissing`.
fn is_about_kubeconfig(deployment: &BundleDeployment) -> bool {
    let Some(status) = deployment.status.as_ref().filter(|_| deployment.spec.kube_config.is_some()) else {
        return false;
    };
    !status.missing_permissions.is_empty() && status.conditions.iter().any(|condition| condition.reason == "Forbidden")
}

impl Rbac {
    /// Prints the permissions.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        if self.causes && self.output == RbacFormat::Text {
            return Err(CommandError::usage(
                "-o text explains the permissions that objects need; --causes adds optional ones",
            )
            .hint("omit --causes, or use -o yaml"));
        }
        if is_bundle(&self.bundle.bundle) {
            return self.of_bundle(terminal).await;
        }
        let name = &self.bundle.bundle;
        let client = cluster::client(&self.connection.options()).await?;
        let deployment = cluster::deployment(&client, name).await?;
        deployed::check_namespace(&deployment, self.bundle.request.namespace.as_deref())?;
        let account = self.account_of(&deployment)?;
        if self.all {
            self.all_of_deployment(&client, &deployment, &account, terminal).await
        } else {
            self.missing(&deployment, &account, terminal)
        }
    }

    /// The permissions that a bundle needs, as far as they can be determined without a cluster.
    async fn of_bundle(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let Some(account) = &self.service_account else {
            return Err(CommandError::usage("a bundle requires --service-account")
                .hint("set the ServiceAccount that will install it: `--service-account NAME`"));
        };
        let opened = rendering::open(&self.bundle.options(), ClusterClasses::At(&self.connection.options())).await?;
        let target = &opened.request.target;
        let release = with_secrets(opened.release().await?, &target.namespace)?;
        let account = permissions::account(account, &target.namespace);
        let planned = PlannedObjects::new(&release, &target.namespace);
        let needed = planned.needs(&target.name, &account, &ExistingRoles::default(), self.escalation());
        self.print(&needed, &account, (&target.name, &target.namespace), terminal)
    }

    /// The missing permissions in the status.
    fn missing(
        &self,
        deployment: &BundleDeployment,
        account: &Account,
        terminal: &Terminal,
    ) -> Result<(), CommandError> {
        let status = deployment.status.clone().unwrap_or_default();
        let name = deployment.name_any();
        if self.output == RbacFormat::Text {
            return Err(CommandError::usage(
                "-o text requires --all: the status does not record which objects need a missing rule",
            )
            .hint(format!("run `chandler rbac {name} --all -o text`")));
        }
        Self::about(deployment, account)?;
        if is_about_kubeconfig(deployment) {
            return Err(CommandError::failed(format!(
                "the permissions that {name} lacks are missing in the cluster of its kubeconfig, for the user of the kubeconfig"
            ))
            .hint(format!(
                "grant that user the rules in status.missingPermissions there: `kubectl get bundledeployment {name} -o yaml`"
            )));
        }
        let mut rules_by_namespace: BTreeMap<Option<String>, Vec<PolicyRule>> = status
            .missing_permissions
            .into_iter()
            .map(|missing| (missing.namespace, missing.rules.into_iter().map(rule).collect()))
            .collect();
        if rules_by_namespace.is_empty() {
            unchecked(deployment).map_or(Ok(()), |why| {
                Err(CommandError::failed(format!(
                    "the controller has not checked the permissions of ServiceAccount {account} for {name}"
                ))
                .because(&why)
                .hint(format!(
                    "`chandler status {name}` shows what to do first; `chandler rbac {name} --all` prints all permissions that \
                     it needs"
                )))
            })?;
            terminal.line(format!("the controller found no missing permission of ServiceAccount {account}"));
            if !self.causes {
                return Ok(());
            }
        }
        if self.causes {
            permissions::add_causes(&mut rules_by_namespace, &deployment.spec.install_namespace);
        }
        if status.observed_generation != deployment.metadata.generation {
            terminal.line(format!("note: the controller has not observed the current spec of {name} yet"));
        }
        self.print_roles(&rules_by_namespace, account, &supplement_name(&name, &rules_by_namespace), terminal)
    }

    /// Refuses an account that is not the spec's: the status has no information about it.
    fn about(deployment: &BundleDeployment, account: &Account) -> Result<(), CommandError> {
        let name = deployment.name_any();
        let named = deployment.spec.service_account.as_ref();
        let own = named.map(|named| {
            let namespace = named.namespace.as_ref().unwrap_or(&deployment.spec.install_namespace);
            permissions::account(&named.name, namespace)
        });
        if own.as_ref() == Some(account) {
            return Ok(());
        }
        Err(CommandError::usage(format!(
            "the status of {name} is about the account in its spec, not about ServiceAccount {account}"
        ))
        .hint(format!("`chandler rbac {name} --all --service-account {account}` prints all permissions that it needs")))
    }

    /// All permissions that the BundleDeployment needs. Renders its bundle as the controller does.
    async fn all_of_deployment(
        &self,
        client: &Client,
        deployment: &BundleDeployment,
        account: &Account,
        terminal: &Terminal,
    ) -> Result<(), CommandError> {
        let name = deployment.name_any();
        let spec = &deployment.spec;
        if spec.kube_config.is_some() {
            return Err(CommandError::failed(format!(
                "BundleDeployment {name} is installed into another cluster with the permissions of the user of its kubeconfig (spec.kubeConfig)"
            ))
            .hint(format!("`chandler rbac {name}` prints what ServiceAccount {account} lacks to read the kubeconfig and the values")));
        }
        let resolved = deployment.status.as_ref().and_then(|status| status.resolved_source.as_ref());
        let source = resolved.into_iter().chain([&spec.source]).filter_map(|source| Source::parse(source).ok());
        let source = source.into_iter().find(|source| source.location().is_some());
        let image = source.as_ref().and_then(Source::location);
        let mut opened =
            deployed::open(client, &self.system.system_namespace, &self.bundle.options(), deployment, image).await?;
        let release = deployed::release(client, &mut opened).await?;
        let release = with_secrets(release, &spec.install_namespace)?;
        let mut needed = self.needed(client, &release, deployment, account).await?;
        needed.read_values(&spec.install_namespace, &spec.values_from);
        self.print(&needed, account, (&name, &spec.install_namespace), terminal)
    }

    async fn needed(
        &self,
        client: &Client,
        release: &Release,
        deployment: &BundleDeployment,
        account: &Account,
    ) -> Result<NeededPermissions, CommandError> {
        let planned = PlannedObjects::new(release, &deployment.spec.install_namespace);
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

    fn print(
        &self,
        needed: &NeededPermissions,
        account: &Account,
        (name, install_namespace): (&str, &str),
        terminal: &Terminal,
    ) -> Result<(), CommandError> {
        for warning in needed.delegations() {
            terminal.line(format!("warning: {warning}"));
        }
        for note in needed.notes() {
            terminal.line(format!("note: {note}"));
        }
        if self.output == RbacFormat::Text {
            return output::show(&needed.text());
        }
        let mut rules_by_namespace = needed.rules_by_namespace();
        if self.causes {
            permissions::add_causes(&mut rules_by_namespace, install_namespace);
        }
        self.print_roles(&rules_by_namespace, account, &role_name(name), terminal)
    }

    fn print_roles(
        &self,
        rules_by_namespace: &BTreeMap<Option<String>, Vec<PolicyRule>>,
        account: &Account,
        name: &str,
        terminal: &Terminal,
    ) -> Result<(), CommandError> {
        for warning in permissions::warnings(rules_by_namespace.values().flatten()) {
            terminal.line(format!("warning: {warning}"));
        }
        let format = if self.output == RbacFormat::Json { Format::Json } else { Format::Yaml };
        output::print(&output::write(&roles(rules_by_namespace, account, name), format)?)?;
        let number = rules_by_namespace.values().map(Vec::len).sum();
        terminal.line(format!(
            "{} in {} for ServiceAccount {account}",
            count(number, "rule"),
            count(rules_by_namespace.len(), "role")
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
        permissions::account_of(deployment).ok_or_else(|| {
            let name = deployment.name_any();
            CommandError::failed(format!(
                "{name} has no spec.serviceAccount: the controller installs it with its own permissions, or with the account of its \
                 option --default-service-account"
            ))
            .hint("set spec.serviceAccount.name, or run the command with `--all --service-account NAME`")
        })
    }
}

/// Adds the Secrets that the controller creates for serving certificates.
fn with_secrets(release: Release, namespace: &str) -> Result<Release, CommandError> {
    let failed = |error: &(dyn std::error::Error + 'static)| {
        CommandError::failed("the release declares serving certificates that are invalid").because(error)
    };
    let declarations = Declarations::of(&release, namespace).map_err(|error| failed(&error))?;
    declarations.outline(&release).map_err(|error| failed(&error))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_optional_permissions_are_granted_in_namespaces_only() {
        let mut rules = BTreeMap::from([(None, vec![]), (Some("other".to_owned()), vec![])]);
        permissions::add_causes(&mut rules, "shop");
        assert!(rules.get(&None).is_some_and(Vec::is_empty), "nothing is granted in the whole cluster");
        for namespace in ["shop", "other"] {
            let rules = rules.get(&Some(namespace.to_owned())).unwrap();
            let listed: Vec<&str> = rules.iter().flat_map(|rule| &rule.resources).map(String::as_str).collect();
            assert_eq!(listed, ["events", "pods", "persistentvolumeclaims", "replicasets", "jobs"]);
            assert!(rules.iter().all(|rule| rule.verbs == ["list"] || rule.verbs == ["get"]));
        }
    }

    #[test]
    fn permissions_that_are_missing_in_another_cluster_are_not_about_the_account() {
        let is_about = |reason: &str, kubeconfig: Option<&str>, rules: usize| {
            let conditions = json!([{"type": "Ready", "status": "False", "reason": reason, "message": "",
                                     "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
            let missing = vec![json!({"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}); rules];
            let deployment = json!({
                "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "harbour"},
                "spec": {"installNamespace": "n", "source": {"type": "image"},
                         "kubeConfig": kubeconfig.map(|name| json!({"secretRef": {"name": name}}))},
                "status": {"conditions": conditions, "missingPermissions": missing},
            });
            is_about_kubeconfig(&serde_json::from_value(deployment).unwrap())
        };
        assert!(is_about("Forbidden", Some("eu"), 1));
        assert!(!is_about("PermissionsMissing", Some("eu"), 1), "the account may not read the kubeconfig");
        assert!(!is_about("Forbidden", Some("eu"), 0), "nothing is known to be missing");
        assert!(!is_about("Forbidden", None, 1));
    }

    #[test]
    fn permissions_count_as_checked_only_after_the_checks() {
        for (reason, observed, expected) in [
            (Some("RollingOut"), 2, None),
            (Some("Succeeded"), 2, None),
            (Some("PermissionsMissing"), 2, None),
            (Some("UnpackFailed"), 2, Some("UnpackFailed: no such image")),
            (Some("ApprovalRequired"), 2, Some("ApprovalRequired: no such image")),
            (Some("Succeeded"), 1, Some("the controller has not observed the current spec; is it running?")),
            (None, 2, Some("the controller has not reported its progress yet")),
        ] {
            let conditions = reason.map(|reason| {
                json!({
                    "type": "Progressing", "status": "True", "reason": reason, "message": "no such image",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                })
            });
            let deployment = serde_json::from_value(json!({
                "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
                "metadata": {"name": "harbour", "generation": 2},
                "spec": {"installNamespace": "n", "provisionerClassName": "c", "source": {"type": "image"}},
                "status": {"observedGeneration": observed, "conditions": conditions.into_iter().collect::<Vec<_>>()},
            }));
            let why = unchecked(&deployment.unwrap()).map(|why| why.to_string());
            assert_eq!(why.as_deref(), expected, "{reason:?} {observed}");
        }
    }
}
