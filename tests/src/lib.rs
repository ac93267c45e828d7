//! What the end-to-end tests share: an API server, a controller on it, a registry with bundles, and waiting.
//!
//! | module | holds |
//! |---|---|
//! | [`cluster`] | an API server: embedded by default, or the one that the environment names |
//! | [`envtest`] | `etcd` and `kube-apiserver` from `KUBEBUILDER_ASSETS` |
//! | [`stand_in`] | what a controller manager would do where there is none |
//! | [`world`] | a cluster with a registry and a running controller |
//! | [`tls`] | whether a client accepts a server |
//! | [`wait`] | waiting for conditions, never for time |
//! | [`bundles`] | the sample bundles and small changes to them |

#![expect(clippy::expect_used, clippy::missing_panics_doc, reason = "a test that cannot go on panics")]

pub mod bundles;
pub mod cluster;
pub mod envtest;
pub mod stand_in;
pub mod tls;
pub mod wait;
pub mod world;

pub use cluster::Cluster;
pub use world::World;
