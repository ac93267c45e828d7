//! The tests of this crate that use its interface only.

mod payloads;
