//! Archives that mean harm, and those that do not.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as well")]

use std::{fmt::Write as _, fs};

use chandler_content::{ContentError, FailureClass, Limits, Store, Tree};
use chandler_core::{Content, Digest};
use proptest::prelude::*;

use crate::common::{Tar, ZipFile, files, gzip, store, zip};

async fn import(store: &Store, bytes: &[u8]) -> Result<Tree, ContentError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bytes).unwrap();
    store.import_archive(file.path()).await
}

#[tokio::test]
async fn a_message_quotes_nothing_of_an_archive() {
    let (_directory, store) = store(Limits::default());
    let mut archive = Tar::new().file("a", "x").plain();
    // Not a number, but what clears a terminal. The sum of the header is right all the same.
    archive[124..136].copy_from_slice(b"\x1b[2J\x1b[2J\x1b[2J");
    archive[148..156].copy_from_slice(b"        ");
    let sum: u32 = archive[..512].iter().map(|byte| u32::from(*byte)).sum();
    archive[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let message = import(&store, &archive).await.unwrap_err().to_string();
    assert!(message.ends_with("numeric field was not a number"), "{message:?}");
}

#[tokio::test]
async fn hostile_entries_are_refused_by_name() {
    let limits =
        Limits { file_bytes: 1000, total_bytes: 2500, entries: 6, depth: 4, path_bytes: 200, ..Limits::default() };
    let (_directory, store) = store(limits);
    let long = "x".repeat(150);
    let big = "x".repeat(1000);
    let cases: Vec<(&str, Tar)> = vec![
        ("absolute path", Tar::new().file("/etc/passwd", "x")),
        ("parent", Tar::new().file("a/../../b", "x")),
        ("parent through a directory", Tar::new().directory("a").file("a/..", "x")),
        ("no name", Tar::new().file("", "x")),
        ("a file without a path", Tar::new().file("./.", "x")),
        ("not UTF-8", Tar::new().entry(b'0', b"a\xff", b"", 0, b"")),
        ("control character", Tar::new().file("a\x1b[2Jb", "x")),
        ("NUL in a long name", Tar::new().entry(b'L', b"l", b"", 4, b"a\0bc").file("b", "x")),
        ("too long", Tar::new().records(b'x', &[("path", &format!("{long}/{long}"))]).file("b", "x")),
        ("too deep", Tar::new().file("a/b/c/d/e/f", "x")),
        ("twice", Tar::new().file("a", "x").file("./a", "y")),
        ("twice as directory and file", Tar::new().directory("a").file("a", "x")),
        ("twice as link and file", Tar::new().file("b", "x").link("a", "b").file("a", "x")),
        ("a file above a file", Tar::new().file("a", "x").file("a/b", "x")),
        ("a file in the place of a directory", Tar::new().file("a/b", "x").file("a", "x")),
        ("through a link", Tar::new().link("a", "/etc").file("a/passwd", "x")),
        ("link out", Tar::new().link("a/b", "../../c")),
        ("absolute link", Tar::new().link("a", "/etc/passwd")),
        ("link to nothing", Tar::new().link("a", "b")),
        ("link to itself", Tar::new().link("a", "a")),
        ("links in a circle", Tar::new().link("a", "b").link("b", "a")),
        ("link to a directory", Tar::new().file("b/c", "x").link("a", "b")),
        ("link below a file", Tar::new().file("b", "x").link("a", "b/c")),
        ("hard link out", Tar::new().hard_link("a", "../b")),
        ("absolute hard link", Tar::new().hard_link("a", "/etc/passwd")),
        ("hard link to what comes later", Tar::new().hard_link("a", "b").file("b", "x")),
        ("hard link to a link", Tar::new().file("c", "x").link("b", "c").hard_link("a", "b")),
        ("hard link to a directory", Tar::new().directory("b").hard_link("a", "b")),
        ("character device", Tar::new().entry(b'3', b"a", b"", 0, b"")),
        ("block device", Tar::new().entry(b'4', b"a", b"", 0, b"")),
        ("fifo", Tar::new().entry(b'6', b"a", b"", 0, b"")),
        ("sparse file", Tar::new().entry(b'S', b"a", b"", 0, b"")),
        ("sparse file of another kind", Tar::new().records(b'x', &[("GNU.sparse.major", "1")]).file("a", "x")),
        ("a directory with bytes", Tar::new().entry(b'5', b"a", b"", 512, &[0; 512])),
        ("a file that is a directory with bytes", Tar::new().file("a/", "x")),
        ("a link with bytes", Tar::new().entry(b'2', b"a", b"b", 1, b"x")),
        ("unknown kind", Tar::new().entry(b'Z', b"a", b"", 0, b"")),
        ("large file", Tar::new().file("a", &"x".repeat(1001))),
        ("large file that is not there", Tar::new().entry(b'0', b"a", b"", 0o77_777_777_777, b"")),
        ("large files together", Tar::new().file("a", &big).file("b", &big).file("c", &big)),
        ("links count", Tar::new().file("a", &big).link("b", "a").hard_link("c", "a")),
        ("many entries", (0..7).fold(Tar::new(), |tar, index| tar.directory(&format!("d{index}")))),
        ("two sizes", Tar::new().records(b'x', &[("size", "600")]).file("a", &big)),
        ("no size", Tar::new().records(b'x', &[("size", "many")]).file("a", "x")),
        ("a path for all", Tar::new().records(b'g', &[("path", "b")]).file("a", "x")),
        ("no records", Tar::new().entry(b'x', b"l", b"", 5, b"hello").file("a", "x")),
        ("a long extended header", Tar::new().records(b'x', &[("comment", &"x".repeat(70_000))]).file("a", "x")),
        ("GNU before PAX", Tar::new().entry(b'L', b"l", b"", 1, b"b").records(b'x', &[("path", "c")]).file("a", "x")),
        ("PAX before GNU", Tar::new().records(b'x', &[("path", "c")]).entry(b'L', b"l", b"", 1, b"b").file("a", "x")),
        (
            "GNU before PAX in a link",
            Tar::new()
                .file("f", "x")
                .entry(b'K', b"l", b"", 1, b"f")
                .records(b'x', &[("linkpath", "g")])
                .link("a", "f"),
        ),
        (
            "PAX before GNU in a link",
            Tar::new()
                .file("f", "x")
                .records(b'x', &[("linkpath", "g")])
                .entry(b'K', b"l", b"", 1, b"f")
                .link("a", "f"),
        ),
        ("two of GNU", Tar::new().entry(b'L', b"l", b"", 1, b"b").entry(b'L', b"l", b"", 1, b"c").file("a", "x")),
        ("two of PAX", Tar::new().records(b'x', &[("path", "b")]).records(b'x', &[("path", "c")]).file("a", "x")),
        ("a long long name", Tar::new().entry(b'L', b"l", b"", 70_000, &[b'x'; 70_000]).file("a", "x")),
    ];
    let mut messages = String::new();
    for (name, tar) in cases {
        let error = import(&store, &tar.gzip()).await.expect_err(name);
        assert_eq!(error.class(), FailureClass::Permanent, "{name}");
        assert_eq!(error.reason(), "InvalidArchive", "{name}");
        writeln!(messages, "{name}: {error}").unwrap();
    }
    insta::assert_snapshot!(messages, @r#"
    absolute path: entry "/etc/passwd": the path is absolute
    parent: entry "a/../../b": the path has a `..` part
    parent through a directory: entry "a/..": the path has a `..` part
    no name: entry "": has no name
    a file without a path: entry "./.": has no name
    not UTF-8: entry "a�": the path is not UTF-8
    control character: entry "a\u{1b}[2Jb": the path has a control character
    NUL in a long name: entry "a\0bc": the path has a control character
    too long: entry "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…": the path is longer than 200 bytes
    too deep: entry "a/b/c/d/e/f": lies deeper than 4 directories
    twice: entry "./a": occurs twice
    twice as directory and file: entry "a": occurs as a directory as well
    twice as link and file: entry "a": occurs twice
    a file above a file: entry "a/b": lies below "a", which is not a directory
    a file in the place of a directory: entry "a": occurs as a directory as well
    through a link: entry "a/passwd": lies below "a", which is not a directory
    link out: entry "a/b": links to "../../c", which is outside
    absolute link: entry "a": links to "/etc/passwd", which is outside
    link to nothing: entry "a": links to "b", which does not exist
    link to itself: entry "a": links to "a", which leads through too many links
    links in a circle: entry "a": links to "b", which leads through too many links
    link to a directory: entry "a": links to "b", which is a directory; only links to files are allowed
    link below a file: entry "a": links to "b/c", which does not exist
    hard link out: entry "a": links to "../b", which is outside
    absolute hard link: entry "a": links to "/etc/passwd", which is outside
    hard link to what comes later: entry "a": links to "b", which does not exist
    hard link to a link: entry "a": is a hard link to "b", which is a symbolic link
    hard link to a directory: entry "a": links to "b", which is a directory; only links to files are allowed
    character device: entry "a": is a device; only regular files, directories and links are allowed
    block device: entry "a": is a device; only regular files, directories and links are allowed
    fifo: entry "a": is a fifo; only regular files, directories and links are allowed
    sparse file: entry "a": is a sparse file; only regular files, directories and links are allowed
    sparse file of another kind: entry "extended": has an extended header that is refused: sparse files are not allowed
    a directory with bytes: entry "a": is not a file but has 512 bytes
    a file that is a directory with bytes: entry "a/": is not a file but has 1 byte
    a link with bytes: entry "a": is not a file but has 1 byte
    unknown kind: entry "a": is a thing of unknown kind; only regular files, directories and links are allowed
    large file: entry "a": is larger than 1000 bytes
    large file that is not there: entry "a": is larger than 1000 bytes
    large files together: its files are larger than 2500 bytes together
    links count: its files are larger than 2500 bytes together
    many entries: it has more than 6 entries
    two sizes: entry "a": has an extended header that is refused: it changes the size of the entry
    no size: entry "extended": has an extended header that is refused: its size is not a number
    a path for all: entry "extended": has an extended header that is refused: it names a path or a size for all entries
    no records: entry "l": has an extended header that is refused: it is not made of records
    a long extended header: entry "extended": has an extended header that is refused: it is larger than 64 KiB
    GNU before PAX: entry "b": has its path from two headers, a GNU header at byte 0 and a PAX header at byte 1024; tools disagree about which one counts
    PAX before GNU: entry "c": has its path from two headers, a PAX header at byte 0 and a GNU header at byte 1024; tools disagree about which one counts
    GNU before PAX in a link: entry "extended": has its link from two headers, a GNU header at byte 1024 and a PAX header at byte 2048; tools disagree about which one counts
    PAX before GNU in a link: entry "l": has its link from two headers, a PAX header at byte 1024 and a GNU header at byte 2048; tools disagree about which one counts
    two of GNU: entry "b": has its path from two headers, a GNU header at byte 0 and a GNU header at byte 1024; tools disagree about which one counts
    two of PAX: entry "b": has its path from two headers, a PAX header at byte 0 and a PAX header at byte 1024; tools disagree about which one counts
    a long long name: entry "l": has an extended header that is refused: it is larger than 64 KiB
    "#);
}

#[tokio::test]
async fn ordinary_archives_are_read() {
    let (_directory, store) = store(Limits::default());
    let long = format!("manifests/{}.yaml", "x".repeat(120));
    let tar = || {
        Tar::new()
            .records(b'g', &[("comment", "a commit")])
            .directory("./")
            .directory("./manifests/")
            .directory("./manifests/")
            .file("./manifests/b.yaml", "b")
            .records(b'x', &[("mtime", "1.5"), ("path", &long), ("size", "4")])
            .file("short", "long")
            .entry(b'L', b"././@LongLink", b"", 16, b"metadata/gnu.yml")
            .entry(b'0', b"short", b"", 3, b"gnu")
            .link("manifests/link.yaml", "./../manifests//b.yaml")
            .link("manifests/onward.yaml", "link.yaml")
            .hard_link("manifests/hard.yaml", "./manifests/b.yaml")
            .file(".wh.kept", "not an image")
    };
    let plain = import(&store, &tar().plain()).await.unwrap();
    let expected = [
        (".wh.kept", "not an image"),
        ("manifests/b.yaml", "b"),
        ("manifests/hard.yaml", "b"),
        ("manifests/link.yaml", "b"),
        ("manifests/onward.yaml", "b"),
        (long.as_str(), "long"),
        ("metadata/gnu.yml", "gnu"),
    ];
    assert_eq!(files(&plain), expected.map(|(path, text)| (path.to_owned(), text.to_owned())));
    // Members of gzip may follow one another, and zstd is read as well.
    let members: Vec<u8> = tar().plain().chunks(1000).flat_map(gzip).collect();
    let zstd = ruzstd::encoding::compress_to_vec(tar().plain().as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
    for bytes in [tar().gzip(), members, zstd] {
        assert_eq!(import(&store, &bytes).await.unwrap().digest(), plain.digest());
    }
}

#[tokio::test]
async fn what_is_no_archive_is_refused() {
    let (_directory, store) = store(Limits::default());
    let whole = Tar::new().file("a", &"text ".repeat(5000)).gzip();
    let mut checksum = Tar::new().file("a", "x").plain();
    checksum[0] = b'b';
    let mut zstd = vec![0x28, 0xb5, 0x2f, 0xfd];
    zstd.extend_from_slice(&[0xff; 100]);
    for (name, bytes) in [
        ("text", b"apiVersion: v1\n".repeat(100)),
        ("an answer of another service", br#"{"AccessKeyId":"SECRET1","SecretAccessKey":"SECRET2"}"#.repeat(20)),
        ("a gzip file that is cut off", whole[..whole.len() / 2].to_vec()),
        ("an archive that is cut off", Tar::new().file("a", &"x".repeat(900)).plain()[..1000].to_vec()),
        ("gzip of text", gzip(&b"hello\n".repeat(200))),
        ("a wrong checksum", checksum),
        ("a damaged zstd file", zstd),
    ] {
        let error = import(&store, &bytes).await.expect_err(name);
        assert!(!error.to_string().contains("SECRET"), "{name}: {error}");
        assert_eq!(error.class(), FailureClass::Permanent, "{name}");
        assert!(error.to_string().starts_with("is not a readable tar archive: "), "{name}: {error}");
    }
    let missing = store.import_archive("/nonexistent".as_ref()).await.unwrap_err();
    assert_eq!(missing.class(), FailureClass::Transient);
    assert_eq!(missing.to_string(), "open /nonexistent: No such file or directory (os error 2)");
}

#[tokio::test]
async fn bombs_are_refused_before_they_go_off() {
    let limits = Limits { unpacked_bytes: 20 << 20, file_bytes: 1 << 40, total_bytes: 1 << 40, ..Limits::default() };
    let (_directory, store) = store(limits);
    let zeros = vec![0; 8 << 20];
    let bomb = Tar::new().entry(b'0', b"a", b"", zeros.len() as u64, &zeros).gzip();
    let error = import(&store, &bomb).await.unwrap_err();
    assert_eq!(error.to_string(), "it unpacks to more than 200 times its compressed size");
    // Incompressible, so that only the size counts.
    let mut state = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33).to_le_bytes()[0]
    })
    .take(21 << 20)
    .collect();
    let error =
        import(&store, &Tar::new().entry(b'0', b"a", b"", noise.len() as u64, &noise).plain()).await.unwrap_err();
    assert_eq!(error.to_string(), "it unpacks to more than 20 MiB");
}

#[tokio::test]
async fn a_tree_has_the_digest_of_its_files() {
    let (_directory, store) = store(Limits::default());
    let tree = import(&store, &Tar::new().file("b", "two").file("a", "one").file("c", "one").gzip()).await.unwrap();
    let (one, two) = (Digest::of(b"one"), Digest::of(b"two"));
    assert_eq!(*tree.digest(), Digest::of_tree([("a", 3, &one), ("b", 3, &two), ("c", 3, &one)]));
    assert_eq!(tree.total_bytes(), 9);
    assert_eq!(tree.read("c", 1, usize::MAX).unwrap(), b"ne");
    assert_eq!(tree.read("c", u64::MAX, 1).unwrap(), b"");
    assert!(tree.read("d", 0, 1).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..4096)) {
        try_import(&bytes);
    }

    #[test]
    fn no_headers_make_it_panic(
        kinds in proptest::collection::vec((any::<u8>(), "[a-c./]{0,8}", "[a-c./]{0,8}", 0_u64..2000, "[a-z0-9 =\n]{0,60}"), 0..8),
    ) {
        let tar = kinds.iter().fold(Tar::new(), |tar, (kind, name, link, size, bytes)| {
            let kind = b"0123456789xgLKSZ\0"[usize::from(*kind) % 17];
            tar.entry(kind, name.as_bytes(), link.as_bytes(), *size, bytes.as_bytes())
        });
        try_import(&tar.plain());
    }

    /// Whatever headers give names in whatever order: an entry that is read has each name from one of them.
    #[test]
    fn a_name_comes_from_one_header(headers in prop::collection::vec(0_usize..4, 0..4)) {
        let mut tar = Tar::new().file("f", "x");
        for header in &headers {
            tar = match header {
                0 => tar.entry(b'L', b"l", b"", 1, b"p"),
                1 => tar.records(b'x', &[("path", "p")]),
                2 => tar.entry(b'K', b"l", b"", 1, b"f"),
                _ => tar.records(b'x', &[("linkpath", "f")]),
            };
        }
        let once = |kinds: [usize; 2]| headers.iter().filter(|header| kinds.contains(header)).count() <= 1;
        let bytes = tar.link("a", "f").plain();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let outcome = runtime.block_on(async {
            let (_directory, store) = store(Limits::default());
            import(&store, &bytes).await.map(|tree| files(&tree).len())
        });
        prop_assert_eq!(outcome.is_ok(), once([0, 1]) && once([2, 3]), "{:?}: {:?}", headers, outcome);
    }

    #[test]
    fn no_damage_makes_it_panic(at in 0_usize..3000, byte in any::<u8>(), compressed in any::<bool>()) {
        let tar = Tar::new().file("manifests/a", "text").link("b", "manifests/a").records(b'x', &[("path", "c")]).file("x", "y");
        let mut bytes = if compressed { tar.gzip() } else { tar.plain() };
        let at = at % bytes.len();
        bytes[at] = byte;
        try_import(&bytes);
    }
}

