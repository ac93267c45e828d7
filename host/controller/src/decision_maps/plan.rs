//! What to do about the BundleDeployment of a set.

use chandler_api::{
    BundleDeployment, BundleDeploymentSpec, BundleSource, ConfigMapSource, LocalObjectReference,
    names::RESOLVESET_CLASS,
};
use kube::ResourceExt as _;
use serde_json::{Map as Fields, Value};

use super::{
    annotations::{Refusal, deployment_name},
    claims::{Candidate, Note},
};
use crate::resolution::changed_fields;

/// The fields that a decision decides. Administrators may set all others.
const FIELDS: [&str; 4] = ["installNamespace", "provisionerClassName", "source", "serviceAccount"];

/// What is known of a set.
#[derive(Debug)]
pub(super) struct Known<'a> {
    /// The name of the set.
    pub(super) set: &'a str,
    /// Its decisions, the newest first.
    pub(super) candidates: &'a [Candidate<'a>],
    /// The newest decision whose ConfigMap is immutable.
    pub(super) chosen: Option<&'a Candidate<'a>>,
    /// Whether any ConfigMap names the set.
    pub(super) claimed: bool,
    /// The BundleDeployment of this name.
    pub(super) existing: Option<&'a BundleDeployment>,
    /// Whether this controller selects it.
    pub(super) selected: bool,
    /// What the controller noted about it.
    pub(super) note: Note<'a>,
}

/// What to do.
#[derive(Debug, PartialEq)]
pub(super) enum Plan {
    /// Nothing: everything is as wanted, or is waited for.
    Nothing,
    /// Report why the chosen decision is not installed.
    Refuse(Refusal),
    /// Create the BundleDeployment, and note its UID.
    Create(Box<BundleDeploymentSpec>),
    /// Change these fields, if there are any, after noting the UID if it is not noted.
    Change {
        /// The fields of the spec, as a merge patch.
        fields: Fields<String, Value>,
        /// Whether the UID has to be noted.
        note: bool,
    },
    /// Delete the BundleDeployment: no decision is left.
    Delete,
    /// Delete the note with this UID: the BundleDeployment is gone.
    Forget(Option<String>),
}

/// The decision about one set.
///
/// # Errors
/// A spec cannot be written as JSON.
pub(super) fn plan(known: &Known<'_>) -> Result<Plan, serde_json::Error> {
    let name = deployment_name(known.set);
    let Some(existing) = known.existing else {
        return Ok(match (known.chosen, known.note) {
            (Some(_), Note::Foreign) => Plan::Refuse(Refusal::NoteTaken(name)),
            (Some(chosen), _) => Plan::Create(Box::new(spec(chosen))),
            (None, Note::Created { note, .. }) if !known.claimed => Plan::Forget(note.map(str::to_owned)),
            (None, _) => Plan::Nothing,
        });
    };
    let noted = matches!(known.note, Note::Created { deployment, .. } if existing.uid().as_deref() == Some(deployment));
    // After a crash it may have been created without a note. Another client's object that is equal, including the account, gains nothing.
    let is_ours = noted || known.candidates.iter().any(|candidate| spec(candidate) == existing.spec);
    if !is_ours || !known.selected {
        return Ok(known.chosen.map_or(Plan::Nothing, |_| Plan::Refuse(Refusal::Taken(name))));
    }
    if existing.metadata.deletion_timestamp.is_some() {
        return Ok(Plan::Nothing);
    }
    let Some(chosen) = known.chosen else {
        // While a decision is refused, the installed one stays.
        return Ok(if known.claimed { Plan::Nothing } else { Plan::Delete });
    };
    if !noted && known.note == Note::Foreign {
        return Ok(Plan::Refuse(Refusal::NoteTaken(name)));
    }
    let (now, wanted) = (serde_json::to_value(&existing.spec)?, serde_json::to_value(spec(chosen))?);
    let fields = changed_fields(&now, &wanted, &FIELDS);
    Ok(if noted && fields.is_empty() { Plan::Nothing } else { Plan::Change { fields, note: !noted } })
}

