//! The PlatformPolicy of an administrator: which packages PlatformOperators may want, and what must hold for all of them.

use std::collections::{BTreeMap, BTreeSet};

use chandler_api::{
    CatalogExpression, CatalogSelector, LabelOperator, PackageRequest, PlatformPolicy, PolicyPackage, SetConstraint,
    platform_policy::CONSTRAINTS, resolution::PACKAGES,
};
use chandler_core::Digest;
use chandler_resolver::{need, selector, version::masterminds::Range};
use kube::ResourceExt as _;
use serde_json::json;

/// The most labels, and the most conditions, of a selector in the API.
const SELECTED: usize = 16;
/// The longest range in the API, in bytes.
const RANGE: usize = 256;
/// The most packages that a message lists.
const LISTED: usize = 20;

/// The policy for PlatformOperators, if there is one.
pub type InForce = Result<Option<Policy>, InvalidPolicy>;

/// The contents of a valid PlatformPolicy.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The name of the PlatformPolicy.
    pub name: String,
    /// Whether new PlatformOperators may only want platform operators.
    pub must_be_operators: bool,
    /// What must hold for all packages together.
    pub constraints: Vec<SetConstraint>,
    /// The packages by name; `None` allows all.
    packages: Option<BTreeMap<String, Entry>>,
}

#[derive(Clone, Debug)]
struct Entry {
    limits: PolicyPackage,
    range: Option<Range>,
}

/// A PlatformPolicy that cannot be read. Nothing new is decided while it is there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "PlatformPolicy {policy} is invalid: {what}. Nothing is installed, upgraded or removed for PlatformOperators until it is corrected or \
     deleted (`kubectl edit platformpolicy {policy}`)"
)]
pub struct InvalidPolicy {
    /// The name of the PlatformPolicy.
    pub policy: String,
    /// What is wrong, and where.
    pub what: String,
}

/// A PlatformOperator asks for what its PlatformPolicy does not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("PlatformPolicy {policy} allows package {package} only in {allowed}, and the PlatformOperator asks for {wanted}{}", fix(*.is_too_long))]
pub struct Contradiction {
    policy: String,
    package: String,
    allowed: String,
    wanted: String,
    /// Whether the two are too long to be combined.
    is_too_long: bool,
}

fn fix(is_too_long: bool) -> &'static str {
    if is_too_long { ": together they are too long, shorten one" } else { "" }
}

impl Policy {
    /// Reads a policy.
    ///
    /// # Errors
    /// It has a range or a constraint that cannot be read, or more entries than the schema allows.
    pub fn read(policy: &PlatformPolicy) -> Result<Self, InvalidPolicy> {
        let name = policy.name_any();
        let invalid = |what: String| InvalidPolicy { policy: name.clone(), what };
        let spec = &policy.spec;
        if spec.packages.as_ref().is_some_and(|packages| packages.len() > PACKAGES) {
            return Err(invalid(format!("spec.packages has more than {PACKAGES} entries")));
        }
        if spec.constraints.len() > CONSTRAINTS {
            return Err(invalid(format!("spec.constraints has more than {CONSTRAINTS} entries")));
        }
        let mut packages = BTreeMap::new();
        for (index, limits) in spec.packages.iter().flatten().enumerate() {
            let range = limits.version.as_deref().map(Range::parse).transpose();
            let range = range.map_err(|error| invalid(format!("spec.packages[{index}].version: {error}")))?;
            let entry = Entry { limits: limits.clone(), range };
            if packages.insert(limits.name.clone(), entry).is_some() {
                return Err(invalid(format!("spec.packages[{index}]: package {} is there twice", limits.name)));
            }
        }
        for (index, constraint) in spec.constraints.iter().enumerate() {
            need::check(&json!({"type": constraint.kind, "value": constraint.value}))
                .map_err(|error| invalid(format!("spec.constraints[{index}]: {error}")))?;
        }
        Ok(Self {
            must_be_operators: spec.require_platform_property,
            constraints: spec.constraints.clone(),
            packages: spec.packages.is_some().then_some(packages),
            name,
        })
    }

    /// Whether new PlatformOperators may want a package.
    pub fn allows(&self, package: &str) -> bool {
        self.packages.as_ref().is_none_or(|packages| packages.contains_key(package))
    }

    /// The packages that new PlatformOperators may want.
    pub fn allowed(&self) -> Vec<String> {
        self.packages.iter().flat_map(BTreeMap::keys).cloned().collect()
    }

