//! The cache: what crashes, other processes, damage and budgets do to it.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as well")]

mod common;
#[path = "store/limit.rs"]
mod limit;

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::Write as _,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use chandler_content::{Collected, FileSet, Limits, Store, Tree};
use chandler_core::{Content, Digest};
use common::{files, store};
use rustix::fs::{CWD, RenameFlags};

fn set(source: &str, directory: &str, contents: &[(&str, &str)]) -> FileSet {
    FileSet {
        source: source.to_owned(),
        directory: directory.to_owned(),
        files: contents.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect(),
    }
}

async fn tree(store: &Store, text: &str) -> Tree {
    store.import_files(vec![set("a", "", &[("file", text)])]).await.unwrap()
}

fn tree_path(root: &Path, digest: &Digest) -> PathBuf {
    root.join("cache/trees").join(digest.hex())
}

#[tokio::test]
async fn config_maps_become_files() {
    let (_directory, store) = store(Limits::default());
    let sets = vec![
        set("a", "manifests", &[("x.yaml", "x"), ("y.yaml", "y")]),
        set("b", "./metadata/", &[("x.yaml", "x")]),
        set("c", "", &[("root", "")]),
        // The directory again gives the same ConfigMap.
        set("a", "manifests/", &[("x.yaml", "x")]),
    ];
    let tree = store.import_files(sets).await.unwrap();
    let expected = [("manifests/x.yaml", "x"), ("manifests/y.yaml", "y"), ("metadata/x.yaml", "x"), ("root", "")];
    assert_eq!(files(&tree), expected.map(|(path, text)| (path.to_owned(), text.to_owned())));
    assert!(store.import_files(vec![]).await.unwrap().is_empty());
}

