use std::{fs, os::unix::fs::PermissionsExt as _};

use chandler_core::{Fact, Object};

use super::*;

fn key(name: &str) -> Digest {
    Digest::of(name.as_bytes())
}

fn release(name: &str) -> Arc<Release> {
    let text = format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}}}}"#);
    Arc::new(Release::new(vec![Object::parse(text.as_bytes(), 0, None).unwrap()], vec![], vec![]))
}

/// A cache that keeps nothing in memory, so that everything comes from the disk.
fn open(directory: &Path, disk_bytes: u64) -> Releases {
    Releases::open(directory, Budget { memory_bytes: 0, disk_bytes }).unwrap()
}

fn file(directory: &Path, name: &str) -> std::path::PathBuf {
    directory.join(key(name).hex())
}

/// As if it was used so long ago.
fn age(directory: &Path, name: &str, age: Duration) {
    let file = fs::File::options().append(true).open(file(directory, name)).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
}

const ROOM: u64 = 1 << 20;

#[tokio::test]
async fn a_release_is_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let releases = open(directory.path(), ROOM);
    assert_eq!(releases.get(&key("a")).await, None);
    releases.insert(key("a"), release("a")).await;
    drop(releases);
    let releases = open(directory.path(), ROOM);
    assert_eq!(releases.get(&key("a")).await, Some(release("a")));
    assert_eq!(releases.get(&key("b")).await, None);
    assert_eq!(fs::metadata(file(directory.path(), "a")).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn memory_comes_before_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let releases = Releases::open(directory.path(), Budget::default()).unwrap();
    releases.insert(key("a"), release("a")).await;
    fs::remove_file(file(directory.path(), "a")).unwrap();
    assert_eq!(releases.get(&key("a")).await, Some(release("a")));
}

#[tokio::test]
async fn what_is_damaged_goes_and_is_kept_anew() {
    let directory = tempfile::tempdir().unwrap();
    let releases = open(directory.path(), ROOM);
    releases.insert(key("a"), release("a")).await;
    let whole = fs::read(file(directory.path(), "a")).unwrap();
    for damaged in [&whole[..whole.len() / 2], b"", b"chandler release 9\n"] {
        fs::write(file(directory.path(), "a"), damaged).unwrap();
        assert_eq!(releases.get(&key("a")).await, None);
        assert!(!file(directory.path(), "a").exists());
        releases.insert(key("a"), release("a")).await;
        assert_eq!(releases.get(&key("a")).await, Some(release("a")));
    }
    // One that was moved to another key is none of that key.
    fs::rename(file(directory.path(), "a"), file(directory.path(), "b")).unwrap();
    assert_eq!(releases.get(&key("b")).await, None);
}

#[tokio::test]
async fn an_unused_release_goes_after_a_day() {
    let directory = tempfile::tempdir().unwrap();
    let releases = open(directory.path(), ROOM);
    let names = ["used", "unused", "recent"];
    for name in names {
        releases.insert(key(name), release(name)).await;
    }
    for name in ["used", "unused"] {
        age(directory.path(), name, UNUSED + Duration::from_mins(1));
    }
    fs::write(directory.path().join("README"), "a file of another program").unwrap();
    let collected = releases.collect(&BTreeSet::from([key("used")])).unwrap();
    assert_eq!(collected.removed, 1);
    assert_eq!(names.map(|name| file(directory.path(), name).exists()), [true, false, true]);
    assert!(directory.path().join("README").exists());
    // Its last use was recorded: after a restart it is unknown until the next use.
    assert_eq!(open(directory.path(), ROOM).collect(&BTreeSet::new()).unwrap().removed, 0);
    assert!(file(directory.path(), "used").exists());
}

