//! The `content` interface: reads the bundle within a byte limit.

use std::sync::Arc;

use chandler_core::{Content, ReadError};
use wasmtime::component::Resource;

use super::{Bundle, Fault, State};
use crate::{
    LimitKind, Limits,
    contract::bindings::chandler::provisioner::content::{Entry, Host, HostBundle, ReadError as GuestReadError},
    limits::READ_BYTES,
};

/// The most entries in one page.
const PAGE_ENTRIES: u32 = 1000;

/// The longest path that is looked up, in bytes.
const PATH_BYTES: usize = 4096;

/// Reads one bundle for one call.
pub(crate) struct Reader {
    content: Arc<dyn Content>,
    budget: u64,
    read: u64,
    exhausted: bool,
}

impl Reader {
    pub(crate) fn new(content: Arc<dyn Content>, limits: &Limits) -> Self {
        let budget = limits.read_budget(content.total_bytes());
        Self { content, budget, read: 0, exhausted: false }
    }

    /// The bytes that the guest has read.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.read
    }

    /// The limit, if the guest exceeded it.
    pub(crate) fn exceeded(&self) -> Option<(LimitKind, u64)> {
        self.exhausted.then_some((LimitKind::ReadBytes, self.budget))
    }

    fn read(&mut self, path: &str, offset: u64, len: u32) -> Result<Result<Vec<u8>, GuestReadError>, Fault> {
        if !is_legal(path) {
            return Ok(Err(GuestReadError::NotFound));
        }
        let left = self.budget.saturating_sub(self.read);
        let len = u64::from(len.min(READ_BYTES)).min(left);
        if left == 0 {
            self.exhausted = true;
            return Ok(Err(GuestReadError::BudgetExhausted));
        }
        match self.content.read(path, offset, usize::try_from(len).unwrap_or(usize::MAX)) {
            Ok(mut bytes) => {
                bytes.truncate(READ_BYTES as usize);
                self.read = self.read.saturating_add(bytes.len() as u64);
                Ok(Ok(bytes))
            }
            Err(ReadError::NotFound(_)) => Ok(Err(GuestReadError::NotFound)),
            Err(ReadError::NotAFile(_)) => Ok(Err(GuestReadError::NotAFile)),
            Err(error @ ReadError::Io { .. }) => Err(Fault::Content(error.to_string())),
        }
    }
}

/// Whether a path can exist in a bundle: relative, with `/` between its parts, none of them empty, `.` or `..`, and
/// without NUL. Content looks paths up in a map, so any other path would just be absent; the check guarantees this for
/// every implementation of `Content`.
fn is_legal(path: &str) -> bool {
    path.len() <= PATH_BYTES && !path.contains('\0') && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

impl Host for State {
    fn open(&mut self) -> wasmtime::Result<Resource<Bundle>> {
        Ok(Resource::new_own(0))
    }
}

impl HostBundle for State {
    fn digest(&mut self, _bundle: Resource<Bundle>) -> wasmtime::Result<String> {
        Ok(self.reader.content.digest().to_string())
    }

    fn entries(
        &mut self,
        _bundle: Resource<Bundle>,
        prefix: String,
        after: Option<String>,
        limit: u32,
    ) -> wasmtime::Result<Vec<Entry>> {
        let entries = self.reader.content.entries(&prefix, after.as_deref(), limit.min(PAGE_ENTRIES) as usize);
        Ok(entries.into_iter().map(|entry| Entry { path: entry.path, size: entry.size }).collect())
    }

    fn read(
        &mut self,
        _bundle: Resource<Bundle>,
        path: String,
        offset: u64,
        len: u32,
    ) -> wasmtime::Result<Result<Vec<u8>, GuestReadError>> {
        self.reader.read(&path, offset, len).map_err(wasmtime::Error::new)
    }

    fn drop(&mut self, _bundle: Resource<Bundle>) -> wasmtime::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use chandler_core::MemoryContent;

    use super::*;

    fn reader(limits: &Limits) -> Reader {
        let large = vec![7_u8; 3 << 20];
        let files = [("manifests/large.bin", large.as_slice()), ("manifests/small.yaml", b"abc")];
        Reader::new(Arc::new(MemoryContent::new(files)), limits)
    }

    #[test]
    fn illegal_paths_are_not_found() {
        let mut reader = reader(&Limits::default());
        for path in
            ["", "/", "/etc/passwd", "../x", "a/../b", "./manifests/small.yaml", "manifests//small.yaml", "a\0", "a\\b"]
        {
            assert!(matches!(reader.read(path, 0, 1), Ok(Err(GuestReadError::NotFound))), "{path:?}");
        }
        assert!(matches!(reader.read("manifests", 0, 1), Ok(Err(GuestReadError::NotAFile))));
    }

    #[test]
    fn what_is_listed_can_be_read() {
        let files = [("manifests/a\\b.yaml", b"abc"), ("manifests/a b.yaml", b"def")];
        let mut reader = Reader::new(Arc::new(MemoryContent::new(files)), &Limits::default());
        for entry in reader.content.entries("", None, 10) {
            assert!(matches!(reader.read(&entry.path, 0, 10), Ok(Ok(_))), "{}", entry.path);
        }
    }

    #[test]
    fn ranges_beyond_the_end_are_truncated() {
        let mut reader = reader(&Limits::default());
        let mut read = |path, offset, len| reader.read(path, offset, len).unwrap().unwrap().len();
        assert_eq!(read("manifests/small.yaml", u64::MAX, u32::MAX), 0);
        assert_eq!(read("manifests/small.yaml", 1, u32::MAX), 2);
        assert_eq!(read("manifests/small.yaml", 0, 0), 0);
        assert_eq!(read("manifests/large.bin", 0, u32::MAX), 1 << 20);
    }

    #[test]
    fn reads_stop_at_the_byte_limit() {
        let mut reader = reader(&Limits { read_bytes: 2, read_factor: 0, ..Limits::default() });
        assert_eq!(reader.read("manifests/small.yaml", 0, 3).unwrap().unwrap(), b"ab");
        assert_eq!(reader.exceeded(), None);
        assert!(matches!(reader.read("manifests/small.yaml", 2, 1), Ok(Err(GuestReadError::BudgetExhausted))));
        assert_eq!(reader.exceeded(), Some((LimitKind::ReadBytes, 2)));
        assert_eq!(reader.bytes_read(), 2);
    }
}
