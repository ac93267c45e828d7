//! The permissions that an account lacks to install a release.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use chandler_core::ObjectKey;

use crate::{
    cover::is_covered,
    grants::Escalation,
    merge::{Parts, merge},
    requirements::{Need, Requirements, Scope, Why, by_scope, qualified},
    rule::PolicyRule,
};

/// The most rules that a summary lists.
const LISTED: usize = 5;
/// The most objects of [`Missing::delegations`] that a summary lists.
const DELEGATING: usize = 3;
/// The most names that a summary lists for a rule.
const NAMED: usize = 3;

/// The rules that an account holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Held {
    /// Rules for the whole cluster.
    pub cluster: Vec<PolicyRule>,
    /// Rules for a namespace, by its name.
    pub namespaces: BTreeMap<String, Vec<PolicyRule>>,
}

impl Held {
    /// The rules that apply in a scope.
    pub fn in_scope(&self, scope: &Scope) -> Vec<&PolicyRule> {
        let local = scope.namespace().and_then(|namespace| self.namespaces.get(namespace));
        self.cluster.iter().chain(local.into_iter().flatten()).collect()
    }

    /// The rules that apply in the whole cluster.
    pub(crate) fn everywhere(&self) -> Vec<&PolicyRule> {
        self.cluster.iter().collect()
    }
}

/// The missing permissions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Missing {
    needs: Vec<Need>,
}

/// What an account with these rules lacks to install a release.
pub fn missing(requirements: &Requirements, held: &Held, escalation: Escalation) -> Missing {
    let mut rules: BTreeMap<&Scope, Vec<&PolicyRule>> = BTreeMap::new();
    let mut needs: Vec<Need> = Vec::new();
    for need in &requirements.requests {
        let rules = rules.entry(&need.scope).or_insert_with(|| held.in_scope(&need.scope));
        if !is_covered(rules, &need.rule) {
            needs.push(need.clone());
        }
    }
    needs.extend(requirements.grants.missing(held, escalation));
    needs.sort_unstable();
    needs.dedup();
    Missing { needs }
}

impl Missing {
    /// Whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        self.needs.is_empty()
    }

    /// Every missing permission, with the reason that it is needed.
    pub fn needs(&self) -> &[Need] {
        &self.needs
    }

    /// Keeps only the needs that match.
    pub fn retain(&mut self, keep: impl FnMut(&Need) -> bool) {
        self.needs.retain(keep);
    }

    /// Removes the rules of roles of others that the release binds, where the account may not even create the binding: the API server says what a
    /// role grants only to those who may. The permission to create the binding stays missing, so that nothing is allowed by this.
    pub fn conceal(&mut self, requirements: &Requirements) {
        let of_others: BTreeSet<&ObjectKey> = requirements.grants.of_others().collect();
        let lacks_create = |need: &&Need| need.rule.verbs == ["create"];
        let created = self.needs.iter().filter(lacks_create).filter_map(|need| match &need.why {
            Why::Object(object) if of_others.contains(object) => Some(object.clone()),
            _ => None,
        });
        let concealed: BTreeSet<ObjectKey> = created.collect();
        self.needs.retain(|need| match &need.why {
            Why::Grants(object) | Why::GrantsTooMuch(object) => !concealed.contains(object),
            _ => true,
        });
    }

    /// Rules that would grant the missing permissions, few and in a stable order.
    pub fn rules(&self) -> BTreeMap<Scope, Vec<PolicyRule>> {
        let mut scopes = by_scope(&self.needs);
        // Rules that are needed in the whole cluster need not be granted again in a namespace.
        let everywhere = scopes.get(&Scope::Cluster).cloned().unwrap_or_default();
        let everywhere = Parts::new(everywhere.into_iter());
        for (scope, rules) in &mut scopes {
            if *scope != Scope::Cluster {
                rules.retain(|rule| !everywhere.contain(rule));
            }
        }
        scopes.into_iter().map(|(scope, rules)| (scope, merge(rules))).filter(|(_, rules)| !rules.is_empty()).collect()
    }

    /// Why a rule of [`rules`](Self::rules) is needed, each reason once.
    pub fn reasons(&self, scope: &Scope, rule: &PolicyRule) -> BTreeSet<&Why> {
        let here = self.needs.iter().filter(|need| need.scope == *scope || *scope == Scope::Cluster);
        here.filter(|need| is_covered(&[rule], &need.rule)).map(|need| &need.why).collect()
    }

    /// The objects that make Chandler act for their writer, which require permissions that the API server does not
    /// check.
    pub fn delegations(&self) -> BTreeSet<&Why> {
        self.reasons_like(|why| matches!(why, Why::Delegates { .. }))
    }

    /// The roles and bindings that grant more than is compared.
    pub fn too_much(&self) -> BTreeSet<&Why> {
        self.reasons_like(|why| matches!(why, Why::GrantsTooMuch(_)))
    }

    fn reasons_like(&self, wanted: impl Fn(&Why) -> bool) -> BTreeSet<&Why> {
        self.needs.iter().map(|need| &need.why).filter(|why| wanted(why)).collect()
    }

    /// The first few rules in words and the number of further ones, followed by the objects that require permissions
    /// for less obvious reasons.
    pub fn summary(&self) -> String {
        let rules = self.rules();
        let count = rules.values().map(Vec::len).sum::<usize>();
        let each = rules.iter().flat_map(|(scope, rules)| rules.iter().map(move |rule| (scope, rule)));
        let mut lines: Vec<String> =
            each.take(LISTED).map(|(scope, rule)| format!("{} {scope}", in_words(rule, NAMED))).collect();
        if count > LISTED {
            lines.push(format!("and {} more", count - LISTED));
        }
        let mut text = lines.join("; ");
        let mut delegations = self.too_much();
        delegations.extend(self.delegations());
        if !delegations.is_empty() {
            let named: Vec<String> = delegations.iter().take(DELEGATING).map(ToString::to_string).collect();
            let _ = write!(text, "; because {}", named.join(", and "));
            if delegations.len() > DELEGATING {
                let _ = write!(text, ", and {} more", delegations.len() - DELEGATING);
            }
        }
        text
    }
}

/// A rule in words: `get, patch deployments.apps "a"`, with at most `listed` names.
pub fn in_words(rule: &PolicyRule, listed: usize) -> String {
    if *rule == PolicyRule::everything() {
        return "every verb on every resource".to_owned();
    }
    if *rule == PolicyRule::every_path() {
        return "every verb on every path".to_owned();
    }
    let mut text = rule.verbs.join(", ");
    let resources: Vec<String> = rule
        .api_groups
        .iter()
        .flat_map(|group| rule.resources.iter().map(move |resource| qualified(resource, group)))
        .chain(rule.non_resource_urls.iter().cloned())
        .collect();
    // Writing to a String cannot fail.
    let _ = write!(text, " {}", resources.join(", "));
    let names = &rule.resource_names;
    if !names.is_empty() {
        let shown: Vec<String> = names.iter().take(listed).map(|name| format!("{name:?}")).collect();
        let _ = write!(text, " {}", shown.join(", "));
        if names.len() > listed {
            let _ = write!(text, " and {} more", names.len() - listed);
        }
    }
    text
}
