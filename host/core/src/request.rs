//! The request to a provisioner, and the facts about the target that the provisioner reads during the call.

use std::collections::{BTreeSet, btree_set};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::features::{self, FEATURES};

/// The BundleDeployment and the cluster that a release is rendered for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// The name of the BundleDeployment.
    pub name: String,
    /// The namespace for objects that name none.
    pub namespace: String,
    /// The version of the API server, such as `v1.36.0`; empty without a cluster.
    #[serde(default)]
    pub kubernetes_version: String,
    /// The kinds that the API server serves, as `group/version/Kind` (`v1/Kind` for the core group); empty
    /// without a cluster.
    #[serde(default)]
    pub api_kinds: Vec<String>,
}

/// One request to provision.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The configuration; empty if none is set.
    pub config: serde_json::Map<String, serde_json::Value>,
    /// The target of the release.
    pub target: Target,
}

impl Target {
    /// The version of the API server; none without a cluster.
    pub fn version(&self) -> Option<&str> {
        Some(self.kubernetes_version.as_str()).filter(|version| !version.is_empty())
    }

    /// Whether the API server serves a kind; none without a cluster.
    pub fn serves(&self, api_version: &str, kind: &str) -> Option<bool> {
        let is_it = |served: &String| {
            served.strip_prefix(api_version).and_then(|rest| rest.strip_prefix('/')).is_some_and(|rest| rest == kind)
        };
        (!self.api_kinds.is_empty()).then(|| self.api_kinds.iter().any(is_it))
    }

    /// The value of a fact, on a host with these features.
    fn value(&self, fact: &Fact, features: &[&str]) -> Value {
        match fact {
            Fact::Name => json!(self.name),
            Fact::Namespace => json!(self.namespace),
            Fact::KubernetesVersion => json!(self.version()),
            Fact::Serves { api_version, kind } => json!(self.serves(api_version, kind)),
            Fact::ApiKinds => json!(self.api_kinds),
            Fact::Supports { feature } => json!(features::offers(features, feature)),
            Fact::Features => json!(features),
        }
    }
}

/// A fact about the target or the host that a provisioner may read. A release depends only on the facts that its provisioner
/// read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Fact {
    /// [`Target::name`].
    Name,
    /// [`Target::namespace`].
    Namespace,
    /// [`Target::kubernetes_version`].
    KubernetesVersion,
    /// Whether a kind is in [`Target::api_kinds`].
    Serves {
        /// `group/version`, or `v1`.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// The whole of [`Target::api_kinds`].
    ApiKinds,
    /// Whether a feature is in [`FEATURES`].
    Supports {
        /// The name of the feature.
        feature: String,
    },
    /// The whole of [`FEATURES`].
    Features,
}

impl Fact {
    /// Whether this host offers a feature, and the fact to record; none for texts that are not names of features, which no host
    /// ever offers.
    pub fn supports(feature: String) -> (bool, Option<Self>) {
        if !features::is_name(&feature) {
            return (false, None);
        }
        (features::offers(FEATURES, &feature), Some(Self::Supports { feature }))
    }
}

/// The facts that a provisioner read during one call.
///
/// A provisioner is a pure function of the content, its configuration and the values of these facts. Two targets with the same
/// values therefore get the same release: the provisioner reads the same first fact for both, gets the same value, hence reads
/// the same second fact, and so on.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecordedFacts(BTreeSet<Fact>);

/// How many kinds are recorded individually. A provisioner that queries more kinds is recorded as reading all of them.
const KINDS: usize = 500;
/// The longest name of a kind that is recorded, in bytes.
const KIND_BYTES: usize = 512;
/// How many features are recorded individually. A provisioner that queries more is recorded as reading all of them.
const FEATURES_RECORDED: usize = 64;

impl RecordedFacts {
    /// Records a fact. The number of kinds and the length of their names are bounded: beyond these bounds, [`Fact::ApiKinds`]
    /// is recorded instead. The number of features is bounded as well: then it is [`Fact::Features`].
    pub fn add(&mut self, fact: Fact) {
        let fact = match fact {
            Fact::Serves { api_version, kind } => {
                let is_long = api_version.len().saturating_add(kind.len()) > KIND_BYTES;
                if is_long || self.0.len() >= KINDS || self.0.contains(&Fact::ApiKinds) {
                    Fact::ApiKinds
                } else {
                    Fact::Serves { api_version, kind }
                }
            }
            Fact::Supports { feature } => {
                let individual = self.0.iter().filter(|fact| matches!(fact, Fact::Supports { .. })).count();
                if individual >= FEATURES_RECORDED || self.0.contains(&Fact::Features) {
                    Fact::Features
                } else {
                    Fact::Supports { feature }
                }
            }
            other => other,
        };
        match fact {
            Fact::ApiKinds => self.0.retain(|fact| !matches!(fact, Fact::Serves { .. })),
            Fact::Features => self.0.retain(|fact| !matches!(fact, Fact::Supports { .. })),
            _ => {}
        }
        self.0.insert(fact);
    }

    /// The facts, in order.
    pub fn iter(&self) -> btree_set::Iter<'_, Fact> {
        self.0.iter()
    }

    /// The facts with their values for a target.
    pub fn values(&self, target: &Target) -> Vec<(&Fact, Value)> {
        self.values_on(target, FEATURES)
    }

    /// The facts with their values for a target, on a host with these features.
    fn values_on(&self, target: &Target, features: &[&str]) -> Vec<(&Fact, Value)> {
        self.0.iter().map(|fact| (fact, target.value(fact, features))).collect()
    }
}

