//! What the end-to-end tests share: an API server, a controller on it, a registry with bundles, and waiting.
//!
//! | module | holds |
//! |---|---|
//! | [`run`] | what one test makes, told from everything else by name and label |
//! | [`guard`] | keeps the tests from what is others' |
//! | [`cleanup`] | removes what runs made |
//! | [`cluster`] | an API server: embedded by default, or the one that the environment names |
//! | [`envtest`] | `etcd` and `kube-apiserver` from `KUBEBUILDER_ASSETS` |
//! | [`stand_in`] | what a controller manager would do where there is none |
//! | [`world`] | a cluster with a registry and a running controller |
//! | [`large`] | large releases, and what they cost |
//! | [`interruption`] | a controller that loses sight of something for a while |
//! | [`hostile_registry`] | a registry that never answers, trickles or redirects |
//! | [`lifeline`], [`mortal`] | a controller that dies at a chosen place, as a process does |
//! | [`state`] | what is in a cluster of a BundleDeployment, without what no two runs have in common |
//! | [`renders`] | how often bundles were rendered |
//! | [`tls`] | whether a client accepts a server |
//! | [`wait`] | waiting for conditions, never for time |
//! | [`approvals`] | changes that wait for approval, and approving them |
//! | [`bundles`] | the sample bundles and small changes to them |
//! | [`buoys`] | a small bundle with a bit of everything, in three versions |

#![expect(clippy::expect_used, clippy::panic, clippy::missing_panics_doc, reason = "a test that cannot go on panics")]

pub mod approvals;
pub mod bundles;
pub mod buoys;
pub mod cleanup;
pub mod cluster;
pub mod envtest;
pub mod guard;
pub mod hostile_registry;
pub mod interruption;
pub mod large;
pub mod lifeline;
pub mod mortal;
pub mod renders;
pub mod run;
pub mod stand_in;
pub mod state;
pub mod tls;
pub mod wait;
pub mod world;

pub use cluster::Cluster;
pub use interruption::Interruption;
pub use lifeline::Cut;
pub use mortal::Mortal;
pub use run::Run;
pub use world::World;
