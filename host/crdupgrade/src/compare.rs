//! Compares an old CRD and a new one.

use serde_json::{Map, Value};

use crate::{
    Policy,
    change::Change,
    crd::{Crd, Version},
    finding::{Finding, Report},
    objects::limit::CheckError,
    outside_schemas, policy, version_order, walk,
    walk::Placed,
};

/// The maximum number of versions that are compared. Widely used operators have fewer than ten.
const MOST_VERSIONS: usize = 100;

/// Refuses CRDs that are too expensive to compare: the time of [`compare`] grows with the square of the number of versions.
///
/// # Errors
/// If one of them has too many versions.
pub fn comparable(old: &Value, new: &Value) -> Result<(), CheckError> {
    let count = |crd: &Value| crd.pointer("/spec/versions").and_then(Value::as_array).map_or(0, Vec::len);
    let versions = count(old).max(count(new));
    if versions <= MOST_VERSIONS {
        return Ok(());
    }
    let crd = new.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    Err(CheckError::TooManyVersions { crd, versions, most: MOST_VERSIONS })
}

/// Compares the live CRD with its replacement.
///
/// First the CRDs as a whole, then each version with the same version of the new CRD, then each pair of versions that the new
/// CRD serves, unless a webhook converts between them. A finding that the same pair of the old CRD already had is ignored.
///
/// This function is total: an invalid CRD is read as far as possible, since the API server refuses it.
pub fn compare(old: &Value, new: &Value, policy: &Policy) -> Report {
    let mut report = Report::default();
    if policy.disabled {
        return report;
    }
    let (old, new) = (Crd::read(old), Crd::read(new));
    let mut tell = |version: Option<String>, property: Option<String>, pointer: String, change: Change| {
        let Change { rule, effect, default, message, old, new: after } = change;
        let enforcement = policy::enforcement(policy, new.name, rule, effect, default);
        report.push(Finding {
            rule,
            enforcement,
            crd: new.name.to_owned(),
            version,
            property,
            pointer,
            old,
            new: after,
            effect,
            message,
        });
    };
    for found in outside_schemas::compare(&old, &new) {
        tell(found.version, None, found.pointer, found.change);
    }
    for before in &old.versions {
        let Some(after) = new.version(before.name) else { continue };
        for placed in schemas(before, &after) {
            let root = if placed.gone { before.schema_pointer() } else { after.schema_pointer() };
            tell(Some(after.name.to_owned()), Some(placed.property), root + &placed.pointer, placed.change);
        }
    }
    if !new.converts_by_webhook() {
        for (first, second) in served_pairs(&new) {
            let known = known(&old, &first, &second);
            for placed in schemas(&first, &second).into_iter().filter(|placed| !is_known(&known, placed)) {
                let root = if placed.gone { first.schema_pointer() } else { second.schema_pointer() };
                let version = format!("{} -> {}", first.name, second.name);
                tell(Some(version), Some(placed.property), root + &placed.pointer, placed.change);
            }
        }
    }
    report
}

/// The changes from the schema of one version to the schema of another.
fn schemas(old: &Version<'_>, new: &Version<'_>) -> Vec<Placed> {
    let none = Map::new();
    walk::compare(old.schema.unwrap_or(&none), new.schema.unwrap_or(&none))
}

/// All pairs of served versions, the less mature one first.
fn served_pairs<'a>(crd: &Crd<'a>) -> Vec<(Version<'a>, Version<'a>)> {
    let mut served: Vec<Version<'a>> = crd.versions.iter().filter(|version| version.served).copied().collect();
    served.sort_by(|a, b| version_order::compare(a.name, b.name));
    let pairs = served
        .iter()
        .enumerate()
        .flat_map(|(index, first)| served.iter().skip(index + 1).map(move |second| (*first, *second)));
    pairs.collect()
}

/// The findings that the old CRD already had between these versions.
fn known(old: &Crd<'_>, first: &Version<'_>, second: &Version<'_>) -> Vec<Placed> {
    let served = |name: &str| old.version(name).filter(|version| version.served);
    match (served(first.name), served(second.name)) {
        (Some(first), Some(second)) => schemas(&first, &second),
        _ => Vec::new(),
    }
}

fn is_known(known: &[Placed], placed: &Placed) -> bool {
    let same = |old: &Placed| old.property == placed.property && old.change.rule == placed.change.rule;
    known.iter().any(|old| same(old) && old.change.message == placed.change.message)
}
