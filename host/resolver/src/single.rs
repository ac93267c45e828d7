//! The choice of OLM v1 for one package: the same bundle, or the same refusal.

use std::{cmp::Reverse, collections::BTreeSet, sync::Arc};

use crate::{
    answer::{Answer, Change, Decision, Edge, Member, Reason, Step},
    catalog::{Bundle, Catalogs, Package},
    error::ResolveError,
    explain::Explanation,
    problem::{Installed, Problem, Required, Source, Upgrades},
    upgrade,
    version::{VersionRelease, masterminds},
};

/// The properties of dependencies, which OLM v1 refuses.
const REFUSED: [&str; 3] = ["olm.package.required", "olm.gvk.required", "olm.constraint"];

/// The best bundle of one catalog.
struct Found<'a> {
    catalog: &'a Source,
    package: Arc<Package>,
    bundle: Arc<Bundle>,
    version: VersionRelease,
    deprecated: bool,
}

/// Chooses a bundle as OLM v1 does.
///
/// Per catalog: of the bundles in the channels and the range that succeed what is installed, or are of the same version, those
/// that are not deprecated come first, then the highest. Over all catalogs: those that are not deprecated, then the highest
/// priority; several with the highest priority are refused.
pub(crate) fn single(problem: &Problem, catalogs: &dyn Catalogs) -> Result<Answer, ResolveError> {
    let [required] = problem.required.as_slice() else {
        return Err(ResolveError::NotSingle(problem.required.len()));
    };
    if !problem.constraints.is_empty() {
        return Err(ResolveError::ConstrainedSingle);
    }
    // Names that are there twice are refused as in the other mode.
    crate::question::Question::new(problem)?;
    let range = crate::question::range(&required.range)?;
    let installed = problem.installed.iter().find(|installed| installed.package == required.package);
    let installed = match installed {
        Some(installed) => Some((installed, crate::question::version_of(installed)?)),
        None => None,
    };
    let mut sources: Vec<&Source> = problem.catalogs.iter().collect();
    sources.sort_by_key(|source| &source.name);
    let mut found: Vec<Found<'_>> = Vec::new();
    for catalog in sources {
        if catalog.unavailable || !required.catalogs.matches(&catalog.name, &catalog.labels) {
            continue;
        }
        let Some(package) = catalogs.package(&catalog.name, &required.package)? else { continue };
        let policy = problem.policy.upgrades;
        let Some(one) = best(catalog, package, required, range.as_ref(), installed.as_ref(), policy) else { continue };
        match found.last().map(|last| last.deprecated) {
            Some(false) if one.deprecated => continue,
            Some(true) if !one.deprecated => found.clear(),
            _ => {}
        }
        found.push(one);
    }
    found.sort_by_key(|one| Reverse(one.catalog.priority));
    let tie = found.first().zip(found.get(1)).is_some_and(|(one, two)| one.catalog.priority == two.catalog.priority);
    if tie || found.is_empty() {
        return Ok(Answer::Refusal(Explanation::of_message(refusal(required, installed.as_ref(), &found))));
    }
    let Some(one) = found.into_iter().next() else {
        return Ok(Answer::Refusal(Explanation::of_message(refusal(required, installed.as_ref(), &[]))));
    };
    let properties = one.bundle.properties.iter().filter_map(|property| property.get("type")?.as_str());
    if let Some(property) = properties.into_iter().find(|property| REFUSED.contains(property)) {
        let name = &one.bundle.name;
        return Ok(Answer::Refusal(Explanation::of_message(format!(
            "validating bundle {name:?}: bundle {name:?} has a dependency declared via property {property:?} which is \
             currently not supported"
        ))));
    }
    Ok(Answer::Decision(Decision { members: vec![one.member(required, installed.as_ref())], ..Decision::default() }))
}

