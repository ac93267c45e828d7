//! The events of a watch.

use std::pin::Pin;

use futures::{AsyncBufRead, AsyncBufReadExt as _, TryStreamExt as _, io::Lines};
use serde_json::Value;

use super::{http::PATIENCE, objects};

/// The events of a watch, one JSON document a line.
pub(crate) struct Events(Lines<Pin<Box<dyn AsyncBufRead + Send>>>);

/// One event.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`.
    pub(crate) kind: String,
    pub(crate) object: Value,
}

impl Event {
    /// `ADDED a`.
    pub(crate) fn summary(&self) -> String {
        format!("{} {}", self.kind, objects::name(&self.object))
    }
}

impl Events {
    pub(super) fn new(stream: impl AsyncBufRead + Send + 'static) -> Self {
        let stream: Pin<Box<dyn AsyncBufRead + Send>> = Box::pin(stream);
        Self(stream.lines())
    }

    /// The next event; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        let line = tokio::time::timeout(PATIENCE, self.0.try_next()).await.expect("an event or the end of the watch");
        let event: Value = serde_json::from_str(&line.expect("a readable stream")?).expect("an event is JSON");
        Some(Event { kind: event["type"].as_str().expect("a type").to_owned(), object: event["object"].clone() })
    }

    /// The next event. Panics at the end of the stream.
    pub(crate) async fn expect(&mut self) -> Event {
        self.next().await.expect("an event before the end of the watch")
    }

    /// The next events in short: `ADDED a`.
    pub(crate) async fn summaries(&mut self, count: usize) -> Vec<String> {
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(self.expect().await.summary());
        }
        all
    }

    /// All events before the first one of the object with this name, which marks the end of a case's changes.
    pub(crate) async fn before(&mut self, marker: &str) -> Vec<Event> {
        let mut all = Vec::new();
        loop {
            let event = self.expect().await;
            if objects::name(&event.object) == marker {
                return all;
            }
            all.push(event);
        }
    }
}
