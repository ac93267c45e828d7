//! Files in memory, such as the files of ConfigMaps.

use std::collections::BTreeMap;

use crate::{
    ArchiveError, ContentError, EntryProblem, LimitExceeded, Limits,
    path::{ancestors, entry_path},
    store::workspace::Workspace,
    tree::Stored,
    unpack::stored,
};

/// Files for one directory of a tree, such as the data of one ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileSet {
    /// The origin of the files, for messages: the name of the ConfigMap.
    pub source: String,
    /// The directory in the tree; empty for the root.
    pub directory: String,
    /// File names and bytes.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// Adds the files of all sets to the workspace.
pub(crate) fn store(
    sets: Vec<FileSet>,
    work: &mut Workspace,
    limits: &Limits,
) -> Result<BTreeMap<String, Stored>, ContentError> {
    let mut files: BTreeMap<String, (Stored, String)> = BTreeMap::new();
    let mut total = 0_u64;
    for set in sets {
        for (name, bytes) in set.files {
            let path = file_path(&set.directory, &name, limits)?;
            let stored = stored(work, &mut bytes.as_slice(), path.as_bytes(), limits)?;
            match files.get(&path) {
                // The source names a ConfigMap twice for the same directory: this is the same file.
                Some((other, source)) if *source == set.source && *other == stored => continue,
                Some((_, source)) => {
                    let mut sources = vec![source.clone(), set.source.clone()];
                    sources.sort();
                    return Err(ContentError::DuplicatePath { path, sources });
                }
                None => {}
            }
            total = total.saturating_add(stored.size);
            if total > limits.total_bytes {
                return Err(ArchiveError::from(LimitExceeded::TotalBytes(limits.total_bytes)).into());
            }
            files.insert(path, (stored, set.source.clone()));
            if files.len() > limits.entries {
                return Err(ArchiveError::from(LimitExceeded::Entries(limits.entries)).into());
            }
        }
    }
    for path in files.keys() {
        if let Some(file) = ancestors(path).find(|ancestor| files.contains_key(*ancestor)) {
            return Err(EntryProblem::BelowFile(file.to_owned()).at(path.as_bytes()).into());
        }
    }
    Ok(files.into_iter().map(|(path, (stored, _))| (path, stored)).collect())
}

fn file_path(directory: &str, name: &str, limits: &Limits) -> Result<String, ContentError> {
    let joined = if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") };
    let problem = match entry_path(joined.as_bytes(), limits) {
        // A name that is not exactly one path part could leave its directory.
        _ if matches!(name, "" | "." | "..") || name.contains('/') => EntryProblem::NoName,
        Ok(path) => return Ok(path),
        Err(problem) => problem,
    };
    Err(problem.at(joined.as_bytes()).into())
}
