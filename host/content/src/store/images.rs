//! The tree of each image, archive or commit, and the credentials that gave access to it.
//!
//! Cached content grants no access. A record names the repository and the registry that the content was fetched from, and the
//! credentials with which that registry served it. A tag made with the key of the cache covers the record: a record that was
//! altered or copied from another cache counts as absent.

use std::{fs, io, path::PathBuf};

use chandler_cache::TAG_BYTES;
use chandler_core::Digest;
use serde::{Deserialize, Serialize};

use super::{Store, room::on_disk};
use crate::{Credentials, ImageAccess, ImageReference, StoreError, tree::Tree};

/// The purpose of the tag of a record.
const RECORD: &[u8] = b"chandler image record 1";
/// The purpose of the tag of a record of the latest archive.
const LATEST: &[u8] = b"chandler archive record 1";
/// The purpose of the tag of credentials.
const CREDENTIALS: &[u8] = b"chandler credentials 1";
/// The most credentials in the record of one image. The latest stay: some registries issue new credentials each day.
const READERS: usize = 64;
/// The most policies in the record of one image. The latest stay.
const PROOFS: usize = 32;
/// The longest record.
const RECORD_BYTES: u64 = 64 << 10;

/// The place that an image or archive was fetched from. Another host, another repository, or another way to check the certificate needs a
/// new proof of access.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Place {
    registry: String,
    repository: String,
    /// The digest of the trusted certificates, and of whether any certificate is accepted.
    trust: Digest,
}

impl Place {
    pub(crate) fn new(image: &ImageReference, access: &ImageAccess) -> Self {
        Self {
            registry: image.registry().to_ascii_lowercase(),
            repository: image.repository().to_owned(),
            trust: trust(access),
        }
    }

    /// The place of an archive or of a git repository: the origin of its URL, with the scheme, which no registry has, and the rest of
    /// the URL.
    pub(crate) fn of_url((origin, rest): (String, String), access: &ImageAccess) -> Self {
        Self { registry: origin, repository: rest, trust: trust(access) }
    }
}

/// The digest of how the server is authenticated: certificates, or host keys.
fn trust(access: &ImageAccess) -> Digest {
    let mut trust = vec![u8::from(access.insecure_skip_tls_verify), u8::from(access.certificate_authority.is_some())];
    trust.extend_from_slice(access.certificate_authority.as_deref().unwrap_or_default());
    if let Some(Credentials::SshKey(key)) = &access.credentials {
        trust.extend_from_slice(key.known_hosts_text().as_bytes());
    }
    Digest::of(&trust)
}

/// Credentials as a tag. Without the key it can neither be reverted nor compared with guessed credentials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reader(String);

/// Who asks for an image, and what its signatures must prove.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    /// The credentials.
    pub(crate) reader: Reader,
    /// The digest of the policy and of the trusted root, or `None` if no signature is required.
    pub(crate) proof: Option<Digest>,
}

impl From<Reader> for Asking {
    fn from(reader: Reader) -> Self {
        Self { reader, proof: None }
    }
}

/// What identifies the outcome of a fetch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ImageKey {
    /// The digest of the manifest or of the index, the digest of an archive, or a digest derived from the name of a commit.
    pub(crate) image: Digest,
    /// `os/architecture`, which an index is resolved by, or another setting that determines the tree.
    pub(crate) view: String,
    /// The place that it was fetched from.
    pub(crate) place: Place,
}

/// The content of a record.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    key: ImageKey,
    tree: Digest,
    /// The credentials with which the registry served it, the latest last.
    readers: Vec<Reader>,
    /// The policies that its signatures satisfied, the latest last.
    #[serde(default)]
    proofs: Vec<Digest>,
}

/// The archive that a URL named last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Latest {
    /// The digest of the archive.
    pub(crate) archive: Digest,
    /// Its tree.
    pub(crate) tree: Digest,
    /// The entity tag that the server sent with it.
    pub(crate) etag: Option<String>,
    /// The time of the last change that the server sent with it, as it was sent.
    pub(crate) last_modified: Option<String>,
}

/// The content of a record of the latest archive.
#[derive(Debug, Serialize, Deserialize)]
struct LatestRecord {
    place: Place,
    reader: Reader,
    latest: Latest,
}

/// An image or archive that was fetched before.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) tree: Tree,
    /// Whether the registry served it with the current credentials.
    pub(crate) proven: bool,
    /// Whether its signatures satisfied the current policy, or none is required.
    pub(crate) verified: bool,
}

