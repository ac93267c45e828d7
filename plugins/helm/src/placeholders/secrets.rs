//! Generated values in Secrets.

use std::collections::{BTreeMap, BTreeSet};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_sdk::secrets::{EXPAND, GENERATE, Kind, encoded_reference, generate, reference};
use serde_json::{Value as Json, json};

use super::{
    Segment, Set, State, What,
    resolve::{Emitted, Unresolved, shown, unresolved},
};

/// The fewest characters, digits and bytes that the host generates.
const LEAST_CHARACTERS: usize = 8;
const LEAST_DIGITS: usize = 16;
const LEAST_BYTES: usize = 16;
/// The most characters, digits and bytes.
const MOST: u16 = 1024;

/// Why a certificate is refused.
pub(super) const CERTIFICATES: &str = "and the host issues certificates only for webhooks, aggregated APIs and servers with an authority of their own, with the keys tls.crt, tls.key and ca.crt (docs/helm.md)";

/// A key of a Secret with placeholders.
struct Entry {
    /// The index of the Secret.
    object: usize,
    field: &'static str,
    key: String,
    pieces: Vec<Piece>,
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Value {
        id: usize,
        /// Whether it is in base64.
        encoded: bool,
    },
}

/// The key at which the host generates a value.
struct Owner {
    namespace: String,
    secret: String,
    key: String,
}

/// Replaces the placeholders in the data of Secrets.
pub(super) fn request(state: &State, objects: &mut Vec<Emitted>, namespace: &str) -> Vec<Unresolved> {
    let mut problems = Vec::new();
    let entries = entries(state, objects, &mut problems);
    let used: BTreeSet<usize> = entries.iter().flat_map(Entry::values).collect();
    problems.extend(related(state, &used));
    let mut kinds = BTreeMap::new();
    for id in used {
        match state.what(id).map(kind) {
            Some(Ok(kind)) => {
                kinds.insert(id, kind);
            }
            Some(Err(because)) => problems.push(unresolved(state, id, &because)),
            None => {}
        }
    }
    let mut owners = BTreeMap::new();
    for entry in &entries {
        if let ([Piece::Value { id, encoded: false }], Some(object)) =
            (entry.pieces.as_slice(), objects.get(entry.object))
        {
            owners.entry(*id).or_insert_with(|| Owner::of(object, entry, namespace));
        }
    }
    let helpers = helpers(&entries, objects, (&mut owners, &kinds), namespace);
    for entry in &entries {
        let Some(object) = objects.get_mut(entry.object) else { continue };
        let own = object.namespace(namespace).to_owned();
        if let Some(id) = entry.values().find(|id| owners.get(id).is_some_and(|owner| owner.namespace != own)) {
            let because = format!(
                "is in Secrets of two namespaces, and would be in {:?} of {}; a value cannot leave its namespace",
                entry.key,
                shown(state, object)
            );
            problems.push(unresolved(state, id, &because));
        }
        apply(object, entry, &owners, &kinds);
    }
    objects.extend(helpers);
    problems
}

impl Entry {
    fn values(&self) -> impl Iterator<Item = usize> {
        self.pieces.iter().filter_map(|piece| if let Piece::Value { id, .. } = piece { Some(*id) } else { None })
    }
}

impl Owner {
    fn of(object: &Emitted, entry: &Entry, namespace: &str) -> Self {
        Self {
            namespace: object.namespace(namespace).to_owned(),
            secret: object.text("/metadata/name").to_owned(),
            key: entry.key.clone(),
        }
    }
}

/// The keys with placeholders.
fn entries(state: &State, objects: &[Emitted], problems: &mut Vec<Unresolved>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (index, object) in objects.iter().enumerate().filter(|(_, object)| object.is("v1", "Secret")) {
        for field in ["data", "stringData"] {
            for (key, value) in object.value.get(field).and_then(Json::as_object).into_iter().flatten() {
                let Some(value) = value.as_str() else { continue };
                let ids = state.placeholders(value);
                let text = match (field, state.only(value.trim()).and_then(|id| state.what(id))) {
                    ("data", Some(What::Base64(text))) => Some(text.as_str()),
                    ("data", _) if ids.is_empty() => Some(value),
                    ("data", _) => None,
                    _ => Some(value),
                };
                let place = || format!("would be in {key:?} of {}", shown(state, object));
                if state.has_digest(value) || text.is_some_and(|text| state.has_digest(text)) {
                    problems.push(Unresolved(format!(
                        "{key:?} of {} contains the digest of a text with a generated value, which would be the same in every cluster",
                        shown(state, object)
                    )));
                    continue;
                }
                let Some(id) = ids.first() else { continue };
                match text.ok_or("whose data must be in base64").and_then(|text| pieces(state, text)) {
                    Ok(pieces) => entries.push(Entry { object: index, field, key: key.clone(), pieces }),
                    Err(because) => problems.push(unresolved(state, *id, &format!("{}, {because}", place()))),
                }
            }
        }
    }
    entries
}

/// The parts of a text with placeholders.
fn pieces(state: &State, text: &str) -> Result<Vec<Piece>, &'static str> {
    let mut pieces = Vec::new();
    for segment in state.segments(text) {
        pieces.push(match segment {
            Segment::Text(text) => Piece::Text(text.to_owned()),
            Segment::Placeholder(id) => match state.what(id) {
                Some(What::Base64(inner)) => match state.only(inner) {
                    Some(id)
                        if !matches!(state.what(id), Some(What::Base64(_) | What::Certificate(_) | What::Key(_))) =>
                    {
                        Piece::Value { id, encoded: true }
                    }
                    _ => return Err("as a part of a text in base64 within another text"),
                },
                Some(What::Certificate(_) | What::Key(_)) => {
                    return Err(CERTIFICATES);
                }
                _ => Piece::Value { id, encoded: false },
            },
        });
    }
    Ok(pieces)
}

