//! The support library of the end-to-end tests: an API server, a controller on it, a registry with bundles, and waiting.
//!
//! | module | holds |
//! |---|---|
//! | [`run`] | the objects that one test creates, identified by name and label |
//! | [`preflight`] | checks that keep the tests away from other users' objects |
//! | [`cleanup`] | deletes the objects of runs |
//! | [`cluster`] | an API server: embedded by default, or selected by the environment |
//! | [`envtest`] | `etcd` and `kube-apiserver` from `KUBEBUILDER_ASSETS` |
//! | [`simulated_controllers`] | simulates a controller manager where there is none |
//! | [`world`] | a cluster with a registry and a running controller |
//! | [`container`] | controllers in containers (`cargo xtask test --container`) |
//! | [`in_process`] | why a controller runs in the process of its test all the same |
//! | [`deploy`] | the files of `deploy/` with the names of a run |
//! | [`large`] | large releases, and the requests and time that they take |
//! | [`requests`] | the requests of the controller by verb and resource, for many bundles |
//! | [`interruption`] | blocks some requests of a controller for a while |
//! | [`proxy`] | takes a server away for a while, and brings it back |
//! | [`hostile_registry`] | a registry that never answers, answers very slowly, or redirects |
//! | [`archive_server`] | an HTTP server of one archive |
//! | [`notification_server`] | an HTTP server that takes notifications |
//! | [`oidc_issuer`] | an OpenID Connect issuer, and identity tokens that it signs |
//! | [`content_service`] | a client of the content service |
//! | [`controller_thread`], [`crash_point`] | crash injection: a controller that crashes at a chosen point |
//! | [`former_leader`] | a leader that stops for longer than its Lease lasts, and continues |
//! | [`state`] | a BundleDeployment and its objects, normalized so that runs compare equal |
//! | [`renders`] | counts how often bundles were rendered |
//! | [`collector`] | a collector of traces, which keeps what it receives |
//! | [`tls`] | checks whether a TLS client accepts a server |
//! | [`wait`] | waits for conditions, never for a fixed time |
//! | [`approvals`] | pending changes, and approving them |
//! | [`backup`] | a backup of what a test installed, and its restoration with other UIDs |
//! | [`bundles`] | the sample bundles and small changes to them |
//! | [`buoys`] | a small bundle with many kinds of objects, in three versions |

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a failed precondition of a test panics"
)]

pub mod approvals;
pub mod archive_server;
pub mod backup;
pub mod bundles;
pub mod buoys;
pub mod cleanup;
pub mod cluster;
pub mod collector;
pub mod container;
pub mod content_service;
pub mod controller_thread;
pub mod crash_point;
pub mod deploy;
pub mod envtest;
pub mod former_leader;
pub mod hostile_registry;
pub mod in_process;
pub mod interruption;
pub mod large;
pub mod notification_server;
pub mod oidc_issuer;
pub mod preflight;
pub mod proxy;
pub mod renders;
pub mod requests;
pub mod run;
pub mod simulated_controllers;
pub mod state;
pub mod tls;
pub mod wait;
pub mod world;

pub use archive_server::ArchiveServer;
pub use cluster::Cluster;
pub use content_service::ContentClient;
pub use controller_thread::ControllerThread;
pub use crash_point::CrashPoint;
pub use in_process::InProcess;
pub use interruption::Interruption;
pub use proxy::Proxy;
pub use run::Run;
pub use world::World;
