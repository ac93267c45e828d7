//! Archives of any bytes are a tree that is read as it was counted, or an error; and no file is left behind.

use std::{cell::RefCell, fs, sync::OnceLock, time::Duration};

use chandler_content::{ContentError, FailureClass, ImageOptions, Images, Limits, Store, Tree};
use chandler_core::{Content as _, MemoryContent};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::{memory, tars, zips};

/// The memory that an archive may take: its pack is on disk. The zstd decoder keeps a window of at most 32 MiB, and the index has
/// an entry for each file.
const FIXED: usize = 80 << 20;
const PER_BYTE: usize = 50;

/// Small limits, so that inputs reach them.
pub(crate) fn limits() -> Limits {
    Limits {
        total_bytes: 4 << 20,
        file_bytes: 1 << 20,
        entries: 100,
        depth: 8,
        path_bytes: 300,
        compression_ratio: 50,
        unpacked_bytes: 8 << 20,
        download_bytes: 1 << 20,
        layers: 5,
        manifest_bytes: 64 << 10,
    }
}

/// A store and its images, in a temporary directory.
struct Place {
    directory: TempDir,
    store: Store,
    images: Images,
    used: usize,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::open(&directory.path().join("cache"), limits()).expect("a store");
        // The timeout for a silent registry does not matter here.
        let brief = Duration::from_millis(500);
        let options = ImageOptions {
            connect_timeout: brief,
            idle_timeout: brief,
            plain_http_registries: vec![crate::image::server()],
            ..ImageOptions::default()
        };
        let images = Images::new(store.clone(), options);
        Self { directory, store, images, used: 0 }
    }
}

thread_local! {
    static PLACE: RefCell<Option<Place>> = const { RefCell::new(None) };
}

/// The runtime of this thread, for asynchronous functions.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).max_blocking_threads(4).enable_all().build().expect("a runtime")
    })
}

/// Calls `run` with a store, which is replaced now and then so that it does not fill the disk.
pub(crate) fn with_store<T>(run: impl FnOnce(&Store, &Images) -> T) -> T {
    PLACE.with_borrow_mut(|place| {
        let fresh = place.take().filter(|place| place.used < 300);
        let place = place.insert(fresh.unwrap_or_else(Place::new));
        place.used += 1;
        let value = run(&place.store, &place.images);
        let left = fs::read_dir(place.directory.path().join("cache/work")).map_or(0, Iterator::count);
        assert_eq!(left, 0, "a workspace was left behind");
        value
    })
}

pub(crate) fn holds(input: &[u8]) {
    unpacks(&tars::packed(input));
}

pub(crate) fn zip_holds(input: &[u8]) {
    unpacks(&zips::packed(input));
}

/// Asserts that an archive is a tree or refused, with the same result at each attempt.
fn unpacks(packed: &[u8]) {
    with_store(|store, _| {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), packed).expect("a file that can be written");
        let import = || runtime().block_on(store.import_archive(file.path()));
        let once = memory::bounded(packed, FIXED, PER_BYTE, import);
        let digest = once.as_ref().map(|tree| tree.digest().clone()).map_err(ToString::to_string);
        match &once {
            Ok(tree) => assert_tree(tree),
            Err(error) => assert_refused(error),
        }
        drop(once);
        let again = import().map(|tree| tree.digest().clone()).map_err(|error| error.to_string());
        assert_eq!(digest, again, "another result for the same archive");
    });
}

/// Asserts that a tree is within the limits, has legal paths, and is read as it was counted.
pub(crate) fn assert_tree(tree: &Tree) {
    let limits = limits();
    assert!(tree.len() <= limits.entries && tree.total_bytes() <= limits.total_bytes, "{tree:?}");
    let entries = tree.entries("", None, usize::MAX);
    assert_eq!(entries.len(), tree.len());
    let files = entries.iter().map(|entry| {
        let path = entry.path.as_str();
        assert!(path.len() <= limits.path_bytes && !path.chars().any(char::is_control), "{path:?}");
        assert!(path.split('/').all(|part| !matches!(part, "" | "." | "..")), "{path:?}");
        let bytes = tree.read_all(path).expect("a file of the tree");
        assert_eq!(bytes.len() as u64, entry.size, "{path}");
        assert!(entry.size <= limits.file_bytes, "{path}");
        (entry.path.clone(), bytes)
    });
    let same = MemoryContent::new(files.collect::<Vec<_>>());
    assert_eq!(same.digest(), tree.digest(), "the digest does not match the files");
}

/// Asserts that an error is terminal and explains itself: invalid bytes are not an I/O error.
pub(crate) fn assert_refused(error: &ContentError) {
    assert_eq!(error.class(), FailureClass::Permanent, "{error}");
    assert_message(error);
}

pub(crate) fn assert_message(error: &ContentError) {
    let text = error.to_string();
    assert!(!text.trim().is_empty() && text.len() < 8 << 10, "{} bytes: {text}", text.len());
    assert!(!text.chars().any(char::is_control), "control characters in {text:?}");
    assert!(!error.reason().is_empty());
}
