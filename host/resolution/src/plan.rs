//! Which bundle each package gets now, and what waits.

use std::collections::{BTreeMap, BTreeSet};

use chandler_api::LeftOut;
use chandler_resolver::{Change, Decision, HeldBack, Member, Reason};

use crate::{Installation, Question, installation::Placement, names::deployment_name};

/// A package of the decision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlannedMember {
    /// The package.
    pub package: String,
    /// The name of the bundle that it gets now.
    pub bundle: String,
    /// Its version.
    pub version: String,
    /// The catalog that has it.
    pub catalog: Option<String>,
    /// The channel that has it.
    pub channel: Option<String>,
    /// Its image.
    pub image: String,
    /// The versions on the way to the best one, this one included.
    pub path: Vec<String>,
    /// Why it was chosen.
    pub reasons: Vec<String>,
    /// The message of its deprecation.
    pub deprecated: Option<String>,
    /// A newer version that does not fit with the others.
    pub held_back: Option<HeldBack>,
    /// The members of the set that it needs, by package.
    pub needs: BTreeSet<String>,
    /// The packages that it needs and that BundleDeployments outside of the set have.
    pub rests_on: BTreeSet<String>,
    /// The BundleDeployment outside of the set that has it; none for a member of the set.
    pub elsewhere: Option<String>,
    /// Where it is, if the set took it over from another Resolution.
    pub placement: Option<Placement>,
    /// The BundleDeployment of the set that has it, where manifests name it.
    pub deployment: Option<String>,
}

impl PlannedMember {
    /// The name of its BundleDeployment in the set.
    pub fn deployment_name(&self) -> String {
        self.deployment.clone().unwrap_or_else(|| deployment_name(&self.package))
    }
}

/// What is to be installed now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The packages of the decision, by name.
    pub members: Vec<PlannedMember>,
    /// Upgrades that wait, since the BundleDeployment of the package is not healthy: a line each.
    pub waiting: Vec<String>,
    /// What users should know.
    pub notes: Vec<String>,
    /// The optional packages that do not fit.
    pub left_out: Vec<LeftOut>,
}

impl Plan {
    /// The members of the set.
    pub fn set(&self) -> impl Iterator<Item = &PlannedMember> {
        self.members.iter().filter(|member| member.elsewhere.is_none())
    }
}

/// The set that is installed now, as its manifests say.
#[derive(Clone, Copy, Debug)]
pub struct Current<'a> {
    /// Its members.
    pub members: &'a [PlannedMember],
    /// Whether they were chosen for the spec as it is now: then an upgrade waits until what it leads from is healthy. A changed spec
    /// supersedes what is being installed.
    pub is_of_this_spec: bool,
}

/// A bundle is to be installed, possibly on the way of an upgrade, and no catalog names its image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no catalog names an image of bundle {bundle} of package {package}")]
pub struct NoImage {
    package: String,
    bundle: String,
}