#[tokio::test]
async fn config_maps_that_do_not_fit_together_are_refused() {
    let (_directory, store) = store(Limits { total_bytes: 4, file_bytes: 3, entries: 2, ..Limits::default() });
    for (sets, expected) in [
        (
            vec![set("b", "m", &[("x", "1")]), set("a", "m", &[("x", "1")])],
            "duplicate path \"m/x\" found in configmaps [a b]",
        ),
        (vec![set("a", "../m", &[("x", "")])], "entry \"../m/x\": the path has a `..` part"),
        (vec![set("a", "/m", &[("x", "")])], "entry \"/m/x\": the path is absolute"),
        (vec![set("a", "m", &[("..", "")])], "entry \"m/..\": has no name"),
        (vec![set("a", "m", &[("x/y", "")])], "entry \"m/x/y\": has no name"),
        (
            vec![set("a", "", &[("m", "")]), set("b", "m", &[("x", "")])],
            "entry \"m/x\": lies below \"m\", which is not a directory",
        ),
        (vec![set("a", "", &[("x", "1234")])], "entry \"x\": is larger than 3 bytes"),
        (vec![set("a", "", &[("x", "123"), ("y", "12")])], "its files are larger than 4 bytes together"),
        (vec![set("a", "", &[("x", ""), ("y", ""), ("z", "")])], "it has more than 2 entries"),
    ] {
        let error = store.import_files(sets).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[tokio::test]
async fn directories_are_read_with_the_links_that_stay_inside() {
    let (directory, store) = store(Limits::default());
    let source = directory.path().join("source");
    fs::create_dir_all(source.join("manifests/empty")).unwrap();
    fs::write(source.join("manifests/a"), "a").unwrap();
    std::os::unix::fs::symlink("manifests/a", source.join("link")).unwrap();
    std::os::unix::fs::symlink(source.join("manifests/a"), source.join("absolute")).unwrap();
    let tree = store.import_directory(&source).await.unwrap();
    let expected = [("absolute", "a"), ("link", "a"), ("manifests/a", "a")];
    assert_eq!(files(&tree), expected.map(|(path, text)| (path.to_owned(), text.to_owned())));
    fs::write(directory.path().join("outside"), "secret").unwrap();
    for (target, expected) in [
        ("../outside", "links to \"../outside\", which is outside"),
        ("manifests", "links to \"manifests\", which is a directory; only links to files are allowed"),
        ("nothing", "links to \"nothing\", which does not exist"),
        ("bad", "links to \"bad\", which leads through too many links"),
    ] {
        let link = source.join("bad");
        std::os::unix::fs::symlink(target, &link).unwrap();
        let error = store.import_directory(&source).await.unwrap_err();
        assert_eq!(error.to_string(), format!("entry \"bad\": {expected}"));
        fs::remove_file(link).unwrap();
    }
    let listener = std::os::unix::net::UnixListener::bind(source.join("socket")).unwrap();
    let error = store.import_directory(&source).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "entry \"socket\": is a socket; only regular files, directories and links are allowed"
    );
    drop(listener);
    let error = store.import_directory(&directory.path().join("none")).await.unwrap_err();
    assert!(error.to_string().ends_with("none: No such file or directory (os error 2)"), "{error}");
}

/// Another user swaps a file and a directory for links to outside, as fast as possible.
#[tokio::test]
async fn no_link_that_is_swapped_in_is_followed() {
    let (directory, store) = store(Limits::default());
    let (source, outside) = (directory.path().join("source"), directory.path().join("outside"));
    for (root, text) in [(&source, "inside"), (&outside, "secret")] {
        fs::create_dir_all(root.join("directory")).unwrap();
        fs::write(root.join("directory/file"), text).unwrap();
        fs::write(root.join("file"), text).unwrap();
    }
    let swaps = ["file", "directory"].map(|name| {
        let link = directory.path().join(format!("{name}-link"));
        std::os::unix::fs::symlink(outside.join(name), &link).unwrap();
        (source.join(name), link)
    });
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let swapping = std::thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            for (real, link) in &swaps {
                rustix::fs::renameat_with(CWD, real, CWD, link, RenameFlags::EXCHANGE).unwrap();
            }
        }
    });
    let mut outcomes = BTreeSet::new();
    for _ in 0..300 {
        let texts = match store.import_directory(&source).await {
            Ok(tree) => files(&tree).into_iter().map(|(_, text)| text).collect(),
            Err(error) => vec![error.to_string()],
        };
        outcomes.extend(texts);
    }
    stop.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    assert!(outcomes.iter().all(|outcome| !outcome.contains("secret")), "{outcomes:?}");
    // Or the swapping had stopped before the reading began.
    assert!(outcomes.len() > 1, "{outcomes:?}");
}

#[tokio::test]
async fn the_cache_belongs_to_its_user_alone() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("cache");
    fs::create_dir(&root).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for (given, allowed) in [(0o755, true), (0o777, false), (0o775, false), (0o700, true)] {
        fs::set_permissions(&root, fs::Permissions::from_mode(given)).unwrap();
        match Store::open(&root, Limits::default()) {
            Ok(_) => assert!(allowed, "{given:o}"),
            Err(error) => {
                assert!(!allowed, "{given:o}");
                let (root, mode) = (root.display(), given);
                let expected = format!(
                    "use as a cache {root}: other users can write to {root} (mode {mode:04o}); run `chmod go-w {root}` if you trust its content, or name a directory in it"
                );
                assert_eq!(error.to_string(), expected);
            }
        }
        // It may be a mount point, and is not changed.
        assert_eq!(mode(&root), given);
    }
    assert_eq!(["work", "trees", "images"].map(|name| mode(&root.join(name))), [0o700; 3]);
    Store::open(&root.join("deep/er"), Limits::default()).unwrap();
    assert_eq!(mode(&root.join("deep/er")), 0o700);
    let error = Store::open(Path::new("/dev/null/x"), Limits::default()).unwrap_err();
    assert_eq!(error.to_string(), "create directory /dev/null/x: Not a directory (os error 20)");
}

#[test]
fn a_cache_of_another_user_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut root = directory.path().join("cache");
    fs::create_dir(&root).unwrap();
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
    // Only root can give a directory away; for all other users, a directory of root serves as another user's.
    if std::os::unix::fs::chown(&root, Some(65534), None).is_err() {
        root = PathBuf::from("/");
    }
    let error = Store::open(&root, Limits::default()).unwrap_err().to_string();
    assert!(error.contains("belongs to the user") && error.contains("chown"), "{error}");
}

