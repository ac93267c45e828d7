//! Archives of HTTP servers.
//!
//! An archive is identified by the SHA-256 digest of its bytes. The current content of a URL is only known after a download, but entity
//! tags and modification times save most downloads: see [`Archives::resolve`].

mod download;
mod failure;
mod fetch;
mod form;
mod url;

pub use self::{
    failure::{DownloadError, Downloaded},
    fetch::{Archives, ResolvedArchive},
    url::{ArchiveUrl, ArchiveUrlError, shown_url},
};
