//! Webhooks of registries and git servers: whether a request is authentic, which repositories it names, and which sources that concerns.
//!
//! Nothing in a request is used but for comparisons: a request decides when a source is polled, never what it resolves to. Pure: no
//! connections, no clock.
//!
//! | module | holds |
//! |---|---|
//! | [`token`] | the token of a Receiver, and the path that follows from it |
//! | [`authentic`] | whether a request comes from the owner of the token |
//! | [`payload`] | what a request says, by the type of its sender |
//! | [`repository`] | repositories, comparable between senders and sources |
//! | [`identity`] | identity tokens of OpenID Connect, and the claims that they must have |
//! | [`keys`] | the public keys of an issuer, signatures, and how often keys are fetched |
//! | [`bucket`] | how often a Receiver may wake sources |

pub mod authentic;
pub mod bucket;
pub mod identity;
pub mod keys;
pub mod payload;
pub mod repository;
pub mod token;

pub use authentic::is_authentic;
pub use bucket::Bucket;
pub use identity::{Expected, InvalidOidc, Presented, Unproven};
pub use keys::{KeyCache, Keys};
pub use payload::{Malformed, Named, read};
pub use repository::Repository;
pub use token::{InvalidToken, PREFIX, Token};
