//! The decisions for one set: the newest first, and why others are refused.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{ResourceExt as _, core::PartialObjectMeta};

use super::annotations::{CREATED, Refusal, Terms, deployment_name, set_of};

/// The metadata of a ConfigMap.
pub(super) type Map = PartialObjectMeta<ConfigMap>;

/// A decision whose annotations are valid.
#[derive(Clone, Debug)]
pub(super) struct Candidate<'a> {
    /// The ConfigMap.
    pub(super) map: &'a Map,
    /// What its annotations say.
    pub(super) terms: Terms,
}

/// The ConfigMaps that claim to decide one set.
#[derive(Debug, Default)]
pub(super) struct Claims<'a> {
    /// Those that may be installed, the one with the highest number first.
    pub(super) candidates: Vec<Candidate<'a>>,
    /// The others, with the reason.
    pub(super) refused: Vec<(&'a Map, Refusal)>,
    /// Whether any ConfigMap names the set, also one that another controller selects.
    pub(super) exist: bool,
}

impl<'a> Claims<'a> {
    /// The claims among all ConfigMaps of the system namespace. A ConfigMap that is being deleted does not decide anything.
    pub(super) fn of(set: &str, all: &'a [Map], is_selected: impl Fn(&BTreeMap<String, String>) -> bool) -> Self {
        let naming: Vec<&Map> =
            all.iter().filter(|map| set_of(*map) == Some(set) && map.metadata.deletion_timestamp.is_none()).collect();
        let mut claims = Self { exist: !naming.is_empty(), ..Self::default() };
        for map in naming.into_iter().filter(|map| is_selected(map.labels())) {
            match Terms::of(map) {
                Ok(terms) => claims.candidates.push(Candidate { map, terms }),
                Err(refusal) => claims.refused.push((map, refusal)),
            }
        }
        claims.refuse_equal_numbers();
        claims
    }

    /// If several have one number, the oldest is used: a later one must not replace what is installed.
    fn refuse_equal_numbers(&mut self) {
        self.candidates.sort_by_key(|it| (it.terms.number, it.map.creation_timestamp(), it.map.uid()));
        let mut unique: Vec<Candidate<'a>> = Vec::with_capacity(self.candidates.len());
        for candidate in self.candidates.drain(..) {
            let number = candidate.terms.number;
            match unique.last().filter(|last| last.terms.number == number) {
                Some(older) => {
                    let refusal = Refusal::SameNumber { number, other: older.map.name_any() };
                    self.refused.push((candidate.map, refusal));
                }
                None => unique.push(candidate),
            }
        }
        unique.reverse();
        self.candidates = unique;
    }
}

/// The ConfigMap with the UID of the BundleDeployment that the controller created for a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note<'a> {
    /// There is no such ConfigMap.
    Absent,
    /// The controller created a BundleDeployment.
    Created {
        /// The UID of the BundleDeployment.
        deployment: &'a str,
        /// The UID of the note.
        note: Option<&'a str>,
    },
    /// A ConfigMap of another origin has the name.
    Foreign,
}

impl<'a> Note<'a> {
    /// The note about a set among all ConfigMaps of the system namespace.
    pub(super) fn of(set: &str, all: &'a [Map]) -> Self {
        let name = deployment_name(set);
        match all.iter().find(|map| map.name_any() == name) {
            None => Self::Absent,
            Some(map) => map
                .annotations()
                .get(CREATED)
                .map_or(Self::Foreign, |deployment| Self::Created { deployment, note: map.metadata.uid.as_deref() }),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// A decision for the set `shop`, created at this second.
    pub(in super::super) fn map(name: &str, number: &str, second: u8) -> Map {
        let object = json!({"metadata": {
            "name": name, "uid": format!("uid-of-{name}"), "namespace": "chandler-system",
            "creationTimestamp": format!("2026-11-26T00:00:{second:02}Z"),
            "annotations": {"resolveset.chandler.dev/set": "shop", "resolveset.chandler.dev/number": number,
                            "resolveset.chandler.dev/service-account": "operators/deployer"},
        }});
        serde_json::from_value(object).unwrap()
    }

    fn names(claims: &Claims<'_>) -> Vec<String> {
        claims.candidates.iter().map(|candidate| candidate.map.name_any()).collect()
    }

    #[test]
    fn the_highest_number_is_first_whatever_is_created_later() {
        let all = [map("nine", "9", 1), map("ten", "10", 2), map("two", "2", 3)];
        let claims = Claims::of("shop", &all, |_| true);
        assert_eq!(names(&claims), ["ten", "nine", "two"]);
        assert!(claims.exist && claims.refused.is_empty());
        assert!(!Claims::of("other", &all, |_| true).exist);
    }

    #[test]
    fn a_later_decision_with_the_number_of_an_earlier_one_is_refused() {
        let all = [map("late", "1", 9), map("early", "1", 2), map("odd", "one", 3)];
        let claims = Claims::of("shop", &all, |_| true);
        assert_eq!(names(&claims), ["early"]);
        let refused: Vec<_> = claims.refused.iter().map(|(map, refusal)| (map.name_any(), refusal.clone())).collect();
        let same = Refusal::SameNumber { number: 1, other: "early".to_owned() };
        assert_eq!(refused, [("odd".to_owned(), Refusal::Number("one".to_owned())), ("late".to_owned(), same)]);
    }

    #[test]
    fn decisions_that_are_deleted_or_of_another_controller_are_left_alone() {
        let mut gone = map("gone", "2", 1);
        gone.metadata.deletion_timestamp = gone.metadata.creation_timestamp.clone();
        let all = [gone];
        assert!(!Claims::of("shop", &all, |_| true).exist);
        let all = [map("theirs", "1", 1)];
        let claims = Claims::of("shop", &all, |_| false);
        assert!(claims.exist && claims.candidates.is_empty() && claims.refused.is_empty());
    }

    #[test]
    fn decisions_of_resolutions_are_not_among_them() {
        let object = json!({"metadata": {"name": "resolveset-shop-1", "labels": {"resolution.chandler.dev/name": "shop"},
            "annotations": {"resolution.chandler.dev/decision": "1", "resolution.chandler.dev/set": "shop"}}});
        let all: [Map; 1] = [serde_json::from_value(object).unwrap()];
        assert!(!Claims::of("shop", &all, |_| true).exist);
        assert_eq!(Note::of("shop", &all), Note::Absent);
    }

    #[test]
    fn a_note_is_known_by_its_annotation() {
        let mut note = map("decidedset-shop", "1", 1);
        note.metadata.annotations = None;
        assert_eq!(Note::of("shop", std::slice::from_ref(&note)), Note::Foreign);
        note.metadata.annotations = Some([(CREATED.to_owned(), "u".to_owned())].into());
        let created = Note::Created { deployment: "u", note: Some("uid-of-decidedset-shop") };
        assert_eq!(Note::of("shop", std::slice::from_ref(&note)), created);
    }
}
