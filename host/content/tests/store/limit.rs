//! The limit on everything in the cache, and who gives way when it is reached.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use chandler_content::{
    CacheFull, ContentError, FailureClass, FileSet, ImageOptions, Images, Limits, Store, Tree, Upload, Users,
};
use chandler_core::{Content as _, Digest};
use chandler_turns::Requester;
use parking_lot::Mutex;
use tempfile::TempDir;

use crate::common::store;

const KIB: u64 = 1 << 10;
/// Tenants may write 13 sixteenths of it: 832 KiB.
const LIMIT: u64 = 1 << 20;

/// A store with a limit, and who uses its content.
struct Limited {
    store: Store,
    users: Arc<Mutex<Users>>,
    directory: TempDir,
}

fn of(namespace: &str) -> Requester {
    Requester::new(namespace, "installer")
}

impl Limited {
    fn new() -> Self {
        let (directory, store) = store(Limits::default());
        let users = Arc::<Mutex<Users>>::default();
        store.limit(LIMIT).unwrap();
        let known = Arc::clone(&users);
        store.users_from(move || Some(known.lock().clone()));
        Self { store, users, directory }
    }

    /// Content of about so many KiB.
    async fn add(&self, requester: &Requester, name: &str, kib: usize) -> Result<Digest, ContentError> {
        let tree = import(&self.store.on_behalf_of(requester.clone()), name, kib).await?;
        assert!(on_disk(&self.root()) <= LIMIT, "{} KiB are on the disk", on_disk(&self.root()) / KIB);
        Ok(tree.digest().clone())
    }

    /// Content that is in use.
    async fn install(&self, requester: &Requester, name: &str, kib: usize) -> Result<Digest, ContentError> {
        let digest = self.add(requester, name, kib).await?;
        self.users.lock().entry(digest.clone()).or_default().push(requester.clone());
        Ok(digest)
    }

    fn root(&self) -> PathBuf {
        self.directory.path().join("cache")
    }

    /// Notes that content was used a while ago.
    fn unused_for(&self, digest: &Digest, seconds: u64) {
        let index = fs::File::open(self.root().join("trees").join(digest.hex()).join("index.json")).unwrap();
        index.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
    }
}

async fn import(store: &Store, name: &str, kib: usize) -> Result<Tree, ContentError> {
    // No two files have the same bytes, which would be stored once.
    let text = format!("{name:>1024}").into_bytes().repeat(kib);
    let files = BTreeMap::from([(name.to_owned(), text)]);
    store.import_files(vec![FileSet { source: name.to_owned(), directory: String::new(), files }]).await
}

/// The bytes of all files below a directory.
fn on_disk(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            let metadata = entry.metadata().unwrap();
            if metadata.is_dir() { on_disk(&entry.path()) } else { metadata.len() }
        })
        .sum()
}

fn is_full(error: &ContentError) -> bool {
    let is_full = matches!(error, ContentError::CacheFull(CacheFull::InUse(LIMIT)));
    assert_eq!((error.class(), error.reason(), is_full), (FailureClass::Transient, "CacheFull", true), "{error}");
    is_full
}

#[tokio::test]
async fn content_that_nothing_uses_gives_way_the_oldest_first() {
    let limited = Limited::new();
    let (tenant, mut digests) = (of("a"), Vec::new());
    for number in 0..5 {
        digests.push(limited.add(&tenant, &number.to_string(), 100).await.unwrap());
    }
    for (digest, seconds) in digests.iter().zip([10, 500, 20, 400, 30]) {
        limited.unused_for(digest, seconds);
    }
    limited.add(&tenant, "large", 300).await.unwrap();
    let left: Vec<bool> = digests.iter().map(|digest| limited.store.has(digest)).collect();
    assert_eq!(left, [true, false, true, false, true]);
}

#[tokio::test]
async fn nothing_is_written_beyond_what_is_in_use() {
    let limited = Limited::new();
    let tenant = of("a");
    let digest = limited.install(&tenant, "in use", 500).await.unwrap();
    let taken = limited.store.taken();
    let error = limited.add(&tenant, "more", 300).await.unwrap_err();
    assert!(is_full(&error));
    insta::assert_snapshot!(error, @"the content cache of the controller is full: what is in use takes all of its 1 MiB; delete BundleDeployments that are not needed, or let the administrator raise --content-cache-limit");
    assert!(limited.store.has(&digest));
    assert_eq!(limited.store.taken(), taken, "what was written is gone, and nothing stays reserved");
    // Once it is not in use, it gives way.
    limited.users.lock().clear();
    limited.add(&tenant, "more", 300).await.unwrap();
    assert!(!limited.store.has(&digest));
}

#[tokio::test]
async fn until_it_is_known_what_is_in_use_nothing_is_removed() {
    let (_directory, store) = store(Limits::default());
    store.limit(LIMIT).unwrap();
    let first = import(&store, "first", 600).await.unwrap().digest().clone();
    assert!(is_full(&import(&store, "second", 300).await.unwrap_err()));
    store.users_from(|| None);
    assert!(is_full(&import(&store, "second", 300).await.unwrap_err()));
    assert!(store.has(&first));
    store.users_from(|| Some(Users::new()));
    import(&store, "second", 300).await.unwrap();
}

