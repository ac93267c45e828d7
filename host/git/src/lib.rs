//! Version 2 of the git protocol, packs and trees, under limits. Nothing here opens a connection: bytes in, bytes out.
//!
//! | item | purpose |
//! |---|---|
//! | [`Capabilities`] | what a server can, from its first response |
//! | [`Revision`], [`Refs`] | the branch, tag, range of versions or commit that a source names, and which commit that is now |
//! | [`protocol`] | the requests |
//! | [`PackReader`] | a pack out of the response to a fetch |
//! | [`Framed`] | where a response over SSH ends |
//! | [`Objects`], [`Entry`] | the objects of a pack, and the files below a directory of a commit |
//! | [`GitError`] | failures |
//!
//! The crates of gitoxide read lines, packs and objects. Its transports are not used: connections follow the rules of Chandler's
//! own, which gitoxide has no place for (addresses, redirects, the minimum rate of a body).
//!
//! A server is untrusted. The sizes of a pack, of an object and of all objects are limited before an object is made, as are the bytes in
//! memory at the same time and the work of walking directories. Every object is verified against its name, so that a commit determines
//! all content.

mod budget;
mod error;
mod framed;
mod lines;
mod measure;
mod names;
mod objects;
mod pack_reader;
pub mod protocol;
mod refs;
mod walk;

pub use budget::PackLimits;
pub use error::GitError;
pub use framed::Framed;
pub use names::{CommitId, FileId};
pub use objects::Objects;
pub use pack_reader::PackReader;
pub use protocol::Capabilities;
pub use refs::{REFS, Refs, Revision, Selected};
pub use walk::{Entry, Stop};
