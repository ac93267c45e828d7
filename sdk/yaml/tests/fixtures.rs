//! Every manifest of the available published bundles is parsed.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests may panic and print")]

use std::{fs, path::PathBuf};

use chandler_yaml::{Limits, parse};

/// The files below a directory of the fixtures. Empty if the fixtures are not available.
fn files(directory: &str) -> Vec<PathBuf> {
    let Some(root) = chandler_test_support::needs::fixture(directory) else { return Vec::new() };
    let (mut files, mut directories) = (Vec::new(), vec![root]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { directories.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

/// Published files that no YAML parser accepts, and why. Provisioners do not read these.
const REFUSED: [(&str, &str); 1] = [(
    "eventing-kogito/1.1.0/metadata/dependencies.yaml",
    "line 22, column 12: mapping values are not allowed in this context",
)];

/// The documents that a line-based reader finds: text between lines that begin with `---` that is more than comments.
fn count_documents(text: &str) -> usize {
    let is_content = |line: &&str| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#') && !line.starts_with('%') && line != "..." && line != "---"
    };
    let mut documents = vec![0];
    for line in text.trim_start_matches('\u{feff}').lines() {
        if line.starts_with("---") {
            documents.push(0);
        }
        if let Some(last) = documents.last_mut() {
            *last += usize::from(is_content(&line));
        }
    }
    documents.into_iter().filter(|lines| *lines > 0).count()
}

#[test]
fn every_document_of_every_manifest_is_parsed() {
    let (mut read, mut bytes) = (0, 0);
    for path in ["corpus/bundles", "registry", "plain", "crds"].into_iter().flat_map(files) {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if !matches!(extension, "yaml" | "yml" | "json") {
            continue;
        }
        let content = fs::read(&path).unwrap();
        let documents = match parse(&content, &Limits::default()) {
            Ok(documents) => documents,
            Err(error) => {
                let known = REFUSED.iter().find(|(file, _)| path.ends_with(file));
                assert_eq!(Some(&*error.to_string()), known.map(|(_, why)| *why), "{}", path.display());
                continue;
            }
        };
        assert!(REFUSED.iter().all(|(file, _)| !path.ends_with(file)), "{}", path.display());
        let expected = if extension == "json" { 1 } else { count_documents(std::str::from_utf8(&content).unwrap()) };
        assert_eq!(documents.len(), expected, "{}", path.display());
        for document in &documents {
            // The output is equal to the input.
            let mut json = Vec::new();
            document.root.write_json(&mut json);
            assert_eq!(serde_json::from_slice::<serde_json::Value>(&json).unwrap(), document.root.to_json());
        }
        read += 1;
        bytes += content.len();
    }
    println!("read {read} files of {bytes} bytes");
    assert!(read == 0 || read > 500, "only {read} files");
}