impl Store {
    /// The tag of credentials for a record.
    pub(crate) fn reader(&self, credentials: Option<&Credentials>) -> Reader {
        let parts: [&[u8]; 3] = match credentials {
            None => [b"anonymous", b"", b""],
            Some(Credentials::Basic { username, password }) => [b"basic", username.as_bytes(), password.as_bytes()],
            Some(Credentials::IdentityToken(token)) => [b"identity token", token.as_bytes(), b""],
            Some(Credentials::RegistryToken(token)) => [b"registry token", token.as_bytes(), b""],
            Some(Credentials::SshKey(key)) => {
                [b"ssh key", key.username().unwrap_or_default().as_bytes(), key.private_key().as_bytes()]
            }
        };
        let [kind, name, secret] = parts;
        Reader(hex::encode(self.inner.key.tag(&[CREDENTIALS, kind, name, secret])))
    }

    fn image_path(&self, key: &ImageKey) -> PathBuf {
        let Place { registry, repository, trust } = &key.place;
        let name = [key.image.as_str(), &key.view, registry, repository, trust.as_str()].join("\0");
        self.inner.root.join("images").join(Digest::of(name.as_bytes()).hex())
    }

    /// The record in a file, or `None` if the file does not exist, or this cache did not write it.
    fn record(&self, path: &PathBuf) -> Result<Option<Record>, StoreError> {
        let text = self.tagged(path, RECORD)?;
        Ok(text.and_then(|text| serde_json::from_slice(&text).ok()))
    }

    /// An image that was fetched from its place before, if the cache still has it.
    pub(crate) fn image(&self, key: &ImageKey, asking: &Asking) -> Result<Option<Known>, StoreError> {
        let Some(record) = self.record(&self.image_path(key))?.filter(|record| record.key == *key) else {
            return Ok(None);
        };
        let proven = record.readers.contains(&asking.reader);
        let verified = asking.proof.as_ref().is_none_or(|proof| record.proofs.contains(proof));
        Ok(self.open_tree(&record.tree)?.map(|tree| Known { tree, proven, verified }))
    }

    /// Records the tree of an image, that the registry served it to this reader, and that its signatures satisfied the policy.
    pub(crate) fn remember_image(&self, key: &ImageKey, tree: &Digest, asking: Asking) -> Result<(), StoreError> {
        let path = self.image_path(key);
        let known = self.record(&path)?.filter(|record| record.key == *key);
        let (mut readers, mut proofs) = known.map(|record| (record.readers, record.proofs)).unwrap_or_default();
        note(&mut readers, asking.reader, READERS);
        if let Some(proof) = asking.proof {
            note(&mut proofs, proof, PROOFS);
        }
        let record = Record { key: key.clone(), tree: tree.clone(), readers, proofs };
        self.write_tagged(path, RECORD, &record)
    }

    fn latest_path(&self, place: &Place, reader: &Reader) -> PathBuf {
        let name = ["archive", &place.registry, &place.repository, place.trust.as_str(), &reader.0].join("\0");
        self.inner.root.join("archives").join(Digest::of(name.as_bytes()).hex())
    }

    /// The archive that a URL named last, for this reader.
    pub(crate) fn latest_archive(&self, place: &Place, reader: &Reader) -> Result<Option<Latest>, StoreError> {
        let path = self.latest_path(place, reader);
        let text = self.tagged(&path, LATEST)?;
        let latest = text.and_then(|text| serde_json::from_slice::<LatestRecord>(&text).ok());
        Ok(latest.filter(|record| record.place == *place && record.reader == *reader).map(|record| record.latest))
    }

    /// Records the archive that a URL names now.
    pub(crate) fn remember_latest(&self, place: &Place, reader: &Reader, latest: Latest) -> Result<(), StoreError> {
        let path = self.latest_path(place, reader);
        let record = LatestRecord { place: place.clone(), reader: reader.clone(), latest };
        self.write_tagged(path, LATEST, &record)
    }

