//! Compares the world with the model, and what statuses say with the world.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use chandler_api::{
    BundleDeployment, ConditionType, LeftOut, PlatformOperator, Resolution, ResolvedMember, find_condition,
    names::OWNER_NAME_LABEL,
};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::Condition};
use kube::{Api, ResourceExt as _, api::ListParams};

use super::model::{Installed, Model, OPERATOR, WANTING, World, packages};
use crate::{handovers::named, platform_operators::operators, resolutions::resolutions, shop::Shop};

/// The name of the Resolution of a set.
pub(super) fn resolution_of(shop: &Shop<'_>, owner: &str) -> String {
    if owner == OPERATOR { shop.world.platform() } else { named(shop.world, owner) }
}

/// Fails with what was found if it is not what was expected.
fn same<T: PartialEq + fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what}: found {found:?}, expected {expected:?}")) }
}

/// A condition of the current generation, as `STATUS/REASON: MESSAGE`.
fn sentence(conditions: &[Condition], generation: Option<i64>, kind: ConditionType) -> String {
    let condition = find_condition(conditions, kind).filter(|it| it.observed_generation == generation);
    condition.map(|it| format!("{}/{}: {}", it.status, it.reason, it.message)).unwrap_or_default()
}

fn of_deployment(deployment: &BundleDeployment, kind: ConditionType) -> String {
    let conditions = deployment.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    sentence(conditions, deployment.metadata.generation, kind)
}

