//! The JSON of an object in memory.

use std::io::{Read as _, Write as _};

use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use serde_json::Value;

/// The number of bytes from which JSON is compressed. CRDs shrink to about a tenth, and the many objects of one to four kilobytes, which are
/// half of what a bundle takes, to two fifths.
const COMPRESSED_FROM: usize = 1024;

/// The JSON of an object, compressed if it is large.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Plain(Box<[u8]>),
    Compressed(Box<[u8]>),
}

impl Body {
    /// Takes the JSON of an object.
    pub(crate) fn new(json: Vec<u8>) -> Self {
        if json.len() < COMPRESSED_FROM {
            return Self::Plain(json.into());
        }
        let mut encoder = DeflateEncoder::new(Vec::with_capacity(json.len() / 8), Compression::fast());
        match encoder.write_all(&json).and_then(|()| encoder.finish()) {
            Ok(compressed) if compressed.len() < json.len() => Self::Compressed(compressed.into()),
            _ => Self::Plain(json.into()),
        }
    }

    /// The number of bytes in memory.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Plain(bytes) | Self::Compressed(bytes) => bytes.len(),
        }
    }

    /// The object, or `None` if memory is corrupt.
    pub(crate) fn read(&self) -> Option<Value> {
        match self {
            Self::Plain(json) => serde_json::from_slice(json).ok(),
            Self::Compressed(bytes) => {
                let mut json = Vec::with_capacity(bytes.len().saturating_mul(8));
                DeflateDecoder::new(bytes.as_ref()).read_to_end(&mut json).ok()?;
                serde_json::from_slice(&json).ok()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_large_object_is_compressed_and_read_back() {
        for (text, compressed) in [("x".to_owned(), false), ("x".repeat(COMPRESSED_FROM), true)] {
            let object = json!({"data": {"text": text, "number": 1.5}});
            let body = Body::new(object.to_string().into_bytes());
            assert_eq!(matches!(body, Body::Compressed(_)), compressed);
            assert!(body.len() < COMPRESSED_FROM);
            assert_eq!(body.read(), Some(object));
        }
    }
}
