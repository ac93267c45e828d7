//! Kubernetes-faithful YAML and JSON reading, with positions and limits.
//!
//! "Faithful" means: what `sigs.k8s.io/yaml` (the go-yaml v2 rules, YAML 1.1 scalars, then JSON) makes of a text is what this
//! crate makes of it. `yes` is true, `0644` is 420, a time is a string, the last of two equal keys wins. On top of that every
//! value knows its line and column, and no input costs more than [`Limits`] allows.
//!
//! | module | holds |
//! |---|---|
//! | [`node`] | a value with its position |
//! | [`build`](mod@crate::parse) | documents from a stream |
//! | `scalar` | what a plain scalar means |
//! | `json` | JSON, for texts that begin like it |
//! | [`de`] | typed reading; errors say where |
//! | [`list`] | `List` kinds flattened |
//!
//! ```
//! let documents = chandler_yaml::parse(b"mode: 0644\non: yes\n", &chandler_yaml::Limits::default()).unwrap();
//! assert_eq!(documents[0].root.to_json().to_string(), r#"{"mode":420,"true":true}"#);
//! ```

pub mod de;
mod json;
pub mod list;
pub mod node;
mod number;
mod parse;
mod scalar;

pub use de::{TypeError, from_node};
pub use list::flatten_lists;
pub use node::{Entry, Kind, Mapping, Node};
pub use parse::{Document, Limits, ParseError, Warning, parse};