impl<'a> IntoIterator for &'a RecordedFacts {
    type Item = &'a Fact;
    type IntoIter = btree_set::Iter<'a, Fact>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl FromIterator<Fact> for RecordedFacts {
    fn from_iter<T: IntoIterator<Item = Fact>>(facts: T) -> Self {
        let mut all = Self::default();
        facts.into_iter().for_each(|fact| all.add(fact));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(version: &str, kinds: &[&str]) -> Target {
        Target {
            name: "a".into(),
            namespace: "n".into(),
            kubernetes_version: version.into(),
            api_kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
        }
    }

    fn serves(api_version: &str, kind: &str) -> Fact {
        Fact::Serves { api_version: api_version.into(), kind: kind.into() }
    }

    #[test]
    fn a_target_reports_the_kinds_that_it_serves() {
        let served = target("v1.36.0", &["apps/v1/Deployment", "v1/Pod"]);
        for (api_version, kind, want) in [
            ("v1", "Pod", true),
            ("apps/v1", "Deployment", true),
            ("apps", "v1/Deployment", true),
            ("apps/v1", "Deploy", false),
            ("apps/v2", "Deployment", false),
            ("", "Pod", false),
        ] {
            assert_eq!(served.serves(api_version, kind), Some(want), "{api_version} {kind}");
        }
        assert_eq!(target("", &[]).serves("v1", "Pod"), None);
        assert_eq!((target("", &[]).version(), served.version()), (None, Some("v1.36.0")));
    }

    #[test]
    fn only_recorded_facts_matter() {
        let before = target("v1.35.0", &["v1/Pod"]);
        let read = |facts: &[Fact]| facts.iter().cloned().collect::<RecordedFacts>();
        let newer = target("v1.36.0", &["v1/Pod"]);
        let more = target("v1.35.0", &["example.com/v1/Ox", "v1/Pod"]);
        let other = Target { namespace: "m".into(), ..before.clone() };
        let unknown = target("", &[]);
        for (facts, same) in [
            (read(&[]), [true, true, true, true]),
            (read(&[Fact::Name]), [true, true, true, true]),
            (read(&[Fact::Namespace]), [true, true, false, true]),
            (read(&[Fact::KubernetesVersion]), [false, true, true, false]),
            (read(&[serves("v1", "Pod")]), [true, true, true, false]),
            (read(&[serves("example.com/v1", "Ox")]), [true, false, true, false]),
            (read(&[Fact::ApiKinds]), [true, false, true, false]),
        ] {
            let found = [&newer, &more, &other, &unknown].map(|now| facts.values(&before) == facts.values(now));
            assert_eq!(found, same, "{facts:?}");
        }
    }

    #[test]
    fn many_kinds_and_long_names_are_recorded_as_all_kinds() {
        let mut many: RecordedFacts = [Fact::Name].into_iter().collect();
        for number in 0..10_000 {
            many.add(serves("v1", &format!("K{number}")));
            assert!(many.iter().count() <= KINDS);
        }
        assert_eq!(many, [Fact::Name, Fact::ApiKinds].into_iter().collect());
        let long: RecordedFacts = [serves("v1", &"x".repeat(1000))].into_iter().collect();
        assert_eq!(long, [Fact::ApiKinds].into_iter().collect());
    }

    #[test]
    fn a_host_that_offers_another_feature_matters_only_if_it_was_queried() {
        let target = target("v1.36.0", &["v1/Pod"]);
        let read = |facts: &[Fact]| facts.iter().cloned().collect::<RecordedFacts>();
        let supports = |feature: &str| Fact::supports(feature.to_owned()).1.unwrap();
        for (facts, same) in [
            (read(&[Fact::Name, Fact::ApiKinds]), true),
            (read(&[supports("oxen")]), true),
            (read(&[supports("hooks")]), false),
            (read(&[Fact::Features]), false),
        ] {
            let (before, now) = (facts.values_on(&target, &["goats"]), facts.values_on(&target, &["goats", "hooks"]));
            assert_eq!(before == now, same, "{facts:?}");
        }
    }

    #[test]
    fn features_are_recorded_with_their_names() {
        assert_eq!(Fact::supports("oxen".into()), (false, Some(Fact::Supports { feature: "oxen".into() })));
        assert_eq!(Fact::supports("no feature".into()), (false, None));
        let mut many: RecordedFacts = [Fact::Name].into_iter().collect();
        for number in 0..1000 {
            many.add(Fact::supports(format!("f{number}")).1.unwrap());
            assert!(many.iter().count() <= FEATURES_RECORDED + 1);
        }
        assert_eq!(many, [Fact::Name, Fact::Features].into_iter().collect());
    }

    #[test]
    fn facts_are_stored_as_json() {
        let facts: RecordedFacts = [Fact::KubernetesVersion, serves("v1", "Pod")].into_iter().collect();
        let text = serde_json::to_string(&facts).unwrap();
        assert_eq!(text, r#"["kubernetesVersion",{"serves":{"api_version":"v1","kind":"Pod"}}]"#);
        assert_eq!(serde_json::from_str::<RecordedFacts>(&text).unwrap(), facts);
        let text = r#"[{"supports":{"feature":"oxen"}}]"#;
        let facts: RecordedFacts = Fact::supports("oxen".into()).1.into_iter().collect();
        assert_eq!(
            (serde_json::to_string(&facts).unwrap().as_str(), serde_json::from_str(text).unwrap()),
            (text, facts)
        );
    }
}
