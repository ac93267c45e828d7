//! Small packs that make much: every sum is bounded, not only every part.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as well")]

mod packs_of;

use std::{fs, fs::File, sync::atomic::AtomicBool};

use chandler_git::{Entry, GitError, Objects, PackLimits, Stop};

use packs_of::{Pack, tree};

const LIMITS: PackLimits = PackLimits {
    objects: 10_000,
    object_bytes: 64 << 10,
    alive_bytes: 256 << 10,
    all_bytes: 4 << 20,
    work_bytes: 4 << 20,
    path_bytes: 300,
};

fn read(pack: Pack, limits: PackLimits) -> (tempfile::TempDir, Result<Objects, GitError>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("received");
    fs::write(&path, pack.finish()).unwrap();
    let objects = Objects::index(File::open(path).unwrap(), directory.path(), limits, &AtomicBool::new(false));
    (directory, objects)
}

fn refused(pack: Pack, limits: PackLimits) -> Option<GitError> {
    read(pack, limits).1.err()
}

/// The entries of a commit, and why the walk ended, if it did.
fn walked(pack: Pack, commit: [u8; 20], limits: PackLimits) -> (usize, Option<GitError>) {
    let (_directory, objects) = read(pack, limits);
    let (mut objects, mut entries) = (objects.unwrap(), 0);
    let commit = hex::encode(commit).parse().unwrap();
    let missing = objects.missing_files(commit, "", &mut || Ok::<_, ()>(()));
    let walked = objects.walk(commit, "", &mut |_: Entry<'_>| {
        entries += 1;
        Ok::<_, ()>(())
    });
    match (missing, walked) {
        (Ok(_), Ok(())) => (entries, None),
        (_, Err(Stop::Git(error))) | (Err(Stop::Git(error)), _) => (entries, Some(error)),
        (_, Err(Stop::Visitor(()))) | (Err(Stop::Visitor(())), _) => unreachable!("nothing is refused"),
    }
}

/// A ladder: each object is made from the one before, and one more object from each. While the longer branch is made, all of
/// the ladder is kept.
fn ladder(steps: usize, size: usize, is_named: bool) -> Pack {
    let mut pack = Pack::default();
    let mut last = pack.blob(&vec![0; size]);
    for step in 0..steps {
        let text = step.to_string();
        pack.grown(last, text.as_bytes(), is_named);
        last = pack.grown(last, format!("{text}+").as_bytes(), is_named);
    }
    pack
}

#[test]
fn objects_from_which_others_are_made_are_counted_together() {
    for is_named in [false, true] {
        let size = 60_000;
        let most = LIMITS.alive_bytes;
        let pack = ladder(30, size, is_named);
        assert!(pack.len() < 5000, "it is {} bytes", pack.len());
        assert_eq!(refused(pack, LIMITS), Some(GitError::Alive(most)), "named: {is_named}");
        // Few, or small ones, are read.
        assert_eq!(refused(ladder(2, size, is_named), LIMITS), None, "named: {is_named}");
        assert_eq!(refused(ladder(30, 1000, is_named), LIMITS), None, "named: {is_named}");
    }
}

#[test]
fn a_chain_keeps_two_objects_only_and_has_an_end() {
    let chain = |steps: usize, size| {
        let mut pack = Pack::default();
        let mut last = pack.blob(&vec![0; size]);
        for step in 0..steps {
            last = pack.grown(last, step.to_string().as_bytes(), false);
        }
        pack
    };
    let limits = PackLimits { all_bytes: 1 << 30, ..LIMITS };
    assert_eq!(refused(chain(100, 60_000), limits), None);
    assert_eq!(refused(chain(4095, 10), limits), None);
    assert_eq!(refused(chain(4096, 10), limits), Some(GitError::Chain(4095)));
}

#[test]
fn all_objects_are_counted_together_before_one_is_made() {
    let mut pack = Pack::default();
    for n in 0..80_u32 {
        pack.blob(&[n.to_be_bytes().as_slice(), &vec![0; 60_000]].concat());
    }
    assert!(pack.len() < 10_000, "it is {} bytes", pack.len());
    assert_eq!(refused(pack, LIMITS), Some(GitError::Bytes(LIMITS.all_bytes)));
}

