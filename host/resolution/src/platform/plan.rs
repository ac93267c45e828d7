//! The packages that all PlatformOperators request, and the PlatformOperators that are refused without asking the resolver.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, btree_map::Entry},
};

use chandler_api::{PackageRequest, PlatformOperator, PlatformOperatorSpec, Resolution, resolution::PACKAGES};
use kube::ResourceExt as _;
use serde_json::{Map, Value};

use super::{
    policy::{Contradiction, InForce, InvalidPolicy, listed},
    resolution::asks_for,
};

/// What all PlatformOperators want.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The packages, ordered by the age of their PlatformOperators, oldest first.
    pub packages: Vec<Wanted>,
    /// The PlatformOperators that take no part, by name.
    pub refused: BTreeMap<String, Refused>,
}

/// A package that PlatformOperators want.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// The oldest PlatformOperator that wants it.
    pub operator: String,
    /// The request for the resolver.
    pub request: PackageRequest,
    /// The configuration.
    pub config: Map<String, Value>,
    /// The namespace that the PlatformOperator names.
    pub namespace: Option<String>,
}

/// A PlatformOperator takes no part in the resolution.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No package can have the name.
    #[error(
        "{0:?} cannot be the name of a package: names have lower case letters, digits, `-` and `.`, and begin and end with a letter or a digit"
    )]
    Name(String),
    /// An older PlatformOperator wants the same package in another way.
    #[error(
        "PlatformOperator {earlier}, which is older, wants package {package} too, and its spec is different: make the specs equal, or delete one of the two"
    )]
    Taken {
        /// The package.
        package: String,
        /// The other PlatformOperator.
        earlier: String,
    },
    /// There are too many.
    #[error("older PlatformOperators want {PACKAGES} packages, which is the most")]
    TooMany,
    /// The administrator does not list the package.
    #[error("package {package} is not among the packages that {}: {}", may(.policy.as_ref()), listed(.allowed))]
    NotAllowed {
        /// The package.
        package: String,
        /// The packages that are listed.
        allowed: Vec<String>,
        /// The PlatformPolicy that lists them; none for the options of the controller.
        policy: Option<String>,
    },
    /// The administrator requires platform operators, and no catalog says that the package is one.
    #[error(
        "package {package} is not a platform operator{}: its newest version has no property chandler.dev/platform-operator \
         (`chandler catalog search --platform` lists platform operators)",
        requires(.policy.as_ref())
    )]
    NotPlatformOperator {
        /// The package.
        package: String,
        /// The PlatformPolicy that requires it; none for the options of the controller.
        policy: Option<String>,
    },
    /// The PlatformPolicy does not allow what is asked for.
    #[error(transparent)]
    Contradicts(#[from] Contradiction),
    /// The PlatformPolicy cannot be read.
    #[error(transparent)]
    InvalidPolicy(#[from] InvalidPolicy),
    /// No catalog has the package.
    #[error(
        "failed to find candidate olm.bundles from the {package} package: it is in no catalog{}",
        read(.catalogs, .not_ready)
    )]
    Unknown {
        /// The package.
        package: String,
        /// The catalogs that were read.
        catalogs: Vec<String>,
        /// The catalogs that are not ready.
        not_ready: Vec<String>,
    },
}

fn may(policy: Option<&String>) -> String {
    match policy {
        Some(policy) => format!("PlatformPolicy {policy} allows"),
        None => "PlatformOperators may want".to_owned(),
    }
}

fn requires(policy: Option<&String>) -> String {
    policy.map(|policy| format!(", as PlatformPolicy {policy} requires")).unwrap_or_default()
}

fn read(catalogs: &[String], not_ready: &[String]) -> String {
    let list = |what: &str, names: &[String]| match names {
        [] => String::new(),
        names => format!("; {what}: {}", names.join(", ")),
    };
    format!("{}{}", list("catalogs that were read", catalogs), list("catalogs that are not ready", not_ready))
}

impl Plan {
    /// The package of this name.
    pub fn wanted(&self, package: &str) -> Option<&Wanted> {
        self.packages.iter().find(|wanted| wanted.request.name == package)
    }

    /// Leaves out the new packages that a policy does not allow. Packages that the Resolution of all PlatformOperators already has may be
    /// installed, and stay in it. While a policy is invalid, no new package is wanted.
    pub fn restrict(&mut self, operators: &[&PlatformOperator], policy: &InForce, existing: Option<&Resolution>) {
        let refusal = |wanted: &Wanted| {
            let package = &wanted.request.name;
            if existing.is_some_and(|it| asks_for(it, package)) {
                return None;
            }
            match policy {
                Ok(None) => None,
                Ok(Some(policy)) if !policy.allows(package) => Some(Refused::NotAllowed {
                    package: package.clone(),
                    allowed: policy.allowed(),
                    policy: Some(policy.name.clone()),
                }),
                Ok(Some(policy)) => policy.limit(&wanted.request).err().map(Refused::from),
                Err(invalid) => Some(invalid.clone().into()),
            }
        };
        self.refuse(operators, refusal);
    }