    /// A request within the limits of its package.
    ///
    /// # Errors
    /// Nothing that is asked for is allowed.
    pub fn limit(&self, request: &PackageRequest) -> Result<PackageRequest, Contradiction> {
        let Some(Entry { limits, range }) = self.packages.as_ref().and_then(|packages| packages.get(&request.name))
        else {
            return Ok(request.clone());
        };
        let contradiction = |allowed: String, wanted: String, is_too_long: bool| Contradiction {
            policy: self.name.clone(),
            package: request.name.clone(),
            allowed,
            wanted,
            is_too_long,
        };
        let version = match (range, request.version.as_deref().filter(|it| !it.is_empty())) {
            (None, wanted) => wanted.map(str::to_owned),
            (Some(_), None) => limits.version.clone(),
            (Some(allowed), Some(wanted)) => Some(match Range::parse(wanted) {
                Ok(range) => {
                    let allowed_text = || format!("version {}", limits.version.as_deref().unwrap_or_default());
                    let refused = |is_long| contradiction(allowed_text(), format!("version {wanted}"), is_long);
                    let both = range.intersection(allowed).ok_or_else(|| refused(false))?.to_string();
                    if both.len() > RANGE || Range::parse(&both).is_err() {
                        return Err(refused(true));
                    }
                    both
                }
                // The resolver refuses it.
                Err(_) => wanted.to_owned(),
            }),
        };
        let channels = match (&*limits.channels, &*request.channels) {
            ([], wanted) => wanted.to_vec(),
            (allowed, []) => allowed.to_vec(),
            (allowed, wanted) => wanted.iter().filter(|it| allowed.contains(it)).cloned().collect(),
        };
        if channels.is_empty() && !(limits.channels.is_empty() && request.channels.is_empty()) {
            let list = |channels: &[String]| format!("channels {}", channels.join(", "));
            return Err(contradiction(list(&limits.channels), list(&request.channels), false));
        }
        let catalogs = match (&limits.catalogs, &request.catalogs) {
            (one, None) | (None, one) => one.clone(),
            (Some(allowed), Some(wanted)) => Some(both(allowed, wanted).ok_or_else(|| {
                contradiction("catalogs with some labels".to_owned(), "catalogs with others".to_owned(), true)
            })?),
        };
        Ok(PackageRequest { version, channels, catalogs, ..request.clone() })
    }

    /// The packages of a Resolution within the limits. A request that contradicts them is not resolved, so that installed packages stay as
    /// they are.
    pub fn limited(&self, packages: &[PackageRequest]) -> Vec<PackageRequest> {
        packages.iter().map(|request| self.limit(request).unwrap_or_else(|_| unsatisfiable(request))).collect()
    }

    /// A digest of everything that affects a decision.
    pub fn digest(&self) -> Digest {
        let packages: Vec<&PolicyPackage> =
            self.packages.iter().flat_map(BTreeMap::values).map(|it| &it.limits).collect();
        Digest::of_json(&(packages, &self.constraints))
    }

    /// The limits of a package in words; `None` if it has none.
    pub fn limits(&self, package: &str) -> Option<String> {
        let Entry { limits, .. } = self.packages.as_ref()?.get(package)?;
        let version = limits.version.as_ref().map(|version| format!("version {version}"));
        let channels = Some(&limits.channels).filter(|channels| !channels.is_empty());
        let channels = channels.map(|channels| format!("channels {}", channels.join(", ")));
        let catalogs = limits.catalogs.as_ref().map(|_| "the catalogs that its labels select".to_owned());
        let limits: Vec<String> = [version, channels, catalogs].into_iter().flatten().collect();
        (!limits.is_empty()).then(|| format!("PlatformPolicy {} allows only {}", self.name, limits.join(", ")))
    }
}

/// A request that no bundle meets, so that what is installed stays as it is.
fn unsatisfiable(request: &PackageRequest) -> PackageRequest {
    // Every catalog has a name.
    let nothing =
        CatalogExpression { key: selector::NAME.to_owned(), operator: LabelOperator::DoesNotExist, values: Vec::new() };
    let catalogs = CatalogSelector { match_expressions: vec![nothing], ..CatalogSelector::default() };
    PackageRequest { catalogs: Some(catalogs), ..request.clone() }
}

/// The selector of what both select; `None` if it is too long.
fn both(one: &CatalogSelector, other: &CatalogSelector) -> Option<CatalogSelector> {
    let mut both = one.clone();
    for (key, value) in &other.match_labels {
        let known = both.match_labels.entry(key.clone()).or_insert_with(|| value.clone());
        if known != value {
            let (key, operator, values) = (key.clone(), LabelOperator::In, vec![value.clone()]);
            both.match_expressions.push(CatalogExpression { key, operator, values });
        }
    }
    let new = other.match_expressions.iter().filter(|it| !one.match_expressions.contains(it));
    both.match_expressions.extend(new.cloned());
    (both.match_labels.len() <= SELECTED && both.match_expressions.len() <= SELECTED).then_some(both)
}

/// Packages in a message.
pub(crate) fn listed(packages: &[String]) -> String {
    let shown: BTreeSet<&str> = packages.iter().take(LISTED).map(String::as_str).collect();
    let text = shown.into_iter().collect::<Vec<_>>().join(", ");
    match packages.len().saturating_sub(LISTED) {
        0 if packages.is_empty() => "none".to_owned(),
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

#[cfg(test)]
mod tests;
