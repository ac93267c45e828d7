//! Watch.

use std::{collections::VecDeque, time::Duration};

use bytes::{BufMut as _, Bytes, BytesMut};
use chandler_devcluster_apimachinery::schema::FieldError;
use futures::{Stream, stream};
use serde_json::{Value, json};

use super::{Api, Target, read::selector, view};
use crate::{
    clock::{Clock, Moment},
    convert,
    faults::watch::Line,
    request::{negotiate::Representation, query::invalid_options},
    selector::Selector,
    status::Status,
    store::{Change, Compacted, Event, Listing, Object, Watch, object::render},
    table,
};

/// How often a quiet watch that wants bookmarks gets one. kube-apiserver sends one about every minute.
const BOOKMARK_INTERVAL: Duration = Duration::from_mins(1);
/// How long a watch lasts that states no timeout: kube-apiserver picks between 30 and 60 minutes.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(45);
/// The annotation on the bookmark that ends the initial events (KEP-3157).
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Where a watch begins.
enum Start {
    /// With the present objects as ADDED events, then with changes; the flag asks for the bookmark in between.
    Present { bookmark: bool },
    /// With the changes after a revision.
    After(u64),
    /// With whatever changes next.
    Now,
}

/// A running watch.
struct Running {
    target: Target,
    selector: Selector,
    watch: Watch,
    pending: VecDeque<Line>,
    clock: Clock,
    bookmarks: bool,
    sent_columns: bool,
    revision: u64,
    next_bookmark: Moment,
    deadline: Moment,
    ended: bool,
}

impl Api {
    /// Watches a collection: a stream of events, as they are sent.
    ///
    /// # Errors
    /// When a parameter is wrong or the revision is not known any more.
    pub fn watch(&self, target: Target) -> Result<impl Stream<Item = Line> + Send + 'static, Status> {
        let query = &target.query;
        let selector = selector(&target)?;
        let start = start(&target)?;
        let timeout = query.number("timeoutSeconds")?.filter(|seconds| *seconds > 0);
        let now = self.clock.moment();
        let scope = target.scope();
        let (initial, watch) = match &start {
            Start::Present { .. } => {
                self.check_not_future(query.number("resourceVersion")?)?;
                let (listing, watch) = self.begin(&target)?;
                (Some(listing), watch)
            }
            Start::Now => (None, self.store.list_and_watch(scope).1),
            Start::After(revision) => {
                self.check_not_future(Some(*revision))?;
                let watch = self.store.watch(scope, *revision);
                (None, watch.map_err(|Compacted { requested, oldest }| Status::expired(requested, oldest))?)
            }
        };
        let bookmarks = query.flag("allowWatchBookmarks");
        let mut running = Running {
            selector,
            watch,
            pending: VecDeque::new(),
            clock: self.clock.clone(),
            bookmarks,
            sent_columns: false,
            revision: match &start {
                Start::After(revision) => *revision,
                Start::Present { .. } | Start::Now => 0,
            },
            next_bookmark: now + BOOKMARK_INTERVAL,
            deadline: now + timeout.map_or(DEFAULT_TIMEOUT, Duration::from_secs),
            ended: false,
            target,
        };
        if let Some(listing) = initial {
            running.begin(&listing, matches!(start, Start::Present { bookmark: true }) && bookmarks);
        }
        Ok(stream::unfold(running, |mut running| async move {
            let line = running.next().await?;
            Some((line, running))
        }))
    }
}

impl Api {
    /// The current objects and the changes after them; a cache that lags behind has earlier objects.
    fn begin(&self, target: &Target) -> Result<(Listing, Watch), Status> {
        if target.lag > 0 {
            let listing = self.lagging(target, target.query.number("resourceVersion")?);
            if let Ok(watch) = self.store.watch(target.scope(), listing.revision) {
                return Ok((listing, watch));
            }
        }
        Ok(self.store.list_and_watch(target.scope()))
    }
}

fn start(target: &Target) -> Result<Start, Status> {
    let query = &target.query;
    let initial = query.get("sendInitialEvents").map(|_| query.flag("sendInitialEvents"));
    match (initial, query.get("resourceVersionMatch")) {
        (Some(_), Some("NotOlderThan")) | (None, None) => {}
        (initial, _) => {
            let why = if initial.is_some() {
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            } else {
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            };
            return Err(invalid_options("ListOptions", &[FieldError::forbidden(&"resourceVersionMatch", why)]));
        }
    }
    let revision = query.number("resourceVersion")?.unwrap_or(0);
    Ok(match (initial, revision) {
        (Some(true), _) => Start::Present { bookmark: true },
        (Some(false), 0) => Start::Now,
        (None, 0) => Start::Present { bookmark: false },
        (Some(false) | None, revision) => Start::After(revision),
    })
}

impl Running {
    fn begin(&mut self, listing: &Listing, bookmark: bool) {
        for (_, object) in &listing.objects {
            if self.selects(object) {
                let line = self.line("ADDED", object);
                self.pending.push_back(line);
            }
        }
        self.revision = listing.revision;
        if bookmark {
            let line = self.bookmark(true);
            self.pending.push_back(line);
        }
    }

    /// The next event; `None` ends the watch.
    async fn next(&mut self) -> Option<Line> {
        loop {
            if let Some(line) = self.pending.pop_front() {
                return Some(line);
            }
            if self.ended {
                return None;
            }
            // Here too, since a busy resource never lets the timer below have its turn.
            if self.clock.moment() >= self.deadline {
                self.end();
                continue;
            }
            tokio::select! {
                biased;
                batch = self.watch.next() => match batch {
                    Ok(batch) => {
                        self.revision = batch.revision;
                        for event in &batch.events {
                            self.push(event);
                        }
                    }
                    Err(Compacted { requested, oldest }) => {
                        self.pending.push_back(failure(&Status::expired(requested, oldest)));
                        self.ended = true;
                    }
                },
                () = self.clock.sleep_until(self.next_bookmark), if self.bookmarks => {
                    self.next_bookmark = self.clock.moment() + BOOKMARK_INTERVAL;
                    self.catch_up();
                }
                () = self.clock.sleep_until(self.deadline) => self.end(),
            }
        }
    }

