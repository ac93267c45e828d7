//! Hands what another installer runs over to BundleDeployments.
//!
//! All is checked before the first write. Then, for each installation: the BundleDeployment is created, with the list of the objects to adopt and of
//! those to delete; the controller checks and adopts; once the BundleDeployment is healthy, the old installer is detached. So whatever fails,
//! the objects of the old installer exist until the new owner has everything, and after a failure the list says how to continue.

use chandler_api::{Approval, BundleDeployment};
use chandler_core::{Object, ObjectKey, Release};
use chandler_resolution::installation::is_ready;
use chandler_rollout::{Adoptee, ChangeKind, Preview};
use kube::{Api, Client, ResourceExt as _, api::ListParams};
use serde_json::Value;

use super::Migrate;
use crate::{
    CommandError,
    arguments::wait::Wait,
    confirmation,
    migrate::{ForeignObject, Migration, belonging, pending, restarts::restarts},
    read::{
        cluster, deployed,
        foreign::{self, ForeignKind},
        preview,
        rendering::BundleOptions,
        settled,
    },
    view::{
        adoption::Adoption,
        difference,
        invocation::quoted,
        terminal::Terminal,
        text::{count, one_line},
    },
    write::{
        adoption::entry,
        change,
        deployment::{self, Effect},
        migration::{self, Deleted},
    },
};

/// How an adoption is awaited, and what follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct After<'a> {
    /// Whether and how long the command waits.
    pub(super) waiting: Wait,
    /// The namespace of the controller.
    pub(super) system_namespace: &'a str,
    /// Whether the objects of the old installer are deleted.
    pub(super) detach: bool,
}

/// A BundleDeployment to create, and what it would do.
struct Plan<'a> {
    migration: &'a Migration,
    deployment: BundleDeployment,
    adoptees: Vec<Adoptee>,
    preview: Preview,
    /// Objects that exist and do not belong to the installation, a line each.
    strangers: Vec<String>,
    /// Objects that would be created and grant or add something, a line each.
    new: Vec<String>,
    /// Why the permissions of the ServiceAccount are not checked.
    unchecked_account: Option<String>,
}

/// Checks the migrations, asks, and carries out these and those that have begun.
pub(super) async fn run(
    arguments: &Migrate,
    client: &Client,
    migrations: &[Migration],
    begun: &[BundleDeployment],
    terminal: &Terminal,
) -> Result<(), CommandError> {
    let mut plans = Vec::new();
    for migration in migrations {
        if let Some(deployment) = arguments.deployment(migration) {
            let plan = Box::pin(plan(arguments, client, migration, deployment)).await?;
            plan.report(terminal);
            plans.push(plan);
        }
    }
    let begun = continued(arguments, begun, terminal)?;
    let number = plans.len() + begun.len();
    if number == 0 {
        terminal.line("nothing to migrate: nothing is installed");
        return Ok(());
    }
    check(&plans, arguments)?;
    if !is_wanted(&count(number, "installation"), arguments.dry_run, arguments.yes, terminal)? {
        return Ok(());
    }
    let after =
        After { waiting: arguments.waiting, system_namespace: &arguments.system.system_namespace, detach: true };
    for deployment in &begun {
        carry_out(after, client, deployment, terminal).await?;
    }
    for plan in plans {
        let created = create(client, &plan, terminal).await?;
        carry_out(after, client, &created, terminal).await?;
    }
    Ok(())
}

/// Whether these migrations are carried out: not in a dry run, and not unless the user agrees.
pub(super) fn is_wanted(migrations: &str, dry_run: bool, yes: bool, terminal: &Terminal) -> Result<bool, CommandError> {
    if dry_run {
        terminal.line(format!("would migrate {migrations}; nothing was changed"));
        return Ok(false);
    }
    let is_wanted = confirmation::confirmed(terminal, &format!("migrate {migrations}?"), yes)?;
    if !is_wanted {
        terminal.line("nothing was changed");
    }
    Ok(is_wanted)
}

/// The BundleDeployments whose migration has begun, and that are meant. `is_meant` also gets the first object that the old installer manages them
/// with.
pub(super) async fn begun(
    client: &Client,
    is_meant: impl Fn(&BundleDeployment, &ForeignObject) -> bool,
) -> Result<Vec<BundleDeployment>, CommandError> {
    let mut all = cluster::deployments(client, &ListParams::default()).await?;
    all.retain(|deployment| {
        let managers = pending::managers(deployment).unwrap_or_default();
        managers.first().is_some_and(|first| is_meant(deployment, first))
    });
    Ok(all)
}

