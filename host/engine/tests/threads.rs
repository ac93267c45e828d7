//! How many threads an engine has; alone in its process, so that they can be counted.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as well")]

mod support;

use std::time::Duration;

use chandler_core::Reason;
use chandler_engine::{Engine, EngineOptions, Limits};
use serde_json::json;
use support::{content, hostile, request};

/// How often a call runs out of time.
const ATTEMPTS: usize = 16;

/// The threads of this process that the engine started.
fn guest_threads() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let name =
        |entry: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(entry.ok()?.path().join("comm")).ok();
    threads.filter_map(name).filter(|name| name.trim() == "wasm-guest").count()
}

/// A check of a configuration cannot be interrupted. It keeps the slot of its call, so that attempts do not pile up.
#[tokio::test]
async fn no_thread_is_left_for_each_call_that_ran_out_of_time() {
    let engine = Engine::new(EngineOptions { concurrency: 2, ..EngineOptions::default() }).unwrap();
    let provisioner = hostile(&engine).await;
    let branches: Vec<_> =
        (0..700).map(|number| json!({"type": "string", "minLength": 5, "title": format!("{number}")})).collect();
    let schema = json!({"properties": {"a": {"items": {"anyOf": branches}}}}).to_string();
    let config = json!({"a": vec!["x"; 1000]});
    let limits = Limits { time: Duration::from_millis(300), ..Limits::default() };
    let before = guest_threads();
    for _ in 0..ATTEMPTS {
        let files = content([("config-schema", schema.as_str())]);
        let error = provisioner.provision(&request(config.clone()), files, &limits).await.unwrap_err();
        // Where the machine is fast enough, the check ends in time; then there is nothing left over either.
        assert!([Reason::PluginTimeout, Reason::InvalidConfiguration].contains(&error.reason()), "{error}");
    }
    // One checks at a time. A thread that has just ended its check may not be seen to be free yet, so that some more exist.
    let more = guest_threads().saturating_sub(before);
    assert!(more <= ATTEMPTS / 2, "{more} more threads than before {ATTEMPTS} attempts");
    assert_eq!(provisioner.detect(content([]), &Limits::default()).await.unwrap(), None);
}