#[test]
fn directories_of_the_cache_are_checked_each_for_itself() {
    for name in ["work", "trees", "images"] {
        let directory = tempfile::tempdir().unwrap();
        let (root, elsewhere) = (directory.path().join("cache"), directory.path().join("elsewhere"));
        Store::open(&root, Limits::default()).unwrap();
        fs::rename(root.join(name), &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, root.join(name)).unwrap();
        let refusal = || Store::open(&root, Limits::default()).unwrap_err().to_string();
        assert!(refusal().contains(&format!("{name} is a symbolic link")), "{}", refusal());
        fs::remove_file(root.join(name)).unwrap();
        fs::rename(&elsewhere, root.join(name)).unwrap();
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o770)).unwrap();
        assert!(refusal().contains(&format!("cache/{name} (mode 0770)")), "{}", refusal());
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        Store::open(&root, Limits::default()).unwrap();
        assert_eq!(fs::metadata(root.join(name)).unwrap().permissions().mode() & 0o777, 0o700);
    }
}

/// Also where the directory of the cache is moved to one that others can enter.
#[tokio::test]
async fn files_of_the_cache_are_for_this_user_only() {
    let (directory, store) = store(Limits::default());
    tree(&store, "text").await;
    let mut directories = vec![directory.path().join("cache/trees")];
    let mut files = 0;
    while let Some(next) = directories.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let (path, metadata) = entry.map(|entry| (entry.path(), entry.metadata().unwrap())).unwrap();
            if metadata.is_dir() {
                directories.push(path);
            } else {
                assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "{}", path.display());
                files += 1;
            }
        }
    }
    assert_eq!(files, 2);
}

#[tokio::test]
async fn a_tree_is_found_again_and_is_the_same() {
    let (directory, store) = store(Limits::default());
    let made = tree(&store, "text").await;
    let digest = made.digest().clone();
    assert_eq!(files(&store.tree(&digest).unwrap()), files(&made));
    drop(made);
    let other = Store::open(&directory.path().join("cache"), Limits::default()).unwrap();
    assert_eq!(files(&other.tree(&digest).unwrap()), [("file".to_owned(), "text".to_owned())]);
    assert!(other.tree(&Digest::of(b"another")).is_none());
}

