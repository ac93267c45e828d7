//! The folders of this crate depend on each other in one direction only. The table in `lib.rs` states the rule.

use std::path::Path;

use chandler_test_support::layers::{files, module, refused};

/// Each folder, and the folders that it may use. `CommandError` is the error of all of them.
const LAYERS: &[(&str, &[&str])] = &[
    ("view", &["view", "CommandError"]),
    ("migrate", &["migrate", "view", "CommandError"]),
    ("read", &["read", "migrate", "view", "signals", "CommandError"]),
    ("write", &["write", "read", "migrate", "view", "CommandError"]),
    ("arguments", &["arguments", "write", "read", "view", "CommandError"]),
];

/// What clap derives arguments from.
const CLAP: &[(&str, &[&str])] = &[("clap", &["Args", "Parser", "Subcommand"])];

#[test]
fn folders_use_only_the_folders_below_them() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for (folder, may_use) in LAYERS {
        let files = files(&source, &module(folder));
        assert!(files.len() > 1, "{folder} holds no file");
        let others = if *folder == "arguments" { &[] } else { CLAP };
        for (module, text) in files {
            wrong.extend(refused(&module, &text, may_use, others).into_iter().map(|path| (module.join("/"), path)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