    /// Ends the watch; a client that resumes from the bookmark need not list again.
    fn end(&mut self) {
        self.ended = true;
        if self.bookmarks {
            self.catch_up();
        }
    }

    /// Moves to the current revision and sends a bookmark.
    fn catch_up(&mut self) {
        if let Ok(batch) = self.watch.ready() {
            for event in &batch.events {
                self.push(event);
            }
            self.revision = self.revision.max(batch.revision);
            let line = self.bookmark(false);
            self.pending.push_back(line);
        }
    }

    fn selects(&self, object: &Object) -> bool {
        self.selector.is_everything() || self.selector.matches(&view::served(&self.target.resource, object))
    }

    /// An object that enters the selection is added, one that leaves it is deleted.
    fn push(&mut self, event: &Event) {
        let before = event.previous.as_ref().is_some_and(|previous| self.selects(previous));
        let after = event.change != Change::Deleted && self.selects(&event.object);
        let line = match (before, after) {
            (false, false) => return,
            (false, true) => self.line("ADDED", &event.object),
            (true, true) => self.line("MODIFIED", &event.object),
            (true, false) if event.change == Change::Deleted => self.line("DELETED", &event.object),
            (true, false) => {
                // The last state that was selected, with the revision of the change.
                let mut last = event.previous.as_ref().map(|previous| previous.value().clone()).unwrap_or_default();
                crate::metadata::of(&mut last)
                    .insert("resourceVersion".to_owned(), event.object.revision().to_string().into());
                self.line("DELETED", &Object::unstored(last))
            }
        };
        self.pending.push_back(line);
    }

    fn line(&mut self, event_type: &str, object: &Object) -> Line {
        let resource = &self.target.resource;
        let body = match self.target.representation {
            Representation::Object => view::object_json(resource, object),
            Representation::PartialMetadata => render(&convert::partial_metadata(&view::served(resource, object))),
            Representation::Table { beta, include } => {
                let row = view::served(resource, object);
                let metadata = table::ListMetadata {
                    resource_version: crate::metadata::text(&row, "resourceVersion").to_owned(),
                    ..Default::default()
                };
                let columns = !std::mem::replace(&mut self.sent_columns, true);
                let rows = std::iter::once(row.as_ref());
                render(&table::render(resource, rows, &metadata, include, beta, columns, self.clock.now()))
            }
        };
        line(event_type, &body)
    }

    fn bookmark(&self, initial_events_end: bool) -> Line {
        let kind = self.target.resource.kind();
        let mut metadata = json!({"resourceVersion": self.revision.to_string(), "creationTimestamp": null});
        if let (true, Some(metadata)) = (initial_events_end, metadata.as_object_mut()) {
            metadata.insert("annotations".to_owned(), json!({INITIAL_EVENTS_END: "true"}));
        }
        let object = match self.target.representation {
            Representation::Object => {
                let mut object = json!({"kind": kind.kind, "apiVersion": kind.api_version(), "metadata": metadata});
                if self.target.resource.custom.is_none()
                    && let Some(object) = object.as_object_mut()
                {
                    // Typed clients decode bookmarks as the kind, whose required parts must be there.
                    object.extend(required_parts(&self.target.resource.schema().shape));
                }
                object
            }
            Representation::PartialMetadata => convert::partial_metadata(&json!({"metadata": metadata})),
            Representation::Table { beta, .. } => json!({
                "kind": "Table",
                "apiVersion": table::api_version(beta),
                "metadata": {"resourceVersion": self.revision.to_string()},
                "columnDefinitions": null,
                "rows": [{"cells": [], "object": convert::partial_metadata(&json!({"metadata": metadata}))}],
            }),
        };
        line("BOOKMARK", &render(&object))
    }
}

/// Empty values for the required fields of a type.
fn required_parts(shape: &chandler_devcluster_apimachinery::schema::Shape) -> serde_json::Map<String, Value> {
    use chandler_devcluster_apimachinery::schema::{Scalar, Shape};
    let Shape::Object { properties, required, .. } = shape else { return serde_json::Map::new() };
    let empty = |name: &String| {
        let value = match properties.get(name).map(|schema| &schema.shape) {
            Some(Shape::Object { .. }) => Value::Object(required_parts(&properties.get(name)?.shape)),
            Some(Shape::List { .. }) => json!([]),
            Some(Shape::Scalar(Scalar::Boolean)) => json!(false),
            Some(Shape::Scalar(Scalar::Integer { .. } | Scalar::Number { .. })) => json!(0),
            Some(Shape::Scalar(_)) => json!(""),
            Some(Shape::Any | Shape::Deduced) | None => return None,
        };
        Some((name.clone(), value))
    };
    required.iter().filter_map(empty).collect()
}

/// The event that ends a watch that cannot continue.
pub fn failure(status: &Status) -> Line {
    line("ERROR", &render(&status.to_value()))
}

fn line(event_type: &str, object: &Bytes) -> Line {
    let mut line = BytesMut::with_capacity(object.len() + event_type.len() + 24);
    line.put_slice(b"{\"type\":\"");
    line.put_slice(event_type.as_bytes());
    line.put_slice(b"\",\"object\":");
    line.put_slice(object);
    line.put_slice(b"}\n");
    Line { bookmark: event_type == "BOOKMARK", bytes: line.freeze() }
}
