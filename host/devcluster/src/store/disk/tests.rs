use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
};

use redb::ReadableDatabase as _;
use serde_json::json;

use super::{Disk, journal::PENDING};
use crate::store::{
    DataDirectory, Expected, Key, Limits, OpenError, Scope, Secrets, Store,
    state::{Committed, Restored},
};

fn key(name: &str) -> Key {
    Key::new("configmaps".into(), "default", name)
}

fn open(path: &Path) -> Result<Store, OpenError> {
    DataDirectory::open(path)?.store(Limits::default())
}

/// Accepts writes one by one, as the test decides.
struct Scripted {
    results: Receiver<Result<(), String>>,
    closed: Sender<u64>,
}

impl Disk for Scripted {
    fn path(&self) -> &Path {
        Path::new("/data/objects.redb")
    }

    fn write(&mut self, _: &[Committed]) -> Result<(), String> {
        self.results.recv().unwrap_or(Ok(()))
    }

    fn close(self: Box<Self>, revision: u64) -> Result<(), String> {
        self.closed.send(revision).map_err(|error| error.to_string())
    }
}

fn scripted() -> (Store, Sender<Result<(), String>>, Receiver<u64>) {
    let (results, script) = channel();
    let (closed, revision) = channel();
    let restored = Restored { revision: 10, objects: Vec::new(), meter: Arc::default(), recovered: None };
    let store = Store::restore(Box::new(Scripted { results: script, closed }), restored, Limits::default()).unwrap();
    (store, results, revision)
}

#[tokio::test]
async fn watches_show_only_durable_changes() {
    let (store, disk, closed) = scripted();
    let mut watch = store.watch(Scope::everything(), store.revision()).unwrap();
    let object = store.put(key("x"), Expected::Absent, json!({})).unwrap();
    assert!(store.get(&key("x")).is_some(), "reads show it at once");
    assert!(watch.ready().unwrap().events.is_empty());
    disk.send(Ok(())).unwrap();
    store.durable(object.revision()).await.unwrap();
    assert_eq!(watch.next().await.unwrap().events.len(), 1);
    store.close();
    assert_eq!(closed.recv().unwrap(), object.revision());
}

#[tokio::test]
async fn a_disk_that_fails_confirms_nothing_and_loses_nothing_in_memory() {
    let (store, disk, _closed) = scripted();
    let first = store.put(key("x"), Expected::Absent, json!({})).unwrap();
    disk.send(Ok(())).unwrap();
    store.durable(first.revision()).await.unwrap();
    let second = store.put(key("y"), Expected::Absent, json!({})).unwrap();
    disk.send(Err("no space left on device".to_owned())).unwrap();
    let failure = store.durable(second.revision()).await.unwrap_err();
    insta::assert_snapshot!(failure, @"cannot write /data/objects.redb: no space left on device; no further changes are saved until a restart");
    store.durable(first.revision()).await.unwrap();
    assert!(store.failure().is_some());
    // No writer blocks forever.
    for number in 0..=2 * PENDING {
        store.put(key(&number.to_string()), Expected::Absent, json!({})).unwrap();
    }
    assert!(store.get(&key("y")).is_some());
}

#[test]
fn writers_are_held_up_when_too_much_is_pending() {
    let (store, disk, closed) = scripted();
    let writer = std::thread::spawn({
        let store = store.clone();
        move || {
            for number in 0..3 * PENDING {
                store.put(key(&number.to_string()), Expected::Absent, json!({})).unwrap();
            }
        }
    });
    while store.revision() < 10 + PENDING as u64 {
        std::thread::yield_now();
    }
    // The thread holds some and the queue some; far from all got through.
    assert!(store.revision() < 10 + 3 * PENDING as u64);
    drop(disk);
    writer.join().unwrap();
    let revision = store.revision();
    drop(store);
    assert_eq!(closed.recv().unwrap(), revision);
}

