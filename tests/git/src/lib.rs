//! A git server for tests: repositories on disk, served by `git http-backend` behind a small HTTP server.

#![expect(clippy::expect_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod repository;
mod server;

pub use repository::Repository;
pub use server::GitServer;