/// The migrations that have begun and are not finished. An annotation of the BundleDeployment lists what is deleted, and its author may
/// have written it: the list is shown, has objects of OLM only, and without a question the user has to name what is migrated.
fn continued<'a>(
    arguments: &Migrate,
    begun: &'a [BundleDeployment],
    terminal: &Terminal,
) -> Result<Vec<&'a BundleDeployment>, CommandError> {
    let mut continued = Vec::new();
    for deployment in begun {
        let name = deployment.name_any();
        let managers = pending::managers(deployment).unwrap_or_default();
        if !belonging::is_own_list(&deployment.spec.install_namespace, &managers) {
            return Err(CommandError::failed(format!(
                "the annotation {} of BundleDeployment {name} lists objects that do not belong to its installation; nothing was changed",
                pending::ANNOTATION
            ))
            .hint("this command did not write it: find out who did, and remove the annotation"));
        }
        if arguments.yes && arguments.objects.is_empty() {
            let by = managers.first().map(ToString::to_string).unwrap_or_default();
            terminal.line(format!(
                "BundleDeployment {name} says that the migration of {} has begun: name it to continue it without a question",
                one_line(&by)
            ));
            continue;
        }
        terminal.line(format!("continue the migration of BundleDeployment {name}"));
        report_managers(&managers, terminal);
        continued.push(deployment);
    }
    Ok(continued)
}

pub(super) fn report_managers(managers: &[ForeignObject], terminal: &Terminal) {
    for manager in managers {
        terminal.line(format!("- delete {}, and nothing that depends on it", one_line(&manager.to_string())));
    }
}

/// Renders the bundle, and finds the objects to adopt and what would change in them.
async fn plan<'a>(
    arguments: &Migrate,
    client: &Client,
    migration: &'a Migration,
    mut deployment: BundleDeployment,
) -> Result<Plan<'a>, CommandError> {
    // A name that is taken is reported before the bundle is fetched.
    deployment::create(client, &deployment, Effect::Check).await?;
    let fetching = arguments.fetching.options();
    let bundle = BundleOptions::of_deployment(fetching.registry, fetching.cache_directory);
    let system = &arguments.system.system_namespace;
    let mut opened = deployed::open(client, system, &bundle, &deployment, None).await?;
    let release = deployed::release(client, &mut opened).await?;
    let adoptees = preview::adoptees(client.clone(), &preview::unstored(&deployment), &release).await?;
    deployment.spec.adopt = adoptees.iter().map(entry).collect();
    let (preview, unchecked_account) =
        preview::rollout_as_account(client.clone(), &preview::unstored(&deployment), &release).await?;
    let strangers = strangers(client, &adoptees, &migration.managers).await?;
    let new = new(client, &preview, &release, &migration.managers).await?;
    Ok(Plan { migration, deployment, adoptees, preview, strangers, new, unchecked_account })
}

impl Plan<'_> {
    /// Says what is created, adopted and deleted.
    fn report(&self, terminal: &Terminal) {
        terminal.line(format!("+ create BundleDeployment {}", self.deployment.name_any()));
        let adoption = Adoption { objects: &self.adoptees, held: &[] };
        terminal.write(adoption.text(terminal.look()));
        for object in &self.new {
            terminal.line(format!("+ create {object}, which OLM did not create"));
        }
        report_managers(&self.migration.managers, terminal);
        if let Some(why) = &self.unchecked_account {
            terminal.line(format!(
                "note: the controller checks the permissions of the ServiceAccount, before it adopts anything: {}",
                one_line(why)
            ));
        }
    }
}

/// The objects that exist and do not belong to the installation: whatever a ClusterServiceVersion claims, they stay where they are.
async fn strangers(
    client: &Client,
    adoptees: &[Adoptee],
    managers: &[ForeignObject],
) -> Result<Vec<String>, CommandError> {
    let mut strangers = Vec::new();
    for Adoptee { object, uid, existing_owner, .. } in adoptees {
        let live = foreign::get(client, object).await?;
        let live = live.filter(|live| live.pointer("/metadata/uid").and_then(Value::as_str) == Some(uid));
        let is_own = |live: &Value| belonging::deployment_of(live).is_none() && belonging::belongs(live, managers);
        if let Some(live) = live.as_ref().filter(|live| is_own(live)) {
            if let Some(other) = sharer(client, live, managers).await? {
                strangers.push(one_line(&format!("{object}, which is shared with ClusterServiceVersion {other}")));
            }
            continue;
        }
        let owner = live.as_ref().and_then(belonging::deployment_of);
        let owner =
            owner.map_or_else(|| existing_owner.to_string(), |name| format!("belongs to BundleDeployment {name}"));
        strangers.push(one_line(&format!("{object}, which {owner}")));
    }
    Ok(strangers)
}