#[test]
fn objects_and_revisions_survive_and_history_does_not() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).unwrap();
    let first = store.put(key("x"), Expected::Absent, json!({"kind": "A", "apiVersion": "v1"})).unwrap();
    let second = store.put_until(key("y"), Expected::Absent, json!({"data": 1.5}), 100).unwrap();
    store.put(key("z"), Expected::Absent, json!({})).unwrap();
    let gone = store.delete(&key("z"), store.revision(), None).unwrap();
    drop(store);

    let store = open(directory.path()).unwrap();
    assert_eq!(store.revision(), gone.revision());
    let listing = store.list_now(&Scope::everything());
    assert_eq!(listing.objects.len(), 2);
    for (object, name) in [(first, "x"), (second, "y")] {
        let found = store.get(&key(name)).unwrap();
        assert_eq!(found.revision(), object.revision());
        assert_eq!(found.json(), object.json());
        assert_eq!(found.item_json(), object.item_json());
        assert_eq!(found.value(), object.value());
    }
    assert!(store.watch(Scope::everything(), gone.revision() - 1).is_err());
    assert!(store.list(&Scope::everything(), Some(gone.revision() - 1)).is_err());
    assert!(store.watch(Scope::everything(), gone.revision()).is_ok());
    let next = store.put(key("z"), Expected::Absent, json!({})).unwrap();
    assert_eq!(next.revision(), gone.revision() + 1);
    assert_eq!(store.next_expiry(), Some(100));
    assert_eq!(store.expire(100), 1);
}

#[tokio::test]
async fn after_a_crash_revisions_are_skipped() {
    let (directory, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = open(directory.path()).unwrap();
    let object = store.put(key("x"), Expected::Absent, json!({})).unwrap();
    store.durable(object.revision()).await.unwrap();
    // As a killed process leaves the file.
    let file = copy.path().join("objects.redb");
    fs::copy(directory.path().join("objects.redb"), &file).unwrap();
    let after = open(copy.path()).unwrap();
    assert!(after.get(&key("x")).is_some());
    assert!(after.revision() > store.revision() + PENDING as u64);
    let message = after.recovered().unwrap().to_string().replace(&*file.to_string_lossy(), "FILE");
    insta::assert_snapshot!(message, @"FILE was not closed, as after a crash: 1 object restored, up to revision 2; all writes that were confirmed are there");
    drop(after);
    assert_eq!(open(copy.path()).unwrap().recovered(), None);
}

/// The size of a page of the database.
const PAGE: usize = 4096;

/// A machine that stops in the middle of a write leaves some of its pages on disk and some not.
#[tokio::test]
async fn a_write_that_is_torn_takes_nothing_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).unwrap();
    let put = async |name: &str| {
        let object = store.put(key(name), Expected::Absent, json!({"data": name.repeat(9000)})).unwrap();
        store.durable(object.revision()).await.unwrap();
        fs::read(directory.path().join("objects.redb")).unwrap()
    };
    put("x").await;
    let (before, after) = (put("y").await, put("z").await);
    let page = |bytes: &[u8], number: usize| bytes.get(number * PAGE..(number + 1) * PAGE).map(<[u8]>::to_vec);
    let changed: Vec<usize> =
        (0..after.len() / PAGE).filter(|number| page(&before, *number) != page(&after, *number)).collect();
    assert!(changed.len() > 3, "{changed:?}");
    let torn = |written: &[usize]| {
        let mut bytes = before.clone();
        bytes.resize(after.len().max(before.len()), 0);
        for number in written {
            bytes[number * PAGE..(number + 1) * PAGE].copy_from_slice(&after[number * PAGE..(number + 1) * PAGE]);
        }
        let copy = tempfile::tempdir().unwrap();
        fs::write(copy.path().join("objects.redb"), bytes).unwrap();
        fs::set_permissions(copy.path().join("objects.redb"), fs::Permissions::from_mode(0o600)).unwrap();
        let found = open(copy.path()).unwrap_or_else(|error| panic!("{written:?}: {error}"));
        assert!(found.get(&key("x")).is_some() && found.get(&key("y")).is_some(), "{written:?}");
        assert!(found.recovered().is_some(), "{written:?}");
    };
    for end in 0..=changed.len() {
        torn(&changed[..end]);
        torn(&changed[end..]);
    }
}