#[tokio::test]
async fn a_tenant_that_fills_the_cache_gives_it_up_to_others_and_keeps_as_much_as_they_get() {
    let limited = Limited::new();
    let (hostile, honest) = (of("hostile"), of("honest"));
    let mut number = 0;
    while limited.install(&hostile, &format!("hostile {number}"), 50).await.is_ok() {
        number += 1;
    }
    assert!(number >= 6, "{number}");
    // A tenant with nothing is served, again and again, until it has as much.
    let mut honest_ones = Vec::new();
    for number in 0..3 {
        honest_ones.push(limited.install(&honest, &format!("honest {number}"), 50).await.unwrap());
    }
    // The other one does not take it back.
    for number in 0..10 {
        let refused = limited.install(&hostile, &format!("again {number}"), 50).await;
        assert!(refused.is_err_and(|error| is_full(&error)) || number < 2);
    }
    assert!(honest_ones.iter().all(|digest| limited.store.has(digest)));
    // And neither do more accounts of its namespace.
    for account in 0..10 {
        let other = Requester::new("hostile", &account.to_string());
        let _ = limited.install(&other, &format!("account {account}"), 50).await;
    }
    assert!(honest_ones.iter().all(|digest| limited.store.has(digest)));
}

#[tokio::test]
async fn tenants_leave_room_for_administrators() {
    let limited = Limited::new();
    let mut number = 0;
    while limited.install(&of(&format!("tenant {number}")), &number.to_string(), 20).await.is_ok() {
        number += 1;
    }
    limited.install(&Requester::controller(), "a catalog", 20).await.unwrap();
}

#[tokio::test]
async fn many_small_trees_count_by_their_files() {
    let limited = Limited::new();
    let tenant = of("a");
    let mut number = 0_u64;
    while limited.install(&tenant, &number.to_string(), 0).await.is_ok() {
        number += 1;
    }
    // Each has a directory and two files of 16 KiB at least, and another one needs four while it is written.
    assert_eq!(number, (832 - 64) / 48);
}

#[tokio::test]
async fn what_is_being_written_counts() {
    let limited = Limited::new();
    let (a, b) = (limited.store.on_behalf_of(of("a")), limited.store.on_behalf_of(of("b")));
    let mut first = a.temporary_file().unwrap();
    first.append(&vec![0; 700 << 10]).await.unwrap();
    assert!(first.append(&vec![0; 200 << 10]).await.is_err_and(|error| is_full(&error)));
    // Another tenant with less is refused once, and then has the room of the first one, which must end.
    assert!(import(&b, "b", 100).await.is_err_and(|error| is_full(&error)));
    let error = first.append(&[0]).await.unwrap_err();
    assert!(matches!(error, ContentError::CacheFull(CacheFull::GaveWay(LIMIT))), "{error}");
    drop(first);
    import(&b, "b", 100).await.unwrap();
}

#[tokio::test]
async fn records_are_bounded_and_the_oldest_go() {
    let limited = Limited::new();
    // A sixteenth of the limit is for records: four of them.
    let upload =
        |name: &str| Upload { name: name.to_owned(), uid: "1".to_owned(), contents: vec![Digest::of(name.as_bytes())] };
    for name in ["a", "b", "c", "d"] {
        limited.store.remember_upload(&upload(name)).unwrap();
    }
    limited.store.remember_upload(&upload("a")).unwrap();
    let error = ContentError::from(limited.store.remember_upload(&upload("e")).unwrap_err());
    assert!(is_full(&error), "uploads are not forgotten for others");
    limited.store.retain_uploads(|upload| upload.name == "a").unwrap();
    limited.store.remember_upload(&upload("e")).unwrap();
}

#[tokio::test]
async fn what_is_there_at_the_start_counts_and_leftovers_do_not_stay() {
    let limited = Limited::new();
    limited.install(&of("a"), "a", 300).await.unwrap();
    let (root, taken) = (limited.root(), limited.store.taken());
    // A crash while a tree and a record were written.
    fs::create_dir_all(root.join("work/crashed/tree")).unwrap();
    fs::write(root.join("work/crashed/tree/pack"), [0; 1000]).unwrap();
    let record = root.join("images/.new-crashed");
    fs::write(&record, [0; 1000]).unwrap();
    fs::File::open(&record).unwrap().set_modified(SystemTime::now() - Duration::from_hours(1)).unwrap();
    fs::write(root.join("images/.new-now"), [0; 1000]).unwrap();
    let again = Store::open(&root, Limits::default()).unwrap();
    again.limit(LIMIT).unwrap();
    assert!(!root.join("work/crashed").exists() && !record.exists() && root.join("images/.new-now").exists());
    assert_eq!(again.taken(), taken + 16 * KIB, "the record that may be being written");
    assert!(is_full(&import(&again, "b", 600).await.unwrap_err()));
}

#[tokio::test]
async fn a_requester_of_images_is_charged() {
    let limited = Limited::new();
    let images = Images::new(limited.store.clone(), ImageOptions::default()).on_behalf_of(of("a"));
    let digest = import(images.store(), "a", 600).await.unwrap().digest().clone();
    limited.users.lock().insert(digest, vec![of("a")]);
    assert!(is_full(&import(images.store(), "b", 300).await.unwrap_err()), "it leaves a part to administrators");
    import(&limited.store, "b", 100).await.unwrap();
}