/// The BundleDeployment of a decision. A set is installed on behalf of its account, never with the permissions of the controller.
fn spec(decision: &Candidate<'_>) -> BundleDeploymentSpec {
    let account = &decision.terms.account;
    let config_map = LocalObjectReference { name: decision.map.name_any() };
    BundleDeploymentSpec {
        install_namespace: account.namespace.clone().unwrap_or_default(),
        provisioner_class_name: RESOLVESET_CLASS.to_owned(),
        source: BundleSource::config_maps(vec![ConfigMapSource { config_map, ..ConfigMapSource::default() }]),
        service_account: Some(account.clone()),
        ..BundleDeploymentSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::claims::{Claims, Map, tests::map},
        *,
    };

    /// What is planned for the set `shop` with these ConfigMaps.
    fn planned(maps: &[Map], chosen: Option<&str>, existing: Option<&BundleDeployment>, note: Note<'_>) -> Plan {
        let claims = Claims::of("shop", maps, |_| true);
        let known = Known {
            set: "shop",
            candidates: &claims.candidates,
            chosen: claims.candidates.iter().find(|it| Some(it.map.name_any().as_str()) == chosen),
            claimed: claims.exist,
            existing,
            selected: existing.is_none_or(|it| !it.labels().contains_key("other")),
            note,
        };
        plan(&known).unwrap()
    }

    fn created_from(map: &Map) -> BundleDeployment {
        let claims = Claims::of("shop", std::slice::from_ref(map), |_| true);
        let mut deployment = BundleDeployment::new("decidedset-shop", spec(&claims.candidates[0]));
        deployment.metadata.uid = Some("ours".into());
        deployment
    }

    fn created(deployment: &str) -> Note<'_> {
        Note::Created { deployment, note: Some("note") }
    }

    fn taken() -> Plan {
        Plan::Refuse(Refusal::Taken("decidedset-shop".into()))
    }

    #[test]
    fn a_decision_is_installed_on_behalf_of_its_account() {
        let maps = [map("one", "1", 1)];
        let Plan::Create(spec) = planned(&maps, Some("one"), None, Note::Absent) else { panic!("it is created") };
        let account = json!({"name": "deployer", "namespace": "operators"});
        let source = json!({"type": "configMaps", "configMaps": [{"configMap": {"name": "one"}}]});
        let expected = json!({"installNamespace": "operators", "provisionerClassName": RESOLVESET_CLASS,
                              "source": source, "serviceAccount": account});
        assert_eq!(serde_json::to_value(spec).unwrap(), expected);
        let refused = Plan::Refuse(Refusal::NoteTaken("decidedset-shop".into()));
        assert_eq!(planned(&maps, Some("one"), None, Note::Foreign), refused);
        assert_eq!(planned(&maps, None, None, Note::Absent), Plan::Nothing, "a refused one is not");
    }

    #[test]
    fn a_newer_decision_changes_what_it_decides_and_nothing_else() {
        let maps = [map("one", "1", 1), map("two", "2", 2)];
        let mut deployment = created_from(&maps[0]);
        deployment.spec.suspend = true;
        let noted = created("ours");
        let Plan::Change { fields, note } = planned(&maps, Some("two"), Some(&deployment), noted) else {
            panic!("it is changed")
        };
        let source = json!({"type": "configMaps", "configMaps": [{"configMap": {"name": "two"}}]});
        assert_eq!((Value::Object(fields), note), (json!({"source": source}), false));
        assert_eq!(planned(&maps, Some("one"), Some(&deployment), noted), Plan::Nothing);
        assert_eq!(planned(&maps, None, Some(&deployment), noted), Plan::Nothing, "while all are refused, it stays");
        deployment.metadata.deletion_timestamp = maps[0].metadata.creation_timestamp.clone();
        assert_eq!(planned(&maps, Some("two"), Some(&deployment), noted), Plan::Nothing, "until it is gone");
    }

    #[test]
    fn without_a_decision_the_set_is_deleted_and_then_the_note() {
        let deployment = created_from(&map("one", "1", 1));
        assert_eq!(planned(&[], None, Some(&deployment), created("ours")), Plan::Delete);
        assert_eq!(planned(&[], None, None, created("ours")), Plan::Forget(Some("note".into())));
        assert_eq!(planned(&[], None, None, Note::Foreign), Plan::Nothing);
        assert_eq!(planned(&[], None, None, Note::Absent), Plan::Nothing);
    }

    #[test]
    fn a_bundle_deployment_of_another_origin_is_never_taken_over_nor_deleted() {
        let maps = [map("one", "1", 1)];
        let mut other = created_from(&maps[0]);
        other.spec.install_namespace = "kube-system".into();
        for note in [Note::Absent, Note::Foreign, created("earlier")] {
            assert_eq!(planned(&maps, Some("one"), Some(&other), note), taken(), "{note:?}");
            assert_eq!(planned(&[], None, Some(&other), note), Plan::Nothing, "{note:?}");
        }
        let mut unselected = created_from(&maps[0]);
        unselected.metadata.labels = Some([("other".to_owned(), String::new())].into());
        assert_eq!(planned(&maps, Some("one"), Some(&unselected), created("ours")), taken());
        assert_eq!(planned(&[], None, Some(&unselected), created("ours")), Plan::Nothing);
    }

    #[test]
    fn what_was_created_before_a_crash_is_noted() {
        let maps = [map("one", "1", 1)];
        let existing = created_from(&maps[0]);
        let note = Plan::Change { fields: Fields::new(), note: true };
        assert_eq!(planned(&maps, Some("one"), Some(&existing), Note::Absent), note);
        assert_eq!(planned(&maps, Some("one"), Some(&existing), created("earlier")), note);
        let refused = Plan::Refuse(Refusal::NoteTaken("decidedset-shop".into()));
        assert_eq!(planned(&maps, Some("one"), Some(&existing), Note::Foreign), refused);
    }
}