/// Writes a file in place of the objects and opens it.
fn refusal(bytes: &[u8]) -> String {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path()).unwrap());
    let path = directory.path().join("objects.redb");
    fs::write(&path, bytes).unwrap();
    let error = open(directory.path()).unwrap_err();
    assert_eq!(fs::read(&path).unwrap(), bytes, "the file stays as it is");
    error.to_string().replace(&*path.to_string_lossy(), "FILE")
}

#[test]
fn invalid_data_files_are_named_and_left_alone() {
    let sound = {
        let directory = tempfile::tempdir().unwrap();
        drop(open(directory.path()).unwrap());
        fs::read(directory.path().join("objects.redb")).unwrap()
    };
    let mut bolt = vec![0; 64];
    bolt[16..20].copy_from_slice(&[0xed, 0xda, 0x0c, 0xed]);
    bolt[0] = 1;
    let files: [&[u8]; 10] = [
        b"",
        &sound[..5],
        &sound[..20],
        &sound[..sound.len() / 2],
        &[0; 8192],
        b"SQLite format 3\0 and more",
        &bolt,
        b"{\"kind\": \"List\"}",
        b"\x1f\x8b\x08\x00\x00",
        b"hello",
    ];
    let messages: Vec<String> = files
        .iter()
        .map(|bytes| {
            refusal(bytes).replace(&sound.len().to_string(), "ALL").replace(&(sound.len() / 2).to_string(), "HALF")
        })
        .collect();
    insta::assert_snapshot!(messages.join("\n"), @r"
    FILE is empty, so all its data is lost: restore it from a copy, or run `rm FILE` to start with an empty control plane
    FILE is truncated: it has 5 bytes; restore it from a copy, or move it away to start with an empty control plane
    FILE is truncated: it has 20 bytes; restore it from a copy, or move it away to start with an empty control plane
    FILE is truncated: it has HALF bytes of ALL; restore it from a copy, or move it away to start with an empty control plane
    FILE is not a data file of this program (it begins with zero bytes, as after a crash of the machine or a failed copy): choose another directory, or move the file away
    FILE is not a data file of this program (it is an SQLite database): choose another directory, or move the file away
    FILE is not a data file of this program (it is the database of an etcd): choose another directory, or move the file away
    FILE is not a data file of this program (it is JSON): choose another directory, or move the file away
    FILE is not a data file of this program (it is gzip-compressed: unpack it first): choose another directory, or move the file away
    FILE is not a data file of this program (it does not begin like one): choose another directory, or move the file away
    ");
}

#[test]
fn a_database_of_another_program_is_not_written_to() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path()).unwrap());
    let path = directory.path().join("objects.redb");
    for (table, fails) in [(None, true), (Some("facts of others"), true), (Some("facts"), true)] {
        fs::write(&path, "").unwrap();
        let database = redb::Database::create(&path).unwrap();
        if let Some(table) = table {
            let transaction = database.begin_write().unwrap();
            transaction
                .open_table(redb::TableDefinition::<&str, &str>::new(table))
                .unwrap()
                .insert("format", "1")
                .unwrap();
            transaction.commit().unwrap();
        }
        drop(database);
        let error = open(directory.path()).err();
        assert_eq!(matches!(error, Some(OpenError::Foreign { .. })), fails, "{table:?}: {error:?}");
        let database = redb::Database::create(&path).unwrap();
        let tables = database.begin_read().unwrap().list_tables().unwrap().count();
        assert_eq!(tables, usize::from(table.is_some()));
    }
}

#[test]
fn a_new_file_appears_whole() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).unwrap();
    assert_eq!(store.recovered(), None);
    let names: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["objects.redb"], "nothing is left of making it");
    // As a process leaves the file that was killed while creating it.
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("objects.redb.1.next"), "").unwrap();
    assert_eq!(open(directory.path()).unwrap().revision(), 1);
}

#[test]
fn two_cannot_have_it_open() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).unwrap();
    let error = open(directory.path()).unwrap_err();
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    store.close();
    open(directory.path()).unwrap();
}

