//! Decodes Kubernetes objects from protobuf to the JSON that Kubernetes would produce.
//!
//! kubectl and typed clients send built-in kinds as `application/vnd.kubernetes.protobuf`: the bytes `k8s\0`, and a
//! `runtime.Unknown` message that names the kind and holds the object. [`decode()`] decodes such a body with a [`Table`] of
//! messages that was generated from the source of Kubernetes: field numbers from its `generated.proto` files, names in JSON and
//! the handling of zero values from the tags of its Go types.
//!
//! | module | holds |
//! |---|---|
//! | [`table`] | the messages of Kubernetes, decoded on first use |
//! | `wire` | numbers and lengths on the wire |
//! | `message` | decoding a message with the table |
//! | `special` | types with a JSON form of their own: times, quantities, schemas |
//! | `envelope` | `runtime.Unknown` |
//!
//! Input is untrusted: nesting and the number of values are limited (see [`Limits`]), and nothing panics. Fields that the table
//! lacks are skipped, as Go's decoder skips them. This module only decodes: every client accepts JSON responses.

mod decode;
mod envelope;
mod error;
mod message;
mod special;
pub mod table;
mod wire;

#[cfg(test)]
mod encode;
#[cfg(test)]
mod tests;

pub use decode::{decode, decode_with};
pub use envelope::Envelope;
pub use error::{Error, Fault};
pub use message::Limits;
pub use table::Table;

/// The media type of bodies in the envelope.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
