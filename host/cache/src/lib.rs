//! Directories, files and keys that all caches on the disk share.
//!
//! | item | purpose |
//! |---|---|
//! | [`directory`], [`root`] | a directory that belongs to this user, and that no other user can write to or read |
//! | [`read`], [`write`](fn@write), [`is_left_over`] | a file in that directory, without following links, and what a crash left of one |
//! | [`Key`] | authenticates files: a user who cannot read the key cannot forge a file |

mod directory;
mod file;
mod key;

pub use self::{
    directory::{Unfit, directory, root},
    file::{TEMPORARY, is_left_over, read, write},
    key::{Key, TAG_BYTES},
};
