//! Limits on what templates cost.

/// What the execution of templates may cost in all.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Steps: each node of a template, and each item of a list that is visited, is one.
    pub steps: u64,
    /// Bytes that strings and values take which templates make, whether they are still in use or not.
    pub bytes: u64,
    /// How deep templates, blocks and parentheses may be within each other, in all. Each level takes stack.
    pub depth: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: 50_000_000, bytes: 2 << 30, depth: 500 }
    }
}

/// The limit that an execution exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Limit {
    /// Too many steps.
    #[error("the templates need more than {0} steps")]
    Steps(u64),
    /// Too many bytes.
    #[error("the templates make more than {0} bytes of text and values")]
    Bytes(u64),
    /// Too deep.
    #[error("templates, blocks and parentheses are more than {0} deep")]
    Depth(u32),
}

/// Counts what an execution costs.
#[derive(Debug)]
pub struct Meter {
    limits: Limits,
    steps: u64,
    bytes: u64,
    depth: u32,
}

impl Meter {
    /// A meter that has counted nothing.
    pub fn new(limits: Limits) -> Self {
        Self { limits, steps: 0, bytes: 0, depth: 0 }
    }

    /// Counts steps.
    pub fn step(&mut self, steps: usize) -> Result<(), Limit> {
        self.steps = self.steps.saturating_add(steps as u64);
        if self.steps > self.limits.steps { Err(Limit::Steps(self.limits.steps)) } else { Ok(()) }
    }

    /// Counts bytes.
    pub fn charge(&mut self, bytes: usize) -> Result<(), Limit> {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        if self.bytes > self.limits.bytes { Err(Limit::Bytes(self.limits.bytes)) } else { Ok(()) }
    }

    /// The bytes that are left.
    pub fn remaining(&self) -> u64 {
        self.limits.bytes.saturating_sub(self.bytes)
    }

    /// One level deeper; [`Meter::leave`] is its end.
    pub fn enter(&mut self) -> Result<(), Limit> {
        self.depth += 1;
        if self.depth > self.limits.depth {
            self.depth -= 1;
            return Err(Limit::Depth(self.limits.depth));
        }
        self.step(1)
    }

    /// One level up.
    pub fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }
}
