//! The documentation agrees with the repository: it names only files, tests and headings that exist, and lists every page.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test reads its own sources")]

mod durations;
mod files;
mod links;
mod lists;
mod manifests;
mod messages;
mod names;
mod packages;
mod reasons;
mod recipes;
mod words;
