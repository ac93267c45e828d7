//! The controller in a container: `runc` runs its image as a node would run the Deployment of `deploy/controller.yaml`.
//!
//! | module | holds |
//! |---|---|
//! | [`image`] | an unpacked image |
//! | [`node`] | what kubelet and a container runtime do with a Pod |
//! | [`names`] | a name server that knows one name |
//! | `seccomp` | what the profile `RuntimeDefault` refuses |
//!
//! The end-to-end tests and the test of `cargo xtask dist` share it. Only root can use it.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::panic,
    reason = "a failed precondition of a test panics"
)]

pub mod image;
pub mod names;
pub mod node;
mod seccomp;

pub use image::Image;
pub use names::NameServer;
pub use node::{ApiServer, Container, Node, Plan};
