//! Limits on the cost of a catalog.

/// Limits on the cost of a catalog. The defaults exceed any published one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Files, the ignored ones included. Default 100,000.
    pub files: usize,
    /// Documents of all files. Default one million.
    pub metas: u64,
    /// Bytes of one document. Default 32 MiB: a bundle with its manifests inline is rarely larger than 10 MB.
    pub document_bytes: usize,
    /// The nesting depth of a document. Default 100.
    pub depth: usize,
    /// Values of one document, with aliases expanded. Default one million.
    pub nodes: usize,
    /// Bytes of a schema, a package or a name. Default 512.
    pub name_bytes: usize,
    /// Bytes of the paths of all files together. Default 32 MiB.
    pub path_bytes: usize,
    /// Bytes of all `.indexignore` files together: a compiled pattern takes up to 500 times its length. Default 64 KiB.
    pub ignore_bytes: u64,
    /// Patterns of all `.indexignore` files together. Default 1,000.
    pub ignore_patterns: usize,
    /// Bytes that the index builder sorts in memory; the rest is sorted on the disk. Default 8 MiB.
    pub sort_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            files: 100_000,
            metas: 1_000_000,
            document_bytes: 32 << 20,
            depth: 100,
            nodes: 1_000_000,
            name_bytes: 512,
            path_bytes: 32 << 20,
            ignore_bytes: 64 << 10,
            ignore_patterns: 1000,
            sort_bytes: 8 << 20,
        }
    }
}

impl Limits {
    pub(crate) fn yaml(&self) -> chandler_yaml::Limits {
        chandler_yaml::Limits { bytes: self.document_bytes, depth: self.depth, nodes: self.nodes }
    }
}
