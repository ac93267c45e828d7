//! The folders of this crate depend on each other in one direction only. The table in `lib.rs` states the rule.

use std::path::Path;

use chandler_test_support::layers::{files, module, refused};

/// Each folder and the folders that it may use.
const LAYERS: &[(&str, &[&str])] = &[
    ("pure", &["pure"]),
    ("compute", &["compute", "pure"]),
    ("client", &["client", "pure"]),
    ("read", &["read", "client", "compute", "pure"]),
    ("write", &["write", "read", "client", "compute", "pure"]),
];

#[test]
fn folders_use_only_the_folders_below_them() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for (folder, may_use) in LAYERS {
        let files = files(&source, &module(folder));
        assert!(files.len() > 1, "{folder} holds no file");
        for (module, text) in files {
            let path = module.join("/");
            wrong.extend(refused(&module, &text, may_use, &[]).into_iter().map(|used| (path.clone(), used)));
            if *folder == "pure"
                && (text.contains("async fn") || text.contains("kube::Client") || text.contains(".await"))
            {
                wrong.push((path, "requests".to_owned()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
