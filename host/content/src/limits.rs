//! The limits of a source.

use std::fmt;

/// Limits on downloaded, decompressed and stored bytes. The defaults are far above real bundles, and far below what would harm
/// a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The total bytes of all files of a tree. Default 256 MiB.
    pub total_bytes: u64,
    /// The bytes of one file. Default 32 MiB.
    pub file_bytes: u64,
    /// The entries of all archives of one source: files, directories, links. Default 20 000.
    pub entries: usize,
    /// The directories above a file. Default 32.
    pub depth: usize,
    /// The bytes of a path. Default 1024.
    pub path_bytes: usize,
    /// How many times larger than its compressed form an archive may be. Archives that unpack to less than 4 MiB are not
    /// measured, since short runs of the same text compress without limit. Default 200.
    pub compression_ratio: u64,
    /// The bytes of all decompressed archives of one source, headers and skipped entries included. Default 512 MiB.
    pub unpacked_bytes: u64,
    /// The bytes of all compressed layers of one image, or of one downloaded archive. Default 256 MiB.
    pub download_bytes: u64,
    /// The layers of one image. Default 128.
    pub layers: usize,
    /// The bytes of one image manifest or index. Default 4 MiB, the least that registries must accept.
    pub manifest_bytes: u64,
}

const MEBIBYTE: u64 = 1 << 20;

impl Default for Limits {
    fn default() -> Self {
        Self {
            total_bytes: 256 * MEBIBYTE,
            file_bytes: 32 * MEBIBYTE,
            entries: 20_000,
            depth: 32,
            path_bytes: 1024,
            compression_ratio: 200,
            unpacked_bytes: 512 * MEBIBYTE,
            download_bytes: 256 * MEBIBYTE,
            layers: 128,
            manifest_bytes: 4 * MEBIBYTE,
        }
    }
}

impl Limits {
    /// Limits for catalogs: the programs in their images are unpacked too, though not kept, and a catalog may be one large file.
    pub fn for_catalogs() -> Self {
        Self {
            total_bytes: 1024 * MEBIBYTE,
            file_bytes: 512 * MEBIBYTE,
            entries: 200_000,
            unpacked_bytes: 4096 * MEBIBYTE,
            download_bytes: 1024 * MEBIBYTE,
            ..Self::default()
        }
    }
}

/// A source exceeds a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitExceeded {
    /// [`Limits::total_bytes`].
    #[error("its files are larger than {} together", Bytes(*.0))]
    TotalBytes(u64),
    /// [`Limits::entries`].
    #[error("it has more than {0} entries")]
    Entries(usize),
    /// [`Limits::compression_ratio`].
    #[error("it unpacks to more than {0} times its compressed size")]
    CompressionRatio(u64),
    /// [`Limits::unpacked_bytes`].
    #[error("it unpacks to more than {}", Bytes(*.0))]
    UnpackedBytes(u64),
    /// [`Limits::download_bytes`].
    #[error("its layers are larger than {} together", Bytes(*.0))]
    DownloadBytes(u64),
    /// [`Limits::layers`].
    #[error("it has more than {0} layers")]
    Layers(usize),
    /// [`Limits::manifest_bytes`].
    #[error("its manifest is larger than {}", Bytes(*.0))]
    ManifestBytes(u64),
    /// [`Limits::download_bytes`], for an archive.
    #[error("it is larger than {}", Bytes(*.0))]
    ArchiveBytes(u64),
    /// The caller's bound on a component.
    #[error("its component is larger than {}", Bytes(*.0))]
    ComponentBytes(u64),
}

/// A size for people, in the largest unit that divides it.
pub(crate) struct Bytes(pub(crate) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes >= MEBIBYTE && bytes.is_multiple_of(MEBIBYTE) => write!(f, "{} MiB", bytes / MEBIBYTE),
            bytes if bytes >= 1024 && bytes.is_multiple_of(1024) => write!(f, "{} KiB", bytes / 1024),
            bytes => write!(f, "{bytes} bytes"),
        }
    }
}
