//! The memory that the objects of a pack take, before any is built.
//!
//! A difference of some bytes makes an object as large as the one that it refers to, and many such objects may have to be in memory at the
//! same time. Each difference begins with the sizes. This reads no more than that: one pass that keeps a few numbers for each difference.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io::{self, BufRead, Read, Seek},
    sync::atomic::{AtomicBool, Ordering},
};

use flate2::bufread::ZlibDecoder;
use gix_hash::{Kind, ObjectId};
use gix_pack::data::{Entry, entry::Header};

use crate::{GitError, PackLimits};

/// The two sizes at the beginning of a difference take at most ten bytes each.
const SIZES: u64 = 20;
/// The head of a pack, and the checksum at its end.
const HEAD: u64 = 12;
/// The longest chain of differences that git makes (git-pack-objects, "depth").
const CHAIN: usize = 4095;

/// What the objects of a pack take.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// The bytes of all objects.
    pub(crate) all_bytes: u64,
    /// The bytes that must be made for each object that is stored as a difference, by its place in the pack.
    work: Vec<(u64, u64)>,
}

/// An object that is stored as a difference from another one.
#[derive(Clone, Copy, Debug)]
struct Difference {
    at: u64,
    base: Base,
    bytes: u64,
    base_size: u64,
    size: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    At(u64),
    Named(ObjectId),
}

impl Measured {
    /// Reads the entries of a pack with this number of objects. `all_bytes` is what other packs took.
    ///
    /// # Errors
    /// The pack is damaged, or its objects exceed a limit.
    pub(crate) fn of(
        pack: &mut (impl BufRead + Seek),
        objects: u32,
        limits: &PackLimits,
        taken: u64,
        stop: &AtomicBool,
    ) -> Result<Self, GitError> {
        let (mut all_bytes, mut differences) = (taken, Vec::new());
        pack.seek(io::SeekFrom::Start(HEAD)).map_err(|error| GitError::Disk(error.to_string()))?;
        for _ in 0..objects {
            if stop.load(Ordering::Relaxed) {
                return Err(GitError::Disk("the caller stopped waiting".to_owned()));
            }
            let (size, difference) = entry(pack, limits)?;
            if size > limits.object_bytes {
                return Err(GitError::ObjectBytes(limits.object_bytes));
            }
            all_bytes = all_bytes.saturating_add(size);
            if all_bytes > limits.all_bytes {
                return Err(GitError::Bytes(limits.all_bytes));
            }
            differences.extend(difference);
        }
        if alive(&differences)? > limits.alive_bytes {
            return Err(GitError::Alive(limits.alive_bytes));
        }
        Ok(Self { all_bytes, work: work(&differences) })
    }

    /// The bytes that must be made for the object at a place if it is made from others whose places are known, those included.
    pub(crate) fn work(&self, at: u64) -> Option<u64> {
        let found = self.work.binary_search_by_key(&at, |(at, _)| *at).ok();
        found.and_then(|index| self.work.get(index)).map(|(_, work)| *work)
    }
}

/// Reads one entry to its end. Returns the size of the object.
fn entry(pack: &mut (impl BufRead + Seek), limits: &PackLimits) -> Result<(u64, Option<Difference>), GitError> {
    let damaged = |_| GitError::Pack("an entry is damaged".to_owned());
    let at = pack.stream_position().map_err(damaged)?;
    let entry = Entry::from_read(pack, at, Kind::Sha1.len_in_bytes()).map_err(damaged)?;
    let bytes = entry.decompressed_size;
    if bytes > limits.object_bytes {
        return Err(GitError::ObjectBytes(limits.object_bytes));
    }
    let base = match entry.header {
        Header::OfsDelta { base_distance } => entry.checked_base_pack_offset(base_distance).map(Base::At),
        Header::RefDelta { base_id } => Some(Base::Named(base_id)),
        Header::Commit | Header::Tree | Header::Blob | Header::Tag => None,
    };
    let mut plain = ZlibDecoder::new(&mut *pack);
    let mut sizes = Vec::new();
    if entry.header.is_delta() {
        Read::take(&mut plain, SIZES).read_to_end(&mut sizes).map_err(damaged)?;
    }
    // One byte more than announced is enough to see that there is more.
    let rest = io::copy(&mut Read::take(&mut plain, bytes.saturating_add(1)), &mut io::sink()).map_err(damaged)?;
    if rest.saturating_add(sizes.len() as u64) != bytes {
        return Err(GitError::Pack("the size of an entry is not the announced one".to_owned()));
    }
    if !entry.header.is_delta() {
        return Ok((bytes, None));
    }
    let mut sizes = sizes.into_iter();
    let found = number(&mut sizes).zip(number(&mut sizes)).zip(base);
    let ((base_size, size), base) = found.ok_or_else(|| GitError::Pack("a difference is damaged".to_owned()))?;
    Ok((size, Some(Difference { at, base, bytes, base_size, size })))
}

