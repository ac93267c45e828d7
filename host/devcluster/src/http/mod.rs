//! HTTP: from bytes on a socket to calls of the [`Api`](crate::api::Api) and back.
//!
//! | module | holds |
//! |---|---|
//! | [`route`] | paths |
//! | [`faults`] | listing and changing faults at run time |
//! | [`fault_injection`] | applies faults to a request |
//! | [`dispatch`] | path and method to handler |
//! | [`heavy`] | expensive requests, outside of the reactor |
//! | [`health`] | health checks |
//! | [`represent`] | responses as YAML, compressed, or not modified |
//! | [`legacy`] | legacy watch paths |
//! | [`logs`] | the logs of simulated Pods |
//! | [`durability`] | writes are acknowledged when they are durable |
//! | [`admit`] | impersonation and authorization |
//! | [`listen`] | sockets, TLS, limits |
//! | [`credentials`] | the CA, the serving certificate, the token |

pub mod admit;
pub mod credentials;
pub mod dispatch;
pub mod durability;
pub mod fault_injection;
pub mod faults;
pub mod health;
pub mod heavy;
pub mod legacy;
pub mod listen;
pub mod logs;
pub mod represent;
pub mod route;
