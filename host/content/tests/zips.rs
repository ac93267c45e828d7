//! Zip archives, ordinary and hostile ones.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as well")]

use chandler_content::{ContentError, FailureClass, Limits, Store, Tree};
use chandler_core::Content as _;
use proptest::prelude::*;

use crate::common::{Tar, ZipFile, files, store, zip};

async fn import(store: &Store, bytes: &[u8]) -> Result<Tree, ContentError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    store.import_archive(file.path()).await
}

#[tokio::test]
async fn a_zip_archive_is_the_same_tree_as_a_tar_archive() {
    let (_directory, store) = store(Limits::default());
    let text = "text ".repeat(500);
    let tar = Tar::new().file("manifests/a.yaml", &text).file("b", "b").link("c", "manifests/a.yaml").gzip();
    let tar = import(&store, &tar).await.unwrap();
    for (is_long, zip64) in [(false, false), (true, false), (false, true), (true, true)] {
        let long = |file: ZipFile| ZipFile { is_long, ..file };
        let directory = ZipFile { mode: 0o040_755, ..ZipFile::stored("manifests/", b"") };
        let archive = zip(
            &[
                long(directory),
                long(ZipFile::new("./manifests//a.yaml", text.as_bytes())),
                long(ZipFile::stored("b", b"b")),
                long(ZipFile::link("c", "manifests/a.yaml")),
            ],
            zip64,
        );
        let tree = import(&store, &archive).await.unwrap();
        assert_eq!(files(&tree), files(&tar), "{is_long} {zip64}");
        assert_eq!(tree.digest(), tar.digest());
    }
    assert!(import(&store, &zip(&[], false)).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_would_be_read_differently_or_leaves_the_tree_is_refused() {
    let limits = Limits { file_bytes: 1000, total_bytes: 1500, entries: 4, path_bytes: 60, ..Limits::default() };
    let (_directory, store) = store(limits);
    let file = |name: &str| ZipFile::new(name, b"text");
    let named = |name: &[u8]| ZipFile { name: name.into(), local_name: name.into(), ..file("") };
    let stored = || ZipFile::stored("a", b"text");
    let large = |name: &str| ZipFile::new(name, &[b'x'; 800]);
    let cases: Vec<(&str, Vec<ZipFile>)> = vec![
        ("absolute", vec![file("/etc/passwd")]),
        ("upwards", vec![file("a/../../b")]),
        ("backslashes", vec![file("a\\b")]),
        ("no name", vec![file("")]),
        ("not UTF-8", vec![named(b"a\xff")]),
        ("control characters", vec![named(b"a\nb")]),
        ("long path", vec![file(&"x/".repeat(40))]),
        ("duplicate", vec![file("a"), file("./a")]),
        ("file and directory", vec![file("a"), file("a/b")]),
        ("link out", vec![ZipFile::link("a", "../b")]),
        ("absolute link", vec![ZipFile::link("a", "/etc/passwd")]),
        ("link in a circle", vec![ZipFile::link("a", "b"), ZipFile::link("b", "a")]),
        ("through a link", vec![ZipFile::link("a", "b"), file("a/c")]),
        ("a link with a long target", vec![ZipFile::link("a", &"x".repeat(100))]),
        ("a device", vec![ZipFile { mode: 0o020_666, ..file("a") }]),
        ("a fifo", vec![ZipFile { mode: 0o010_666, ..file("a") }]),
        ("a directory with bytes", vec![ZipFile::new("a/", b"text")]),
        ("encrypted", vec![ZipFile { flags: 1, ..file("a") }]),
        ("another method", vec![ZipFile { method: 14, ..file("a") }]),
        ("two names", vec![ZipFile { local_name: "b".into(), ..file("a") }]),
        ("a wrong checksum", vec![ZipFile { checksum: 1, ..file("a") }]),
        ("fewer bytes than announced", vec![ZipFile { size: 5, ..file("a") }]),
        ("more bytes than announced", vec![ZipFile { size: 3, ..file("a") }]),
        ("bytes that do not decompress", vec![ZipFile { method: 8, ..stored() }]),
        ("shared bytes", vec![stored(), ZipFile { place: Some(0), ..stored() }]),
        ("a header elsewhere", vec![ZipFile { place: Some(7), ..stored() }]),
        ("a header after the end", vec![ZipFile { place: Some(1 << 30), ..stored() }]),
        ("a header far after the end", vec![ZipFile { place: Some(u64::MAX), is_long: true, ..stored() }]),
        ("a large file", vec![ZipFile::new("a", &[b'x'; 1001])]),
        ("large files together", vec![large("a"), large("b")]),
        ("many entries", (0..5).map(|number| file(&format!("{number}"))).collect()),
    ];
    let mut messages = Vec::new();
    for (name, entries) in cases {
        let error = import(&store, &zip(&entries, false)).await.expect_err(name);
        assert_eq!(error.class(), FailureClass::Permanent, "{name}: {error}");
        messages.push(format!("{name}: {error}"));
    }
    insta::assert_snapshot!(messages.join("\n"));
}

#[tokio::test]
async fn damaged_directories_are_refused() {
    let (_directory, store) = store(Limits::default());
    let whole = zip(&[ZipFile::stored("a", b"text"), ZipFile::stored("b", b"text")], false);
    let end = whole.len() - 22;
    let with = |at: usize, bytes: &[u8]| {
        let mut damaged = whole.clone();
        damaged.splice(at..at + bytes.len(), bytes.iter().copied());
        damaged
    };
    // The long form has its own place of the directory, 20 bytes before its locator.
    let long = zip(&[ZipFile::stored("a", b"text")], true);
    let far = [&long[..long.len() - 50], &[0xff; 8], &long[long.len() - 42..]].concat();
    for (name, bytes) in [
        ("a directory far after the end", far),
        ("cut off", whole[..end].to_vec()),
        ("cut off in the end", whole[..end + 10].to_vec()),
        ("fewer entries", with(end + 8, &[1, 0, 1, 0])),
        ("more entries", with(end + 8, &[3, 0, 3, 0])),
        ("a directory after the end", with(end + 16, &[0xff, 0xff, 0xff, 0x7f])),
        ("a directory with another magic number", with(end - 94, b"PK\x01\x03")),
        ("only the magic number", b"PK\x03\x04".to_vec()),
    ] {
        let error = import(&store, &bytes).await.expect_err(name);
        assert_eq!(error.class(), FailureClass::Permanent, "{name}");
        assert!(error.to_string().starts_with("is not a readable zip archive: "), "{name}: {error}");
    }
}

#[tokio::test]
async fn zip_bombs_are_refused_before_they_go_off() {
    let limits = Limits { file_bytes: 1 << 40, total_bytes: 1 << 40, ..Limits::default() };
    let (_directory, store) = store(limits);
    let zeros = vec![0; 6 << 20];
    let error = import(&store, &zip(&[ZipFile::new("a", &zeros)], false)).await.unwrap_err();
    assert_eq!(error.to_string(), "it unpacks to more than 200 times its compressed size");
    // Each file alone is small.
    let parts: Vec<ZipFile> = (0..8).map(|number| ZipFile::new(&number.to_string(), &zeros[..1 << 20])).collect();
    let error = import(&store, &zip(&parts, false)).await.unwrap_err();
    assert_eq!(error.to_string(), "it unpacks to more than 200 times its compressed size");
    // Announced as small.
    let liar = ZipFile { size: 10, ..ZipFile::new("a", &zeros) };
    let error = import(&store, &zip(&[liar], false)).await.unwrap_err();
    assert!(error.to_string().starts_with("is not a readable zip archive: "), "{error}");
    // Many names of the same bytes.
    let one = ZipFile::stored("a", &[b'x'; 1000]);
    let again = (0..100).map(|number| ZipFile {
        name: number.to_string().into(),
        local_name: number.to_string().into(),
        place: Some(0),
        ..one.clone()
    });
    let all: Vec<ZipFile> = std::iter::once(one.clone()).chain(again).collect();
    let error = import(&store, &zip(&all, false)).await.unwrap_err();
    assert!(error.to_string().contains("has a header that differs"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_damage_makes_it_panic(at in 0_usize..1000, byte in any::<u8>(), zip64 in any::<bool>()) {
        let file = ZipFile { is_long: zip64, ..ZipFile::new("manifests/a", b"text text text text") };
        let mut bytes = zip(&[file, ZipFile::link("b", "manifests/a"), ZipFile::stored("c/", b"")], zip64);
        let at = at % bytes.len();
        bytes[at] = byte;
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (_directory, store) = store(Limits { entries: 100, ..Limits::default() });
        match runtime.block_on(import(&store, &bytes)) {
            Ok(tree) => for entry in tree.entries("", None, usize::MAX) {
                prop_assert_eq!(tree.read_all(&entry.path).unwrap().len() as u64, entry.size);
            },
            // A panic of the work would show as an error of the store.
            Err(error) => prop_assert_eq!(error.class(), FailureClass::Permanent, "{}", error),
        }
    }
}
