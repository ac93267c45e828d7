//! Packs that git wrote, and damaged ones.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as well")]

use std::{
    fs::{self, File},
    process::{Command, Stdio},
    sync::atomic::AtomicBool,
};

use chandler_git::{CommitId, Entry, GitError, Objects, PackLimits, Stop};
use chandler_test_support::git::Repository;
use tempfile::TempDir;

const LIMITS: PackLimits = PackLimits {
    objects: 1000,
    object_bytes: 1 << 20,
    alive_bytes: 4 << 20,
    all_bytes: 64 << 20,
    work_bytes: 64 << 20,
    path_bytes: 200,
};

/// The pack of everything in a repository.
fn pack(repository: &TempDir) -> Vec<u8> {
    let mut git = Command::new("git");
    git.args(["pack-objects", "--all", "--stdout", "--quiet", "--window=50"]).current_dir(repository.path());
    git.stdin(Stdio::null()).output().unwrap().stdout
}

fn index(pack: &[u8], limits: PackLimits) -> (TempDir, Result<Objects, GitError>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("received");
    fs::write(&path, pack).unwrap();
    let objects = Objects::index(File::open(path).unwrap(), directory.path(), limits, &AtomicBool::new(false));
    (directory, objects)
}

/// The names and texts of the files of a commit.
fn files(pack: &[u8], commit: CommitId) -> Result<Vec<(String, usize)>, GitError> {
    let (_directory, objects) = index(pack, LIMITS);
    let mut found = Vec::new();
    let walked = objects?.walk(commit, "", &mut |entry| {
        if let Entry::File(path, bytes) = entry {
            found.push((String::from_utf8_lossy(path).into_owned(), bytes.len()));
        }
        Ok::<(), ()>(())
    });
    match walked {
        Ok(()) => Ok(found),
        Err(Stop::Git(error)) => Err(error),
        Err(Stop::Visitor(())) => unreachable!("nothing is refused"),
    }
}

fn sample() -> Option<(TempDir, Repository)> {
    chandler_test_support::needs::git_http_backend()?;
    let directory = tempfile::tempdir().unwrap();
    let repository = Repository::create(directory.path());
    Some((directory, repository))
}

/// Text that does not compress to nothing.
fn text(lines: u32) -> Vec<u8> {
    (0..lines).flat_map(|n| format!("{}\n", n.wrapping_mul(2_654_435_761)).into_bytes()).collect()
}

#[test]
fn a_pack_is_read_whole_and_undamaged_or_not_at_all() {
    let Some((directory, repository)) = sample() else { return };
    let long = text(2000);
    let mut longer = long.clone();
    longer.extend_from_slice(b"one more line\n");
    repository.commit("main", &[("100644", "a", &long)]);
    let commit: CommitId =
        repository.commit("main", &[("100644", "a", &longer), ("100644", "b/c", b"x")]).parse().unwrap();
    let whole = pack(&directory);
    let expected = [("a".to_owned(), longer.len()), ("b/c".to_owned(), 1)];
    assert_eq!(files(&whole, commit).unwrap(), expected);
    // Whatever byte is damaged, the checksum at the end or an object does not fit.
    for at in (0..whole.len()).step_by(97).chain([4, 7, 11, whole.len() - 1]) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x21;
        assert!(files(&damaged, commit).is_err(), "byte {at}");
    }
    for length in [0, 11, 12, 100, whole.len() - 1] {
        assert!(files(&whole[..length], commit).is_err(), "{length} bytes");
    }
    let other = "1".repeat(40).parse().unwrap();
    assert_eq!(files(&whole, other), Err(GitError::Object("1".repeat(40))));
}

#[test]
fn large_objects_and_many_are_refused_before_they_are_made() {
    let Some((directory, repository)) = sample() else { return };
    let long = text(2000);
    let commit = repository.commit("main", &[("100644", "a", &long), ("100644", "zeros", &vec![0; 500_000])]);
    let whole = pack(&directory);
    assert!(whole.len() < 100_000, "it is {} bytes", whole.len());
    let (_kept, few) = index(&whole, PackLimits { objects: 3, ..LIMITS });
    assert_eq!(few.err(), Some(GitError::Objects { found: 4, most: 3 }));
    let (_kept, small) = index(&whole, PackLimits { object_bytes: 400_000, ..LIMITS });
    assert!(matches!(small.err(), Some(GitError::ObjectBytes(_))));
    assert!(files(&whole, commit.parse().unwrap()).is_ok());
    // A difference of some bytes that makes a large object.
    repository.commit("main", &[("100644", "zeros", &vec![0; 900_000])]);
    let (_kept, small) = index(&pack(&directory), PackLimits { object_bytes: 600_000, ..LIMITS });
    assert!(matches!(small.err(), Some(GitError::ObjectBytes(_))));
    let mut announced = whole;
    announced[8..12].copy_from_slice(&u32::MAX.to_be_bytes());
    let (_kept, many) = index(&announced, LIMITS);
    assert_eq!(many.err(), Some(GitError::Objects { found: u32::MAX, most: 1000 }));
}