/// The BundleDeployments of sets, by package. Fails if a package has two.
async fn deployments(shop: &Shop<'_>) -> Result<BTreeMap<&'static str, BundleDeployment>, String> {
    let members = ListParams::default().labels(OWNER_NAME_LABEL);
    let members = shop.world.deployments().list(&members).await.expect("the API server answers");
    let run = shop.world.run().to_string();
    let mut found = BTreeMap::new();
    for member in members.items.into_iter().filter(|it| it.name_any().starts_with(&run)) {
        let name = member.annotations().get("resolution.chandler.dev/package").cloned().unwrap_or_default();
        let package = packages().find(|(package, _)| shop.name(package) == name);
        let Some((package, _)) = package else { return Err(format!("{} has package {name:?}", member.name_any())) };
        if let Some(other) = found.insert(package, member) {
            return Err(format!("{package} is installed twice, once by {}", other.name_any()));
        }
    }
    Ok(found)
}

/// The namespace, the version and the UID of the object of each package. Fails if a package has two.
async fn objects(shop: &Shop<'_>) -> Result<BTreeMap<&'static str, (String, usize, String)>, String> {
    let mut found = BTreeMap::new();
    for (package, _) in packages() {
        for namespace in [shop.world.namespace.clone(), shop.world.platform(), shop.name(package)] {
            let maps: Api<ConfigMap> = Api::namespaced(shop.world.client.clone(), &namespace);
            let Some(map) = maps.get_opt(package).await.expect("the API server answers") else { continue };
            let version = map.data.as_ref().and_then(|data| data.get("version"));
            let minor = version.and_then(|version| version.split('.').nth(1)?.parse().ok());
            let minor = minor.ok_or_else(|| format!("{package} has version {version:?}"))?;
            if found.insert(package, (namespace, minor, map.uid().unwrap_or_default())).is_some() {
                return Err(format!("{package} is installed in two namespaces"));
            }
        }
    }
    Ok(found)
}

/// What is installed. Fails while it is not the same for sets and for the cluster.
async fn world(shop: &Shop<'_>, deployments: &BTreeMap<&'static str, BundleDeployment>) -> Result<World, String> {
    let objects = objects(shop).await?;
    same("objects", objects.keys().collect::<Vec<_>>(), deployments.keys().collect())?;
    let mut world = World::new();
    for (package, (namespace, version, uid)) in objects {
        let deployment = &deployments[package];
        same(&format!("the namespace of {package}"), &namespace, &deployment.spec.install_namespace)?;
        let set = &deployment.labels()[OWNER_NAME_LABEL];
        let owner = WANTING.into_iter().find(|owner| *set == format!("resolveset-{}", resolution_of(shop, owner)));
        let owner = owner.ok_or_else(|| format!("{package} belongs to {set}"))?;
        world.insert(package, Installed { version, uid, owner, deployment: deployment.name_any() });
    }
    Ok(world)
}

/// Compares the world with the model, and returns what is installed.
pub(super) async fn compare(shop: &Shop<'_>, model: &Model, before: &World) -> Result<World, String> {
    let deployments = deployments(shop).await?;
    let now = world(shop, &deployments).await?;
    same("installed", now.keys().copied().collect(), model.needed())?;
    for (package, installed) in &now {
        let expected = model.versions_of(package, &now, before);
        if !expected.contains(&installed.version) {
            return Err(format!("the version of {package}: found {installed:?}, expected one of {expected:?}"));
        }
        let fails = model.fails(package, installed);
        let deployment = &deployments[package];
        let sentences = [ConditionType::Installed, ConditionType::Healthy, ConditionType::Ready];
        let [is_installed, healthy, ready] = sentences.map(|kind| of_deployment(deployment, kind));
        let expected = [true, !fails, !fails];
        let found = [&is_installed, &healthy, &ready].map(|it| it.starts_with("True/"));
        same(&format!("{package}: {is_installed:?} {healthy:?} {ready:?}"), found, expected)?;
        if fails && !ready.contains(&format!("Deployment.apps {}/{package}: ", deployment.spec.install_namespace)) {
            return Err(format!("{package} does not name what fails: {ready}"));
        }
    }
    for owner in WANTING {
        let name = resolution_of(shop, owner);
        let found = resolutions(shop.world).get_opt(&name).await.expect("the API server answers");
        same(&format!("{name} exists"), found.is_some(), model.wishes.contains_key(owner))?;
        let set = format!("resolveset-{name}");
        let set = shop.world.deployments().get_opt(&set).await.expect("the API server answers");
        let has_members = now.values().any(|it| it.owner == owner);
        same(&format!("the set of {name} exists"), set.is_some(), has_members)?;
        if let Some(found) = found.filter(|_| !model.is_unproven(owner, &now)) {
            resolution(shop, model, (owner, &found), &now, &deployments)?;
        }
    }
    let found = operators(shop.world).get_opt(&shop.name(OPERATOR)).await.expect("the API server answers");
    same("the PlatformOperator exists", found.is_some(), model.wishes.contains_key(OPERATOR))?;
    if let Some(found) = found.filter(|_| !model.is_unproven(OPERATOR, &now)) {
        operator(model, &found, &now)?;
    }
    Ok(now)
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Checks what a Resolution says.
fn resolution(
    shop: &Shop<'_>,
    model: &Model,
    (owner, found): (&'static str, &Resolution),
    now: &World,
    deployments: &BTreeMap<&'static str, BundleDeployment>,
) -> Result<(), String> {
    let (generation, name) = (found.metadata.generation, found.name_any());
    let status = found.status.clone().unwrap_or_default();
    same(&format!("{name} is observed"), status.observed_generation, generation)?;
    let sentence = |kind| sentence(&status.conditions, generation, kind);
    let ready = sentence(ConditionType::Ready);
    let own = now.values().filter(|it| it.owner == owner).count();
    let (failing, refused) = (model.failing(owner, now), model.refused(owner, now));
    let refused = refused.map(|package| (package, &now[package].deployment));
    // The package of the PlatformOperator is optional: it stays as it is, and the set is complete without its upgrade.
    let left_out = refused.filter(|(package, _)| {
        let mut wanted = model.wishes[owner].packages.iter();
        owner == OPERATOR && wanted.any(|it| now[it].owner == owner && Model::closure(it).contains(package))
    });
    if let Some((package, deployment)) = left_out {
        let is_named = |it: &LeftOut| it.reason == "PreflightFailed" && it.explanation.join("; ").contains(deployment);
        let is_left_out = status.left_out.len() == 1 && status.left_out.iter().all(is_named);
        same(&format!("{name} leaves {package} out: {:?}", status.left_out), is_left_out, true)?;
    }
    match (refused.filter(|_| left_out.is_none()), failing) {
        (Some((package, _)), _) => {
            let named = ready.contains(&now[package].deployment);
            if !ready.starts_with("False/PreflightFailed: ") || !named {
                return Err(format!("{name}: the checks refuse {package}: {ready}"));
            }
        }
        (None, Some(package)) => {
            let named = ready.contains(&now[package].deployment);
            if !ready.starts_with("False/") || !named {
                return Err(format!("{name}: {package} fails: {ready}"));
            }
            let waits = format!("the upgrade of {} to ", shop.name(package));
            let is_repaired = model.newest(package) != now[package].version;
            let notes = status.notes.join("; ");
            same(&format!("{name} waits: {notes}"), notes.contains(&waits), is_repaired)?;
        }
        (None, None) => {
            let decision = status.decision.unwrap_or_default();
            let expected = match own {
                0 => {
                    let packages = counted(status.members.len(), "package");
                    format!("True/Succeeded: the decision has {packages}, and none is to be installed")
                }
                _ => format!("True/Succeeded: decision {decision}: {} installed and healthy", counted(own, "package")),
            };
            same(&name, &ready, &expected)?;
            for kind in [ConditionType::Reconciling, ConditionType::Stalled] {
                same(&format!("{name}: {kind:?}"), sentence(kind), String::new())?;
            }
            if status.notes.iter().any(|note| note.contains("waits") || note.contains("stays until")) {
                return Err(format!("{name} waits for something: {:?}", status.notes));
            }
        }
    }
    if own > 0 {
        let set = format!("BundleDeployment resolveset-{name}");
        let healthy = sentence(ConditionType::Healthy);
        same(&format!("{name}: {healthy}"), healthy.starts_with("True/"), failing.is_none())?;
        let expected = format!("{set} has {}", counted(own, "member"));
        let installed = sentence(ConditionType::Installed);
        if failing.is_none() && !installed.ends_with(&expected) {
            return Err(format!("{name}: {installed}"));
        }
    }
    let wish = model.wishes[owner].packages.iter().map(|package| shop.name(package)).collect();
    let members: BTreeSet<String> = status.members.iter().map(|member| member.package.clone()).collect();
    // A set may have more: what others need stays where it is. Dependencies of another set's package belong to that set.
    same(&format!("{name} has what it asks for: {members:?}"), members.is_superset(&wish), true)?;
    for reported in &status.members {
        let known = packages().find(|(package, _)| shop.name(package) == reported.package).expect("a package").0;
        let Some(installed) = now.get(known) else { return Err(format!("{name} names {known}, which is gone")) };
        member(model, &name, reported, (known, installed), &deployments[known])?;
    }
    same(&format!("members of {name}"), own <= status.members.len(), true)
}

/// Checks the status of a Resolution about one package.
fn member(
    model: &Model,
    name: &str,
    reported: &ResolvedMember,
    (package, installed): (&str, &Installed),
    deployment: &BundleDeployment,
) -> Result<(), String> {
    let what = |field: &str| format!("{name}: the {field} of {package}");
    same(&what("BundleDeployment"), reported.bundle_deployment.as_ref(), Some(&installed.deployment))?;
    let conditions = deployment.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let ready = find_condition(conditions, ConditionType::Ready).map(|it| it.reason.clone());
    same(&what("state"), reported.state.clone(), ready)?;
    // Upgrades that wait for a member that fails are listed with their versions.
    let is_waiting = model.trouble.is_some() && reported.version == format!("1.{}.0", model.newest(package));
    // The versions of other BundleDeployments count as the last healthy ones.
    if is_waiting || model.fails(package, installed) {
        return Ok(());
    }
    same(&what("version"), reported.version.clone(), format!("1.{}.0", installed.version))
}

/// Checks what the PlatformOperator says.
fn operator(model: &Model, found: &PlatformOperator, now: &World) -> Result<(), String> {
    let status = found.status.clone().unwrap_or_default();
    let said = sentence(&status.conditions, found.metadata.generation, ConditionType::Installed);
    let package = model.wishes[OPERATOR].packages.first().expect("a package");
    let installed = &now[package];
    let active = status.active_bundle_deployment.as_ref().map(|it| &it.name);
    same(&format!("the active BundleDeployment: {said}"), active, Some(&installed.deployment))?;
    same(&format!("the namespace: {said}"), status.namespace.is_some(), true)?;
    let mut expected =
        format!("True/InstallSuccessful: Successfully applied the {} BundleDeployment resource", installed.deployment);
    // All that the package needs and its set has is checked with it.
    let refused = model.refused(OPERATOR, now).filter(|refused| Model::closure(package).contains(refused));
    if let Some(refused) = refused.filter(|_| installed.owner == OPERATOR) {
        expected = format!("{expected}; the checks refuse its upgrade: {}: ", now[refused].deployment);
    }
    let is_true = if refused.is_some() { said.starts_with(&expected) } else { said == expected };
    same(&format!("the PlatformOperator: {said:?}, expected {expected:?}"), is_true, true)?;
    // The versions of other BundleDeployments count as the last healthy ones.
    if installed.owner != OPERATOR && model.fails(package, installed) {
        return Ok(());
    }
    same(&format!("the version: {said}"), status.version, Some(format!("1.{}.0", installed.version)))
}
