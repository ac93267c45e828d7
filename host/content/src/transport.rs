//! Connections to servers that sources name: registries, and servers of archives and repositories. All of them share the rules that protect
//! this network and the credentials.
//!
//! | module | holds |
//! |---|---|
//! | `connection` | [`Connection`]: requests to one server, redirects, bodies |
//! | `stream` | connections without HTTP |
//! | `addresses` | the addresses that connections are allowed to |
//! | `tls`, `trust` | TLS, and why a connection is not trusted |
//! | `pace`, `request_limits` | the minimum rate of a body, and the limit of concurrent requests to one server |
//! | `silent` | the servers that did not answer last |
//! | `failure` | [`ServerFailure`], the kinds of failures |

mod addresses;
mod connection;
mod failure;
mod pace;
mod request_limits;
mod silent;
mod stream;
mod tls;
mod trust;

pub(crate) use self::{
    connection::{Connection, ConnectionError, authority, failure_of, is_here, is_loopback, retry_after},
    pace::Pace,
    request_limits::RequestLimits,
    silent::Silent,
    stream::connect,
    tls::{SystemRoots, Trust},
};
pub use self::{failure::ServerFailure, trust::problem as connection_trust_problem};
