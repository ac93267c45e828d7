//! A kube client whose requests and watches share few HTTP/2 connections to the API server.
//!
//! kube's own client speaks HTTP/1.1, on which every open watch takes a connection. This one offers HTTP/2 and HTTP/1.1, and the server
//! chooses (ALPN). Everything else comes from kube's client: authentication, headers, retries, timeouts and TLS.
//!
//! - [`configuration`]: from a kubeconfig to a [`kube::Config`], with the proxy.
//! - [`builder`] and [`client`]: from a [`kube::Config`] to a client.
//! - `transport`: sends a request, over HTTP/2 or HTTP/1.1.
//! - `pool`: the HTTP/2 connections of one sort of request, and how many streams each one may have.
//! - `connector`: directly, or through a proxy.
//! - `connection`: opens one connection, and ends it when the server stops answering.
//! - [`monitored`] and [`Availability`]: whether the API server answers, and when it answers again.
//! - [`fenced`]: writes that wait while a [`Fence`] is closed.
//! - [`measured`](fn@measured): reports each request, its answer and its duration, as [`RequestAttributes`] describe it.
//! - [`traced`](fn@traced): makes each request a span of the trace of its caller.
//! - `repeated`: notes the answers after which the client sends a request again.
//! - [`insistent`]: sends a write again that met another one.
//! - [`kinds`](fn@kinds): the kinds that an API server serves.
//! - [`target`](fn@target): from an untrusted kubeconfig to a client of another cluster.
//! - [`bounded`](fn@bounded): bounds what an untrusted server may answer.
//! - [`paged`](fn@paged): bounds the memory of the pages of lists.
//! - [`Estimate`]: the memory of JSON once it is parsed.
//! - `body`: the body of a response, whose end frees a stream.

mod availability;
mod body;
mod bounded;
mod builder;
mod configuration;
mod connection;
mod connector;
mod estimate;
mod fence;
mod insistence;
mod kinds;
mod measured;
mod other_cluster;
mod pages;
mod pool;
mod repeated;
mod traced;
mod transport;

pub use availability::{Availability, monitored};
pub use bounded::{Allowance, AllowanceSpent, AnswerLimits, AnswerMemory, bounded};
pub use builder::{Stack, builder, client, with_keep_alive};
pub use configuration::{ConfigurationError, configuration, of_environment};
pub use connection::KeepAlive;
pub use estimate::Estimate;
pub use fence::{Fence, FenceKeeper, fenced};
pub use insistence::insistent;
pub use kinds::kinds;
pub use measured::{Observer, RequestAttributes, measured};
pub use other_cluster::{KUBECONFIG_BYTES, NearServer, TargetError, TargetRules, target, target_config};
pub use pages::{PageLimits, PageMemory, PageRefused, Pages, paged};
pub use pool::MAX_STREAMS;
pub use traced::traced;
