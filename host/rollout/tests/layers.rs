//! The folders of this crate depend on each other in one direction only. The table in `lib.rs` states the rule.

#![expect(clippy::unwrap_used, reason = "a test reads its own sources")]

use std::{fs, path::Path};

/// Each folder and the folders that it may use.
const LAYERS: &[(&str, &[&str])] = &[
    ("pure", &["pure"]),
    ("compute", &["compute", "pure"]),
    ("client", &["client", "pure"]),
    ("read", &["read", "client", "compute", "pure"]),
    ("write", &["write", "read", "client", "compute", "pure"]),
];

/// Every Rust file below a directory, with its text.
fn files(directory: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
    found
}

/// The first segments of all paths that begin with `crate::`, in code and in groups such as `crate::{a::B, c}`.
fn used(text: &str) -> Vec<String> {
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    for (at, path) in code.match_indices("crate::") {
        let rest = &code[at + path.len()..];
        match rest.strip_prefix('{') {
            None => found.push(name(rest)),
            Some(group) => {
                let mut depth = 0;
                let mut begins = true;
                for (index, c) in group.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => begins = true,
                        c if c.is_whitespace() => {}
                        _ if begins && depth == 0 => {
                            found.push(name(&group[index..]));
                            begins = false;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    found
}

fn name(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[test]
fn paths_are_found_in_groups_and_in_code() {
    let text = "// crate::comment\nuse crate::{\n    pure::{a::B, c},\n    read::d,\n};\nfn f() { crate::write::g(); }";
    assert_eq!(used(text), ["pure", "read", "write"]);
}

#[test]
fn folders_use_only_the_folders_below_them() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for (folder, may_use) in LAYERS {
        let files = files(&source.join(folder));
        assert!(!files.is_empty(), "{folder} holds no file");
        for (path, text) in files {
            wrong.extend(
                used(&text)
                    .into_iter()
                    .filter(|used| !may_use.contains(&used.as_str()))
                    .map(|used| (path.clone(), used)),
            );
            if *folder == "pure"
                && (text.contains("async fn") || text.contains("kube::Client") || text.contains(".await"))
            {
                wrong.push((path, "requests".to_owned()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