/// Another ClusterServiceVersion that exists, and that an object was installed for, too.
async fn sharer(client: &Client, live: &Value, managers: &[ForeignObject]) -> Result<Option<String>, CommandError> {
    for (namespace, name) in belonging::sharers(live, managers) {
        let csv = ObjectKey {
            group: "operators.coreos.com".to_owned(),
            version: "v1alpha1".to_owned(),
            kind: "ClusterServiceVersion".to_owned(),
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
        };
        if foreign::get(client, &csv).await?.is_some() {
            return Ok(Some(format!("{namespace}/{name}")));
        }
    }
    Ok(None)
}

/// The objects that would be created, but for roles and bindings with which OLM has granted the same.
async fn new(
    client: &Client,
    preview: &Preview,
    release: &Release,
    managers: &[ForeignObject],
) -> Result<Vec<String>, CommandError> {
    let created: Vec<Value> = preview
        .changes
        .iter()
        .filter(|change| change.kind == ChangeKind::Create)
        .filter_map(|change| {
            let is_it = |object: &&Object| {
                let ObjectKey { group, kind, name, namespace, .. } = &object.key;
                let wanted = &change.object;
                (group, kind, name) == (&wanted.group, &wanted.kind, &wanted.name)
                    && (namespace.is_none() || *namespace == wanted.namespace)
            };
            let mut value = Value::Object(release.objects().iter().find(is_it)?.value.clone());
            let metadata = value.get_mut("metadata").and_then(Value::as_object_mut);
            if let (Some(metadata), Some(namespace)) = (metadata, &change.object.namespace) {
                metadata.insert("namespace".to_owned(), namespace.as_str().into());
            }
            Some(value)
        })
        .collect();
    let mut live = Vec::new();
    if !created.is_empty() {
        for kind in ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"] {
            let kind = ForeignKind { group: "rbac.authorization.k8s.io", version: "v1", kind };
            live.extend(foreign::list(client, kind, Some("olm.owner")).await?.unwrap_or_default());
        }
    }
    let is_new = |object: &&Value| !belonging::is_granted(object, &created, &live, managers);
    Ok(created.iter().filter(is_new).map(|object| one_line(&belonging::described(object))).collect())
}

