//! From bytes on a socket to calls of the [`Api`](crate::api::Api) and back.
//!
//! | module | holds |
//! |---|---|
//! | [`route`] | paths |
//! | [`respond`] | building responses |
//! | [`struck`] | what faults make of a request |
//! | [`dispatch`] | path and method to handler |
//! | [`health`] | whether the server is well |
//! | [`represent`] | answers as YAML, compressed, or not at all when the client has them |
//! | [`legacy`] | paths of long ago |
//! | [`promise`] | writes are answered when they are safe |
//! | [`listen`] | sockets, TLS, limits |
//! | [`credentials`] | the authority, the serving certificate, the token |

pub mod credentials;
pub mod dispatch;
pub mod health;
pub mod legacy;
pub mod listen;
// For who still names them by their old place.
pub use crate::request::{negotiate, query};

pub mod promise;
pub mod represent;
pub mod respond;
pub mod route;
pub mod struck;
