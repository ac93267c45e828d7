//! What can go wrong with a directory of kept data.

use std::{io, path::PathBuf};

/// Why kept data cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The system refuses.
    #[error("cannot use {path}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Others may read secrets or put files of theirs in place.
    #[error("{path} is open to other users (mode {mode:04o}): run `chmod {wanted:o} {path}`")]
    Exposed {
        /// The file or directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
        /// The mode that it should have.
        wanted: u32,
    },
    /// Another process has it open.
    #[error("{path} is in use by another process: stop that one, or choose another directory")]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// It was written by a program that keeps data in another way.
    #[error(
        "{path} has format {found}, this program reads format {supported}: use the program that wrote it, or choose another directory"
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        found: u64,
        /// The format that is read.
        supported: u64,
    },
    /// The contents make no sense.
    #[error("{path} is damaged ({what}): restore it from a copy, or move it away to start anew")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

/// Writes do not reach the disk any more. What was acknowledged before is safe.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {what}; nothing more is kept until a restart")]
pub struct Failure {
    /// The file.
    pub path: PathBuf,
    /// What went wrong.
    pub what: String,
}
