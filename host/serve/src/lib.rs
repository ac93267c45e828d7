//! What the controller serves: the content of bundles and catalogs and its metrics over HTTPS, for callers that the API server vouches for,
//! and answers to the probes of the kubelet over HTTP.
//!
//! Each request but a probe and a webhook has a bearer token of the API server. A TokenReview identifies the user, and a SubjectAccessReview checks the permission;
//! nothing is answered before. So users without permission cannot learn what exists.
//!
//! | request | permission | answer |
//! |---|---|---|
//! | GET `/bundles/NAME.tgz` | `get` on the path | the content of a BundleDeployment |
//! | GET `/catalogs/NAME/api/v1/all` | `get` on the path | all documents of a Catalog, as JSON lines |
//! | GET `/catalogs/NAME/api/v1/metas` | `get` on the path | those with a `schema`, `package` and `name` |
//! | GET `/metrics`, on an address of its own | `get` on the path | the metrics of the controller |
//! | GET `/livez`, `/readyz`, on an address of their own | none | one line about the controller |
//! | POST `/hooks/HASH`, on an address of their own | what the Receiver demands | empty: has sources polled |
//! | PUT `/uploads/NAME.tgz` | `update` on the BundleDeployment, and `impersonate` on its account, or else `installWithControllerRights` | takes its content |
//!
//! | module | holds |
//! |---|---|
//! | [`server`] | the listener, and what it serves |
//! | `routes` | paths, checks of callers, and answers without content |
//! | `callers` | who calls, and whether they may |
//! | `bundles`, `catalogs`, `uploads` | the answers |
//! | `places` | how callers share the transfers that are under way |
//! | `conditional` | entity tags and ranges |
//! | `body` | bodies that a thread writes, for clients that may stop reading |
//! | [`metrics`], [`probes`] | the metrics, and the answers to probes |
//! | [`receivers`] | webhooks of registries and git servers |
//! | [`relay`] | passes connections on to the leader while another replica is it |
//! | `service_listener` | an address behind a Service of its own, for the metrics or for webhooks |
//! | `https` | serves with certificates that change |
//! | `connection` | bounds the number of connections, and ends idle ones |
//! | `rates` | how many TLS handshakes there may be in a second |
//! | `shares` | what gives way when all places for connections or requests are taken |
//! | `certificate` | the certificate: generated here, or from a Secret |
//! | `announcement` | the ConfigMap with the URL and the CA for clients |

mod announcement;
mod body;
mod bundles;
mod callers;
mod catalogs;
mod certificate;
mod conditional;
mod connection;
mod https;
#[cfg(test)]
mod logged;
pub mod metrics;
mod places;
pub mod probes;
mod rates;
pub mod receivers;
mod refusal;
pub mod relay;
mod routes;
pub mod server;
mod service_listener;
mod shares;
mod uploads;

pub use self::{
    announcement::{AUTHORITY, URL},
    metrics::MetricsListener,
    probes::ProbeListener,
    receivers::{Hook, Hooks, IssuerKeys, KeySource, ReceiverListener},
    relay::Leader,
    server::{Holding, Holdings, Listener, Options, ServeError, Served, Target, UploadAccount},
    service_listener::ServiceOptions,
};
