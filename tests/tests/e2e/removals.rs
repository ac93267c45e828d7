//! The order in which the members of a set are removed.

use chandler_api::names::OWNER_NAME_LABEL;
use chandler_tests::World;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::{
    ResourceExt as _,
    runtime::{WatchStreamExt as _, watcher},
};

/// What happened to members, in its order: `deleted NAME` once the API server was asked to, and `gone NAME`.
pub(crate) struct Removals(Vec<String>);

impl Removals {
    /// Watches the members of a set until so many are gone.
    pub(crate) async fn watch(world: &World, set: &str, count: usize) -> Self {
        let selected = watcher::Config::default().labels(&format!("{OWNER_NAME_LABEL}={set}"));
        let events = watcher(world.deployments(), selected).default_backoff();
        let mut events = Box::pin(events.map_err(|error| panic!("{error}")));
        let mut order: Vec<String> = Vec::new();
        while order.iter().filter(|line| line.starts_with("gone")).count() < count {
            let line = match events.next().await.expect("an endless stream") {
                Ok(watcher::Event::Apply(member)) if member.metadata.deletion_timestamp.is_some() => {
                    format!("deleted {}", member.name_any())
                }
                Ok(watcher::Event::Delete(member)) => format!("gone {}", member.name_any()),
                Ok(_) => continue,
                Err(()) => unreachable!("errors end the test"),
            };
            if !order.contains(&line) {
                order.push(line);
            }
        }
        Self(order)
    }

    /// Asserts that the dependent was gone before the deletion of what it needs began.
    pub(crate) fn assert_before(&self, dependent: &str, needed: &str) {
        let Self(order) = self;
        let place =
            |line: String| order.iter().position(|it| *it == line).unwrap_or_else(|| panic!("{line}: {order:?}"));
        assert!(place(format!("gone {dependent}")) < place(format!("deleted {needed}")), "{order:?}");
    }
}
