//! From bytes on a socket to calls of the [`Api`](crate::api::Api) and back.
//!
//! | module | holds |
//! |---|---|
//! | [`route`] | paths |
//! | [`faults`] | seeing and changing faults while it runs |
//! | [`struck`] | what faults make of a request |
//! | [`dispatch`] | path and method to handler |
//! | [`heavy`] | requests that take long, beside the reactor |
//! | [`health`] | whether the server is well |
//! | [`represent`] | answers as YAML, compressed, or not at all when the client has them |
//! | [`legacy`] | paths of long ago |
//! | [`promise`] | writes are answered when they are safe |
//! | [`admit`] | who a request is made as, whether that user may |
//! | [`listen`] | sockets, TLS, limits |
//! | [`credentials`] | the authority, the serving certificate, the token |

pub mod admit;
pub mod credentials;
pub mod dispatch;
pub mod faults;
pub mod health;
pub mod heavy;
pub mod legacy;
pub mod listen;
pub mod promise;
pub mod represent;
pub mod route;
pub mod struck;