/// The part of a decision to install now: the first step of each upgrade, but no step for a BundleDeployment that is not healthy.
///
/// # Errors
/// A bundle that is to be installed has no image.
pub fn plan(
    decision: &Decision,
    question: &Question,
    installed: &[Installation],
    current: &Current<'_>,
) -> Result<Plan, NoImage> {
    let mut plan = Plan { notes: decision.notes.clone(), left_out: question.left_out.clone(), ..Plan::default() };
    for member in &decision.missing {
        plan.notes.push(format!("{} {} is needed and not installed", member.package, member.version));
    }
    let mut needs = needs(decision);
    for member in decision.members.iter().filter(|it| it.catalog.is_none()) {
        // No catalog has it any more, so what is known of its needs may be incomplete: what it needed stays.
        let before = current.members.iter().find(|it| it.package == member.package && it.bundle == member.name);
        let before = before.into_iter().flat_map(|it| it.needs.union(&it.rests_on).cloned());
        needs.entry(&member.package).or_default().extend(before);
    }
    let needed = needed(decision, &needs, automatic(question));
    let is_pinned = |package: &str| {
        let mut installed = question.problem.installed.iter();
        installed.any(|it| it.package == package && it.hold == chandler_resolver::Hold::Pinned)
    };
    let own = own(decision, &needs, |package| {
        needed.contains(package) && (!is_pinned(package) || question.staying.contains(package))
    });
    let mut dropped: Vec<PlannedMember> = Vec::new();
    for member in &decision.members {
        let package = member.package.as_str();
        if !needed.contains(package) {
            dropped.extend(current.members.iter().find(|it| it.package == member.package).cloned());
            continue;
        }
        if question.staying.contains(package) {
            let reasons = vec!["stays, since what is wanted does not fit".to_owned()];
            let needs = needs.get(package).cloned().unwrap_or_default();
            let before = current.members.iter().find(|it| it.package == member.package);
            plan.members.extend(before.map(|it| PlannedMember { reasons, needs, ..it.clone() }));
            continue;
        }
        let mut planned = first_step(member);
        planned.needs = needs.get(package).cloned().unwrap_or_default();
        let before = current.members.iter().find(|it| it.package == member.package);
        planned.placement = before.and_then(|it| it.placement.clone());
        planned.deployment = before.and_then(|it| it.deployment.clone());
        if let Some(taken_over) = of(package, installed).filter(|it| it.placement.is_some()) {
            planned.placement.clone_from(&taken_over.placement);
            planned.deployment = Some(taken_over.deployment.clone());
            as_installed(&mut planned, taken_over);
        }
        if is_pinned(package) {
            // Packages of other BundleDeployments take part in the decision, and are reported only if this set needs them.
            if own.contains(package) && !question.elsewhere.contains_key(package) {
                planned.elsewhere = of(package, installed).map(|it| it.deployment.clone());
                plan.members.push(planned);
            }
            continue;
        }
        if planned.image.is_empty() {
            return Err(NoImage { package: member.package.clone(), bundle: planned.bundle });
        }
        if let Some(before) = before
            && current.is_of_this_spec
            && before.bundle != planned.bundle
            && member.change != Change::Install
            && of(package, installed).is_some_and(|it| !it.is_ready)
        {
            plan.waiting.push(format!(
                "the upgrade of {package} to {} waits until {} is healthy",
                planned.version, before.version
            ));
            let PlannedMember { reasons, held_back, needs, .. } = planned;
            planned = PlannedMember { reasons, held_back, needs, ..before.clone() };
        }
        plan.members.push(planned);
    }
    // A bundle on the way may still need what the last one does not.
    if !plan.waiting.is_empty() || plan.set().any(|member| member.path.len() > 1) {
        let reason = "stays until the upgrades are complete".to_owned();
        plan.members.extend(dropped.into_iter().map(|it| PlannedMember { reasons: vec![reason.clone()], ..it }));
    }
    for (package, installation) in &question.elsewhere {
        plan.members.push(PlannedMember {
            package: package.clone(),
            bundle: installation.bundle.name.clone(),
            version: installation.bundle.version.clone(),
            reasons: vec!["requested".to_owned()],
            elsewhere: Some(installation.deployment.clone()),
            ..PlannedMember::default()
        });
    }
    plan.members.sort_by(|one, other| one.package.cmp(&other.package));
    let in_set: BTreeSet<String> = plan.set().map(|member| member.package.clone()).collect();
    for member in &mut plan.members {
        member.rests_on = member.needs.extract_if(.., |needed| !in_set.contains(needed)).collect();
    }
    Ok(plan)
}

fn of<'a>(package: &str, installed: &'a [Installation]) -> Option<&'a Installation> {
    installed.iter().find(|it| it.bundle.package == package)
}

/// The packages of a decision that a set keeps: what only a package needs that nothing needs goes.
pub(crate) fn kept(decision: &Decision, question: &Question) -> BTreeSet<String> {
    needed(decision, &needs(decision), automatic(question))
}

/// Whether a package is installed only because others needed it.
fn automatic(question: &Question) -> impl Fn(&str) -> bool {
    |package| question.problem.installed.iter().any(|it| it.package == package && it.automatic)
}

/// The packages that are wanted or were installed by others, and all that these need. Dependencies of unneeded packages are not among them.
fn needed<'a>(
    decision: &'a Decision,
    needs: &BTreeMap<&'a str, BTreeSet<String>>,
    is_automatic: impl Fn(&str) -> bool,
) -> BTreeSet<String> {
    let is_new = |member: &Member| member.change == Change::Install;
    let is_requested = |member: &Member| {
        member.reasons.iter().any(|it| matches!(it, Reason::Requested { .. } | Reason::Constraint { .. }))
    };
    let is_root = |member: &&Member| {
        is_constraint(member) || !is_automatic(&member.package) && (is_requested(member) || !is_new(member))
    };
    closure(decision.members.iter().filter(is_root).map(|member| &member.package), needs)
}

/// The packages that the set is to have and what a constraint asks for, and all that these need.
fn own<'a>(
    decision: &'a Decision,
    needs: &BTreeMap<&'a str, BTreeSet<String>>,
    is_member: impl Fn(&str) -> bool,
) -> BTreeSet<String> {
    let own = decision.members.iter().filter(|member| is_member(&member.package) || is_constraint(member));
    closure(own.map(|member| &member.package), needs)
}

