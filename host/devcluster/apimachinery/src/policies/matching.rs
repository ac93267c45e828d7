//! Which requests a policy or a binding is about.

use crate::{
    policies::{
        attributes::{Attributes, Resource},
        cluster::Cluster,
        model::{MatchPolicy, MatchResources, NamedRule},
    },
    schema::GroupVersionKind,
};

/// A request fits: the resource and kind that the rules name, which differ from the request's where another version fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matched {
    /// The resource.
    pub resource: Resource,
    /// The kind.
    pub kind: GroupVersionKind,
}

/// Whether a request matches is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatchError {
    /// A policy without `matchConstraints`.
    #[error("policy contained no match constraints, a required field")]
    NoConstraints,
    /// The labels of the namespace are not known.
    #[error("namespaces {0:?} not found")]
    NoNamespace(String),
}

/// Whether a request fits.
///
/// # Errors
/// If the namespace, whose labels decide, does not exist.
pub fn matches(
    constraints: &MatchResources,
    attributes: &Attributes<'_>,
    cluster: &dyn Cluster,
) -> Result<Option<Matched>, MatchError> {
    let namespace = namespace_fits(constraints, attributes, cluster);
    if namespace == Ok(false) || !object_fits(constraints, attributes) {
        return Ok(None);
    }
    let fitting = |rules: &[NamedRule]| fitting(rules, constraints.match_policy, attributes, cluster);
    if fitting(&constraints.exclude_resource_rules).is_some() {
        return Ok(None);
    }
    let own = || Matched { resource: attributes.resource.clone(), kind: attributes.kind.clone() };
    let rules = &constraints.resource_rules;
    let Some(matched) = (if rules.is_empty() { Some(own()) } else { fitting(rules) }) else { return Ok(None) };
    namespace.map(|_| Some(matched))
}

fn namespace_fits(
    constraints: &MatchResources,
    attributes: &Attributes<'_>,
    cluster: &dyn Cluster,
) -> Result<bool, MatchError> {
    let selector = &constraints.namespace_selector;
    let about_namespaces = attributes.is_about_namespaces();
    if selector.is_empty() || (attributes.namespace.is_empty() && !about_namespaces) {
        return Ok(true);
    }
    // A Namespace that is written decides by the labels that it will have.
    if about_namespaces
        && attributes.subresource.is_empty()
        && let Some(namespace) = attributes.object
    {
        return Ok(selector.selects(namespace));
    }
    let name = attributes.namespace;
    cluster
        .namespace(name)
        .map(|namespace| selector.selects(&namespace))
        .ok_or_else(|| MatchError::NoNamespace(name.to_owned()))
}

fn object_fits(constraints: &MatchResources, attributes: &Attributes<'_>) -> bool {
    let selector = &constraints.object_selector;
    let objects = [attributes.object, attributes.old_object];
    selector.is_empty() || objects.into_iter().flatten().any(|object| selector.selects(object))
}

/// The first rule that fits, for the resource itself and then for its equivalents.
fn fitting(
    rules: &[NamedRule],
    policy: Option<MatchPolicy>,
    attributes: &Attributes<'_>,
    cluster: &dyn Cluster,
) -> Option<Matched> {
    let resource = &attributes.resource;
    if rules.iter().any(|rule| rule_fits(rule, resource, attributes)) {
        return Some(Matched { resource: resource.clone(), kind: attributes.kind.clone() });
    }
    if rules.is_empty() || policy != Some(MatchPolicy::Equivalent) {
        return None;
    }
    let equivalents = cluster.equivalents(resource, attributes.subresource);
    let others = || equivalents.iter().filter(|(equivalent, _)| equivalent != resource);
    let found = rules.iter().find_map(|rule| others().find(|(equivalent, _)| rule_fits(rule, equivalent, attributes)));
    found.map(|(resource, kind)| Matched { resource: resource.clone(), kind: kind.clone() })
}

fn rule_fits(rule: &NamedRule, resource: &Resource, attributes: &Attributes<'_>) -> bool {
    let listed = |items: &[String], wanted: &str| items.iter().any(|item| item == "*" || item == wanted);
    let in_namespace = !attributes.namespace.is_empty() && !attributes.is_about_namespaces();
    let scope = match rule.scope.as_deref() {
        None | Some("*") => true,
        Some("Namespaced") => in_namespace,
        Some("Cluster") => !in_namespace,
        Some(_) => false,
    };
    let part = |pattern: &str, wanted: &str| pattern == "*" || pattern == wanted;
    let resource_fits = |pattern: &String| {
        let (plural, subresource) = pattern.split_once('/').unwrap_or((pattern, ""));
        part(plural, &resource.plural) && part(subresource, attributes.subresource)
    };
    let names = &rule.resource_names;
    scope
        && listed(&rule.operations, &attributes.operation.to_string())
        && listed(&rule.api_groups, &resource.group)
        && listed(&rule.api_versions, &resource.version)
        && rule.resources.iter().any(resource_fits)
        && (names.is_empty() || names.iter().any(|name| name == attributes.name))
}
