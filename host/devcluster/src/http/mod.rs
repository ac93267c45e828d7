//! From bytes on a socket to calls of the [`Api`](crate::api::Api) and back.
//!
//! | module | holds |
//! |---|---|
//! | [`query`] | query parameters |
//! | [`route`] | paths |
//! | [`negotiate`] | which representation the client wants |
//! | [`respond`] | building responses |
//! | [`dispatch`] | path and method to handler |
//! | [`listen`] | sockets, TLS, limits |
//! | [`credentials`] | the authority, the serving certificate, the token |

pub mod credentials;
pub mod dispatch;
pub mod listen;
pub mod negotiate;
pub mod query;
pub mod respond;
pub mod route;
