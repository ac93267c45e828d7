//! Placeholders for values that only a cluster can have: passwords and certificates.
//!
//! A render is a function of its input, so `randAlphaNum` and its like cannot give a value. They give a *placeholder*, a text that occurs nowhere
//! else, and the host generates the value where the placeholder ends up:
//!
//! | place | becomes |
//! |---|---|
//! | a key of a Secret | the annotation [`chandler_sdk::secrets::GENERATE`] |
//! | the text of a key of a Secret, or the value of a second key | a reference to the first, and [`chandler_sdk::secrets::EXPAND`] |
//! | a certificate of a webhook and its `caBundle` | the annotations of [`chandler_sdk::certificates`] |
//! | an annotation | a constant |
//! | another place | refused |
//!
//! A text that contains a placeholder must not be changed unseen: a digest of it, or its first letters, would be the same for every installation.
//! So each call of a function with a placeholder is watched (`calls`). The placeholder must be in the result, or the function must be known: then it
//! gives another placeholder, or a digest that may only be in an annotation. Everything else is refused.
//!
//! | module | holds |
//! |---|---|
//! | `token` | the form of a placeholder |
//! | `calls` | calls of functions with placeholders |
//! | `resolve` | from rendered objects to objects that request values |
//! | `secrets` | Secrets |
//! | `certificates` | certificates of webhooks |

mod calls;
mod certificates;
mod resolve;
mod secrets;
mod token;

use std::{cell::RefCell, collections::BTreeSet, rc::Rc};

use chandler_go_template::{FunctionError, Returned, Value};
use sha2::{Digest as _, Sha256};

pub use self::resolve::{Emitted, Unresolved};
use self::token::Segment;
use crate::functions::{Certificate, Entropy};

/// The most placeholders of a render: their numbers have four digits.
const MAX_PLACEHOLDERS: usize = 9999;
/// The longest value, in characters.
const MAX_LENGTH: i64 = 1024;

/// The placeholders of one render.
#[derive(Debug)]
pub struct Placeholders(RefCell<State>);

/// The placeholders that were given so far.
#[derive(Debug)]
struct State {
    /// A part of each placeholder, which depends on the release.
    salt: String,
    values: Vec<Generated>,
    /// The certificates whose texts are placeholders.
    certificates: Vec<Issued>,
    /// The beginnings of digests of texts with placeholders.
    digests: BTreeSet<String>,
    /// How many values have no place yet.
    unplaced: usize,
}

/// What a placeholder is for.
#[derive(Clone, Debug)]
struct Generated {
    what: What,
    /// The call, such as `randAlphaNum 10`.
    function: String,
    /// Where the call is: `CHART/PATH:LINE:COLUMN`.
    place: String,
    /// The placeholders that it was made of.
    parents: Vec<usize>,
    /// The length of the value, if it is known.
    length: Option<usize>,
}

impl Generated {
    fn new(what: What, function: String, place: String, parents: Vec<usize>) -> Self {
        Self { what, function, place, parents, length: None }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    /// Random characters of a set.
    Random(Set, usize),
    /// A UUID.
    Uuid,
    /// The text in base64. It contains placeholders.
    Base64(String),
    /// The certificate of this number.
    Certificate(usize),
    /// Its key.
    Key(usize),
}

/// A set of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    Letters,
    Lower,
    Upper,
    Digits,
    LettersAndDigits,
    LowerAndDigits,
    UpperAndDigits,
    /// With symbols, and at least one character of each class.
    Strong,
    /// Bytes in base64; the length is theirs.
    Bytes,
}

/// A certificate.
#[derive(Clone, Debug)]
struct Issued {
    /// The certificate of the authority; nothing if it is its own.
    issuer: Option<usize>,
    /// Its names.
    names: Vec<String>,
}

