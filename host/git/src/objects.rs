//! The objects of a pack.

use std::{
    fs::File,
    io::{BufReader, Read, Seek},
    path::Path,
    sync::atomic::AtomicBool,
};

use gix_hash::{Kind, ObjectId};
use gix_pack::{Bundle, bundle::write::Options, cache, data};

use crate::{GitError, PackLimits, error::text, measure::Measured};

/// The objects of packs on disk, each verified against its name.
pub struct Objects {
    packs: Vec<(Bundle, Measured)>,
    inflate: gix_zlib::Inflate,
    pub(crate) limits: PackLimits,
    /// The bytes that were made since the packs are read, [`PackLimits::work_bytes`].
    work: u64,
}

impl Objects {
    /// Reads a whole pack, verifies it, and writes it with an index into a directory. Stops when `stop` is set.
    ///
    /// # Errors
    /// The pack exceeds a limit, is damaged, or lacks objects that others are stored as differences from.
    pub fn index(pack: File, directory: &Path, limits: PackLimits, stop: &AtomicBool) -> Result<Self, GitError> {
        let mut objects = Self { packs: Vec::new(), inflate: gix_zlib::Inflate::default(), limits, work: 0 };
        objects.add(pack, directory, stop)?;
        Ok(objects)
    }

    /// Adds the objects of another pack, as [`Objects::index`] does, under the same limits.
    ///
    /// # Errors
    /// The same.
    pub fn add(&mut self, pack: File, directory: &Path, stop: &AtomicBool) -> Result<(), GitError> {
        let limits = self.limits;
        let disk = |error: std::io::Error| GitError::Disk(error.to_string());
        let mut pack = BufReader::new(pack);
        let mut header = [0; 12];
        pack.read_exact(&mut header).map_err(|_| GitError::Truncated)?;
        let (_, found) = data::header::decode(&header).map_err(|error| unreadable(&error))?;
        if found > limits.objects {
            return Err(GitError::Objects { found, most: limits.objects });
        }
        let taken = self.packs.last().map_or(0, |(_, measured)| measured.all_bytes);
        let measured = Measured::of(&mut pack, found, &limits, taken, stop)?;
        pack.rewind().map_err(disk)?;
        // An object, what it is made from and the differences are one allocation.
        let most = usize::try_from(limits.alive_bytes).unwrap_or(usize::MAX);
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
        self.packs.push((Bundle { pack: pack.with_alloc_limit_bytes(Some(most)), index }, measured));
        Ok(())
    }

    /// Whether a pack has an object.
    pub(crate) fn has(&self, id: &ObjectId) -> bool {
        self.packs.iter().any(|(pack, _)| pack.index.lookup(id).is_some())
    }

    /// Reads an object of one type.
    pub(crate) fn read(&mut self, id: &ObjectId, kind: gix_object::Kind) -> Result<Vec<u8>, GitError> {
        let mut bytes = Vec::new();
        for (pack, measured) in &self.packs {
            let Some(index) = pack.index.lookup(id) else { continue };
            // Before it is made: what it is made from may be far larger.
            if let Some(work) = measured.work(pack.index.pack_offset_at_index(index)) {
                self.work = self.work.saturating_add(work);
            }
            if self.work > self.limits.work_bytes {
                break;
            }
            let found = pack.get_object_by_index(index, &mut bytes, &mut self.inflate, &mut cache::Never);
            let (data, _) = found.map_err(|error| unreadable(&error))?;
            if data.kind == kind {
                self.work = self.work.saturating_add(bytes.len() as u64);
                return Ok(bytes);
            }
        }
        if self.work > self.limits.work_bytes {
            return Err(GitError::Work(self.limits.work_bytes));
        }
        Err(GitError::Object(id.to_string()))
    }
}

/// The last cause: those before it name files of the cache.
fn unreadable(error: &gix_error::Error) -> GitError {
    GitError::Pack(text(error.iter_errors().last().map(ToString::to_string).unwrap_or_default().as_bytes()))
}
