//! Git servers for tests: repositories on disk, served by `git http-backend` behind a small HTTP server, or by sshd.

#![expect(clippy::expect_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod repository;
mod server;
mod ssh;

pub use repository::Repository;
pub use server::GitServer;
pub use ssh::{KeyPair, SshServer};
