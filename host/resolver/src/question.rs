//! A problem, checked and ready to be looked up.

use std::collections::{BTreeMap, BTreeSet};

use semver::Version;

use crate::{
    answer::Change,
    catalog::{Bundle, Content},
    error::ResolveError,
    kind::Kind,
    platform::{self, OpenShift},
    problem::{Installed, Problem, Required, Source},
    sat::Taken,
    version::{VersionRelease, masterminds},
};

/// A required package with its range.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) required: &'a Required,
    pub(crate) range: Option<masterminds::Range>,
    pub(crate) channels: BTreeSet<String>,
}

/// An installed bundle with its version.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    pub(crate) installed: &'a Installed,
    pub(crate) version: VersionRelease,
}

/// A problem by its names.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    pub(crate) problem: &'a Problem,
    /// The catalogs that may be read, by name.
    pub(crate) sources: Vec<&'a Source>,
    pub(crate) required: BTreeMap<&'a str, Wanted<'a>>,
    pub(crate) installed: BTreeMap<&'a str, Held<'a>>,
    pub(crate) contents: BTreeMap<(&'a str, &'a str), &'a Content>,
    /// Why bundles are not chosen, by package and name.
    pub(crate) excluded: BTreeMap<(&'a str, &'a str), &'a str>,
    pub(crate) kubernetes: Option<Version>,
    pub(crate) openshift: Option<OpenShift>,
    pub(crate) served: BTreeSet<&'a Kind>,
    /// The steps that the search for an answer, and that for an explanation, have taken.
    pub(crate) taken: Taken,
}

impl<'a> Question<'a> {
    pub(crate) fn new(problem: &'a Problem) -> Result<Self, ResolveError> {
        let twice = |what, name: &str| ResolveError::Twice { what, name: name.to_owned() };
        let mut required = BTreeMap::new();
        for one in &problem.required {
            let channels = one.channels.iter().cloned().collect();
            let wanted = Wanted { required: one, range: range(&one.range)?, channels };
            if required.insert(one.package.as_str(), wanted).is_some() {
                return Err(twice("required package", &one.package));
            }
        }
        let mut installed = BTreeMap::new();
        for one in &problem.installed {
            let held = Held { installed: one, version: version_of(one)? };
            if installed.insert(one.package.as_str(), held).is_some() {
                return Err(twice("installed package", &one.package));
            }
        }
        let mut sources: Vec<&Source> = problem.catalogs.iter().collect();
        sources.sort_by_key(|source| &source.name);
        if let Some(name) = sources.windows(2).find_map(|pair| match pair {
            [one, two] if one.name == two.name => Some(&one.name),
            _ => None,
        }) {
            return Err(twice("catalog", name));
        }
        sources.retain(|source| !source.unavailable);
        let mut contents = BTreeMap::new();
        for one in &problem.contents {
            if contents.insert((one.package.as_str(), one.bundle.as_str()), one).is_some() {
                return Err(twice("content of bundle", &one.bundle));
            }
        }
        let excluded = problem.excluded.iter();
        let excluded = excluded.map(|it| ((it.package.as_str(), it.bundle.as_str()), it.why.as_str())).collect();
        let cluster = &problem.cluster;
        let malformed = |text: &String| ResolveError::Cluster(text.clone());
        let kubernetes = cluster.kubernetes.as_ref();
        let kubernetes =
            kubernetes.map(|text| platform::kubernetes(text).ok_or_else(|| malformed(text))).transpose()?;
        let openshift = cluster.openshift.as_ref();
        let openshift = openshift.map(|text| OpenShift::parse(text).ok_or_else(|| malformed(text))).transpose()?;
        let served = cluster.kinds.iter().collect();
        Ok(Self {
            problem,
            sources,
            required,
            installed,
            contents,
            excluded,
            kubernetes,
            openshift,
            served,
            taken: Taken::default(),
        })
    }

    /// The bundle of a catalog, completed by its files.
    pub(crate) fn completed(&self, package: &str, bundle: &Bundle) -> Option<Bundle> {
        self.contents.get(&(package, bundle.name.as_str())).map(|content| bundle.with_content(content))
    }

    /// Whether a package is to stay as it is.
    pub(crate) fn is_pinned(&self, package: &str) -> bool {
        let pinned = |held: &Held<'_>| held.installed.hold == crate::problem::Hold::Pinned;
        !self.required.contains_key(package) && self.installed.get(package).is_some_and(pinned)
    }
}

/// The range of a user; empty means all.
pub(crate) fn range(text: &str) -> Result<Option<masterminds::Range>, ResolveError> {
    if text.is_empty() {
        return Ok(None);
    }
    let parsed = masterminds::Range::parse(text);
    parsed.map(Some).map_err(|error| ResolveError::Range { range: text.chars().take(64).collect(), error })
}

/// The version of an installed bundle.
pub(crate) fn version_of(installed: &Installed) -> Result<VersionRelease, ResolveError> {
    let release = installed.release.as_deref().filter(|release| !release.is_empty());
    let parsed = VersionRelease::parse(&installed.version, release);
    parsed.map_err(|error| ResolveError::Installed { name: installed.name.clone(), error })
}

/// What changes from what is installed to a version.
pub(crate) fn change(installed: Option<&VersionRelease>, version: &VersionRelease) -> Change {
    match installed.map(|installed| installed.cmp(version)) {
        None => Change::Install,
        Some(std::cmp::Ordering::Less) => Change::Upgrade,
        Some(std::cmp::Ordering::Equal) => Change::Keep,
        Some(std::cmp::Ordering::Greater) => Change::Downgrade,
    }
}