fn best<'a>(
    catalog: &'a Source,
    package: Arc<Package>,
    required: &Required,
    range: Option<&masterminds::Range>,
    installed: Option<&(&Installed, VersionRelease)>,
    policy: Upgrades,
) -> Option<Found<'a>> {
    let channels: BTreeSet<String> = required.channels.iter().cloned().collect();
    let allowed = |bundle: &Bundle, version: &VersionRelease| {
        let in_channel = channels.is_empty() || package.channels_of(&bundle.name, &channels).next().is_some();
        in_channel
            && range.is_none_or(|range| range.matches(version.version()))
            && match installed {
                Some((from, at)) if policy == Upgrades::CatalogProvided => {
                    at == version || successor(&package, &channels, &bundle.name, (&from.name, at)).is_some()
                }
                _ => true,
            }
    };
    let candidates = package.bundles.values().filter_map(|bundle| {
        let version = bundle.version.as_ref().filter(|version| allowed(bundle, version))?;
        let deprecated = package.deprecations.bundles.contains_key(&bundle.name);
        Some((deprecated, Reverse(version), bundle))
    });
    let (deprecated, Reverse(version), bundle) =
        candidates.min_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)))?;
    let (version, bundle) = (version.clone(), Arc::clone(bundle));
    Some(Found { catalog, package, bundle, version, deprecated })
}

/// The edge of some channel from what is installed to a bundle.
fn successor(
    package: &Package,
    channels: &BTreeSet<String>,
    bundle: &str,
    installed: (&str, &VersionRelease),
) -> Option<(String, Edge)> {
    package.channels_of(bundle, channels).find_map(|name| {
        let entry = package.channels.get(name)?.entries.get(bundle)?;
        Some((name.to_owned(), upgrade::edge(entry, installed.0, installed.1)?))
    })
}

impl Found<'_> {
    fn member(&self, required: &Required, installed: Option<&(&Installed, VersionRelease)>) -> Member {
        let channels: BTreeSet<String> = required.channels.iter().cloned().collect();
        let channel = self.package.channel_of(&self.bundle.name, &channels);
        let change = crate::question::change(installed.map(|(_, at)| at), &self.version);
        let step = installed.filter(|_| change != Change::Keep).map(|(from, at)| {
            let edge = successor(&self.package, &channels, &self.bundle.name, (&from.name, at));
            let (channel, edge) = edge.map_or((None, Edge::Forced), |(channel, edge)| (Some(channel), edge));
            let (name, image) = (self.bundle.name.clone(), self.bundle.image.clone());
            Step { name, version: self.version.to_string(), image, channel, edge }
        });
        Member {
            package: required.package.clone(),
            name: self.bundle.name.clone(),
            version: self.version.version().to_string(),
            release: self.version.release().map(str::to_owned),
            catalog: Some(self.catalog.name.clone()),
            channel: channel.map(str::to_owned),
            image: self.bundle.image.clone(),
            change,
            steps: step.into_iter().collect(),
            reasons: vec![Reason::Requested { range: required.range.clone() }],
            deprecated: self.package.deprecations.bundles.get(&self.bundle.name).cloned(),
            held_back: None,
        }
    }
}

/// The refusal in the words of OLM v1.
fn refusal(required: &Required, installed: Option<&(&Installed, VersionRelease)>, found: &[Found<'_>]) -> String {
    let mut words = Vec::new();
    if let Some((from, _)) = installed {
        words.push(format!("error upgrading from currently installed version {:?}:", from.version));
    }
    words.push(if found.len() > 1 { "found bundles".to_owned() } else { "no bundles found".to_owned() });
    words.push(format!("for package {:?}", required.package));
    if !required.range.is_empty() {
        words.push(format!("matching version {:?}", required.range));
    }
    if !required.channels.is_empty() {
        words.push(format!("in channels [{}]", required.channels.join(" ")));
    }
    if found.len() > 1 {
        let mut catalogs: Vec<&str> = found.iter().map(|one| one.catalog.name.as_str()).collect();
        catalogs.sort_unstable();
        words.push(format!("in multiple catalogs with the same priority [{}]", catalogs.join(" ")));
    }
    words.join(" ")
}
