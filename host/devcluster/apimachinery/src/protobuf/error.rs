//! Errors.

/// Why a body is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is nothing.
    #[error("empty data")]
    Empty,
    /// It does not begin as bodies do.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Prefix,
    /// Neither the envelope nor the caller names the kind.
    #[error("Object 'Kind' or 'apiVersion' is missing in the envelope of the protobuf message")]
    NoKind,
    /// It is of a kind that is in no stable API of Kubernetes.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    UnknownKind {
        /// `apiVersion` of the envelope.
        api_version: String,
        /// `kind` of the envelope.
        kind: String,
    },
    /// The message does not match the table.
    #[error("{}{fault}", prefix(path))]
    Malformed {
        /// The field in which the fault is, as in JSON; empty for the object itself.
        path: String,
        /// The error at that path.
        fault: Fault,
    },
}

fn prefix(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path}: ") }
}

/// An error in a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It ends inside a field.
    #[error("unexpected EOF")]
    EndsEarly,
    /// A number has more than 64 bits.
    #[error("proto: integer overflow")]
    NumberTooLong,
    /// A field has the number 0, or a wire type that does not exist.
    #[error("proto: illegal tag {0}")]
    IllegalTag(u64),
    /// A field has another type than in the table.
    #[error("proto: wrong wireType = {0} for the field")]
    WrongType(u8),
    /// A text is not UTF-8.
    #[error("a string is not UTF-8")]
    NotUtf8,
    /// An embedded JSON value is none.
    #[error("embedded JSON: {0}")]
    Json(String),
    /// A time is out of range.
    #[error("{0} seconds since 1970 is not a time that JSON can represent")]
    Time(i64),
    /// It is nested deeper than the limit.
    #[error("nested deeper than {0} levels")]
    TooDeep(usize),
    /// It holds more values than the limit.
    #[error("more than {0} values")]
    TooMany(usize),
}

impl Fault {
    /// The fault of the object itself; see [`Error::within`].
    pub(crate) fn here(self) -> Error {
        Error::Malformed { path: String::new(), fault: self }
    }
}

impl Error {
    /// Says that the fault is inside a field.
    pub(crate) fn within(self, field: &str) -> Self {
        match self {
            Self::Malformed { path, fault } => {
                let path = match path.as_str() {
                    "" => field.to_owned(),
                    _ => format!("{field}.{path}"),
                };
                Self::Malformed { path, fault }
            }
            other => other,
        }
    }
}
