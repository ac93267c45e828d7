//! YAML as Helm reads and writes it: by way of JSON, with go-yaml v2.

pub(crate) mod decode;
mod emit;
mod order;
mod read;
mod scalar;
mod write;

pub(crate) use read::value;
pub use read::{ReadError, documents, read};
pub use write::{write, write_pretty};

#[cfg(test)]
mod tests;
