//! The loop: watches fill the cache, changes fill the queue, decisions become requests.
//!
//! One task owns cache and queue, so that nothing is locked; only requests run in parallel, one decision per object at a
//! time.

use std::{
    collections::{HashMap, HashSet},
    pin::Pin,
};

use futures::{
    StreamExt as _,
    future::{BoxFuture, pending},
    stream::{BoxStream, FuturesUnordered, select_all},
};
use kube::{
    Api, Client,
    api::DynamicObject,
    runtime::{
        WatchStreamExt as _,
        watcher::{self, Event, watcher},
    },
};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    Simulation,
    action::Decision,
    cache::{Cache, Change},
    events::Recorder,
    execute::{Done, Failure, Outcome, execute},
    garbage,
    kind::{Key, Kind},
    pods,
    queue::Queue,
    reconcile::{affected, reconcile, reconcile_missing},
    rules::{Rules, Step},
    world::World,
};
use crate::{
    clock::{Clock, Moment},
    metadata,
};

/// How many objects are processed in parallel.
const SIDE_BY_SIDE: usize = 16;

type Watched = (Kind, Result<Event<DynamicObject>, watcher::Error>);

/// Everything that the simulation knows and does.
pub(super) struct Engine {
    client: Client,
    clock: Clock,
    rules: Rules,
    bare: bool,
    cache: Cache,
    queue: Queue,
    recorder: Recorder,
    refusals: HashMap<Key, String>,
    /// The step that takes time in which a Pod of a uid is, and since when.
    steps: HashMap<String, (Step, Moment)>,
    started: bool,
}

/// Simulates until dropped.
pub(super) async fn run(client: Client, simulation: Simulation) {
    let Simulation { clock, rules, bare } = simulation;
    let (recorder, telling) = Recorder::new(client.clone(), clock.clone());
    let engine = Engine {
        client,
        clock,
        rules,
        bare,
        cache: Cache::default(),
        queue: Queue::default(),
        recorder,
        refusals: HashMap::new(),
        steps: HashMap::new(),
        started: false,
    };
    futures::future::join(engine.run(), telling).await;
}

impl Engine {
    async fn run(mut self) {
        let mut watches: BoxStream<'static, Watched> =
            select_all(Kind::ALL.map(|kind| watch(&self.client, kind))).boxed();
        let mut rules = self.rules.changes();
        let mut working: FuturesUnordered<BoxFuture<'static, (Key, Outcome)>> = FuturesUnordered::new();
        loop {
            self.start_work(&mut working);
            let (delay, retry) = (self.queue.next_delay(), self.queue.next_retry());
            tokio::select! {
                Some((key, outcome)) = working.next(), if !working.is_empty() => self.finish(key, outcome),
                Some((kind, event)) = watches.next() => self.observe(kind, event),
                () = until_moment(&self.clock, delay) => {}
                () = until_instant(retry) => {}
                // The sender lives as long as the rules do.
                Ok(()) = rules.changed() => self.look_at_all(),
            }
            self.queue.promote(self.clock.moment(), Instant::now());
        }
    }

    /// Makes decisions about the queued objects and starts to execute them.
    fn start_work(&mut self, working: &mut FuturesUnordered<BoxFuture<'static, (Key, Outcome)>>) {
        while self.started
            && working.len() < SIDE_BY_SIDE
            && let Some(key) = self.queue.take()
        {
            let decision = self.decide(&key);
            if let Some(again) = decision.again {
                self.queue.add_at(key.clone(), self.clock.moment() + again);
            }
            if decision.actions.is_empty() {
                self.refusals.remove(&key);
                self.queue.done(key);
                continue;
            }
            let client = self.client.clone();
            working.push(Box::pin(async move {
                let outcome = execute(&client, decision.actions).await;
                (key, outcome)
            }));
        }
    }

