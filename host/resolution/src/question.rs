//! The question for the resolver.

use std::collections::{BTreeMap, BTreeSet};

use chandler_api::{
    CatalogSelector, DependencyPolicy, DependencyUpgrades, LabelOperator, LeftOut, PackageRequest, Reason,
    ResolutionSpec, SetConstraint, UpgradePolicy,
};
use chandler_resolver::{
    Cluster, Dependencies, Hold, Installed, Policy, Problem, Required, Selector, Source, Upgrades, selector,
    version::{VersionRelease, masterminds::Range},
};

use serde_json::{Value, json};

use crate::{Installation, Invariants};

/// A question for the resolver, and the packages that are left to others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Question {
    /// The question.
    pub problem: Problem,
    /// Packages that are wanted and that a BundleDeployment outside of the set has, in a version that is wanted.
    pub elsewhere: BTreeMap<String, Installation>,
    /// The optional packages among those that the question requires, the preferred ones first.
    pub optional: Vec<String>,
    /// Members of the set that stay as they are, since what is wanted of them does not fit ([`optional`](mod@crate::optional)).
    pub staying: BTreeSet<String>,
    /// The optional packages that the checks of the members refused ([`checks`](crate::checks)), with the reasons: they do not fit.
    pub refused: BTreeMap<String, Vec<String>>,
    /// Members whose new versions the checks refused, and that only packages need which are left out: they stay as they are, if that fits.
    pub held: BTreeSet<String>,
    /// The optional packages that the question does not require, since they do not fit.
    pub left_out: Vec<LeftOut>,
    /// Constraints of an administrator that the spec of the Resolution does not have ([`invariants`](crate::invariants)). They are the last
    /// of the problem.
    pub invariants: Option<Invariants>,
    /// The packages among the members that the set takes over from another Resolution, if it needs them.
    pub taken_over: BTreeSet<String>,
}

impl Question {
    /// Keeps members as they are unless the others would not fit otherwise.
    pub fn hold(&mut self, packages: &BTreeSet<String>) {
        let of_set = self.problem.installed.iter_mut().filter(|it| it.automatic && it.hold != Hold::Pinned);
        for installed in of_set.filter(|it| packages.contains(&it.package)) {
            installed.hold = Hold::Flexible;
        }
        self.held.clone_from(packages);
    }
}

/// A package is wanted in a version that a BundleDeployment outside of the set does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "package {package} is wanted in {range}, but BundleDeployment {deployment}, which does not belong to this Resolution, has {version}: \
     upgrade it with `chandler upgrade {deployment} {package}`, or delete it"
)]
pub struct Refused {
    /// The package.
    pub package: String,
    /// The range of the request.
    pub range: String,
    /// The BundleDeployment.
    pub deployment: String,
    /// The version that it has.
    pub version: String,
}

/// The question of a Resolution. `members` are the BundleDeployments of its set, `others` the other BundleDeployments of the cluster. Only
/// BundleDeployments with evidence of their content may be among them ([`evidence`](crate::evidence)).
///
/// # Errors
/// A package that is not optional is installed by others in a version that is not wanted.
pub fn ask(
    spec: &ResolutionSpec,
    members: &[Installation],
    others: &[Installation],
    catalogs: &[Source],
    cluster: Cluster,
) -> Result<Question, Vec<Refused>> {
    let wanted: BTreeSet<&str> = spec.packages.iter().map(|request| request.name.as_str()).collect();
    let mut question = Question::default();
    let mut refused = Vec::new();
    for request in &spec.packages {
        let is_member = members.iter().any(|member| member.bundle.package == request.name);
        match other(request, others).filter(|_| !is_member) {
            None => {
                question.problem.required.push(required(request));
                if request.optional {
                    question.optional.push(request.name.clone());
                }
            }
            Some(other) if is_wanted(request, &other.bundle) => {
                question.elsewhere.insert(request.name.clone(), other.clone());
            }
            Some(other) => {
                let reason = Refused {
                    package: request.name.clone(),
                    range: request.version.clone().unwrap_or_default(),
                    deployment: other.deployment.clone(),
                    version: other.bundle.version.clone(),
                };
                if request.optional {
                    let explanation = vec![reason.to_string()];
                    let (package, reason) = (request.name.clone(), Reason::NotSatisfiable.to_string());
                    question.left_out.push(LeftOut { package, reason, explanation });
                } else {
                    refused.push(reason);
                }
            }
        }
    }
    if !refused.is_empty() {
        return Err(refused);
    }
    let taken_over = members.iter().filter(|it| it.placement.is_some());
    question.taken_over = taken_over.map(|it| it.bundle.package.clone()).collect();
    let elsewhere = question.elsewhere.values().map(|it| (it, false));
    let mut known = BTreeSet::new();
    for (installation, is_member) in
        members.iter().map(|it| (it, true)).chain(elsewhere).chain(others.iter().map(|it| (it, false)))
    {
        // Two BundleDeployments may have the same package; the resolver asks for one.
        if known.insert(installation.bundle.package.clone()) {
            let is_wanted = wanted.contains(installation.bundle.package.as_str());
            question.problem.installed.push(Installed {
                hold: if is_member { hold(spec) } else { Hold::Pinned },
                automatic: is_member && !is_wanted,
                ..installation.bundle.clone()
            });
        }
    }
    let selects = selected(spec.catalogs.as_ref());
    question.problem.catalogs =
        catalogs.iter().filter(|source| selects.matches(&source.name, &source.labels)).cloned().collect();
    question.problem.constraints = spec.constraints.iter().map(constraint).collect();
    question.problem.cluster = cluster;
    question.problem.policy = policy(spec);
    Ok(question)
}