/// A number in pieces of seven bits, the lowest first (gitformat-pack, "Size encoding").
fn number(bytes: &mut impl Iterator<Item = u8>) -> Option<u64> {
    let mut number = 0_u64;
    for (byte, shift) in bytes.zip((0..u64::BITS).step_by(7)) {
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// The most bytes that are in memory at the same time while all objects are made.
///
/// gix-pack makes the object that was added last first, and keeps one for as long as others are to be made from it
/// (`resolve_serial`). Which object a name means is not known yet, so that with names all could be needed at the same time.
fn alive(differences: &[Difference]) -> Result<u64, GitError> {
    if differences.iter().any(|it| matches!(it.base, Base::Named(_))) {
        let bases: BTreeMap<_, _> = differences.iter().map(|it| (it.base.key(), it.base_size)).collect();
        let largest = differences.iter().map(|it| it.size.saturating_add(it.bytes)).max().unwrap_or_default();
        return Ok(bases.values().fold(largest, |sum, size| sum.saturating_add(*size)));
    }
    let mut made_from: HashMap<u64, Vec<&Difference>> = HashMap::new();
    for difference in differences {
        if let Base::At(base) = difference.base {
            made_from.entry(base).or_default().push(difference);
        }
    }
    let inner: BTreeSet<u64> = differences.iter().map(|it| it.at).collect();
    let (mut most, mut kept) = (0_u64, 0_u64);
    // The objects that are still to be made from one, and its size.
    let mut pending: HashMap<u64, (usize, u64)> = HashMap::new();
    for (root, children) in made_from.iter().filter(|(base, _)| !inner.contains(base)) {
        let mut next: Vec<(&Difference, u64, usize)> = children.iter().map(|child| (*child, *root, 1)).collect();
        let size = children.first().map_or(0, |child| child.base_size);
        pending.insert(*root, (children.len(), size));
        kept = kept.saturating_add(size);
        while let Some((difference, base, chain)) = next.pop() {
            if chain > CHAIN {
                return Err(GitError::Chain(CHAIN));
            }
            most = most.max(kept.saturating_add(difference.bytes).saturating_add(difference.size));
            if let Some(children) = made_from.get(&difference.at) {
                kept = kept.saturating_add(difference.size);
                pending.insert(difference.at, (children.len(), difference.size));
                next.extend(children.iter().map(|child| (*child, difference.at, chain + 1)));
            }
            if let Some((count, size)) = pending.get_mut(&base) {
                *count -= 1;
                if *count == 0 {
                    kept = kept.saturating_sub(*size);
                    pending.remove(&base);
                }
            }
        }
    }
    Ok(most)
}

/// For each object whose base has a place: the bytes of all objects of its chain. A base comes before what is made from it.
fn work(differences: &[Difference]) -> Vec<(u64, u64)> {
    let mut work: Vec<(u64, u64)> = Vec::new();
    for difference in differences {
        let Base::At(base) = difference.base else { continue };
        let below = work.binary_search_by_key(&base, |(at, _)| *at).ok();
        let below = below.and_then(|index| work.get(index)).map_or(difference.base_size, |(_, bytes)| *bytes);
        work.push((difference.at, below.saturating_add(difference.size).saturating_add(difference.bytes)));
    }
    work
}

impl Base {
    fn key(self) -> (u64, Option<ObjectId>) {
        match self {
            Self::At(at) => (at, None),
            Self::Named(id) => (0, Some(id)),
        }
    }
}
