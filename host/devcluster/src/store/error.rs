//! Errors of a data directory.

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
        /// The error of the operating system.
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
    /// There is a file, and nothing in it. One that this program makes is never empty.
    #[error(
        "{path} is empty, so all its data is lost: restore it from a copy, or run `rm {path}` to start with \
         an empty control plane"
    )]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file ends before it should.
    #[error(
        "{path} is truncated: it has {length} bytes{}; restore it from a copy, or move it away to start with an empty control plane",
        expected.map(|expected| format!(" of {expected}")).unwrap_or_default()
    )]
    CutOff {
        /// The file.
        path: PathBuf,
        /// Its length.
        length: u64,
        /// The length that it should have, if known.
        expected: Option<u64>,
    },
    /// The file was written by something else.
    #[error("{path} is not a data file of this program ({what}): choose another directory, or move the file away")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// A description of the file.
        what: String,
    },
    /// The contents make no sense.
    #[error("{path} is damaged ({what}): restore it from a copy, or move it away to start with an empty control plane")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The error.
        what: String,
    },
}

/// The state that was recovered from a file that was not closed: the process that wrote it was killed, or the machine stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The file.
    pub path: PathBuf,
    /// How many objects it holds.
    pub objects: usize,
    /// The last revision that it holds.
    pub revision: u64,
}

impl std::fmt::Display for Recovered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, objects, revision } = self;
        let path = path.display();
        let noun = if *objects == 1 { "object" } else { "objects" };
        write!(
            f,
            "{path} was not closed, as after a crash: {objects} {noun} restored, up to revision {revision}; all writes that were \
             confirmed are there"
        )
    }
}

/// Writes do not reach the disk any more. Writes that were acknowledged before are safe.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {what}; no further changes are saved until a restart")]
pub struct Failure {
    /// The file.
    pub path: PathBuf,
    /// The error.
    pub what: String,
}