/// Whether a constraint asks for a member.
fn is_constraint(member: &Member) -> bool {
    member.reasons.iter().any(|it| matches!(it, Reason::Constraint { .. }))
}

/// These packages, and all that they need.
fn closure<'a>(
    roots: impl Iterator<Item = &'a String>,
    needs: &BTreeMap<&'a str, BTreeSet<String>>,
) -> BTreeSet<String> {
    let mut open: Vec<String> = roots.cloned().collect();
    let mut closure = BTreeSet::new();
    while let Some(package) = open.pop() {
        open.extend(needs.get(package.as_str()).into_iter().flatten().cloned());
        closure.insert(package);
        open.retain(|package| !closure.contains(package));
    }
    closure
}

/// These members, and all members that they need.
pub fn with_needs<'a>(members: &'a [PlannedMember], packages: impl Iterator<Item = &'a String>) -> BTreeSet<String> {
    let needs = members.iter().map(|member| (member.package.as_str(), member.needs.clone())).collect();
    let mut closure = closure(packages, &needs);
    closure.retain(|package| needs.contains_key(package.as_str()));
    closure
}

/// What each package needs, by package.
fn needs(decision: &Decision) -> BTreeMap<&str, BTreeSet<String>> {
    let mut needs: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for member in &decision.members {
        for reason in &member.reasons {
            if let Reason::NeededBy { package, .. } = reason {
                needs.entry(package).or_default().insert(member.package.clone());
            }
        }
    }
    needs
}

fn first_step(member: &Member) -> PlannedMember {
    let mut planned = PlannedMember {
        package: member.package.clone(),
        bundle: member.name.clone(),
        version: member.version.clone(),
        catalog: member.catalog.clone(),
        channel: member.channel.clone(),
        image: member.image.clone(),
        path: member.steps.iter().map(|step| step.version.clone()).collect(),
        reasons: member.reasons.iter().map(reason).collect(),
        deprecated: member.deprecated.clone(),
        held_back: member.held_back.clone(),
        ..PlannedMember::default()
    };
    if let Some(step) = member.steps.first().filter(|step| step.name != member.name) {
        planned.image.clone_from(&step.image);
        planned.bundle.clone_from(&step.name);
        planned.version.clone_from(&step.version);
        planned.channel.clone_from(&step.channel);
        planned.deprecated = None;
    }
    planned
}

/// A member that passes from another set keeps its version until the set has it: whatever is wrong with an upgrade, it is not uninstalled.
/// One that is being upgraded is not taken back to the version before.
fn as_installed(planned: &mut PlannedMember, taken_over: &Installation) {
    let bundle = &taken_over.bundle;
    let is_upgraded = taken_over.placement.as_ref().is_some_and(|it| it.image != bundle.image) && !taken_over.is_ready;
    if planned.bundle == bundle.name || bundle.image.is_empty() || is_upgraded {
        return;
    }
    planned.path.insert(0, bundle.version.clone());
    planned.bundle.clone_from(&bundle.name);
    planned.version.clone_from(&bundle.version);
    planned.image.clone_from(&bundle.image);
    planned.catalog.clone_from(&bundle.catalog);
    (planned.channel, planned.deprecated) = (None, None);
}

fn reason(reason: &Reason) -> String {
    match reason {
        Reason::Requested { range } if range.is_empty() => "requested".to_owned(),
        Reason::Requested { range } => format!("requested in {range}"),
        Reason::Installed => "installed".to_owned(),
        Reason::NeededBy { package, version, need } => format!("{package} {version} needs {need}"),
        Reason::Constraint { need } => format!("a constraint asks for {need}"),
    }
}

/// What changes between two sets: a line for each package.
pub fn changes(before: &[PlannedMember], after: &[PlannedMember]) -> Vec<String> {
    let version = |members: &[PlannedMember], package: &str| {
        members.iter().find(|member| member.package == package).map(|member| member.version.clone())
    };
    let packages: BTreeSet<&str> = before.iter().chain(after).map(|member| member.package.as_str()).collect();
    let line = |package: &str| match (version(before, package), version(after, package)) {
        (None, Some(new)) => Some(format!("install {package} {new}")),
        (Some(old), Some(new)) if old != new => Some(format!("change {package} from {old} to {new}")),
        (Some(old), None) => Some(format!("remove {package} {old}")),
        _ => None,
    };
    packages.into_iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests;