#[tokio::test]
async fn the_disk_is_never_filled_beyond_the_budget() {
    let directory = tempfile::tempdir().unwrap();
    let one = format::encode(&key("000"), &release("000")).unwrap().len() as u64;
    let budget = one * 8;
    let releases = open(directory.path(), budget);
    let held = || total(&Files::open(directory.path()).unwrap().list().unwrap());
    for number in 100..140 {
        let name = number.to_string();
        releases.insert(key(&name), release(&name)).await;
        assert!(held() <= budget + one, "{} of {budget}", held());
        assert!(file(directory.path(), &name).exists());
    }
    // Releases in use are evicted last.
    for number in 136..140 {
        age(directory.path(), &number.to_string(), Duration::from_mins(5));
    }
    let used: BTreeSet<Digest> = [key("138"), key("139")].into();
    let collected = open(directory.path(), one * 3).collect(&used).unwrap();
    assert!(collected.kept_bytes <= one * 3);
    assert!(file(directory.path(), "138").exists() && file(directory.path(), "139").exists());
}

#[tokio::test]
async fn what_a_crash_left_goes() {
    let directory = tempfile::tempdir().unwrap();
    let (old, new) = (directory.path().join(".new-old"), directory.path().join(".new-new"));
    for path in [&old, &new] {
        fs::write(path, "half a release").unwrap();
    }
    fs::File::options().append(true).open(&old).unwrap().set_modified(SystemTime::now() - UNUSED).unwrap();
    let releases = open(directory.path(), ROOM);
    assert!(!old.exists() && new.exists());
    assert_eq!(releases.collect(&BTreeSet::new()).unwrap(), Collected { removed: 0, kept_bytes: 0 });
}

#[test]
fn a_directory_that_others_may_write_to_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let error = Releases::open(directory.path(), Budget::default()).err().unwrap().to_string();
    assert!(error.contains("other users can write to") && error.contains("chmod go-w"), "{error}");
}

#[tokio::test]
async fn a_release_that_another_user_wrote_counts_as_absent() {
    let directory = tempfile::tempdir().unwrap();
    let releases = open(directory.path(), ROOM);
    releases.insert(key("a"), release("a")).await;
    // In good form, and with the hash that belongs to it, but made without the key.
    let forged = format::encode(&key("a"), &release("forged")).unwrap();
    for tag in [vec![], vec![0; 32], fs::read(file(directory.path(), "a")).unwrap()[..32].to_vec()] {
        fs::write(file(directory.path(), "a"), [tag, forged.clone()].concat()).unwrap();
        assert_eq!(releases.get(&key("a")).await, None);
        assert!(!file(directory.path(), "a").exists());
        releases.insert(key("a"), release("a")).await;
        assert_eq!(open(directory.path(), ROOM).get(&key("a")).await, Some(release("a")));
    }
    // One that others may write is not read either, whatever is in it.
    fs::set_permissions(file(directory.path(), "a"), fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(releases.get(&key("a")).await, None);
}

#[test]
fn a_directory_of_another_user_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut path = directory.path().join("releases");
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    // Only root can give a directory away; for all other users, a directory of root serves as another user's.
    if std::os::unix::fs::chown(&path, Some(65534), None).is_err() {
        path = "/".into();
    }
    let error = Releases::open(&path, Budget::default()).err().unwrap().to_string();
    assert!(error.contains("belongs to the user"), "{error}");
}

fn target(namespace: &str, version: &str, kinds: &[&str]) -> Target {
    Target {
        name: "bell".into(),
        namespace: namespace.into(),
        kubernetes_version: version.into(),
        api_kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
    }
}

fn read(facts: &[Fact]) -> RecordedFacts {
    facts.iter().cloned().collect()
}

/// Whether a release is found for each of these targets.
async fn found<const N: usize>(releases: &Releases, targets: [&Target; N]) -> [bool; N] {
    let mut found = [false; N];
    for (target, found) in targets.into_iter().zip(&mut found) {
        *found = releases.get_for(&key("inputs"), target).await.is_some();
    }
    found
}