    fn decide(&mut self, key: &Key) -> Decision {
        let now = self.clock.now();
        if self.bare && key.kind == Kind::ApiService {
            return Decision::default();
        }
        let world = World { cache: &self.cache, rules: &self.rules, now, refusals: &self.refusals };
        let Some(object) = self.cache.get(key) else {
            return reconcile_missing(&world, key);
        };
        if key.kind == Kind::Pod
            && let Some((step, delay)) = pods::step(&world, object)
        {
            let moment = self.clock.moment();
            let entry = self.steps.entry(metadata::uid(object).to_owned()).or_insert((step, moment));
            if entry.0 != step {
                *entry = (step, moment);
            }
            let due = entry.1 + delay;
            if due > moment {
                self.queue.add_at(key.clone(), due);
                return Decision::default();
            }
        }
        if self.bare && garbage::is_left_behind(&world, object) {
            return garbage::delete(key.kind, object);
        }
        reconcile(&world, key.kind, object)
    }

    fn finish(&mut self, key: Key, outcome: Outcome) {
        let subject = self.cache.get(&key).cloned();
        for done in outcome.done {
            match done {
                Done::Stored(kind, object) => self.apply(kind, object),
                Done::Deleted(key, uid) => {
                    let change = self.cache.deleted(&key, &uid);
                    self.changed(&key, change);
                }
                Done::Told(note) => {
                    if let Some(subject) = &subject {
                        self.recorder.record_event(key.kind, subject, note);
                    }
                }
            }
        }
        match outcome.failure {
            None => {
                if self.refusals.remove(&key).is_some() {
                    self.queue.add(key.clone());
                }
                self.queue.done(key);
            }
            // It will be gone soon.
            Some(Failure::Terminating) => self.queue.done(key),
            Some(Failure::Outdated) => self.queue.failed(key),
            Some(Failure::Failed(why)) => {
                tracing::debug!(why, kind = key.kind.name(), name = key.name, "the simulation tries again");
                self.queue.failed(key);
            }
            Some(Failure::Refused(why)) => {
                tracing::debug!(why, kind = key.kind.name(), name = key.name, "an object of the simulation is refused");
                self.refusals.insert(key.clone(), why);
                self.queue.failed(key);
            }
        }
    }

    fn observe(&mut self, kind: Kind, event: Result<Event<DynamicObject>, watcher::Error>) {
        match event {
            Ok(Event::Init) => self.cache.begin_list(kind),
            Ok(Event::InitApply(object) | Event::Apply(object)) => {
                if let Ok(object) = serde_json::to_value(object) {
                    self.apply(kind, object);
                }
            }
            Ok(Event::Delete(object)) => {
                let uid = object.metadata.uid.unwrap_or_default();
                let namespace = object.metadata.namespace.unwrap_or_default();
                let key = Key::new(kind, &namespace, &object.metadata.name.unwrap_or_default());
                let change = self.cache.remove(&key, &uid);
                self.changed(&key, change);
            }
            Ok(Event::InitDone) => {
                for (key, change) in self.cache.finish_list(kind) {
                    self.changed(&key, Some(change));
                }
                if !self.started && self.cache.is_complete() {
                    self.started = true;
                    self.look_at_all();
                }
            }
            Err(error) => tracing::debug!(%error, kind = kind.name(), "watching for the simulation failed"),
        }
    }

    fn apply(&mut self, kind: Kind, object: Value) {
        let key = Key::of(kind, &object);
        let change = self.cache.apply(kind, object);
        self.changed(&key, change);
    }

    fn changed(&mut self, key: &Key, change: Option<Change>) {
        let Some(change) = change else { return };
        if change.after.is_none() {
            self.refusals.remove(key);
            if let (Kind::Pod, Some(before)) = (key.kind, &change.before) {
                self.steps.remove(metadata::uid(before));
            }
        }
        if self.started {
            let mut keys = HashSet::new();
            affected(&self.cache, key, &change, &mut keys);
            for key in keys {
                self.queue.add(key);
            }
        }
    }

    fn look_at_all(&mut self) {
        if self.started {
            let keys: Vec<Key> = self.cache.keys().cloned().chain([pods::node_key()]).collect();
            for key in keys {
                self.queue.add(key);
            }
        }
    }
}

fn watch(client: &Client, kind: Kind) -> Pin<Box<dyn futures::Stream<Item = Watched> + Send>> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind.resource());
    watcher(api, watcher::Config::default()).default_backoff().map(move |event| (kind, event)).boxed()
}

async fn until_moment(clock: &Clock, moment: Option<Moment>) {
    match moment {
        Some(moment) => clock.sleep_until(moment).await,
        None => pending().await,
    }
}

async fn until_instant(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => pending().await,
    }
}
