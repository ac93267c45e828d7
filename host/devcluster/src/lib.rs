//! An in-process Kubernetes API for `chandler dev` and the tests.
//!
//! [`DevCluster::start`] serves it over TLS on the loopback interface; `kubectl`, kube's `Client` and its controllers work
//! against it, and [`DevCluster::service`] does the same for clients in this process without a socket. It is no cluster: no
//! containers run. What differs from kube-apiserver stands in `DIFFERENCES.md`.
//!
//! | module | holds |
//! |---|---|
//! | [`cluster`] | starting and stopping |
//! | [`store`] | the multi-version store: lists at a revision, watches from a revision |
//! | [`registry`] | which resources are served |
//! | [`pipeline`] | what happens to an object between request and store, pure |
//! | [`api`] | the verbs over the store |
//! | [`authentication`] | who a request comes from |
//! | [`authorization`] | what it may do |
//! | [`request`] | query parameters, negotiation |
//! | [`http`] | paths, answers, TLS |
//! | [`controllers`] | CRDs, namespaces, garbage collection |
//! | [`workloads`] | Deployments, Jobs and Pods that run nothing and look as if they did |
//! | [`faults`] | failures on demand |
//! | [`service`] | the API without sockets |
//! | [`clock`], [`identity`] | time, uids and generated names, as they are in every cluster or as a test wants them |
//!
//! Below these: [`convert`], [`discovery`], [`metadata`], [`openapi`], [`respond`],
//! [`selector`], [`status`], [`table`], [`version`].

pub mod api;
pub mod authentication;
pub mod authorization;
pub mod clock;
pub mod cluster;
pub mod controllers;
pub mod convert;
pub mod discovery;
pub mod faults;
pub mod http;
pub mod identity;
mod kept;
pub mod metadata;
pub mod openapi;
pub mod pipeline;
pub mod registry;
pub mod request;
pub mod respond;
pub mod selector;
pub mod service;
pub mod status;
pub mod table;
pub mod version;
pub mod workloads;

pub use chandler_devcluster_store as store;
pub use clock::Clock;
pub use cluster::{DevCluster, Options, StartError};
pub use faults::{Effect, Fault};
pub use service::Service;
