//! Content that counts what is read.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use chandler_core::{Content, Digest, Entry, ReadError};

/// Content that counts its reads.
pub(crate) struct Observed {
    content: Arc<dyn Content>,
    bytes: AtomicU64,
}

impl Observed {
    /// Counts the reads of this content.
    pub(crate) fn new(content: Arc<dyn Content>) -> Arc<Self> {
        Arc::new(Self { content, bytes: AtomicU64::new(0) })
    }

    /// How many bytes were read.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Content for Observed {
    fn digest(&self) -> &Digest {
        self.content.digest()
    }

    fn total_bytes(&self) -> u64 {
        self.content.total_bytes()
    }

    fn entries(&self, prefix: &str, after: Option<&str>, limit: usize) -> Vec<Entry> {
        self.content.entries(prefix, after, limit)
    }

    fn read(&self, path: &str, offset: u64, len: usize) -> Result<Vec<u8>, ReadError> {
        let bytes = self.content.read(path, offset, len)?;
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}
