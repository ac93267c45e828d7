//! Files of git repositories on HTTP and SSH servers.
//!
//! A commit determines all files, since git names it by the hash of its content. `chandler-git` implements the protocol, packs and trees,
//! and `chandler-ssh` SSH; this module combines them with connections, the store, and the rules for files of a bundle.

mod fetch;
mod files;
mod http;
mod session;
mod ssh;
mod ssh_key;
mod ssh_url;
mod url;

pub use self::{
    fetch::{Checkout, Repositories},
    ssh_key::{SshKey, SshKeyError},
    url::{RepositoryUrl, RepositoryUrlError},
};
