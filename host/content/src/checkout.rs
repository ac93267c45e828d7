//! Files of git repositories on HTTP and SSH servers.
//!
//! A commit determines all files, since git names it by the hash of its content. The protocol, packs and trees are those of
//! `chandler-git`, and SSH is that of `chandler-ssh`; here they meet connections, the store, and the rules for files of a bundle.

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