/// The BundleDeployment outside of the set that has a package: one with a wanted version, if there is one.
fn other<'a>(request: &PackageRequest, others: &'a [Installation]) -> Option<&'a Installation> {
    let of_package = || others.iter().filter(|other| other.bundle.package == request.name);
    of_package().find(|other| is_wanted(request, &other.bundle)).or_else(|| of_package().next())
}

fn is_wanted(request: &PackageRequest, installed: &Installed) -> bool {
    let Some(range) = &request.version else { return true };
    let version = VersionRelease::parse(&installed.version, installed.release.as_deref());
    // A range or a version that cannot be parsed is reported when it is asked for.
    match (Range::parse(range), version) {
        (Ok(range), Ok(version)) => range.matches(version.version()),
        _ => false,
    }
}

pub(crate) fn constraint(constraint: &SetConstraint) -> Value {
    json!({"type": constraint.kind, "value": constraint.value})
}

fn required(request: &PackageRequest) -> Required {
    Required {
        package: request.name.clone(),
        range: request.version.clone().unwrap_or_default(),
        channels: request.channels.clone(),
        catalogs: selected(request.catalogs.as_ref()),
    }
}

/// Whether a member of the set that is not asked for may change.
fn hold(spec: &ResolutionSpec) -> Hold {
    match spec.dependency_upgrades.unwrap_or_default() {
        DependencyUpgrades::Latest => Hold::Newest,
        DependencyUpgrades::Minimal => Hold::Yielding,
        DependencyUpgrades::Pinned => Hold::Flexible,
    }
}

fn policy(spec: &ResolutionSpec) -> Policy {
    Policy {
        upgrades: match spec.upgrades.unwrap_or_default() {
            UpgradePolicy::CatalogProvided => Upgrades::CatalogProvided,
            UpgradePolicy::SelfCertified => Upgrades::SelfCertified,
        },
        dependencies: match spec.dependencies.unwrap_or_default() {
            DependencyPolicy::Install => Dependencies::Install,
            DependencyPolicy::Report => Dependencies::Report,
            DependencyPolicy::Ignore => Dependencies::Ignore,
        },
        prereleases: spec.prereleases,
        ..Policy::default()
    }
}

/// A selector of the API as the resolver reads it.
pub fn selected(catalogs: Option<&CatalogSelector>) -> Selector {
    let Some(catalogs) = catalogs else { return Selector::default() };
    let operator = |operator| match operator {
        LabelOperator::In => selector::Operator::In,
        LabelOperator::NotIn => selector::Operator::NotIn,
        LabelOperator::Exists => selector::Operator::Exists,
        LabelOperator::DoesNotExist => selector::Operator::DoesNotExist,
    };
    let expressions = catalogs.match_expressions.iter().map(|it| selector::Expression {
        key: it.key.clone(),
        operator: operator(it.operator),
        values: it.values.clone(),
    });
    Selector { match_labels: catalogs.match_labels.clone(), match_expressions: expressions.collect() }
}
