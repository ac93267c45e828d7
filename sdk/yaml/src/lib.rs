//! YAML and JSON parsing as in Kubernetes, with positions and limits.
//!
//! This crate gives the same result as `sigs.k8s.io/yaml` (the go-yaml v2 rules, YAML 1.1 scalars, then JSON): `yes` is
//! true, `0644` is 420, a time is a string, the last of two equal keys wins. In addition every value has its line and
//! column, and no input costs more than [`Limits`] allows.
//!
//! | module | holds |
//! |---|---|
//! | [`node`] | values with positions |
//! | `parse` | parsing a stream into documents, and the limits |
//! | `text` | encodings, and forbidden characters |
//! | `load` | YAML: anchors, keys, and their limits |
//! | `block` | a fast reader of the block style that generators write |
//! | `repair` | white space that go-yaml accepts and the scanner does not |
//! | `mapping` | duplicate keys and merge keys |
//! | `scalar`, `number` | the meaning of scalars |
//! | `json` | JSON, for texts that begin like it |
//! | [`de`] | deserialization with positions in errors |
//! | [`list`] | flattening of `List` kinds |
//! | [`list_keys`] | items of lists with equal keys, which API servers find too late |
//! | [`unique_json`] | JSON without duplicate keys, for untrusted texts |
//!
//! Where Go's behaviour is an accident, this crate warns or refuses, but never differs silently:
//! - A key of the mapping itself wins over a merged one, by the rule for merge keys. go-yaml v2 lets a `<<` win over
//!   the keys before it. If that makes a difference, there is a warning.
//! - If the last of two equal keys has another value, there is a warning.
//! - A stream is split into documents by the grammar; Go first cuts the text at lines that begin with `---`, and loses
//!   other text in these lines.
//! - Tabs between a dash and its value, lines with only a tab, and the escape `\/` are accepted; go-yaml refuses them.
//!
//! ```
//! let documents = chandler_yaml::parse(b"mode: 0644\non: yes\n", &chandler_yaml::Limits::default()).unwrap();
//! assert_eq!(documents[0].root.to_json().to_string(), r#"{"mode":420,"true":true}"#);
//! ```

mod block;
pub mod de;
mod json;
pub mod list;
pub mod list_keys;
mod load;
mod mapping;
pub mod node;
mod number;
mod parse;
mod repair;
mod scalar;
mod text;
pub mod unique_json;

pub use de::{TypeError, from_node};
pub use list::flatten_lists;
pub use node::{Entry, Kind, Mapping, Node, pointer_segment};
pub use number::looks_like_float;
pub use parse::{Document, Limits, ParseError, Warning, parse};