#[test]
fn another_format_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path()).unwrap());
    let path = directory.path().join("objects.redb");
    let database = redb::Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    let facts = redb::TableDefinition::<&str, u64>::new("facts");
    transaction.open_table(facts).unwrap().insert("format", 2).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = open(directory.path()).unwrap_err().to_string().replace(&*path.to_string_lossy(), "FILE");
    insta::assert_snapshot!(error, @"FILE has format 2, this program reads format 1: use the program that wrote it, or choose another directory");
}

/// Whatever is changed in the file: it is refused, or what it holds is what was written.
#[test]
fn damaged_files_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).unwrap();
    for number in 0..30 {
        let value = json!({"kind": "A", "data": {"text": "x".repeat(number * 20)}});
        store.put(key(&number.to_string()), Expected::Absent, value).unwrap();
    }
    let expected: Vec<_> =
        store.list_now(&Scope::everything()).objects.iter().map(|(_, object)| object.json()).collect();
    drop(store);
    let path = directory.path().join("objects.redb");
    let sound = fs::read(&path).unwrap();
    let mut refused = 0;
    let check = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        match open(directory.path()) {
            Ok(store) => {
                let found = store.list_now(&Scope::everything());
                let found: Vec<_> = found.objects.iter().map(|(_, object)| object.json()).collect();
                assert_eq!(found, expected);
                false
            }
            Err(error) => {
                let told = matches!(
                    error,
                    OpenError::Damaged { .. }
                        | OpenError::CutOff { .. }
                        | OpenError::Foreign { .. }
                        | OpenError::Format { .. }
                );
                assert!(told, "{error:?}");
                assert!(error.to_string().contains("objects.redb"), "{error}");
                true
            }
        }
    };
    assert!(check(b"no database at all"));
    assert!(check(&sound[..sound.len() / 2]));
    // Positions without a pattern, all over the file.
    for step in 0..100_usize {
        let mut bytes = sound.clone();
        let at = step.wrapping_mul(2_654_435_761) % bytes.len();
        for byte in bytes.iter_mut().skip(at).take(1 + step % 64) {
            *byte ^= 0x5a;
        }
        refused += usize::from(check(&bytes));
    }
    assert!(refused > 0);
    assert!(!check(&sound));
}

#[test]
fn files_readable_by_others_are_refused_and_never_created() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("made/here");
    let directory = DataDirectory::open(&path).unwrap();
    drop(directory.store(Limits::default()).unwrap());
    assert_eq!(directory.secret("token").unwrap(), None);
    directory.keep_secret("token", "one").unwrap();
    directory.keep_secret("token", "two").unwrap();
    assert_eq!(directory.secret("token").unwrap().as_deref(), Some("two"));
    let secrets = Secrets::Kept(directory.clone());
    let make = |text: &str| secrets.get_or_make("key", || Ok::<_, OpenError>(text.to_owned())).unwrap();
    assert_eq!((make("first"), make("second")), ("first".to_owned(), "first".to_owned()));
    fs::write(path.join("key"), "").unwrap();
    assert!(matches!(directory.secret("key").unwrap_err(), OpenError::Damaged { .. }));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&path), 0o700);
    for file in ["objects.redb", "token"] {
        assert_eq!(mode(&path.join(file)), 0o600);
        fs::set_permissions(path.join(file), fs::Permissions::from_mode(0o640)).unwrap();
    }
    let errors = [directory.store(Limits::default()).err(), directory.secret("token").err()];
    for error in errors.into_iter().flatten() {
        assert!(matches!(error, OpenError::Exposed { mode: 0o640, wanted: 0o600, .. }), "{error}");
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
    let error = DataDirectory::open(&path).unwrap_err().to_string().replace(&*path.to_string_lossy(), "DIR");
    insta::assert_snapshot!(error, @"DIR is open to other users (mode 0777): run `chmod 700 DIR`");
    let file = parent.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(DataDirectory::open(&file).unwrap_err(), OpenError::Io { .. }));
}
