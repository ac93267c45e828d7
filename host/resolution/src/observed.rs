//! What is installed, as one Resolution sees it: the members of its set, and what others have of its catalogs.
//!
//! A BundleDeployment counts with evidence only, which its author cannot write: the record of the set lists its members, the record of each
//! BundleDeployment has the image that it installed, and catalogs list images.

use std::collections::{BTreeMap, BTreeSet};

use chandler_api::{BundleDeployment, Outcome, Revision};
use chandler_resolver::{Installed, version::VersionRelease};
use kube::ResourceExt as _;
use serde_json::Value;

use crate::{
    Claim, Installation, InstalledImage, PlannedMember,
    installation::{Placement, is_ready, not_counted},
};

/// The catalogs of a Resolution, in messages.
pub const CATALOGS: &str = "a catalog of this Resolution";

/// What is known of a BundleDeployment.
#[derive(Clone, Debug)]
pub struct Fact<'a> {
    /// The object, of which the author wrote everything but the identity.
    pub deployment: &'a BundleDeployment,
    /// Its revisions, as its record has them.
    pub history: Vec<Revision>,
    /// Whether the record of the set lists it.
    pub is_member: bool,
}

/// What is installed, as one Resolution sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// What the set of the Resolution has.
    pub members: Vec<Installation>,
    /// What others have of the catalogs of the Resolution.
    pub others: Vec<Installation>,
    /// Packages of other BundleDeployments that do not count, since there is no evidence of their content.
    pub claims: Vec<Claim>,
    /// What users should know of members.
    notes: Vec<String>,
}

impl Observed {
    /// Notes for users, if the answer is about these packages.
    pub fn notes(&self, packages: &BTreeSet<&str>) -> Vec<String> {
        let mut notes = self.notes.clone();
        notes.extend(not_counted(&self.claims, packages, CATALOGS));
        notes
    }

    /// The set of this Resolution takes over what another one gives up, if it needs it: it counts as a member that stays where it is.
    pub fn take_over(&mut self, given_up: &BTreeMap<String, Placement>) {
        let taken = self.others.extract_if(.., |other| given_up.contains_key(&other.deployment));
        let taken = taken.map(|other| Installation { placement: given_up.get(&other.deployment).cloned(), ..other });
        self.members.extend(taken);
        self.members.sort_by(|one, other| one.deployment.cmp(&other.deployment));
    }

    /// A BundleDeployment that calls itself this package and does not count.
    pub fn claim(&self, package: &str) -> Option<&Claim> {
        self.claims.iter().find(|claim| claim.package == package)
    }
}

/// The bundles that the decisions of a Resolution have for the members of its set.
#[derive(Clone, Debug, Default)]
pub struct Decided(BTreeMap<String, Versions>);

#[derive(Clone, Debug)]
struct Versions {
    current: PlannedMember,
    earlier: Vec<PlannedMember>,
}

impl Decided {
    /// The members of the current decision, and of the others, the newest first. Members that the current decision lacks leave the set.
    pub fn of(current: Vec<PlannedMember>, others: impl Iterator<Item = PlannedMember>) -> Self {
        let versions =
            |member: PlannedMember| (member.deployment_name(), Versions { current: member, earlier: Vec::new() });
        let mut decided: BTreeMap<String, Versions> = current.into_iter().map(versions).collect();
        for member in others {
            // A name that another package had before does not count for this one.
            let named = decided.get_mut(&member.deployment_name());
            if let Some(versions) = named.filter(|versions| versions.current.package == member.package) {
                versions.earlier.push(member);
            }
        }
        Self(decided)
    }
}

/// The packages whose bundles have to be read from the catalogs for [`observe`].
pub fn packages<'a>(facts: &'a [Fact<'_>], decided: &'a Decided) -> BTreeSet<String> {
    let package = |fact: &Fact<'_>| {
        if fact.is_member {
            decided.0.get(&fact.deployment.name_any()).map(|versions| versions.current.package.clone())
        } else {
            Claim::of(fact.deployment).map(|claim| claim.package)
        }
    };
    facts.iter().filter(|fact| has_succeeded(&fact.history)).filter_map(package).collect()
}

/// What the BundleDeployments have. `proven` returns the bundle of a package that an image is in the catalogs that the Resolution takes the
/// package from ([`evidence`](crate::evidence)).
pub fn observe(
    facts: &[Fact<'_>],
    decided: &Decided,
    proven: impl Fn(&InstalledImage, &str) -> Option<Installed>,
) -> Observed {
    let mut observed = Observed::default();
    for Fact { deployment, history, is_member } in facts {
        let name = deployment.name_any();
        let spec = &deployment.spec.source;
        let ready = is_ready(deployment);
        if *is_member {
            let Some(versions) = decided.0.get(&name).filter(|_| ready || has_succeeded(history)) else { continue };
            let image = history.last().and_then(|revision| InstalledImage::of(revision, spec));
            let bundle = image.as_ref().and_then(|image| versions.bundle(image, deployment));
            let bundle = bundle.or_else(|| proven(image.as_ref()?, &versions.current.package));
            let is_ready = ready && bundle.is_some();
            let bundle = bundle.unwrap_or_else(|| {
                observed.notes.push(foreign_content(&name, &versions.current));
                bundle_of(&versions.current, Vec::new())
            });
            observed.members.push(Installation { deployment: name, bundle, is_ready, placement: None });
        } else if let Some(claim) = Claim::of(deployment).filter(|_| has_succeeded(history)) {
            let image = InstalledImage::succeeded(history, spec);
            match image.and_then(|image| proven(&image, &claim.package)) {
                Some(bundle) => {
                    observed.others.push(Installation { deployment: name, bundle, is_ready: ready, placement: None });
                }
                None => observed.claims.push(claim),
            }
        }
    }
    observed.others.sort_by(|one, other| one.deployment.cmp(&other.deployment));
    observed.members.sort_by(|one, other| one.deployment.cmp(&other.deployment));
    observed.claims.sort_by(|one, other| one.deployment.cmp(&other.deployment));
    observed
}

/// One that never became healthy has nothing installed: any version may take its place.
fn has_succeeded(history: &[Revision]) -> bool {
    history.iter().any(|revision| revision.outcome == Outcome::Succeeded)
}

impl Versions {
    /// The bundle of the decision that an image belongs to, whatever the bundle calls itself.
    fn bundle(&self, image: &InstalledImage, deployment: &BundleDeployment) -> Option<Installed> {
        let is_of = |member: &&PlannedMember| {
            image.is(&member.image, VersionRelease::parse(&member.version, None).ok().as_ref())
        };
        let planned = std::iter::once(&self.current).chain(&self.earlier).find(is_of)?;
        let claim = Claim::of(deployment).filter(|claim| claim.version == planned.version);
        Some(bundle_of(planned, claim.map(|claim| claim.properties).unwrap_or_default()))
    }
}

fn bundle_of(planned: &PlannedMember, properties: Vec<Value>) -> Installed {
    Installed {
        package: planned.package.clone(),
        name: planned.bundle.clone(),
        version: planned.version.clone(),
        catalog: planned.catalog.clone(),
        image: planned.image.clone(),
        properties,
        ..Installed::default()
    }
}

/// Another client changed the spec of a member. The set restores its decision.
fn foreign_content(deployment: &str, current: &PlannedMember) -> String {
    format!(
        "BundleDeployment {deployment} belongs to this Resolution, and has content that neither a decision nor a catalog of it names; its \
         set restores {}",
        current.image
    )
}

#[cfg(test)]
mod tests;