impl Placeholders {
    /// The placeholders of a release of this name, in this namespace. Equal releases have equal placeholders.
    pub fn new(release: &str, namespace: &str) -> Rc<Self> {
        let digest = Sha256::digest(format!("{release}\0{namespace}").as_bytes());
        let salt: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
        Rc::new(Self(RefCell::new(State {
            salt,
            values: Vec::new(),
            certificates: Vec::new(),
            digests: BTreeSet::new(),
            unplaced: 0,
        })))
    }

    /// Replaces the placeholders in objects by requests for values, in the namespace of the release unless they name another.
    ///
    /// # Errors
    /// The places at which a value cannot be, each once.
    pub fn resolve(&self, objects: &mut Vec<Emitted>, namespace: &str) -> Result<(), Vec<Unresolved>> {
        resolve::resolve(&self.0.borrow(), objects, namespace)
    }

    /// A text for people, without placeholders.
    pub fn shown(&self, text: &str) -> String {
        self.0.borrow().replaced(text, |_| "(generated)".to_owned())
    }

    /// A text with a constant for each placeholder, for names that differ at each render of Helm.
    pub fn constant(&self, text: &str) -> String {
        self.0.borrow().replaced(text, |_| "generated".to_owned())
    }
}

impl Entropy for Placeholders {
    fn generate(&self, function: &str, arguments: &[Value]) -> Option<Result<Value, String>> {
        self.0.borrow_mut().generate(function, arguments)
    }

    fn is_watching(&self) -> bool {
        !self.0.borrow().values.is_empty()
    }

    fn returned(&self, returned: Returned<'_>) -> Result<Value, FunctionError> {
        calls::returned(&mut self.0.borrow_mut(), returned)
    }
}

