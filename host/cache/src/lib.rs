//! What all caches on the disk have in common.
//!
//! | item | what it is about |
//! |---|---|
//! | [`directory`], [`root`] | a directory that belongs to this user, and that no other may write to or read |
//! | [`read`], [`write`](fn@write) | a file in it, following no link |
//! | [`Key`] | vouches for what was written: who cannot read the key cannot make a file that is believed |

mod directory;
mod file;
mod key;

pub use self::{
    directory::{Unfit, directory, root},
    file::{TEMPORARY, read, write},
    key::{Key, TAG_BYTES},
};
