//! Archives, decompressed and read under limits.
//!
//! All formats share the limits, the rules of paths and links, and the duplicate check of [`Overlay`].

mod decompress;
mod extended;
mod links;
mod node;
mod overlay;
mod tar;
mod zip;

use std::{collections::BTreeMap, fs::File, io::Read, path::Path};

pub(crate) use self::{decompress::Budget, node::RootedAt, overlay::Overlay, tar::Dialect};
use chandler_core::causes;

use crate::{
    ArchiveError, ContentError, EntryProblem, LimitExceeded, Limits, StoreError, chart,
    store::workspace::{AddError, Workspace},
    tree::Stored,
};

/// The files of one archive on disk: a tar archive, plain or compressed, or a zip archive. Its first bytes determine which. The files of a chart
/// that `helm package` made begin in its directory.
pub(crate) fn archive(
    file: File,
    path: &Path,
    work: &mut Workspace,
    limits: &Limits,
) -> Result<BTreeMap<String, Stored>, ContentError> {
    let mut overlay = Overlay::new(limits);
    let mut budget = Budget::new(limits, work.cancel());
    let unpacked = if zip::is_zip(&file).map_err(StoreError::at("read", path))? {
        zip::read(file, path, work, limits, &mut overlay, &budget)
    } else {
        layer(file, path, Dialect::Archive, work, limits, &mut overlay, &mut budget)
    };
    unpacked.map_err(UnpackError::into_content)?;
    Ok(chart::at_root(overlay.finish(RootedAt::Nothing)?))
}

/// Adds an archive to those that were read earlier.
pub(crate) fn layer(
    file: File,
    path: &Path,
    dialect: Dialect,
    work: &mut Workspace,
    limits: &Limits,
    overlay: &mut Overlay,
    budget: &mut Budget,
) -> Result<(), UnpackError> {
    let reader = decompress::reader(file, budget).map_err(|error| UnpackError::reading(error, path))?;
    tar::read(reader, dialect, work, limits, overlay).map_err(|error| match error {
        tar::TarError::Read(error) => UnpackError::reading(error, path),
        tar::TarError::Refused(error) => UnpackError::Refused(error),
        tar::TarError::Store(error) => UnpackError::Store(error),
    })?;
    overlay.merge().map_err(UnpackError::Refused)
}

/// Why an archive could not be unpacked.
#[derive(Debug)]
pub(crate) enum UnpackError {
    /// The archive is refused.
    Refused(ArchiveError),
    /// The disk failed.
    Store(StoreError),
}

impl UnpackError {
    /// Distinguishes errors of the archive from errors of the disk.
    fn reading(error: std::io::Error, path: &Path) -> Self {
        if error.raw_os_error().is_some() {
            return Self::Store(StoreError::at("read", path)(error));
        }
        Self::Refused(refusal(&error))
    }

    fn into_content(self) -> ContentError {
        match self {
            Self::Refused(error) => error.into(),
            Self::Store(error) => error.into(),
        }
    }
}

/// The error of a failed read of untrusted bytes. Decompressors pass on exceeded limits as the source of an error.
fn refusal(error: &std::io::Error) -> ArchiveError {
    match causes(error).find_map(|cause| cause.downcast_ref::<LimitExceeded>()) {
        Some(limit) => (*limit).into(),
        None => ArchiveError::Malformed(sanitize(&error.to_string())),
    }
}

/// The message of a reader without what it quotes: what is fetched may be no archive but an answer of a service in this network, to which the
/// author of the source led the controller, and of which nothing may reach the status.
fn sanitize(text: &str) -> String {
    let own = text.split([':', '"', '`', '\'']).next().unwrap_or_default();
    let words: Vec<&str> =
        own.split_whitespace().filter(|word| word.bytes().all(|byte| byte.is_ascii_alphabetic())).collect();
    words.join(" ").chars().take(100).collect()
}

/// Adds a file that is not in an archive to the workspace.
pub(crate) fn stored(
    work: &mut Workspace,
    reader: &mut impl Read,
    name: &[u8],
    limits: &Limits,
) -> Result<Stored, ContentError> {
    work.add(reader, limits.file_bytes).map_err(|error| match error {
        AddError::TooLarge => EntryProblem::FileTooLarge(limits.file_bytes).at(name).into(),
        AddError::Read(error) => StoreError::at("read", String::from_utf8_lossy(name).into_owned())(error).into(),
        AddError::Write(error) => error.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_quotes_nothing_of_what_was_read() {
        for (message, shown) in [
            (
                "numeric field was not a number: secret123 when getting cksum for key/secret",
                "numeric field was not a number",
            ),
            ("unexpected EOF during skip", "unexpected EOF during skip"),
            ("invalid magic 0x73656372", "invalid magic"),
            ("failed to read `secret`", "failed to read"),
        ] {
            assert_eq!(sanitize(message), shown);
        }
    }
}
