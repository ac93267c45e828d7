//! Why values are unavailable. No message quotes a value.

use std::fmt;

use chandler_api::ValuesKind;

use crate::assignment::AssignmentError;

/// A reference whose values cannot be used. A change of the object or of the reference helps.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("spec.valuesFrom[{index}]: {kind} {object}{}: {problem}", Key(.key.as_deref()))]
pub struct ValuesError {
    /// The place of the reference in the list.
    pub index: usize,
    /// The kind of the object.
    pub kind: ValuesKind,
    /// Its namespace and name.
    pub object: String,
    /// The key, where the problem is about one.
    pub key: Option<String>,
    /// The problem.
    pub problem: Problem,
}

/// What is wrong with the object, or with its key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The object does not exist.
    #[error("does not exist: create it, or set `optional: true` in the reference")]
    NotFound,
    /// The object is of the system namespace, and does not grant its use.
    #[error(
        "does not exist, or its annotation {annotation} does not name BundleDeployment {deployment}: an object in the namespace of \
         the controller needs it"
    )]
    NotGranted {
        /// The annotation.
        annotation: &'static str,
        /// The BundleDeployment.
        deployment: String,
    },
    /// The object does not have the key.
    #[error("the key does not exist{}: add it, correct `valuesKey`, or set `optional: true`", Keys(.keys))]
    KeyNotFound {
        /// The keys of a ConfigMap; none for a Secret.
        keys: Vec<String>,
    },
    /// The bytes are not text.
    #[error("is not UTF-8 text: values are YAML or JSON")]
    NotText,
    /// The text is not YAML.
    #[error("is not valid YAML (line {line}, column {column}){}: correct the text", Detail(.detail.as_deref()))]
    InvalidYaml {
        /// The line, counted from 1.
        line: u32,
        /// The column, counted from 1.
        column: u32,
        /// What the parser found; none for a Secret, of which it may quote a part.
        detail: Option<String>,
    },
    /// The text is YAML, but no map.
    #[error(
        "is of type {found}, but values are a map: correct the text, or set `targetPath` to the place of a single value"
    )]
    NotAMap {
        /// The type.
        found: &'static str,
    },
    /// The value does not fit at its path.
    #[error("targetPath: {0}")]
    Path(Box<AssignmentError>),
    /// The values of all references are too large together.
    #[error("the values of all references have more than {limit} bytes: make them smaller")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
}

impl From<AssignmentError> for Problem {
    fn from(error: AssignmentError) -> Self {
        Self::Path(Box::new(error))
    }
}

impl Problem {
    /// Whether an object or a key is missing, and not one invalid.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::NotFound | Self::NotGranted { .. } | Self::KeyNotFound { .. })
    }
}

/// ` key "values.yaml"`.
struct Key<'a>(Option<&'a str>);

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |key| write!(f, ", key {key}"))
    }
}

/// ` (it has a, b)`.
struct Keys<'a>(&'a [String]);

/// The most keys that a message lists.
const LISTED: usize = 5;

impl fmt::Display for Keys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, rest)) = self.0.split_first() else { return Ok(()) };
        write!(f, " (it has {first}")?;
        for key in rest.iter().take(LISTED - 1) {
            write!(f, ", {key}")?;
        }
        let more = self.0.len().saturating_sub(LISTED);
        if more > 0 { write!(f, " and {more} more)") } else { f.write_str(")") }
    }
}

/// `: what the parser found`.
struct Detail<'a>(Option<&'a str>);

impl fmt::Display for Detail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |detail| write!(f, ": {detail}"))
    }
}
