//! One rule of a role.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    attributes::{Attributes, NonResourceAttributes, ResourceAttributes},
    quote::quote_all,
};

/// Matches every verb, group, resource or path.
pub const ALL: &str = "*";
/// The bytes of a text that count as one text.
pub(crate) const LONG: usize = 256;

/// A rule of `rbac.authorization.k8s.io/v1`. `null` is read as an empty list.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyRule {
    /// The allowed verbs; `*` is every verb.
    #[serde(deserialize_with = "texts")]
    pub verbs: Vec<String>,
    /// The API groups; `""` is the core group, `*` every group.
    #[serde(deserialize_with = "texts", skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// The resources: `pods`, `pods/log`, `*/scale` (that subresource of every resource), `*` (all resources and
    /// subresources). `pods/*` has no special meaning.
    #[serde(deserialize_with = "texts", skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// The names of objects; none means all.
    #[serde(deserialize_with = "texts", skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// Non-resource paths; a trailing `*` matches any suffix.
    #[serde(rename = "nonResourceURLs", deserialize_with = "texts", skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
}

fn texts<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::<Vec<String>>::deserialize(deserializer)?.unwrap_or_default())
}

pub(crate) fn has(texts: &[String], text: &str) -> bool {
    texts.iter().any(|found| found == text)
}

impl PolicyRule {
    /// The rule that allows all requests for objects.
    pub fn everything() -> Self {
        let all = || vec![ALL.to_owned()];
        Self { verbs: all(), api_groups: all(), resources: all(), ..Self::default() }
    }

    /// The rule that allows all requests for other paths.
    pub fn every_path() -> Self {
        let all = || vec![ALL.to_owned()];
        Self { verbs: all(), non_resource_urls: all(), ..Self::default() }
    }

    /// How many rules of one verb, one resource or path, and at most one name the rule stands for: the product of the lengths of its lists.
    pub fn parts(&self) -> usize {
        let Self { verbs, api_groups, resources, resource_names, non_resource_urls } = self;
        let [verbs, groups, resources, names, paths] =
            [verbs, api_groups, resources, resource_names, non_resource_urls].map(Vec::len);
        let objects = groups.saturating_mul(resources).saturating_mul(names.max(1));
        objects.saturating_add(paths).saturating_mul(verbs)
    }

    /// The number of texts in all lists. A long text counts more than once.
    pub fn texts(&self) -> usize {
        let Self { verbs, api_groups, resources, resource_names, non_resource_urls } = self;
        let lists = [verbs, api_groups, resources, resource_names, non_resource_urls];
        lists.into_iter().flatten().map(|text| 1 + text.len() / LONG).sum()
    }

    /// The bytes of one of its parts, at most.
    pub(crate) fn longest_part(&self) -> usize {
        let Self { verbs, api_groups, resources, resource_names, non_resource_urls } = self;
        let lists = [verbs, api_groups, resources, resource_names, non_resource_urls];
        lists.map(|texts| texts.iter().map(String::len).max().unwrap_or_default()).into_iter().sum()
    }

    /// Whether the rule allows a request.
    pub fn allows(&self, attributes: &Attributes) -> bool {
        match attributes {
            Attributes::Resource(wanted) => {
                let (verb, group) = (self.allows_verb(&wanted.verb), &self.api_groups);
                verb && (has(group, ALL) || has(group, &wanted.group))
                    && self.allows_resource(wanted)
                    && (self.resource_names.is_empty() || has(&self.resource_names, &wanted.name))
            }
            Attributes::NonResource(NonResourceAttributes { path, verb }) => {
                self.allows_verb(verb) && self.non_resource_urls.iter().any(|allowed| path_covers(allowed, path))
            }
        }
    }

    fn allows_verb(&self, verb: &str) -> bool {
        has(&self.verbs, ALL) || has(&self.verbs, verb)
    }

    fn allows_resource(&self, wanted: &ResourceAttributes) -> bool {
        self.resources.iter().any(|allowed| {
            if wanted.subresource.is_empty() {
                allowed == ALL || *allowed == wanted.resource
            } else {
                let of =
                    |allowed: &str| allowed.strip_suffix(&wanted.subresource)?.strip_suffix('/').map(str::to_owned);
                allowed == ALL || of(allowed).is_some_and(|of| of == ALL || of == wanted.resource)
            }
        })
    }
}

/// The same subresource of every resource; none for a resource itself.
pub(crate) fn of_every_resource(resource: &str) -> Option<String> {
    resource.split_once('/').map(|(_, subresource)| format!("*/{subresource}"))
}

/// Whether an allowed path matches a path: both are the same, or the allowed path ends in `*` and the rest is a prefix.
pub(crate) fn path_covers(allowed: &str, path: &str) -> bool {
    allowed == path || (allowed.ends_with(ALL) && path.starts_with(allowed.trim_end_matches('*')))
}