/// Values of which one is a part of the other: the host would generate them independently.
fn related(state: &State, used: &BTreeSet<usize>) -> Vec<Unresolved> {
    let mut by_origin: BTreeMap<usize, usize> = BTreeMap::new();
    let mut problems = Vec::new();
    for id in used {
        let (mut origins, mut visited) = (vec![*id], BTreeSet::new());
        while let Some(origin) = origins.pop() {
            if !visited.insert(origin) {
                continue;
            }
            if by_origin.insert(origin, *id).is_some_and(|other| other != *id) {
                problems.push(unresolved(state, *id, "is needed both whole and changed, and only the cluster has it"));
            }
            origins.extend(state.values.get(origin).into_iter().flat_map(|value| value.parents.iter().copied()));
        }
    }
    problems
}

/// What the host generates.
fn kind(what: &What) -> Result<Kind, String> {
    let (least, of) = match what {
        What::Random(Set::Digits, _) => (LEAST_DIGITS, "digits"),
        What::Random(Set::Bytes, _) => (LEAST_BYTES, "bytes"),
        _ => (LEAST_CHARACTERS, "characters"),
    };
    let length = |length: usize| match u16::try_from(length) {
        Ok(length) if length <= MOST && usize::from(length) >= least => Ok(length),
        Ok(length) if length <= MOST => Err(format!("has fewer than {least} {of}, which is too few for a secret")),
        _ => Err(format!("has more than {MOST} {of}")),
    };
    match what {
        What::Random(Set::LettersAndDigits, count) => length(*count).map(Kind::Password),
        What::Random(Set::Letters, count) => length(*count).map(Kind::Letters),
        What::Random(Set::Digits, count) => length(*count).map(Kind::Digits),
        What::Random(Set::Strong, count) => length(*count).map(Kind::Strong),
        What::Random(Set::Bytes, count) => length(*count).map(Kind::Base64),
        What::Random(Set::Lower | Set::Upper | Set::LowerAndDigits | Set::UpperAndDigits, _) => {
            Err("would be in a Secret in letters of one case, in which the host generates no value".to_owned())
        }
        What::Uuid => Ok(Kind::Uuid),
        What::Base64(_) | What::Certificate(_) | What::Key(_) => Err("cannot be generated".to_owned()),
    }
}

/// Secrets for values that are nowhere a whole key, and their owners.
fn helpers(
    entries: &[Entry],
    objects: &[Emitted],
    (owners, kinds): (&mut BTreeMap<usize, Owner>, &BTreeMap<usize, Kind>),
    namespace: &str,
) -> Vec<Emitted> {
    let mut helpers: BTreeMap<usize, (Emitted, BTreeSet<String>)> = BTreeMap::new();
    for entry in entries {
        let Some(object) = objects.get(entry.object) else { continue };
        for id in entry.values() {
            let Some(kind) = kinds.get(&id).filter(|_| !owners.contains_key(&id)) else { continue };
            let (helper, keys) = helpers.entry(entry.object).or_insert_with(|| {
                let own = object.namespace(namespace);
                let is_taken = |name: &str| {
                    objects.iter().any(|other| {
                        other.is("v1", "Secret")
                            && (other.namespace(namespace), other.text("/metadata/name")) == (own, name)
                    })
                };
                let mut name = format!("{}-generated", object.text("/metadata/name"));
                while is_taken(&name) {
                    name.push_str("-values");
                }
                let metadata = match object.value.pointer("/metadata/namespace") {
                    Some(own) => json!({"name": name, "namespace": own}),
                    None => json!({"name": name}),
                };
                let value = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata});
                (Emitted { value, stage: object.stage, path: object.path.clone() }, BTreeSet::new())
            });
            let numbered = (2..).map(|number| format!("{}-{number}", entry.key));
            let key =
                std::iter::once(entry.key.clone()).chain(numbered).find(|key| !keys.contains(key)).unwrap_or_default();
            keys.insert(key.clone());
            helper.annotate(GENERATE, &generate([(key.as_str(), *kind)]));
            let secret = helper.text("/metadata/name").to_owned();
            owners.insert(id, Owner { namespace: object.namespace(namespace).to_owned(), secret, key });
        }
    }
    helpers.into_values().map(|(helper, _)| helper).collect()
}

/// Writes an entry: as a request, or as a text with references.
fn apply(object: &mut Emitted, entry: &Entry, owners: &BTreeMap<usize, Owner>, kinds: &BTreeMap<usize, Kind>) {
    if let [Piece::Value { id, encoded: false }] = entry.pieces.as_slice()
        && let (Some(owner), Some(kind)) = (owners.get(id), kinds.get(id))
        && (owner.secret.as_str(), owner.key.as_str()) == (object.text("/metadata/name"), entry.key.as_str())
    {
        object.annotate(GENERATE, &generate([(entry.key.as_str(), *kind)]));
        if let Some(data) = object.value.get_mut(entry.field).and_then(Json::as_object_mut) {
            data.remove(&entry.key);
        }
        return;
    }
    let text = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Value { id, encoded } => match owners.get(id) {
            Some(owner) if *encoded => encoded_reference(&owner.secret, &owner.key),
            Some(owner) => reference(&owner.secret, &owner.key),
            None => String::new(),
        },
    };
    let text: String = entry.pieces.iter().map(text).collect::<Vec<_>>().concat();
    object.annotate(EXPAND, &entry.key);
    let text = if entry.field == "data" { STANDARD.encode(text) } else { text };
    if let Some(value) = object.value.get_mut(entry.field).and_then(|data| data.get_mut(&entry.key)) {
        *value = Json::String(text);
    }
}