/// Regression: a CRD that no provisioner had read about had every bundle rendered again.
#[tokio::test]
async fn only_what_was_asked_for_makes_another_release() {
    let before = target("a", "v1.35.0", &["v1/Pod"]);
    let elsewhere = target("b", "v1.35.0", &["v1/Pod"]);
    let newer = target("a", "v1.36.0", &["v1/Pod"]);
    let more = target("a", "v1.35.0", &["example.com/v1/Ox", "v1/Pod"]);
    let ox = Fact::Serves { api_version: "example.com/v1".into(), kind: "Ox".into() };
    let goat = Fact::Serves { api_version: "example.com/v1".into(), kind: "Goat".into() };
    for (facts, again) in [
        (read(&[]), [true, true, true, true]),
        (read(&[Fact::Name]), [true, true, true, true]),
        (read(&[Fact::Namespace]), [true, false, true, true]),
        (read(&[Fact::KubernetesVersion]), [true, true, false, true]),
        (read(&[goat]), [true, true, true, true]),
        (read(std::slice::from_ref(&ox)), [true, true, true, false]),
        (read(&[Fact::ApiKinds]), [true, true, true, false]),
        (read(&[Fact::Namespace, ox.clone()]), [true, false, true, false]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let releases = open(directory.path(), ROOM);
        releases.insert_for(&key("inputs"), &before, &facts, release("a")).await;
        assert_eq!(found(&releases, [&before, &elsewhere, &newer, &more]).await, again, "{facts:?}");
        // The result is the same after a restart. Other inputs miss the cache.
        let releases = open(directory.path(), ROOM);
        assert_eq!(found(&releases, [&before, &elsewhere, &newer, &more]).await, again, "{facts:?}");
        assert_eq!(releases.get_for(&key("others"), &before).await, None);
    }
}

/// The value of one fact may lead a provisioner to read another one.
#[tokio::test]
async fn each_answer_may_lead_to_other_questions() {
    let ox = Fact::Serves { api_version: "example.com/v1".into(), kind: "Ox".into() };
    let (without, with) = (target("a", "v1", &["v1/Pod"]), target("a", "v1", &["example.com/v1/Ox", "v1/Pod"]));
    let (one, other) = (read(std::slice::from_ref(&ox)), read(&[ox, Fact::KubernetesVersion]));
    let directory = tempfile::tempdir().unwrap();
    for budget in [Budget { memory_bytes: 0, disk_bytes: ROOM }, Budget::default()] {
        let releases = Releases::open(directory.path(), budget).unwrap();
        releases.insert_for(&key("inputs"), &without, &one, release("a")).await;
        assert_eq!(releases.get_for(&key("inputs"), &with).await, None);
        releases.insert_for(&key("inputs"), &with, &other, release("b")).await;
        for (target, name) in [(&without, "a"), (&with, "b")] {
            assert_eq!(releases.get_for(&key("inputs"), target).await.unwrap().1, release(name));
        }
        let newer = Target { kubernetes_version: "v2".into(), ..with.clone() };
        assert_eq!(releases.get_for(&key("inputs"), &newer).await, None);
        let newer = Target { kubernetes_version: "v2".into(), ..without.clone() };
        assert_eq!(releases.get_for(&key("inputs"), &newer).await.unwrap().1, release("a"));
        releases.collect(&BTreeSet::new()).unwrap();
        fs::read_dir(directory.path()).unwrap().flatten().for_each(|file| {
            if file.file_name() != "key" {
                fs::remove_file(file.path()).unwrap();
            }
        });
    }
}

#[tokio::test]
async fn recorded_facts_are_kept_with_the_release() {
    let directory = tempfile::tempdir().unwrap();
    let releases = open(directory.path(), ROOM);
    let (target, read) = (target("a", "v1", &[]), read(&[Fact::Namespace]));
    let made = releases.insert_for(&key("inputs"), &target, &read, release("a")).await;
    let old = UNUSED + Duration::from_mins(1);
    let age_both = || {
        for key in [&made.inputs, &made.key] {
            let file = fs::File::options().append(true).open(directory.path().join(key.hex())).unwrap();
            file.set_modified(SystemTime::now() - old).unwrap();
        }
    };
    age_both();
    let in_use = BTreeSet::from([made.inputs.clone(), made.key.clone()]);
    assert_eq!(releases.collect(&in_use).unwrap().removed, 0);
    age_both();
    assert_eq!(releases.collect(&BTreeSet::new()).unwrap().removed, 2);
    assert_eq!(releases.get_for(&key("inputs"), &target).await, None);
    // Damaged, it is as if it was never there.
    releases.insert_for(&key("inputs"), &target, &read, release("a")).await;
    fs::write(directory.path().join(made.inputs.hex()), "[]").unwrap();
    assert_eq!(open(directory.path(), ROOM).get_for(&key("inputs"), &target).await, None);
}
