//! The memory limit of a guest: the sum over all its memories and tables, not a limit for each.

use wasmtime::ResourceLimiter;

use crate::{LimitKind, Limits};

/// Counts the memory and the table elements of one call.
#[derive(Debug)]
pub(crate) struct Memory {
    limit: u64,
    used: u64,
    peak: u64,
    table_limit: u64,
    table_used: u64,
    memories: usize,
    instances: usize,
    /// The first request that was denied. A guest that runs out of memory commonly aborts, which looks like any other
    /// trap; this field distinguishes the two.
    denied: Option<Denied>,
}

/// A denied request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// Linear memory.
    Memory,
    /// A request above another limit.
    Other(LimitKind, u64),
}

impl Memory {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            limit: limits.memory,
            used: 0,
            peak: 0,
            table_limit: limits.table_elements,
            table_used: 0,
            memories: limits.memories as usize,
            instances: limits.instances as usize,
            denied: None,
        }
    }

    /// The most bytes that all memories had together.
    pub(crate) fn peak(&self) -> u64 {
        self.peak
    }

    pub(crate) fn denied(&self) -> Option<Denied> {
        self.denied
    }
}

impl ResourceLimiter for Memory {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let used = self.used.saturating_add(desired.saturating_sub(current) as u64);
        let granted = used <= self.limit;
        if granted {
            self.used = used;
            self.peak = self.peak.max(used);
        } else {
            self.denied.get_or_insert(Denied::Memory);
        }
        Ok(granted)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let used = self.table_used.saturating_add(desired.saturating_sub(current) as u64);
        let granted = used <= self.table_limit;
        if granted {
            self.table_used = used;
        } else {
            self.denied.get_or_insert(Denied::Other(LimitKind::TableElements, self.table_limit));
        }
        Ok(granted)
    }

    fn instances(&self) -> usize {
        self.instances
    }

    fn tables(&self) -> usize {
        self.memories
    }

    fn memories(&self) -> usize {
        self.memories
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_count_together() {
        let mut memory = Memory::new(&Limits { memory: 100, ..Limits::default() });
        assert!(memory.memory_growing(0, 60, None).unwrap());
        assert_eq!(memory.denied(), None);
        assert!(!memory.memory_growing(0, 60, None).unwrap());
        assert_eq!(memory.denied(), Some(Denied::Memory));
        assert!(memory.memory_growing(60, 100, None).unwrap());
        assert_eq!(memory.peak(), 100);
    }

    #[test]
    fn tables_count_together() {
        let mut memory = Memory::new(&Limits { table_elements: 10, ..Limits::default() });
        assert!(memory.table_growing(0, 6, None).unwrap());
        assert!(!memory.table_growing(0, 6, None).unwrap());
        assert_eq!(memory.denied(), Some(Denied::Other(LimitKind::TableElements, 10)));
    }
}
