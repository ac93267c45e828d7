use std::cmp::min;

use chandler_core::{Digest, Entry, MemoryContent};
use proptest::prelude::*;

use super::*;

/// Content that returns a few bytes at a time.
struct Slow(MemoryContent, usize);

impl Content for Slow {
    fn digest(&self) -> &Digest {
        self.0.digest()
    }

    fn total_bytes(&self) -> u64 {
        self.0.total_bytes()
    }

    fn entries(&self, prefix: &str, after: Option<&str>, limit: usize) -> Vec<Entry> {
        self.0.entries(prefix, after, limit)
    }

    fn read(&self, path: &str, offset: u64, len: usize) -> Result<Vec<u8>, ReadError> {
        self.0.read(path, offset, min(len, self.1))
    }
}

/// The documents of a text, each with its line.
fn split(text: &[u8], step: usize) -> Vec<(u64, u32, String)> {
    let content = Slow(MemoryContent::new([("a", text)]), step);
    let mut splitter = Splitter::new(&content, "a", 1 << 20);
    let mut documents = Vec::new();
    while let Some(chunk) = splitter.next().unwrap() {
        documents.push((chunk.offset, chunk.line, String::from_utf8_lossy(chunk.bytes).into_owned()));
    }
    documents
}

#[test]
fn documents_begin_and_end_as_in_yaml_and_json() {
    let cases: &[(&str, &[(u32, &str)])] = &[
        ("", &[]),
        ("\n  \n---\n# c\n...\n", &[]),
        ("a: 1\n", &[(1, "a: 1\n")]),
        ("a: 1\n---\nb: 2", &[(1, "a: 1\n"), (3, "b: 2")]),
        ("---\n---\na: 1\n--- # c\nb: 2\n", &[(3, "a: 1\n"), (5, "b: 2\n")]),
        ("a: 1\n...\nb: 2\n---", &[(1, "a: 1\n"), (3, "b: 2\n")]),
        ("a: 1\r\n---\r\nb: 2\r\n", &[(1, "a: 1\r\n"), (3, "b: 2\r\n")]),
        // Not a marker: more dashes, an indented one, text beside it.
        ("a: 1\n----\n ---\n---b\n", &[(1, "a: 1\n----\n ---\n---b\n")]),
        ("--- a: 1\n--- b\n", &[(1, "--- a: 1\n"), (2, "--- b\n")]),
        // Indentation belongs to the document.
        ("\n  a: 1\n  b: 2\n", &[(2, "  a: 1\n  b: 2\n")]),
        ("{}{}", &[(1, "{}"), (1, "{}")]),
        ("{\"a\": \"}\\\"{\"}\n\n [1, {}]\n", &[(1, "{\"a\": \"}\\\"{\"}"), (3, "[1, {}]")]),
        ("{\"a\":\n1}\n---\nb: 2\n---\n{\"c\": 3}", &[(1, "{\"a\":\n1}"), (4, "b: 2\n"), (6, "{\"c\": 3}")]),
        // Incomplete: for the parser to refuse.
        ("{\"a\": [\n", &[(1, "{\"a\": [\n")]),
        ("{\"a\\", &[(1, "{\"a\\")]),
        ("\u{feff}a: 1\n", &[(1, "a: 1\n")]),
    ];
    for (text, expected) in cases {
        for step in [1, 2, 3, 1000] {
            let documents = split(text.as_bytes(), step);
            let found: Vec<_> = documents.iter().map(|(_, line, text)| (*line, text.as_str())).collect();
            assert_eq!(found, *expected, "{text:?}, {step} bytes at a time");
            for (offset, _, document) in &documents {
                let at = usize::try_from(*offset).unwrap();
                assert_eq!(&text[at..at + document.len()], document, "{text:?}");
            }
        }
    }
}

#[test]
fn a_document_that_is_too_large_is_refused_without_reading_on() {
    for text in [format!("a: 1\n---\n\"{}", "x".repeat(10_000)), format!("{{}}\n\n{{\"a\": \"{}", "x".repeat(10_000))] {
        let content = Slow(MemoryContent::new([("a", text)]), 10);
        let mut splitter = Splitter::new(&content, "a", 100);
        assert!(splitter.next().unwrap().is_some());
        assert!(matches!(splitter.next(), Err(SplitError::TooLarge { line: 3 })));
        assert!(splitter.buffer.len() < 200);
    }
}

proptest! {
    /// However the bytes arrive, the documents are the same; nothing but what is between documents is lost.
    #[test]
    fn the_size_of_reads_does_not_matter(
        parts in prop::collection::vec(prop::sample::select(vec![
            "a: 1", "\n", "---", "...", " ", "{", "}", "\"", "\\", "[", "]", "#", "\r\n", "'", "b:\n  c", "\u{feff}", "\t",
        ]), 0..40),
        step in 1_usize..9,
    ) {
        let text = parts.concat();
        let documents = split(text.as_bytes(), 1 << 20);
        prop_assert_eq!(&documents, &split(text.as_bytes(), step));
        let mut end = 0;
        for (offset, line, document) in documents {
            let at = usize::try_from(offset).unwrap();
            prop_assert!(at >= end && !document.is_empty());
            let lost = &text[end..at];
            let between = |line: &str| line.trim_matches(['\u{feff}', ' ', '\t', '\r']).is_empty()
                || line.trim_start_matches(['\u{feff}', ' ', '\t']).starts_with('#') || line.trim_start_matches('\u{feff}').starts_with(['-', '.']);
            prop_assert!(lost.split('\n').all(between), "lost {:?}", lost);
            prop_assert_eq!(line as usize, text[..at].matches('\n').count() + 1);
            end = at + document.len();
        }
    }
}
