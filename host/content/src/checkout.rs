//! Files of git repositories on HTTP servers.
//!
//! A commit determines all files, since git names it by the hash of its content. The protocol, packs and trees are those of
//! `chandler-git`; here they meet connections, the store, and the rules for files of a bundle.

mod fetch;
mod files;
mod session;
mod url;

pub use self::{
    fetch::{Checkout, Repositories},
    url::{RepositoryUrl, RepositoryUrlError},
};
