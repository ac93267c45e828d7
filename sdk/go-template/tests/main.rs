//! Tests of templates as a whole.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "test helpers may panic, too")]

mod go;
mod limits;
mod support;