    /// The content of a file, after its tag, or `None` if the file does not exist, or this cache did not write it.
    pub(super) fn tagged(&self, path: &PathBuf, purpose: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let bytes = match chandler_cache::read(path, RECORD_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
                return Ok(None);
            }
            Err(error) => return Err(StoreError::at("read", path)(error)),
        };
        let Some((tag, text)) = bytes.split_at_checked(TAG_BYTES) else { return Ok(None) };
        if !self.inner.key.verifies(&[purpose, text], tag) {
            tracing::warn!(path = %path.display(), "a record of the cache has an invalid tag and is not used");
            return Ok(None);
        }
        Ok(Some(text.to_vec()))
    }

    pub(super) fn write_tagged(
        &self,
        path: PathBuf,
        purpose: &[u8],
        record: &impl Serialize,
    ) -> Result<(), StoreError> {
        let text = serde_json::to_vec(record).map_err(|error| StoreError::at("write", &path)(error.into()))?;
        let tag = self.inner.key.tag(&[purpose, &text]);
        let bytes = on_disk((tag.len() + text.len()) as u64);
        let before = fs::metadata(&path).map_or(0, |metadata| on_disk(metadata.len()));
        if bytes > before {
            self.room_for_record(bytes - before)?;
        }
        chandler_cache::write(&path, &[&tag, &text], true, true).map_err(StoreError::at("write", path))?;
        self.inner.ledger.records(|records| records.saturating_add(bytes).saturating_sub(before));
        Ok(())
    }

    /// Removes the records of images and archives whose trees were removed.
    pub(super) fn forget_images(&self) -> Result<(), StoreError> {
        self.forget("images", |path| self.record(path).ok().flatten().map(|record| record.tree))?;
        self.forget("archives", |path| {
            let text = self.tagged(path, LATEST).ok().flatten()?;
            serde_json::from_slice::<LatestRecord>(&text).ok().map(|record| record.latest.tree)
        })
    }

    /// Removes the records in a directory whose trees were removed.
    fn forget(&self, directory: &str, tree: impl Fn(&PathBuf) -> Option<Digest>) -> Result<(), StoreError> {
        let directory = self.inner.root.join(directory);
        for entry in fs::read_dir(&directory).map_err(StoreError::at("list", &directory))? {
            let entry = entry.map_err(StoreError::at("list", &directory))?;
            // Another process may be writing it.
            if entry.file_name().to_string_lossy().starts_with(chandler_cache::TEMPORARY) {
                continue;
            }
            let path = entry.path();
            if !tree(&path).is_some_and(|tree| self.tree_path(&tree).exists()) {
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(StoreError::at("remove", path)(error));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// Makes an item the last one of a list of at most `most`.
fn note<T: PartialEq>(list: &mut Vec<T>, item: T, most: usize) {
    list.retain(|other| *other != item);
    list.push(item);
    let superfluous = list.len().saturating_sub(most);
    list.drain(..superfluous);
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, sample::Index};

    use super::*;
    use crate::Limits;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn nothing_but_what_was_written_is_a_record(
            bytes: Vec<u8>, edits in prop::collection::vec((any::<Index>(), any::<u8>()), 0..4), cut: Index, how in 0_u8..5
        ) {
            let directory = tempfile::tempdir().unwrap();
            let open = |name: &str| Store::open(&directory.path().join(name), Limits::default()).unwrap();
            let (store, foreign) = (open("cache"), open("other"));
            let image: ImageReference = "example.com/x:v1".parse().unwrap();
            let place = Place::new(&image, &ImageAccess::default());
            let key = ImageKey { image: Digest::of(b"image"), view: "linux/amd64".to_owned(), place };
            let path = store.image_path(&key);
            store.remember_image(&key, &Digest::of(b"tree"), store.reader(None).into()).unwrap();
            let written = fs::read(&path).unwrap();
            let text = &written[TAG_BYTES..];
            let mut forged = match how {
                0 => bytes,
                1 => [&written[..], &bytes].concat(),
                // Any text, with the tag of another text, of another key, and for another purpose.
                2 => [&written[..TAG_BYTES], &bytes].concat(),
                3 => [&foreign.inner.key.tag(&[RECORD, text])[..], text].concat(),
                _ => [&store.inner.key.tag(&[CREDENTIALS, text])[..], text].concat(),
            };
            let length = forged.len();
            for (place, edit) in edits.iter().filter(|_| length > 0) {
                forged[place.index(length)] ^= edit;
            }
            if how == 1 {
                forged.truncate(cut.index(forged.len() + 1));
            }
            chandler_cache::write(&path, &[&forged], true, false).unwrap();
            let record = store.record(&path).unwrap();
            prop_assert_eq!(record.is_some(), forged == written);
            if let Some(record) = record {
                prop_assert!(record.key == key && record.readers == [store.reader(None)]);
            }
        }
    }
}