/// Refuses what does not belong to the installation, what the rollout would refuse, and what would restart workloads.
fn check(plans: &[Plan<'_>], arguments: &Migrate) -> Result<(), CommandError> {
    for plan in plans {
        let name = plan.deployment.name_any();
        let from = &plan.migration.from;
        if let Some(problem) = &plan.migration.unconfirmed {
            return Err(CommandError::refused(format!("the image of {from} is not confirmed; nothing was changed"))
                .cause(problem.clone())
                .hint(format!("if it is the right one, name it: `--image {}=IMAGE`", quoted(&from.name))));
        }
        if !plan.strangers.is_empty() {
            let number = count(plan.strangers.len(), "object");
            let failed = CommandError::refused(format!(
                "{number} of the bundle do not belong to {from} alone; nothing was changed"
            ));
            return Err(plan.strangers.iter().cloned().fold(failed, CommandError::cause).hint(
                "an object belongs to an installation by an owner reference with the UID of its ClusterServiceVersion, or by the labels that OLM \
                 gives to cluster-scoped objects; what it only claims is not adopted, nor is a CRD that it shares with an installation in another \
                 namespace, since each object has one owner: remove that one first",
            ));
        }
        if !plan.new.is_empty() && !arguments.allow_new {
            let number = count(plan.new.len(), "object");
            let failed =
                CommandError::refused(format!("{number} of the bundle of {from} would be new; nothing was changed"));
            return Err(plan.new.iter().cloned().fold(failed, CommandError::cause).hint(
                "OLM runs the installation without them: read what they are, and pass --allow-new if the bundle is what you mean to install",
            ));
        }
        if let Some(refusal) = plan.preview.refusals.first() {
            let refused = CommandError::refused(format!("the rollout of {name} would be refused; nothing was changed"))
                .cause(difference::refusal(refusal));
            // The BundleDeployment that the message is about does not exist yet.
            return Err(match plan.migration.rbac_command() {
                Some(command) => refused.hint(format!(
                    "the installation runs on: if the ServiceAccount lacks permissions, `{command} | kubectl apply -f -` grants them; \
                     --service-account names another one, and with --no-service-account the controller installs with its own permissions"
                )),
                None => refused,
            });
        }
        let restarts = restarts(&plan.adoptees, &plan.preview.changes);
        if !restarts.is_empty() && !arguments.allow_restart {
            let failed = CommandError::refused(format!(
                "adopting the objects of {name} would restart Pods; nothing was changed"
            ));
            return Err(restarts.into_iter().fold(failed, CommandError::cause).hint(
                "set spec.config (deploymentConfig) or spec.ignoreDifferences to keep the differences: save the output without --apply, \
                 change it, apply it, and use `chandler adopt`; or pass --allow-restart",
            ));
        }
    }
    Ok(())
}

/// Creates the BundleDeployment. From here on the controller checks, and adopts the objects.
async fn create(client: &Client, plan: &Plan<'_>, terminal: &Terminal) -> Result<BundleDeployment, CommandError> {
    let mut deployment = plan.deployment.clone();
    pending::begin(&mut deployment, &plan.migration.managers);
    let created = deployment::create(client, &deployment, Effect::Store).await?;
    terminal.line(format!("created BundleDeployment {}", created.name_any()));
    Ok(created)
}

/// Lets the BundleDeployment adopt the objects, and then detaches the old installer.
pub(super) async fn carry_out(
    after: After<'_>,
    client: &Client,
    deployment: &BundleDeployment,
    terminal: &Terminal,
) -> Result<(), CommandError> {
    let managers = pending::managers(deployment).unwrap_or_default();
    if !is_adopted(after, client, deployment, &managers, terminal).await? {
        return Ok(());
    }
    if !after.detach {
        for manager in &managers {
            terminal.line(format!("{} was kept", one_line(&manager.to_string())));
        }
        return Ok(());
    }
    // Objects of a release of Helm have no owner.
    if !is_of_helm(&managers) {
        for object in &deployment.spec.adopt {
            migration::remove_owners(client, object, &managers).await?;
        }
    }
    for manager in &managers {
        match migration::delete(client, manager).await? {
            Deleted::Done => terminal.line(format!("deleted {}", one_line(&manager.to_string()))),
            Deleted::Waits(finalizers) => terminal.line(format!(
                "deleted {}; it remains until its controller runs again and removes the finalizers {}",
                one_line(&manager.to_string()),
                one_line(&finalizers.join(", "))
            )),
        }
    }
    migration::complete(client, deployment).await
}

/// Whether the old installer is Helm, whose releases are Secrets.
fn is_of_helm(managers: &[ForeignObject]) -> bool {
    managers.iter().all(|manager| manager.kind == "Secret")
}

/// Whether the BundleDeployment has adopted the objects and is healthy, so that the old installer can go. Waits for it, unless the user has to
/// approve it first or does not want to wait; then a line says how to continue.
async fn is_adopted(
    after: After<'_>,
    client: &Client,
    deployment: &BundleDeployment,
    managers: &[ForeignObject],
    terminal: &Terminal,
) -> Result<bool, CommandError> {
    let name = deployment.name_any();
    if deployment.spec.suspend {
        // A migration of a release of Helm never begins so: a user suspended it.
        if is_of_helm(managers) {
            terminal.line(format!("{name} is suspended; resume it first (chandler resume {name})"));
            return Ok(false);
        }
        // Earlier versions of this command began with a suspended BundleDeployment.
        change::set_suspend::<BundleDeployment>(client, &name, false, Effect::Store).await?;
    }
    let remaining: Vec<String> = managers.iter().map(|manager| one_line(&manager.to_string())).collect();
    let remaining = remaining.join(" and ");
    let waits = deployment.spec.approval == Some(Approval::Manual);
    if !waits && after.waiting.wait {
        let namespace = Some(after.system_namespace);
        let healthy = settled::until_healthy(client, &name, namespace, terminal, after.waiting.timeout).await;
        return healthy.map(|()| true).map_err(|error| {
            error.hint(format!(
                "{remaining} was not deleted: when {name} is healthy, run the command again with the name of the object, which deletes it; \
                 `chandler delete {name} --orphan` gives the migration up and leaves what runs alone"
            ))
        });
    }
    if is_healthy(client, &name).await? {
        return Ok(true);
    }
    terminal.line(if waits {
        format!("{name} waits for approval: `chandler approve {name}` lets it adopt the objects")
    } else {
        format!("`chandler status {name} --watch` follows the rollout")
    });
    terminal
        .line(format!("{remaining} remains until then: when {name} is healthy, run the command again with its name"));
    Ok(false)
}

/// Whether the controller reports the current spec of a BundleDeployment as ready.
async fn is_healthy(client: &Client, name: &str) -> Result<bool, CommandError> {
    let found = Api::<BundleDeployment>::all(client.clone()).get(name).await;
    let found = found
        .map_err(|error| CommandError::failed(format!("failed to read BundleDeployment {name}")).because(&error))?;
    Ok(is_ready(&found))
}
