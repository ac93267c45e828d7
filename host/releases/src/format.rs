//! A release as bytes, and back.
//!
//! ```text
//! chandler release 2 LF
//! 32 bytes                 SHA-256 of the key and of all that follows
//! gzip of lines of JSON    a head, then the value of each property, then each object
//! ```
//!
//! Objects and properties are on separate lines, since each may be nested as deeply as the parser allows. Invalid bytes give no
//! release, which is then rendered again.

use std::io::{self, BufRead, BufReader, Read as _, Write as _};

use chandler_core::{Description, Diagnostic, Digest, Location, Object, Probe, Property, Release};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Identifies the format. The number changes when the lines or their meaning change.
const MAGIC: &[u8] = b"chandler release 2\n";
const HASH_BYTES: usize = 32;
/// The most text of one release: by default twice the limit of the controller for the output of a provisioner.
const TEXT_BYTES: u64 = 64 << 20;
/// The largest file: text that does not compress.
pub(crate) const FILE_BYTES: u64 = TEXT_BYTES + (1 << 20);

/// Why a release is not written.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// Its text is too long.
    #[error("it has more than {TEXT_BYTES} bytes")]
    TooLarge,
    /// A value cannot be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// It cannot be compressed.
    #[error(transparent)]
    Compress(#[from] io::Error),
}

/// Why bytes are not a release.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// It was written by another version of this program, or by something else.
    #[error("it has another format")]
    Format,
    /// The hash does not match.
    #[error("its bytes are not those that were written under this key")]
    Altered,
    /// Its text is too long.
    #[error("it has more than {TEXT_BYTES} bytes")]
    TooLarge,
    /// The text is truncated.
    #[error("it is cut off")]
    Short,
    /// The text continues after its end.
    #[error("there is data after its end")]
    Long,
    /// An object is invalid.
    #[error("one of its objects {0}")]
    Object(#[from] chandler_core::ObjectError),
    /// A line is not JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The bytes cannot be decompressed.
    #[error(transparent)]
    Decompress(#[from] io::Error),
    /// This program assembles another release from it.
    #[error("its digest was {was} and comes out as {is}")]
    Otherwise {
        /// The digest that was written.
        was: Digest,
        /// The digest of the assembled release.
        is: Digest,
    },
}

/// The first line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    digest: Digest,
    probes: Vec<Probe>,
    findings: Vec<Diagnostic>,
    /// Without its properties.
    description: Description,
    /// The types of the properties.
    properties: Vec<String>,
    objects: Vec<Place>,
}

/// The stage and origin of an object.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    stage: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<Location>,
}

/// The bytes of a release, for storage outside of the cache.
///
/// # Errors
/// It is too large.
pub fn to_bytes(release: &Release) -> Result<Vec<u8>, EncodeError> {
    encode(release.digest(), release)
}

/// Decodes bytes of [`to_bytes`] to the release with this digest.
///
/// # Errors
/// The bytes differ, or this program assembles another release from them.
pub fn from_bytes(digest: &Digest, bytes: &[u8]) -> Result<Release, DecodeError> {
    decode(digest, bytes)
}

/// Encodes a release for a key.
pub(crate) fn encode(key: &Digest, release: &Release) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend([0; HASH_BYTES]);
    let mut lines = Lines { to: GzEncoder::new(bytes, Compression::fast()), left: TEXT_BYTES };
    lines.write(&head(release))?;
    for property in &release.description().properties {
        lines.write(&property.value)?;
    }
    for object in release.objects() {
        lines.write(&object.value)?;
    }
    let mut bytes = lines.to.finish()?;
    if let Some((before, text)) = bytes.split_at_mut_checked(MAGIC.len() + HASH_BYTES)
        && let Some((_, place)) = before.split_at_mut_checked(MAGIC.len())
    {
        place.copy_from_slice(&hash(key, text));
    }
    Ok(bytes)
}

fn head(release: &Release) -> Head {
    let described = release.description();
    Head {
        digest: release.digest().clone(),
        probes: release.probes().to_vec(),
        findings: release.findings().to_vec(),
        description: Description {
            name: described.name.clone(),
            package: described.package.clone(),
            version: described.version.clone(),
            properties: Vec::new(),
            omitted: described.omitted,
        },
        properties: described.properties.iter().map(|property| property.kind.clone()).collect(),
        objects: release
            .objects()
            .iter()
            .map(|object| Place { stage: object.stage, origin: object.origin.clone() })
            .collect(),
    }
}

/// Decodes the bytes that were written for this key. The release is assembled like a new one, and refused if its digest differs.
pub(crate) fn decode(key: &Digest, bytes: &[u8]) -> Result<Release, DecodeError> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(DecodeError::Format)?;
    let (sum, text) = rest.split_at_checked(HASH_BYTES).ok_or(DecodeError::Short)?;
    if sum != hash(key, text) {
        return Err(DecodeError::Altered);
    }
    let mut lines = BufReader::new(GzDecoder::new(text).take(TEXT_BYTES));
    let mut line = Vec::new();
    let head: Head = serde_json::from_slice(next(&mut lines, &mut line)?)?;
    let mut properties = Vec::new();
    for kind in head.properties {
        properties.push(Property { kind, value: serde_json::from_slice(next(&mut lines, &mut line)?)? });
    }
    let mut objects = Vec::new();
    for Place { stage, origin } in head.objects {
        objects.push(Object::parse(next(&mut lines, &mut line)?, stage, origin)?);
    }
    if !lines.fill_buf()?.is_empty() {
        return Err(DecodeError::Long);
    }
    let description = Description { properties, ..head.description };
    let release = Release::new(objects, head.probes, head.findings).described(description);
    if *release.digest() == head.digest {
        Ok(release)
    } else {
        Err(DecodeError::Otherwise { was: head.digest, is: release.digest().clone() })
    }
}

fn hash(key: &Digest, text: &[u8]) -> [u8; HASH_BYTES] {
    Sha256::new().chain_update(key.as_str()).chain_update(text).finalize().into()
}

/// The next line, without its end.
fn next<'a>(lines: &mut BufReader<io::Take<GzDecoder<&[u8]>>>, line: &'a mut Vec<u8>) -> Result<&'a [u8], DecodeError> {
    line.clear();
    lines.read_until(b'\n', line)?;
    match line.strip_suffix(b"\n") {
        Some(text) => Ok(text),
        None if lines.get_ref().limit() == 0 => Err(DecodeError::TooLarge),
        None => Err(DecodeError::Short),
    }
}

/// Writes lines of JSON. JSON text has no line breaks.
struct Lines {
    to: GzEncoder<Vec<u8>>,
    left: u64,
}

impl Lines {
    fn write(&mut self, value: &impl Serialize) -> Result<(), EncodeError> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        self.left = self.left.checked_sub(line.len() as u64).ok_or(EncodeError::TooLarge)?;
        Ok(self.to.write_all(&line)?)
    }
}

#[cfg(test)]
mod tests;
