//! Escaped text, and nouns with a count.

pub use chandler_core::text::{count, one_line, printable};
