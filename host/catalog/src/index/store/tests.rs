use std::{os::unix::fs::MetadataExt as _, sync::Barrier};

use chandler_core::MemoryContent;

use super::*;

fn content(name: &str) -> MemoryContent {
    let text =
        format!("schema: olm.package\nname: {name}\n---\nschema: olm.bundle\npackage: {name}\nname: {name}.v1\n");
    MemoryContent::new([("a.yaml", text)])
}

fn inode(indexes: &Indexes, digest: &Digest) -> u64 {
    fs::metadata(indexes.path(digest)).unwrap().ino()
}

#[test]
fn an_index_is_built_once_and_shared() {
    let directory = tempfile::tempdir().unwrap();
    let (limits, content) = (Limits::default(), content("a"));
    let open = || Indexes::open(directory.path().join("indexes")).unwrap();
    let barrier = Barrier::new(4);
    let inodes = std::thread::scope(|scope| {
        let builder = || {
            let indexes = open();
            barrier.wait();
            assert_eq!(indexes.get_or_build(&content, &limits).unwrap().len(), 2);
            inode(&indexes, content.digest())
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(builder)).collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect::<BTreeSet<_>>()
    });
    assert_eq!(inodes.len(), 1);
    let names: BTreeSet<_> =
        fs::read_dir(directory.path().join("indexes")).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "only the index and the lock: {names:?}");
}

/// Whichever byte of the file is altered, and wherever it is cut off, it is built anew.
#[test]
fn a_damaged_index_is_built_anew() {
    let directory = tempfile::tempdir().unwrap();
    let indexes = Indexes::open(directory.path().join("indexes")).unwrap();
    let (limits, content) = (Limits::default(), content("a"));
    indexes.get_or_build(&content, &limits).unwrap();
    let path = indexes.path(content.digest());
    let bytes = fs::read(&path).unwrap();
    let damaged = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        assert!(indexes.get(content.digest()).unwrap().is_none(), "{} bytes", bytes.len());
    };
    for at in 0..bytes.len() {
        let mut altered = bytes.clone();
        altered[at] ^= 0x10;
        damaged(&altered);
        damaged(&bytes[..at]);
    }
    assert_eq!(indexes.get_or_build(&content, &limits).unwrap().len(), 2);
    assert_eq!(fs::read(&path).unwrap(), bytes);
    // The index of another catalog.
    let other = self::content("b");
    indexes.get_or_build(&other, &limits).unwrap();
    fs::copy(indexes.path(other.digest()), &path).unwrap();
    assert!(indexes.get(content.digest()).unwrap().is_none());
}

#[test]
fn a_catalog_that_is_not_readable_has_no_index() {
    let directory = tempfile::tempdir().unwrap();
    let indexes = Indexes::open(directory.path().join("indexes")).unwrap();
    let content = MemoryContent::new([("a.yaml", "schema: olm.package\nname: a\n---\n- x\n---\nschema: b\n")]);
    let error = indexes.get_or_build(&content, &Limits::default()).unwrap_err();
    assert_eq!(error.to_string(), "a.yaml:4: the document is not an object");
    assert!(indexes.get(content.digest()).unwrap().is_none());
    let (index, findings) = indexes.build_for_lint(&content, &Limits::default(), 10).unwrap();
    assert_eq!((index.len(), findings.len()), (2, 1));
    let names: Vec<_> =
        fs::read_dir(directory.path().join("indexes")).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names, ["lock"], "nothing is left");
}

#[test]
fn indexes_that_nothing_needs_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let indexes = Indexes::open(directory.path().join("indexes")).unwrap();
    let limits = Limits::default();
    let [a, b] = ["a", "b"].map(content);
    let open = indexes.get_or_build(&a, &limits).unwrap();
    indexes.get_or_build(&b, &limits).unwrap();
    fs::write(directory.path().join("indexes/.building-x"), "").unwrap();
    indexes.retain(&BTreeSet::from([b.digest().clone()])).unwrap();
    assert!(indexes.get(a.digest()).unwrap().is_none());
    assert!(indexes.get(b.digest()).unwrap().is_some());
    assert!(!directory.path().join("indexes/.building-x").exists());
    assert!(open.package("a").unwrap().is_some(), "an open index stays usable");
}

#[test]
fn the_newest_indexes_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let indexes = Indexes::open(directory.path().join("indexes")).unwrap();
    let built = ["a", "b", "c"].map(content);
    for (seconds, content) in (1..).zip(&built) {
        indexes.get_or_build(content, &Limits::default()).unwrap();
        let file = fs::File::options().append(true).open(indexes.path(content.digest())).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds)).unwrap();
    }
    indexes.keep_newest(2).unwrap();
    let kept = built.map(|content| indexes.get(content.digest()).unwrap().is_some());
    assert_eq!(kept, [false, true, true]);
}

#[test]
fn others_may_not_write_to_the_directory() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(Indexes::open(directory.path()), Err(StoreError::Io { .. })));
}