#[tokio::test]
async fn damage_is_found_when_a_tree_is_opened_and_mended_by_the_next_import() {
    let (directory, store) = store(Limits::default());
    let digest = tree(&store, "text").await.digest().clone();
    let path = tree_path(directory.path(), &digest);
    let overwrite = |name: &str, bytes: &[u8]| fs::write(path.join(name), bytes).unwrap();
    let damages: [(&str, &dyn Fn()); 7] = [
        ("other bytes", &|| overwrite("pack", b"TEXT")),
        ("fewer bytes", &|| overwrite("pack", b"tex")),
        ("no bytes", &|| fs::remove_file(path.join("pack")).unwrap()),
        ("no index", &|| fs::remove_file(path.join("index.json")).unwrap()),
        ("a broken index", &|| overwrite("index.json", b"{")),
        ("another index", &|| overwrite("index.json", br#"{"version":1,"files":{}}"#)),
        ("an index of another version", &|| {
            let text = fs::read_to_string(path.join("index.json")).unwrap();
            overwrite("index.json", text.replace("\"version\":1", "\"version\":2").as_bytes());
        }),
    ];
    for (name, damage) in damages {
        damage();
        assert!(store.tree(&digest).is_none(), "{name}");
        assert!(!path.exists(), "{name}");
        assert_eq!(*tree(&store, "text").await.digest(), digest, "{name}");
        assert!(store.tree(&digest).is_some(), "{name}");
    }
}

#[test]
fn files_that_are_being_received_are_not_leftovers() {
    let (directory, store) = store(Limits::default());
    let mut file = store.temporary_file().unwrap();
    file.write_all(b"a part").unwrap();
    // Another process starts with the same cache.
    Store::open(&directory.path().join("cache"), Limits::default()).unwrap();
    assert_eq!(fs::read(file.path()).unwrap(), b"a part");
    let path = file.path().to_owned();
    drop(file);
    assert!(!path.exists());
}

#[tokio::test]
async fn leftovers_of_a_crash_are_removed_unless_a_process_works_on_them() {
    let (directory, first) = store(Limits::default());
    let root = directory.path().join("cache");
    let leftover = root.join("work/leftover/tree");
    fs::create_dir_all(&leftover).unwrap();
    // Another process is at work: it holds the lock.
    let other = File::options().write(true).open(root.join("lock")).unwrap();
    other.lock_shared().unwrap();
    Store::open(&root, Limits::default()).unwrap();
    assert!(leftover.exists());
    drop(other);
    Store::open(&root, Limits::default()).unwrap();
    assert!(!leftover.exists());
    // An unfinished tree is not visible, and work leaves nothing behind.
    tree(&first, "text").await;
    assert_eq!(fs::read_dir(root.join("work")).unwrap().count(), 0);
}

#[tokio::test]
async fn several_at_once_make_one_tree() {
    let (_directory, store) = store(Limits::default());
    let jobs = (0..8).map(|_| {
        let store = store.clone();
        tokio::spawn(async move { tree(&store, "text").await.digest().clone() })
    });
    let mut digests = Vec::new();
    for job in jobs.collect::<Vec<_>>() {
        digests.push(job.await.unwrap());
    }
    digests.dedup();
    assert_eq!(digests.len(), 1);
}

/// Sets the time at which a tree was last used.
fn used(root: &Path, digest: &Digest, seconds_ago: u64) {
    let index = File::open(tree_path(root, digest).join("index.json")).unwrap();
    index.set_modified(SystemTime::now() - Duration::from_secs(seconds_ago)).unwrap();
}

#[tokio::test]
async fn collecting_removes_what_was_not_used_for_the_longest_time() {
    let (directory, store) = store(Limits::default());
    let mut digests = Vec::new();
    for text in ["old", "older", "oldest", "kept", "open"] {
        digests.push(tree(&store, text).await.digest().clone());
    }
    let open = store.tree(&digests[4]).unwrap();
    for (digest, seconds_ago) in digests.iter().zip([100, 200, 300, 400, 500]) {
        used(directory.path(), digest, seconds_ago);
    }
    let keep = |digest: &Digest| *digest == digests[3];
    let nothing = store.collect(&keep, u64::MAX).unwrap();
    assert_eq!((nothing.removed, nothing.freed_bytes), (0, 0));
    let most = nothing.kept_bytes - 1;
    let one = store.collect(&keep, most).unwrap();
    assert_eq!((one.removed, one.kept_bytes + one.freed_bytes), (1, nothing.kept_bytes));
    let left = |store: &Store| digests.iter().map(|digest| store.tree(digest).is_some()).collect::<Vec<_>>();
    assert_eq!(left(&store), [true, true, false, true, true]);
    // Open trees stay, here and for other processes, whatever the budget.
    let other = Store::open(&directory.path().join("cache"), Limits::default()).unwrap();
    let rest = other.collect(&keep, 0).unwrap();
    assert_eq!(rest.removed, 2);
    assert_eq!(left(&store), [false, false, false, true, true]);
    assert_eq!(files(&open), [("file".to_owned(), "open".to_owned())]);
    drop(open);
    assert_eq!(store.collect(&|_| false, 0).unwrap().removed, 2);
    assert_eq!(store.collect(&|_| false, 0).unwrap(), Collected::default());
}

#[tokio::test]
async fn a_removed_tree_is_still_read_by_who_has_it() {
    let (directory, store) = store(Limits::default());
    let tree = tree(&store, "text").await;
    fs::remove_dir_all(tree_path(directory.path(), tree.digest())).unwrap();
    assert_eq!(tree.read_all("file").unwrap(), b"text");
}
