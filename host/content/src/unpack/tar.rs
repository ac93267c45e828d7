//! A tar archive, entry by entry.

use std::io::{self, Read};

use tar::{Archive, Entry, EntryType};

use super::{
    extended::{Extended, ExtendedError},
    overlay::Overlay,
};
use crate::{
    ArchiveError, EntryProblem, Limits, StoreError,
    path::entry_path,
    store::workspace::{AddError, Workspace},
};

/// How names of entries are interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Names have no special meaning.
    Archive,
    /// A layer of an image: names that start with `.wh.` remove entries of lower layers.
    Layer,
}

/// Why an archive could not be read.
#[derive(Debug)]
pub(super) enum TarError {
    Read(io::Error),
    Refused(ArchiveError),
    Store(StoreError),
}

impl From<ArchiveError> for TarError {
    fn from(error: ArchiveError) -> Self {
        Self::Refused(error)
    }
}

/// Reads all entries into the workspace and the overlay.
pub(super) fn read(
    reader: impl Read,
    dialect: Dialect,
    work: &mut Workspace,
    limits: &Limits,
    overlay: &mut Overlay,
) -> Result<(), TarError> {
    let mut archive = Archive::new(reader);
    let mut extended = Extended::default();
    // Raw: the extended headers are read here, under limits.
    for entry in archive.entries().map_err(TarError::Read)?.raw(true) {
        let mut entry = entry.map_err(TarError::Read)?;
        overlay.count().map_err(TarError::Refused)?;
        let (kind, at) = (entry.header().entry_type(), entry.raw_header_position());
        let about_next = match kind {
            EntryType::GNULongName => extended.long_name(&mut entry, at),
            EntryType::GNULongLink => extended.long_link(&mut entry, at),
            EntryType::XHeader => extended.records(&mut entry, at),
            EntryType::XGlobalHeader => Extended::check_global(&mut entry),
            _ => {
                one(&mut entry, &std::mem::take(&mut extended), dialect, work, limits, overlay)?;
                continue;
            }
        };
        about_next.map_err(|error| match error {
            ExtendedError::Read(error) => TarError::Read(error),
            ExtendedError::Refused(problem) => problem.at(&extended.name(entry.header())).into(),
        })?;
    }
    Ok(())
}

fn one(
    entry: &mut Entry<'_, impl Read>,
    extended: &Extended,
    dialect: Dialect,
    work: &mut Workspace,
    limits: &Limits,
    overlay: &mut Overlay,
) -> Result<(), TarError> {
    let name = extended.name(entry.header());
    let refuse = |problem: EntryProblem| TarError::Refused(problem.at(&name));
    extended.check_size(entry.size()).map_err(refuse)?;
    let path = match entry_path(&name, limits) {
        Err(_) if overlay.is_elsewhere(&name) => return Ok(()),
        path => path.map_err(refuse)?,
    };
    if dialect == Dialect::Layer && overlay.whiteout(&path).map_err(refuse)? {
        return Ok(());
    }
    if !overlay.wants(&path) {
        return Ok(());
    }
    let kind = match entry.header().entry_type() {
        // Archives without entry types write directories this way.
        EntryType::Regular if name.ends_with(b"/") => EntryType::Directory,
        kind => kind,
    };
    if matches!(kind, EntryType::Directory | EntryType::Symlink | EntryType::Link) && entry.size() > 0 {
        return Err(refuse(EntryProblem::HasBytes(entry.size())));
    }
    match kind {
        EntryType::Directory => overlay.directory(path),
        EntryType::Regular | EntryType::Continuous => {
            if entry.size() > limits.file_bytes {
                return Err(refuse(EntryProblem::FileTooLarge(limits.file_bytes)));
            }
            let size = entry.size();
            let stored = work.add(entry, limits.file_bytes).map_err(|error| match error {
                AddError::Read(error) => TarError::Read(error),
                AddError::TooLarge => refuse(EntryProblem::FileTooLarge(limits.file_bytes)),
                AddError::Write(error) => TarError::Store(error),
            })?;
            if stored.size != size {
                // The `tar` crate reads a truncated file as a shorter one.
                return Err(TarError::Read(io::Error::from(io::ErrorKind::UnexpectedEof)));
            }
            overlay.file(path, stored)
        }
        EntryType::Symlink => overlay.symbolic_link(path, &extended.target(entry.header())),
        EntryType::Link => {
            let target = extended.target(entry.header());
            // In an image an absolute target is relative to its root, as for container runtimes.
            let rooted = match dialect {
                Dialect::Layer => target.iter().position(|byte| *byte != b'/').and_then(|at| target.get(at..)),
                Dialect::Archive => Some(&*target),
            };
            entry_path(rooted.unwrap_or_default(), limits)
                .map_err(|_| EntryProblem::LinkLeaves(String::from_utf8_lossy(&target).into_owned()))
                .and_then(|target| overlay.hard_link(path, &target))
        }
        EntryType::Block | EntryType::Char => Err(EntryProblem::Unsupported("device")),
        EntryType::Fifo => Err(EntryProblem::Unsupported("fifo")),
        EntryType::GNUSparse => Err(EntryProblem::Unsupported("sparse file")),
        _ => Err(EntryProblem::Unsupported("thing of unknown kind")),
    }
    .map_err(refuse)
}
