//! The processing of an object between the request and the store. Pure: no function in this module reads or writes the store.
//!
//! decode, prune, default, strategy of the kind, validate. Field ownership is in [`chandler_devcluster_apimachinery::apply`].
//!
//! | module | holds |
//! |---|---|
//! | [`body`] | a body to a value, by its media type |
//! | [`decode`] | bytes to a value, with duplicate fields found |
//! | [`refine`] | pruning, defaulting, validation |
//! | [`reset`] | fields that an endpoint leaves as they are |
//! | [`strategy`] | what only the server may set: status, generation, identity |

pub mod body;
pub mod decode;
pub mod refine;
pub mod reset;
pub mod strategy;