impl State {
    /// The parts of a text.
    fn segments<'t>(&self, text: &'t str) -> Vec<Segment<'t>> {
        token::segments(text, &self.salt, self.values.len())
    }

    /// The placeholders in a text.
    fn placeholders(&self, text: &str) -> BTreeSet<usize> {
        let number = |segment| if let Segment::Placeholder(id) = segment { Some(id) } else { None };
        self.segments(text).into_iter().filter_map(number).collect()
    }

    /// The placeholder that a text consists of.
    fn only(&self, text: &str) -> Option<usize> {
        match self.segments(text).as_slice() {
            [Segment::Placeholder(id)] => Some(*id),
            _ => None,
        }
    }

    fn what(&self, id: usize) -> Option<&What> {
        self.values.get(id).map(|value| &value.what)
    }

    /// Whether a placeholder is for a certificate or key, perhaps in base64.
    fn is_certificate(&self, id: usize) -> bool {
        let is = |what: &What| matches!(what, What::Certificate(_) | What::Key(_));
        match self.what(id) {
            Some(What::Base64(text)) => self.placeholders(text).iter().filter_map(|id| self.what(*id)).any(is),
            what => what.is_some_and(is),
        }
    }

    /// Whether a text contains the digest of a text with placeholders.
    fn has_digest(&self, text: &str) -> bool {
        let contains = |digest: &String| memchr::memmem::find(text.as_bytes(), digest.as_bytes()).is_some();
        self.digests.iter().any(contains)
    }

    /// A text with other texts for its placeholders.
    fn replaced(&self, text: &str, mut other: impl FnMut(usize) -> String) -> String {
        let part = |segment| match segment {
            Segment::Text(text) => text.to_owned(),
            Segment::Placeholder(id) => other(id),
        };
        self.segments(text).into_iter().map(part).collect::<Vec<_>>().concat()
    }

    /// The text of a new placeholder.
    fn add(&mut self, mut value: Generated) -> Result<String, String> {
        if self.values.len() >= MAX_PLACEHOLDERS {
            return Err(format!("the templates generate more than {MAX_PLACEHOLDERS} values"));
        }
        value.length = match &value.what {
            What::Random(Set::Bytes, length) => Some(encoded(*length)),
            What::Random(_, length) => Some(*length),
            What::Uuid => Some(36),
            What::Base64(text) => self.length(text).map(encoded),
            What::Certificate(_) | What::Key(_) => None,
        };
        self.values.push(value);
        Ok(token::write(&self.salt, self.values.len() - 1))
    }

    /// A placeholder for the result of a call, whose place is not known yet.
    fn issue(&mut self, what: What, function: String, parents: Vec<usize>) -> Result<String, String> {
        self.unplaced += 1;
        self.add(Generated::new(what, function, String::new(), parents))
    }

    fn generate(&mut self, function: &str, arguments: &[Value]) -> Option<Result<Value, String>> {
        let text = |at: usize| arguments.get(at).and_then(Value::as_string).map(|text| text.text().into_owned());
        let set = match function {
            "randAlphaNum" => Set::LettersAndDigits,
            "randAlpha" => Set::Letters,
            "randNumeric" => Set::Digits,
            "randAscii" => Set::Strong,
            "randBytes" => Set::Bytes,
            "uuidv4" => return Some(self.issue(What::Uuid, function.to_owned(), Vec::new()).map(Value::from)),
            "shuffle" => {
                let text = text(0)?;
                let parents: Vec<usize> = self.placeholders(&text).into_iter().collect();
                let length = self.length(&text).filter(|_| !parents.is_empty())?;
                let issued = self.issue(What::Random(Set::Strong, length), function.to_owned(), parents);
                return Some(issued.map(Value::from));
            }
            "genCA" => return Some(self.certificate(function, &text(0)?, vec![], None)),
            "genSelfSignedCert" | "genSignedCert" => {
                let issuer = match (function, arguments.get(4).and_then(Value::as_object::<Certificate>)) {
                    ("genSelfSignedCert", _) => None,
                    // The key of another authority is in the values, which only Helm's library can sign with.
                    (_, ca) => match self.what(self.only(&ca?.certificate)?)? {
                        What::Certificate(issuer) => Some(*issuer),
                        _ => return None,
                    },
                };
                let lists = arguments.get(1..3).unwrap_or_default().iter();
                let names = lists.flat_map(calls::texts).map(|name| name.text().into_owned()).collect();
                return Some(self.certificate(function, &text(0)?, names, issuer));
            }
            _ => return None,
        };
        let length = match arguments.first() {
            Some(Value::Int(0, _)) => return Some(Ok(Value::from(""))),
            Some(Value::Int(length, _)) if (1..=MAX_LENGTH).contains(length) => *length,
            _ => return Some(Err(format!("the length must be a number from 0 to {MAX_LENGTH}"))),
        };
        let what = What::Random(set, usize::try_from(length).unwrap_or_default());
        Some(self.issue(what, format!("{function} {length}"), Vec::new()).map(Value::from))
    }

    /// A certificate and its key, as placeholders.
    fn certificate(
        &mut self,
        function: &str,
        name: &str,
        mut names: Vec<String>,
        issuer: Option<usize>,
    ) -> Result<Value, String> {
        let number = self.certificates.len();
        names.insert(0, name.to_owned());
        self.certificates.push(Issued { issuer, names });
        let call = format!("{function} {name:?}");
        let certificate = self.issue(What::Certificate(number), call.clone(), Vec::new())?;
        let key = self.issue(What::Key(number), call, Vec::new())?;
        Ok(Value::Object(Rc::new(Certificate { certificate, key })))
    }

    /// The length of a text with the values, if it is known.
    fn length(&self, text: &str) -> Option<usize> {
        let mut lengths = self.segments(text).into_iter().map(|segment| self.segment_length(segment));
        lengths.try_fold(0, |sum: usize, length| Some(sum.saturating_add(length?)))
    }

    fn segment_length(&self, segment: Segment<'_>) -> Option<usize> {
        match segment {
            Segment::Text(text) => Some(text.len()),
            Segment::Placeholder(id) => self.values.get(id)?.length,
        }
    }
}

/// The length of bytes in base64.
fn encoded(length: usize) -> usize {
    length.div_ceil(3).saturating_mul(4)
}
