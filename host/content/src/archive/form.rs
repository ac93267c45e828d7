//! The forms of what is downloaded from a URL.

use std::{collections::BTreeMap, fs::File, path::Path};

use super::Downloaded;
use crate::{ContentError, Limits, charts, store::workspace::Workspace, tree::Stored, unpack};

/// What a URL names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// An archive.
    Archive,
    /// The index of a Helm repository, of which the tree has a file for each chart.
    HelmIndex,
}

impl Form {
    /// The view in the keys of the store, which images do not have: they have a platform.
    pub(super) fn view(self) -> &'static str {
        match self {
            Self::Archive => "archive",
            Self::HelmIndex => "Helm index 1",
        }
    }

    pub(super) fn downloaded(self) -> Downloaded {
        match self {
            Self::Archive => Downloaded::Archive,
            Self::HelmIndex => Downloaded::HelmIndex,
        }
    }

    pub(super) fn most_bytes(self, limits: &Limits) -> u64 {
        match self {
            Self::Archive => limits.download_bytes,
            Self::HelmIndex => limits.download_bytes.min(charts::INDEX_BYTES),
        }
    }

    pub(super) fn unpack(
        self,
        file: File,
        path: &Path,
        work: &mut Workspace,
        limits: &Limits,
    ) -> Result<BTreeMap<String, Stored>, ContentError> {
        match self {
            Self::Archive => unpack::archive(file, path, work, limits),
            Self::HelmIndex => charts::unpack(file, work, limits),
        }
    }
}
