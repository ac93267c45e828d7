//! Reads a bundle within the limits of the host.

use std::cell::Cell;

use super::Limits;
use crate::{Content, Entry, ReadError};

/// The maximum number of entries of one page.
const PAGE_ENTRIES: u32 = 1000;

/// Content that enforces the host's limit on reads.
pub(super) struct Counted<'a> {
    content: &'a dyn Content,
    left: Cell<u64>,
    exceeded: Cell<bool>,
}

impl<'a> Counted<'a> {
    pub(super) fn new(content: &'a dyn Content, limits: &Limits) -> Self {
        let total = content.files("").iter().fold(0_u64, |total, entry| total.saturating_add(entry.size));
        let budget = total.saturating_mul(u64::from(limits.read_factor)).max(limits.read_bytes);
        Self { content, left: Cell::new(budget), exceeded: Cell::new(false) }
    }

    /// Why the host refuses the call, if it read too much.
    pub(super) fn exceeded(&self) -> Option<&'static str> {
        self.exceeded.get().then_some("more was read from the bundle than the host allows")
    }
}

impl Content for Counted<'_> {
    fn digest(&self) -> String {
        self.content.digest()
    }

    fn page(&self, prefix: &str, after: Option<&str>, limit: u32) -> Vec<Entry> {
        self.content.page(prefix, after, limit.min(PAGE_ENTRIES))
    }

    fn read_at(&self, path: &str, offset: u64, len: u32) -> Result<Vec<u8>, ReadError> {
        let left = self.left.get();
        if left == 0 {
            self.exceeded.set(true);
            return Err(ReadError::BudgetExhausted);
        }
        let bytes = self.content.read_at(path, offset, len.min(u32::try_from(left).unwrap_or(u32::MAX)))?;
        self.left.set(left.saturating_sub(bytes.len() as u64));
        Ok(bytes)
    }
}
