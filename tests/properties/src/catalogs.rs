//! Catalogs: any files are an index or findings with a place, and no file is an index that makes its reader fail.

use std::{fs, sync::OnceLock};

use arbitrary::{Arbitrary, Unstructured};
use chandler_catalog::{CatalogError, Index, Indexes, Item, Limits, Meta, Query, lint, read};
use chandler_core::{Content as _, MemoryContent};
use tempfile::TempDir;

use crate::{archive::Archive, memory};

/// Small limits, so that inputs reach them, and so that everything is sorted on the disk.
fn limits() -> Limits {
    Limits {
        files: 20,
        metas: 200,
        document_bytes: 64 << 10,
        depth: 40,
        nodes: 20_000,
        name_bytes: 64,
        path_bytes: 2 << 10,
        ignore_bytes: 1 << 10,
        ignore_patterns: 20,
        sort_bytes: 2 << 10,
    }
}

const MEMORY: usize = 32 << 20;
const MEMORY_PER_BYTE: usize = 2000;

/// The reader, the index and the rules, on any files.
pub(crate) fn holds(input: &[u8]) {
    let content = MemoryContent::new(Archive::read(input).files);
    let limits = limits();
    let (metas, findings) = memory::bounded(input, MEMORY, MEMORY_PER_BYTE, || documents(&content, &limits));
    for meta in &metas {
        let raw = meta.span.raw(&content).expect("a document is where it was read");
        assert!(!meta.schema.is_empty() && raw.len() as u64 == meta.span.length);
        let json = meta.span.json(&content, &limits).expect("a document can be read again");
        assert!(serde_json::from_slice::<serde_json::Value>(&json).is_ok_and(|json| json.is_object()));
    }
    let directory = directory();
    let Ok(indexes) = Indexes::open(directory.path()) else { panic!("a directory of this user") };
    let Ok((index, found)) = indexes.build_for_lint(&content, &limits, usize::MAX) else {
        // Only a limit on files, paths or documents ends the reading.
        let files = content.entries("", None, 100);
        let paths: usize = files.iter().map(|file| file.path.len()).sum();
        let many = files.len() > limits.files || paths > limits.path_bytes;
        return assert!(many || metas.len() as u64 >= limits.metas);
    };
    assert_eq!(found, findings);
    assert_eq!(index.len(), metas.len() as u64);
    let listed: Vec<_> = index.metas(Query::default()).and_then(Iterator::collect).expect("a new index");
    assert!(listed.iter().map(|record| &record.span).eq(metas.iter().map(|meta| &meta.span)));
    for finding in found.iter().chain(&lint::catalog(&index, 100).expect("a new index")) {
        let text = content.read_all(&finding.place.file).expect("a finding is in a file");
        let lines = text.split(|byte| matches!(byte, b'\n' | b'\r')).count();
        assert!((1..=lines + 1).contains(&(finding.place.line as usize)), "{finding}");
        assert!(!finding.diagnostic().message.is_empty());
    }
    let kept = indexes.get_or_build(&content, &limits);
    assert_eq!(kept.is_ok(), found.is_empty(), "an index is kept exactly if all documents are readable");
}

fn documents(content: &MemoryContent, limits: &Limits) -> (Vec<Meta>, Vec<chandler_catalog::Finding>) {
    let (mut metas, mut findings) = (Vec::new(), Vec::new());
    // The caller checks the error that ends the reading.
    let _ = read(content, limits, |item| {
        match item {
            Item::Meta(meta) => metas.push(*meta),
            Item::Finding(finding) => findings.push(finding),
        }
        Ok::<_, CatalogError>(())
    });
    (metas, findings)
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// A change of an index file.
#[derive(Debug, Arbitrary)]
enum Edit {
    Set(u16, u8),
    /// A number, which may be a position or a count.
    Number(u16, u64),
    Truncate(u16),
    Remove(u16, u8),
    Insert(u16, Vec<u8>),
}

/// Readers of an altered index whose checksum is right: they fail, or return something, and end.
pub(crate) fn altered(input: &[u8]) {
    let mut unstructured = Unstructured::new(input);
    let Ok(edits) = Vec::<Edit>::arbitrary(&mut unstructured) else { return };
    let mut bytes = original().to_vec();
    bytes.truncate(bytes.len() - 4);
    for edit in edits {
        let at = |at: u16, bytes: &[u8]| usize::from(at) % bytes.len().max(1);
        match edit {
            Edit::Set(place, value) => {
                let place = at(place, &bytes);
                bytes.iter_mut().skip(place).take(1).for_each(|byte| *byte = value);
            }
            Edit::Number(place, value) => {
                let place = at(place, &bytes);
                bytes.iter_mut().skip(place).zip(value.to_le_bytes()).for_each(|(byte, value)| *byte = value);
            }
            Edit::Truncate(place) => bytes.truncate(at(place, &bytes)),
            Edit::Remove(place, count) => {
                let place = at(place, &bytes);
                bytes.drain(place..(place + usize::from(count)).min(bytes.len()));
            }
            Edit::Insert(place, more) => {
                let place = at(place, &bytes);
                bytes.splice(place..place, more);
            }
        }
    }
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    let directory = directory();
    let path = directory.path().join("x.index");
    fs::write(&path, &bytes).expect("a file");
    memory::bounded(&bytes, MEMORY, MEMORY_PER_BYTE, || {
        let Ok(index) = Index::open(&path) else { return };
        // Each list ends with the first failure or is bounded by the file.
        let most = bytes.len();
        let _ = index.metas(Query::default()).map(|metas| metas.take(most).count());
        let _ = index.metas(Query { package: Some("p"), ..Query::default() }).map(|metas| metas.take(most).count());
        let _ = index.packages().take(most).take_while(Result::is_ok).count();
        let _ = index.without_package().take(most).count();
        let _ = index.providers("g", "K", None);
        let _ = index.find("p", "olm.channel", "c");
        let _ = index.package("p").map(|blobs| blobs.map(|blobs| lint::package("p", &blobs)));
    });
}

/// An index with all kinds of entries.
fn original() -> &'static [u8] {
    static ORIGINAL: OnceLock<Vec<u8>> = OnceLock::new();
    ORIGINAL.get_or_init(|| {
        let directory = directory();
        let content = MemoryContent::new([("a.yaml", SEED)]);
        let indexes = Indexes::open(directory.path()).expect("a directory of this user");
        indexes.get_or_build(&content, &Limits::default()).expect("a valid catalog");
        let path = directory.path().join(format!("{}.index", content.digest().hex()));
        fs::read(path).expect("the index that was built")
    })
}

/// A catalog with everything.
pub(crate) const SEED: &str = "\
schema: olm.package\nname: p\ndefaultChannel: c\nicon: {base64data: eA==, mediatype: image/png}\n---\n\
schema: olm.channel\npackage: p\nname: c\nentries:\n- {name: a}\n- {name: b, replaces: a, skips: [z], skipRange: '<1.0.0'}\n---\n\
schema: olm.bundle\npackage: p\nname: a\nimage: i\nproperties:\n\
- {type: olm.package, value: {packageName: p, version: 1.0.0+1}}\n\
- {type: olm.gvk, value: {group: g, kind: K, version: v1}}\n- {type: olm.bundle.object, value: {data: eA==}}\n---\n\
schema: olm.deprecations\npackage: p\nentries:\n- {reference: {schema: olm.bundle, name: a}, message: m}\n---\n\
{\"schema\": \"other\", \"x\": [1, {\"y\": \"}\"}]}\n{\"Schema\": \"other\", \"NAME\": \"n\"}\n---\nschema: olm.bundle\npackage: q\nname: x\n";