    /// Leaves out the packages that are refused, with all PlatformOperators that want them.
    pub fn refuse(&mut self, operators: &[&PlatformOperator], refuse: impl Fn(&Wanted) -> Option<Refused>) {
        let refused: BTreeMap<String, Refused> =
            self.packages.iter().filter_map(|wanted| Some((wanted.request.name.clone(), refuse(wanted)?))).collect();
        self.packages.retain(|wanted| !refused.contains_key(&wanted.request.name));
        for operator in operators.iter().filter(|operator| is_live(operator)) {
            if let Some(reason) = refused.get(&operator.spec.package.name) {
                self.refused.entry(operator.name_any()).or_insert_with(|| reason.clone());
            }
        }
    }
}

/// What these PlatformOperators want; those that are being deleted want nothing.
pub fn plan(operators: &[&PlatformOperator]) -> Plan {
    let mut ordered: Vec<&PlatformOperator> = operators.iter().copied().filter(|it| is_live(it)).collect();
    ordered.sort_by_cached_key(|it| (it.metadata.creation_timestamp.as_ref().map(|time| time.0), it.name_any()));
    let mut plan = Plan::default();
    let mut first: BTreeMap<&str, &PlatformOperator> = BTreeMap::new();
    for operator in ordered {
        let package = operator.spec.package.name.as_str();
        let refused = match first.entry(package) {
            _ if !is_package(package) => Some(Refused::Name(package.to_owned())),
            Entry::Occupied(earlier) if earlier.get().spec == operator.spec => None,
            Entry::Occupied(earlier) => {
                Some(Refused::Taken { package: package.to_owned(), earlier: earlier.get().name_any() })
            }
            Entry::Vacant(_) if plan.packages.len() >= PACKAGES => Some(Refused::TooMany),
            Entry::Vacant(vacant) => {
                vacant.insert(operator);
                plan.packages.push(wanted(operator));
                None
            }
        };
        plan.refused.extend(refused.map(|refused| (operator.name_any(), refused)));
    }
    plan
}

fn is_live(operator: &PlatformOperator) -> bool {
    operator.metadata.deletion_timestamp.is_none()
}

fn wanted(operator: &PlatformOperator) -> Wanted {
    let PlatformOperatorSpec { package, version, channels, catalogs, config, install_namespace } = &operator.spec;
    Wanted {
        operator: operator.name_any(),
        request: PackageRequest {
            name: package.name.clone(),
            version: version.clone(),
            channels: channels.clone(),
            catalogs: catalogs.clone(),
            optional: true,
        },
        config: without_nulls(config),
        namespace: install_namespace.clone(),
    }
}

/// A null means what an absent value means, and a merge patch cannot write it.
fn without_nulls(config: &Map<String, Value>) -> Map<String, Value> {
    let kept = config.iter().filter(|(_, value)| !value.is_null());
    kept.map(|(key, value)| {
        (key.clone(), value.as_object().map_or_else(|| value.clone(), |inner| without_nulls(inner).into()))
    })
    .collect()
}

/// Whether a package can have this name: the pattern of the CRD, which comes from OpenShift, is not anchored.
fn is_package(name: &str) -> bool {
    let is_alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let edge = |byte: Option<u8>| byte.is_some_and(is_alphanumeric);
    edge(name.bytes().next())
        && edge(name.bytes().next_back())
        && name.bytes().all(|byte| is_alphanumeric(byte) || matches!(byte, b'-' | b'.'))
}

/// The namespace of a package, of what the catalogs that have it suggest, each with its priority: the suggestion of the highest priority,
/// or the name of the package. None if no catalog has the package.
pub fn namespace_of(package: &str, mut found: Vec<(i32, String)>) -> Option<String> {
    found.first()?;
    found.retain(|(_, suggestion)| is_label(suggestion));
    let best = found.into_iter().min_by_key(|(priority, suggestion)| (Reverse(*priority), suggestion.clone()));
    Some(best.map_or_else(|| package.replace('.', "-"), |(_, suggestion)| suggestion))
}

fn is_label(name: &str) -> bool {
    is_package(name) && !name.contains('.') && name.len() <= 63
}

#[cfg(test)]
mod tests;
