//! Cache files: a file that was not authenticated with the cache's key is not trusted, whatever its content and path.

use std::{
    fs,
    io::{Read as _, Write as _},
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use arbitrary::{Arbitrary, Unstructured};
use chandler_cache::Key;
use chandler_core::{Digest, Object, Release};
use chandler_releases::{
    Budget, Releases,
    format::{self, DecodeError},
};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use tempfile::TempDir;

use crate::{archives::runtime, memory};

const FIXED: usize = 8 << 20;
const PER_BYTE: usize = 4000;
/// The first line of a stored release.
const MAGIC: &[u8] = b"chandler release 2\n";

/// An attacker's edit of a file.
#[derive(Debug, Arbitrary)]
enum Edit {
    Flip(u16, u8),
    Truncate(u16),
    Append(Vec<u8>),
    Insert(u16, u8),
    Remove(u16),
    /// Replaces the whole content.
    Replace(Vec<u8>),
    /// The file that another key authenticates.
    Other,
    /// A file of another cache with another key.
    Foreign,
}

#[derive(Debug, Arbitrary)]
struct Forgery {
    edits: Vec<Edit>,
    parts: Vec<Vec<u8>>,
    /// The parts that are claimed to be tagged; empty for the real ones.
    others: Option<Vec<Vec<u8>>>,
    tag: Vec<(u8, u8)>,
}

/// A cache with two releases.
struct Cache {
    _directory: TempDir,
    root: PathBuf,
    opened: Releases,
    key: Key,
    names: [Digest; 2],
    kept: [Release; 2],
    written: [Vec<u8>; 2],
}

pub(crate) fn holds(input: &[u8]) {
    let (cache, foreign) = caches();
    // With the digest that the lines name, the text is a release.
    for release in &cache.kept {
        text(input, release.digest());
    }
    let Ok(forgery) = Forgery::arbitrary(&mut Unstructured::new(input)) else { return };
    tagged(&forgery);
    let mut bytes = cache.written[0].clone();
    for edit in forgery.edits.iter().take(20) {
        edit.make(&mut bytes, (cache, foreign));
    }
    cache.assert_kept(&bytes);
}

/// Asserts that a tag verifies exactly its own parts.
fn tagged(forgery: &Forgery) {
    let (cache, foreign) = caches();
    let parts: Vec<&[u8]> = forgery.parts.iter().map(Vec::as_slice).collect();
    let real = cache.key.tag(&parts);
    let mut tag = real.to_vec();
    for (place, edit) in &forgery.tag {
        match tag.get_mut(usize::from(*place)) {
            Some(byte) => *byte ^= edit,
            None => tag.truncate(usize::from(*edit)),
        }
    }
    assert_eq!(cache.key.verifies(&parts, &tag), tag == real, "{tag:?}");
    assert!(!foreign.key.verifies(&parts, &real), "another key verifies the tag");
    if let Some(others) = &forgery.others {
        let others: Vec<&[u8]> = others.iter().map(Vec::as_slice).collect();
        assert_eq!(cache.key.verifies(&others, &real), others == parts, "{others:?} and {parts:?}");
    }
}

/// Text with a valid plain hash, which needs no key: it parses to a release that round-trips, or to an error.
fn text(input: &[u8], name: &Digest) {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    let packed = packed.write_all(input).and_then(|()| packed.finish()).expect("memory can be written");
    for packed in [packed.as_slice(), input] {
        let sum = Digest::of(&[name.as_str().as_bytes(), packed].concat());
        let bytes = [MAGIC, &hex::decode(sum.hex()).expect("hexadecimal digits"), packed].concat();
        match memory::bounded(input, FIXED, PER_BYTE, || format::from_bytes(name, &bytes)) {
            Ok(release) => {
                let kept = format::to_bytes(&release).expect("what was read can be kept");
                assert_eq!(format::from_bytes(release.digest(), &kept).expect("what was kept can be read"), release);
            }
            Err(DecodeError::Format | DecodeError::Altered) => panic!("the hash is right"),
            Err(error) => assert!(!error.to_string().trim().is_empty(), "an error without a message"),
        }
    }
}

/// The cache, and one with another key.
fn caches() -> &'static (Cache, Cache) {
    static CACHES: OnceLock<(Cache, Cache)> = OnceLock::new();
    CACHES.get_or_init(|| (Cache::new(), Cache::new()))
}

/// Sample releases.
fn releases() -> [Release; 2] {
    ["a", "b"].map(|name| {
        let text = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{"text":"x\ny"}}}}"#
        );
        let object = Object::parse(text.as_bytes(), 2, None).expect("an object");
        Release::new(vec![object], Vec::new(), Vec::new())
    })
}

/// The serialized sample releases, as seeds.
pub(crate) fn lines() -> Vec<Vec<u8>> {
    let line = |release: &Release| {
        let bytes = format::to_bytes(release).expect("it can be kept");
        let mut text = Vec::new();
        let packed = bytes.get(MAGIC.len() + 32..).unwrap_or_default();
        GzDecoder::new(packed).read_to_end(&mut text).expect("what was packed");
        text
    };
    releases().iter().map(line).collect()
}

impl Cache {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().join("releases");
        // Nothing is cached in memory: every read is from disk.
        let budget = Budget { memory_bytes: 0, ..Budget::default() };
        let opened = Releases::open(&root, budget).expect("a cache");
        let key = Key::open(&root.join("key")).expect("the key of the cache");
        let kept = releases();
        let names = ["one", "two"].map(|name| Digest::of(name.as_bytes()));
        for (name, release) in names.iter().zip(&kept) {
            runtime().block_on(opened.insert(name.clone(), Arc::new(release.clone())));
        }
        let written = [0, 1].map(|at: usize| fs::read(root.join(names[at].hex())).expect("a file"));
        Self { _directory: directory, root, opened, key, names, kept, written }
    }

    /// Asserts that a file is accepted as a release only if it is the authentic one.
    fn assert_kept(&self, bytes: &[u8]) {
        let path = self.root.join(self.names[0].hex());
        // The rejected file was removed; a file in its place must be authentic, too.
        let _ = fs::remove_file(&path);
        chandler_cache::write(&path, &[bytes], true, false).expect("a file that can be written");
        let found = runtime().block_on(self.opened.get(&self.names[0]));
        let is_ours = bytes == self.written[0];
        assert_eq!(found.as_deref(), is_ours.then_some(&self.kept[0]), "{} bytes", bytes.len());
        assert_eq!(path.exists(), is_ours, "what is not used is removed");
        let other = runtime().block_on(self.opened.get(&self.names[1]));
        assert_eq!(other.as_deref(), Some(&self.kept[1]), "another file is affected");
    }
}

impl Edit {
    fn make(&self, bytes: &mut Vec<u8>, (cache, foreign): (&Cache, &Cache)) {
        let within = |place: u16| usize::from(place).checked_rem(bytes.len()).unwrap_or_default();
        match self {
            Self::Flip(place, edit) => {
                let place = within(*place);
                bytes.iter_mut().skip(place).take(1).for_each(|byte| *byte ^= edit);
            }
            Self::Truncate(place) => bytes.truncate(usize::from(*place)),
            Self::Append(more) => bytes.extend(more),
            Self::Insert(place, byte) => bytes.insert(within(*place), *byte),
            Self::Remove(place) => {
                let place = within(*place);
                bytes.drain(place..bytes.len().min(place + 1));
            }
            Self::Replace(with) => with.clone_into(bytes),
            Self::Other => cache.written[1].clone_into(bytes),
            Self::Foreign => foreign.written[0].clone_into(bytes),
        }
    }
}
