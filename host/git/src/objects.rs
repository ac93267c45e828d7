//! The objects of a pack.

use std::{
    fs::File,
    io::{BufReader, Read, Seek},
    path::Path,
    sync::atomic::AtomicBool,
};

use gix_hash::{Kind, ObjectId};
use gix_pack::{Bundle, bundle::write::Options, cache, data};

use crate::{GitError, error::text};

/// Limits on a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackLimits {
    /// The objects: files, directories, commits and tags.
    pub objects: u32,
    /// The bytes of one object, and of one allocation.
    pub object_bytes: u64,
}

/// The objects of packs on disk, each verified against its name.
pub struct Objects {
    packs: Vec<Bundle>,
    inflate: gix_zlib::Inflate,
}

impl Objects {
    /// Reads a whole pack, verifies it, and writes it with an index into a directory. Stops when `stop` is set.
    ///
    /// # Errors
    /// The pack exceeds a limit, is damaged, or lacks objects that others are stored as differences from.
    pub fn index(pack: File, directory: &Path, limits: PackLimits, stop: &AtomicBool) -> Result<Self, GitError> {
        let mut objects = Self { packs: Vec::new(), inflate: gix_zlib::Inflate::default() };
        objects.add(pack, directory, limits, stop)?;
        Ok(objects)
    }

    /// Adds the objects of another pack, as [`Objects::index`] does.
    ///
    /// # Errors
    /// The same.
    pub fn add(&mut self, pack: File, directory: &Path, limits: PackLimits, stop: &AtomicBool) -> Result<(), GitError> {
        let disk = |error: std::io::Error| GitError::Disk(error.to_string());
        let mut pack = BufReader::new(pack);
        let mut header = [0; 12];
        pack.read_exact(&mut header).map_err(|_| GitError::Truncated)?;
        let (_, found) = data::header::decode(&header).map_err(|error| unreadable(&error))?;
        if found > limits.objects {
            return Err(GitError::Objects { found, most: limits.objects });
        }
        pack.rewind().map_err(disk)?;
        let most = usize::try_from(limits.object_bytes).unwrap_or(usize::MAX);
        let options = Options { thread_limit: Some(1), alloc_limit_bytes: Some(most), ..Options::default() };
        let outcome = Bundle::write_to_directory(
            &mut pack,
            Some(directory),
            &mut gix_utils::progress::Discard,
            stop,
            None::<gix_object::find::Never>,
            Kind::Sha1,
            options,
        );
        let outcome = outcome.map_err(|error| unreadable(&error))?;
        let bundle = outcome.to_bundle().ok_or(GitError::Pack("there is no index".to_owned()))?;
        let Bundle { pack, index } = bundle.map_err(|error| unreadable(&error))?;
        self.packs.push(Bundle { pack: pack.with_alloc_limit_bytes(Some(most)), index });
        Ok(())
    }

    /// Whether a pack has an object.
    pub(crate) fn has(&self, id: &ObjectId) -> bool {
        self.packs.iter().any(|pack| pack.index.lookup(id).is_some())
    }

    /// Reads an object of one type.
    pub(crate) fn read(&mut self, id: &ObjectId, kind: gix_object::Kind) -> Result<Vec<u8>, GitError> {
        let mut bytes = Vec::new();
        for pack in &self.packs {
            let found = pack.find(id, &mut bytes, &mut self.inflate, &mut cache::Never);
            if found.map_err(|error| unreadable(&error))?.is_some_and(|(data, _)| data.kind == kind) {
                return Ok(bytes);
            }
        }
        Err(GitError::Object(id.to_string()))
    }
}

/// The last cause: those before it name files of the cache.
fn unreadable(error: &gix_error::Error) -> GitError {
    GitError::Pack(text(error.iter_errors().last().map(ToString::to_string).unwrap_or_default().as_bytes()))
}