/// Whatever comes out, it is an answer; and what is accepted can be read.
fn try_import(bytes: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (_directory, store) = store(Limits { entries: 100, ..Limits::default() });
    match runtime.block_on(import(&store, bytes)) {
        Ok(tree) => {
            for entry in tree.entries("", None, usize::MAX) {
                assert_eq!(tree.read_all(&entry.path).unwrap().len() as u64, entry.size);
            }
        }
        // A panic of the work would show as an error of the store.
        Err(error) => assert_eq!(error.class(), FailureClass::Permanent, "{error}"),
    }
}

#[tokio::test]
async fn an_archive_of_a_chart_begins_in_the_directory_of_the_chart() {
    let (_directory, store) = store(Limits::default());
    let chart = || Tar::new().directory("web").file("web/Chart.yaml", "name: web\n").file("web/templates/a.yaml", "a");
    let tree = import(&store, &chart().gzip()).await.unwrap();
    let names = |tree: &Tree| files(tree).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names(&tree), ["Chart.yaml", "templates/a.yaml"]);
    let other = import(&store, &chart().file("web-2/a", "a").gzip()).await.unwrap();
    assert_eq!(names(&other), ["web-2/a", "web/Chart.yaml", "web/templates/a.yaml"]);
    let zipped = [ZipFile::new("web/Chart.yaml", b"name: web\n"), ZipFile::new("web/templates/a.yaml", b"a")];
    assert_eq!(import(&store, &zip(&zipped, false)).await.unwrap().digest(), tree.digest());
}
