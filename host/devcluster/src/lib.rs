//! An in-process Kubernetes API for `chandler dev` and the tests.
//!
//! [`DevCluster::start`] serves it over TLS on the loopback interface; `kubectl`, kube's `Client` and its controllers work
//! against it, and [`DevCluster::service`] does the same for clients in this process without a socket. It is not a cluster: no
//! containers run. `DIFFERENCES.md` lists the differences from kube-apiserver.
//!
//! | module | holds |
//! |---|---|
//! | [`cluster`] | starting and stopping |
//! | [`store`] | the multi-version store: lists at a revision, watches from a revision |
//! | [`registry`] | the served resources |
//! | [`pipeline`] | the processing of an object between request and store, pure |
//! | [`api`] | the verbs over the store |
//! | [`authentication`] | the user of a request |
//! | [`authorization`] | whether the user may send it |
//! | [`policies`] | ValidatingAdmissionPolicies about it |
//! | [`request`] | query parameters, negotiation |
//! | [`http`] | paths, responses, TLS |
//! | [`controllers`] | CRDs, namespaces, garbage collection |
//! | [`workloads`] | simulated Deployments, Jobs and Pods, without containers |
//! | [`faults`] | fault injection |
//! | [`service`] | the API without sockets |
//! | [`clock`], [`identity`] | time, uids and generated names, real or controlled by a test |
//!
//! Below these: [`convert`], [`discovery`], [`follow`], [`metadata`], [`openapi`], [`respond`],
//! [`selector`], [`status`], [`table`], [`version`]. Types, server-side apply, protobuf, RBAC and admission policies are in
//! [`chandler_devcluster_apimachinery`], pure.

pub mod api;
pub mod authentication;
pub mod authorization;
pub mod clock;
pub mod cluster;
pub mod controllers;
pub mod convert;
pub mod discovery;
pub mod faults;
pub mod follow;
pub mod http;
pub mod identity;
pub mod metadata;
pub mod openapi;
mod persistence;
pub mod pipeline;
pub mod policies;
pub mod registry;
pub mod request;
pub mod respond;
pub mod selector;
pub mod service;
pub mod status;
pub mod store;
pub mod table;
pub mod version;
pub mod workloads;

pub use clock::Clock;
pub use cluster::{DevCluster, Options, PutError, StartError};
pub use faults::{Effect, Fault};
pub use service::Service;
