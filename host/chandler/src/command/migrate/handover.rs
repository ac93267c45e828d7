//! Hands what another installer runs over to BundleDeployments.
//!
//! All is checked before the first write. Then, for each installation: the BundleDeployment is created suspended, with the list of the objects to
//! adopt and of those to delete; the old installer is detached; the suspension ends. Until then the workload runs as before, and after a
//! failure the list says how to continue.

use chandler_api::{Approval, BundleDeployment};
use chandler_rollout::{Adoptee, Preview};
use kube::{Client, ResourceExt as _};

use super::Migrate;
use crate::{
    CommandError,
    arguments::bundle::BundleArguments,
    confirmation,
    migrate::{Migration, pending, restarts::restarts},
    read::{deployed, preview, settled},
    view::{
        adoption::Adoption,
        difference,
        terminal::Terminal,
        text::{count, one_line},
    },
    write::{
        adoption::entry,
        deployment::{self, Effect},
        migration::{self, Deleted},
    },
};

/// A BundleDeployment to create, and what it would do.
struct Plan<'a> {
    migration: &'a Migration,
    deployment: BundleDeployment,
    adoptees: Vec<Adoptee>,
    preview: Preview,
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
    for deployment in begun {
        terminal.line(format!("continue the migration of BundleDeployment {}", deployment.name_any()));
    }
    let number = plans.len() + begun.len();
    if number == 0 {
        terminal.line("nothing to migrate: nothing is installed");
        return Ok(());
    }
    check(&plans, arguments.allow_restart)?;
    let question = format!("migrate {}?", count(number, "installation"));
    if !confirmation::confirmed(terminal, &question, arguments.yes)? {
        terminal.line("nothing was changed");
        return Ok(());
    }
    for deployment in begun {
        carry_out(arguments, client, deployment, terminal).await?;
    }
    for plan in plans {
        let created = create(client, &plan, terminal).await?;
        carry_out(arguments, client, &created, terminal).await?;
    }
    Ok(())
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
    let fetching = &arguments.fetching;
    let bundle = BundleArguments::of_deployment(&fetching.registry, fetching.cache_directory.as_deref());
    let system = &arguments.system.system_namespace;
    let mut opened = deployed::open(client, system, &bundle, &deployment, None).await?;
    let release = deployed::release(client, &mut opened).await?;
    let adoptees = preview::adoptees(client.clone(), &preview::unstored(&deployment), &release).await?;
    deployment.spec.adopt = adoptees.iter().map(entry).collect();
    let name = deployment.name_any();
    let place = (name.as_str(), deployment.spec.install_namespace.as_str());
    let preview = preview::rollout(client.clone(), Some(&preview::unstored(&deployment)), place, &release).await?;
    Ok(Plan { migration, deployment, adoptees, preview })
}

impl Plan<'_> {
    /// Says what is created, adopted and deleted.
    fn report(&self, terminal: &Terminal) {
        terminal.line(format!("+ create BundleDeployment {}", self.deployment.name_any()));
        let adoption = Adoption { objects: &self.adoptees, held: &[] };
        terminal.write(adoption.text(terminal.look()));
        for manager in &self.migration.managers {
            terminal.line(format!("- delete {}, and nothing that depends on it", one_line(&manager.to_string())));
        }
    }
}

/// Refuses what the rollout would refuse, and what would restart workloads.
fn check(plans: &[Plan<'_>], allow_restart: bool) -> Result<(), CommandError> {
    for plan in plans {
        let name = plan.deployment.name_any();
        if let Some(refusal) = plan.preview.refusals.first() {
            return Err(CommandError::failed(format!("the rollout of {name} would be refused; nothing was changed"))
                .cause(difference::refusal(refusal)));
        }
        let restarts = restarts(&plan.adoptees, &plan.preview.changes);
        if !restarts.is_empty() && !allow_restart {
            let failed =
                CommandError::failed(format!("adopting the objects of {name} would restart Pods; nothing was changed"));
            return Err(restarts.into_iter().fold(failed, CommandError::cause).hint(
                "set spec.config (deploymentConfig) or spec.ignoreDifferences to keep the differences: save the output without --apply, \
                 change it, apply it, and use `chandler adopt`; or pass --allow-restart",
            ));
        }
    }
    Ok(())
}

/// Creates the BundleDeployment, suspended.
async fn create(client: &Client, plan: &Plan<'_>, terminal: &Terminal) -> Result<BundleDeployment, CommandError> {
    let mut deployment = plan.deployment.clone();
    pending::begin(&mut deployment, &plan.migration.managers);
    let created = deployment::create(client, &deployment, Effect::Store).await?;
    terminal.line(format!("created BundleDeployment {}, suspended", created.name_any()));
    Ok(created)
}

/// Detaches the old installer, and lets the BundleDeployment adopt its objects.
async fn carry_out(
    arguments: &Migrate,
    client: &Client,
    deployment: &BundleDeployment,
    terminal: &Terminal,
) -> Result<(), CommandError> {
    let name = deployment.name_any();
    let managers = pending::managers(deployment).unwrap_or_default();
    for object in &deployment.spec.adopt {
        migration::remove_owners(client, object, &managers).await?;
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
    migration::resume(client, deployment).await?;
    if deployment.spec.approval == Some(Approval::Manual) {
        terminal.line(format!("{name} waits for approval: `chandler approve {name}` lets it adopt the objects"));
        return Ok(());
    }
    if !arguments.waiting.wait {
        terminal.line(format!("`chandler status {name} --watch` follows the rollout"));
        return Ok(());
    }
    settled::until_healthy(client, &name, terminal, arguments.waiting.timeout).await
}
