//! The number of threads of an engine; in a process of its own, so that they can be counted.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as well")]

mod support;

use std::time::Duration;

use chandler_core::Reason;
use chandler_engine::Limits;
use serde_json::json;
use support::{content, engine_for_two, hostile, request};

/// How many calls time out.
const ATTEMPTS: usize = 16;

/// The number of threads in this process that the engine started.
fn guest_threads() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let name =
        |entry: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(entry.ok()?.path().join("comm")).ok();
    threads.filter_map(name).filter(|name| name.trim() == "wasm-guest").count()
}

/// Validating a configuration cannot be interrupted. It holds the slot of its call, so retries do not accumulate
/// threads.
#[tokio::test]
async fn calls_that_time_out_do_not_accumulate_threads() {
    let engine = engine_for_two();
    let provisioner = hostile(&engine).await;
    let branches: Vec<_> =
        (0..700).map(|number| json!({"type": "string", "minLength": 5, "title": format!("{number}")})).collect();
    let schema = json!({"properties": {"a": {"items": {"anyOf": branches}}}}).to_string();
    // A validation takes about seven times the limit, so that without the slot more threads than allowed would run at once.
    let config = json!({"a": vec!["x"; 500]});
    let limits = Limits { time: Duration::from_millis(150), ..Limits::default() };
    let before = guest_threads();
    for _ in 0..ATTEMPTS {
        let files = content([("config-schema", schema.as_str())]);
        let error = provisioner.provision(&request(config.clone()), files, &limits).await.unwrap_err();
        // On a fast machine the validation ends in time and leaves no thread either; on a busy one the guest may not get its time.
        let expected = [Reason::PluginTimeout, Reason::InvalidConfiguration, Reason::MachineBusy];
        assert!(expected.contains(&error.reason()), "{error}");
    }
    // One validation runs at a time. A thread that has just finished may not count as idle yet, so a few more may
    // exist.
    let more = guest_threads().saturating_sub(before);
    assert!(more <= ATTEMPTS / 2, "{more} more threads than before {ATTEMPTS} attempts");
    assert_eq!(provisioner.detect(content([]), &Limits::default()).await.unwrap(), None);
}