#[test]
fn one_object_is_refused_by_its_announced_size() {
    let mut pack = Pack::default();
    pack.blob(&vec![0; 64 << 10]);
    assert_eq!(refused(pack, LIMITS), None);
    let mut pack = Pack::default();
    pack.blob(&vec![0; (64 << 10) + 1]);
    assert_eq!(refused(pack, LIMITS), Some(GitError::ObjectBytes(64 << 10)));
    let mut pack = Pack::default();
    let base = pack.blob(b"x");
    pack.announced(base, 1 << 40);
    assert_eq!(refused(pack, LIMITS), Some(GitError::ObjectBytes(64 << 10)));
}

/// Directories with many long names, each in the one before: the names of all are never in memory together.
#[test]
fn nested_directories_are_walked_within_their_bytes() {
    let nested = |depth: usize, names: usize, length: usize| {
        let mut pack = Pack::default();
        let file = pack.blob(b"x").name;
        let mut above = None;
        for _ in 0..depth {
            let mut entries: Vec<_> = (0..names).map(|n| ("100644", format!("b{n:0length$}"), file)).collect();
            entries.extend(above.map(|tree| ("40000", "a".to_owned(), tree)));
            entries.sort_by(|one, other| one.1.cmp(&other.1));
            above = Some(pack.tree(&tree(&entries)).name);
        }
        let commit = pack.commit(above.unwrap()).name;
        (pack, commit)
    };
    let (pack, commit) = nested(3, 100, 100);
    assert_eq!(walked(pack, commit, LIMITS), (302, None));
    // Ten directories of 51 KiB in each other.
    let (pack, commit) = nested(10, 400, 100);
    let limits = PackLimits { work_bytes: 1 << 40, ..LIMITS };
    assert_eq!(walked(pack, commit, limits).1, Some(GitError::Alive(LIMITS.alive_bytes)));
    let (pack, commit) = nested(1, 1, 400);
    assert_eq!(walked(pack, commit, LIMITS).1, Some(GitError::Path(300)));
    let (pack, commit) = nested(200, 1, 100);
    assert_eq!(walked(pack, commit, LIMITS).1, Some(GitError::Path(300)));
}

/// One tree that holds another ten times, and so on: 10^9 entries of a pack of some hundred bytes.
#[test]
fn a_tree_that_occurs_many_times_is_read_until_the_work_is_too_much() {
    let mut pack = Pack::default();
    let file = pack.blob(&[b'x'; 1000]).name;
    let mut inner = pack.tree(&tree(&[("100644", "f".to_owned(), file)])).name;
    for _ in 0..9 {
        let entries: Vec<_> = (0..10).map(|n| ("40000", format!("d{n}"), inner)).collect();
        inner = pack.tree(&tree(&entries)).name;
    }
    let commit = pack.commit(inner).name;
    let limits = PackLimits { work_bytes: 1 << 20, ..LIMITS };
    let (entries, error) = walked(pack, commit, limits);
    assert!(entries < 20_000, "{entries} entries");
    assert_eq!(error, Some(GitError::Work(1 << 20)));
}

/// A file of some bytes at the end of a chain of large ones counts as all of them.
#[test]
fn the_work_of_a_file_is_that_of_its_whole_chain() {
    let mut pack = Pack::default();
    let mut last = pack.blob(&vec![0; 60_000]);
    for step in 0..20 {
        last = pack.grown(last, &[step], false);
    }
    let small = pack.cut(last, 10);
    let entries: Vec<_> = (0..5).map(|n| ("100644", format!("f{n}"), small.name)).collect();
    let root = pack.tree(&tree(&entries)).name;
    let commit = pack.commit(root).name;
    // Three files are 3 * 22 * 60,000 bytes.
    assert_eq!(walked(pack, commit, LIMITS), (3, Some(GitError::Work(LIMITS.work_bytes))));
}