impl fmt::Display for PolicyRule {
    /// The format of the messages of the escalation check: `{APIGroups:[""], Resources:["pods"], Verbs:["get"
    /// "list"]}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let shown = fields.iter().filter(|(_, texts)| !texts.is_empty());
        let shown: Vec<String> = shown.map(|(name, texts)| format!("{name}:{}", quote_all(texts))).collect();
        write!(f, "{{{}}}", shown.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(verbs: &str, groups: &str, resources: &str, names: &str) -> PolicyRule {
        let words = |text: &str| -> Vec<String> {
            text.split_whitespace().map(|word| if word == "core" { "" } else { word }.to_owned()).collect()
        };
        PolicyRule {
            verbs: words(verbs),
            api_groups: words(groups),
            resources: words(resources),
            resource_names: words(names),
            non_resource_urls: Vec::new(),
        }
    }

    fn wants(verb: &str, group: &str, resource: &str, name: &str) -> Attributes {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let own = str::to_owned;
        Attributes::Resource(ResourceAttributes {
            namespace: own("n"),
            verb: own(verb),
            group: own(group),
            version: own("v1"),
            resource: own(resource),
            subresource: own(subresource),
            name: own(name),
        })
    }

    #[test]
    fn rules_allow_exactly_the_listed_requests() {
        let cases = [
            // Rule; verb, group, resource, name; allowed.
            (rule("get", "core", "pods", ""), wants("get", "", "pods", "a"), true),
            (rule("get", "core", "pods", ""), wants("list", "", "pods", ""), false),
            (rule("get", "core", "pods", ""), wants("get", "apps", "pods", "a"), false),
            (rule("get", "core", "pods", ""), wants("get", "", "pods/log", "a"), false),
            (rule("get", "core", "pods/log", ""), wants("get", "", "pods/log", "a"), true),
            (rule("get", "core", "pods/log", ""), wants("get", "", "pods", "a"), false),
            (rule("get", "core", "pods/*", ""), wants("get", "", "pods/log", "a"), false),
            (rule("get", "*", "*/scale", ""), wants("get", "apps", "deployments/scale", "a"), true),
            (rule("get", "*", "*/scale", ""), wants("get", "apps", "deployments/upscale", "a"), false),
            (rule("get", "*", "*/scale", ""), wants("get", "apps", "deployments", "a"), false),
            (rule("*", "*", "*", ""), wants("approve", "x", "y/z", ""), true),
            (rule("get", "core", "pods", "a b"), wants("get", "", "pods", "b"), true),
            (rule("get", "core", "pods", "a b"), wants("get", "", "pods", "c"), false),
            (rule("list", "core", "pods", "a"), wants("list", "", "pods", ""), false),
            (rule("", "core", "pods", ""), wants("get", "", "pods", ""), false),
        ];
        for (rule, wanted, expected) in cases {
            assert_eq!(rule.allows(&wanted), expected, "{rule} {wanted:?}");
        }
    }

    #[test]
    fn paths_match_exactly_or_by_prefix() {
        let cases = [
            ("/metrics", "/metrics", true),
            ("/metrics", "/metrics/x", false),
            ("/healthz/*", "/healthz/etcd", true),
            ("/healthz/*", "/healthz", false),
            ("/health*", "/healthz", true),
            ("*", "/anything", true),
            ("/a/*/c", "/a/b/c", false),
        ];
        for (allowed, path, expected) in cases {
            let rule = PolicyRule {
                verbs: vec!["get".into()],
                non_resource_urls: vec![allowed.into()],
                ..PolicyRule::default()
            };
            let path = NonResourceAttributes { path: path.into(), verb: "get".into() };
            assert_eq!(rule.allows(&Attributes::NonResource(path.clone())), expected, "{allowed} {path:?}");
            assert!(!rule.allows(&Attributes::NonResource(NonResourceAttributes { verb: "post".into(), ..path })));
            assert!(!rule.allows(&wants("get", "", "pods", "")));
        }
        assert!(!PolicyRule::everything().allows(&Attributes::NonResource(NonResourceAttributes::default())));
    }

    #[test]
    fn a_rule_is_formatted_for_messages_and_accepts_nulls() {
        let shown = rule("get list", "core apps", "pods", "a").to_string();
        assert_eq!(shown, r#"{APIGroups:["" "apps"], Resources:["pods"], ResourceNames:["a"], Verbs:["get" "list"]}"#);
        let read: PolicyRule =
            serde_json::from_str(r#"{"verbs":["get"],"apiGroups":null,"nonResourceURLs":["/x"]}"#).unwrap();
        assert_eq!(read.to_string(), r#"{NonResourceURLs:["/x"], Verbs:["get"]}"#);
    }
}
