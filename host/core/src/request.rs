//! What a provisioner is asked, and what it asks in turn.

use std::collections::{BTreeSet, btree_set};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What the objects are for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// The name of the BundleDeployment.
    pub name: String,
    /// The namespace to install into.
    pub namespace: String,
    /// The version of the API server, such as `v1.36.0`; empty where no cluster is known.
    #[serde(default)]
    pub kubernetes_version: String,
    /// The kinds that the API server serves, as `group/version/Kind` (`v1/Kind` for the core group); empty where no
    /// cluster is known.
    #[serde(default)]
    pub api_kinds: Vec<String>,
}

/// One request to provision.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The configuration; an empty object where there is none.
    pub config: serde_json::Map<String, serde_json::Value>,
    /// What the objects are for.
    pub target: Target,
}

impl Target {
    /// The version of the API server; none where no cluster is known.
    pub fn version(&self) -> Option<&str> {
        Some(self.kubernetes_version.as_str()).filter(|version| !version.is_empty())
    }

    /// Whether the API server serves a kind; none where no cluster is known.
    pub fn serves(&self, api_version: &str, kind: &str) -> Option<bool> {
        let is_it = |served: &String| {
            served.strip_prefix(api_version).and_then(|rest| rest.strip_prefix('/')).is_some_and(|rest| rest == kind)
        };
        (!self.api_kinds.is_empty()).then(|| self.api_kinds.iter().any(is_it))
    }

    /// The answer to a question.
    fn answer(&self, question: &Question) -> Value {
        match question {
            Question::Name => json!(self.name),
            Question::Namespace => json!(self.namespace),
            Question::KubernetesVersion => json!(self.version()),
            Question::Serves { api_version, kind } => json!(self.serves(api_version, kind)),
            Question::ApiKinds => json!(self.api_kinds),
        }
    }
}

/// Something that a provisioner asks about its target. Of a release that was made, what was not asked cannot matter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Question {
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
}

/// What a provisioner asked during one call.
///
/// A provisioner is a pure function of the content, its configuration and the answers that it gets. So two targets that
/// give the same answers to these questions get the same release: it asks the first question in both cases, gets the same
/// answer, hence asks the same second one, and so on.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Questions(BTreeSet<Question>);

/// How many kinds are asked for one by one. A provisioner that asks for more is taken to ask for all.
const KINDS: usize = 500;
/// The most bytes of the name of a kind that is kept.
const KIND_BYTES: usize = 512;

impl Questions {
    /// Adds one. Their number and length is bounded: instead of many kinds, or one with a long name, all kinds are asked for.
    pub fn add(&mut self, question: Question) {
        let question = match question {
            Question::Serves { api_version, kind } => {
                let is_long = api_version.len().saturating_add(kind.len()) > KIND_BYTES;
                if is_long || self.0.len() >= KINDS || self.0.contains(&Question::ApiKinds) {
                    Question::ApiKinds
                } else {
                    Question::Serves { api_version, kind }
                }
            }
            other => other,
        };
        if question == Question::ApiKinds {
            self.0.retain(|question| !matches!(question, Question::Serves { .. }));
        }
        self.0.insert(question);
    }

    /// The questions, in order.
    pub fn iter(&self) -> btree_set::Iter<'_, Question> {
        self.0.iter()
    }

    /// The questions with the answers that a target gives.
    pub fn answered(&self, target: &Target) -> Vec<(&Question, Value)> {
        self.0.iter().map(|question| (question, target.answer(question))).collect()
    }

    /// Whether two targets give the same answers.
    pub fn agree(&self, one: &Target, other: &Target) -> bool {
        self.0.iter().all(|question| one.answer(question) == other.answer(question))
    }
}

impl<'a> IntoIterator for &'a Questions {
    type Item = &'a Question;
    type IntoIter = btree_set::Iter<'a, Question>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl FromIterator<Question> for Questions {
    fn from_iter<T: IntoIterator<Item = Question>>(questions: T) -> Self {
        let mut all = Self::default();
        questions.into_iter().for_each(|question| all.add(question));
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

    fn serves(api_version: &str, kind: &str) -> Question {
        Question::Serves { api_version: api_version.into(), kind: kind.into() }
    }

    #[test]
    fn a_target_knows_its_kinds() {
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
    fn only_what_was_asked_matters() {
        let before = target("v1.35.0", &["v1/Pod"]);
        let asked = |questions: &[Question]| questions.iter().cloned().collect::<Questions>();
        let newer = target("v1.36.0", &["v1/Pod"]);
        let more = target("v1.35.0", &["example.com/v1/Ox", "v1/Pod"]);
        let other = Target { namespace: "m".into(), ..before.clone() };
        let unknown = target("", &[]);
        for (question, agrees) in [
            (asked(&[]), [true, true, true, true]),
            (asked(&[Question::Name]), [true, true, true, true]),
            (asked(&[Question::Namespace]), [true, true, false, true]),
            (asked(&[Question::KubernetesVersion]), [false, true, true, false]),
            (asked(&[serves("v1", "Pod")]), [true, true, true, false]),
            (asked(&[serves("example.com/v1", "Ox")]), [true, false, true, false]),
            (asked(&[Question::ApiKinds]), [true, false, true, false]),
        ] {
            let found = [&newer, &more, &other, &unknown].map(|now| question.agree(&before, now));
            let unknown = Target { namespace: "n".into(), ..unknown.clone() };
            assert_eq!(found[..3], agrees[..3], "{question:?}");
            assert_eq!(question.agree(&before, &unknown), agrees[3], "{question:?}");
            for now in [&newer, &more] {
                assert_eq!(question.answered(&before) == question.answered(now), question.agree(&before, now));
            }
        }
    }

    #[test]
    fn many_kinds_and_long_names_ask_for_all() {
        let mut many: Questions = [Question::Name].into_iter().collect();
        for number in 0..10_000 {
            many.add(serves("v1", &format!("K{number}")));
            assert!(many.iter().count() <= KINDS);
        }
        assert_eq!(many, [Question::Name, Question::ApiKinds].into_iter().collect());
        let long: Questions = [serves("v1", &"x".repeat(1000))].into_iter().collect();
        assert_eq!(long, [Question::ApiKinds].into_iter().collect());
    }

    #[test]
    fn questions_are_kept_as_json() {
        let questions: Questions = [Question::KubernetesVersion, serves("v1", "Pod")].into_iter().collect();
        let text = serde_json::to_string(&questions).unwrap();
        assert_eq!(text, r#"["kubernetesVersion",{"serves":{"api_version":"v1","kind":"Pod"}}]"#);
        assert_eq!(serde_json::from_str::<Questions>(&text).unwrap(), questions);
    }
}
