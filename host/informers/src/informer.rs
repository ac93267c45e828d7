//! One watch, which fills a store.

use std::{sync::Arc, time::Duration};

use chandler_client::{Availability, PageMemory, Pages, paged};
use futures::StreamExt as _;
use kube::{
    Api, Client,
    api::ApiResource,
    runtime::watcher::{self, Event, watcher},
};
use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::watch, task::AbortHandle, time::Instant};

use crate::{
    observed::{Labels, Observed},
    store::{Id, Memory, Store},
};

/// The pauses between attempts to watch.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
    Duration::from_secs(30),
];
/// The longest pause while the API server does not answer.
const OUTAGE: Duration = Duration::from_secs(30);
/// How long a read waits for a watch that just began.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a read waits for a watch that was interrupted. After that it makes a request instead.
const INTERRUPTED_PATIENCE: Duration = Duration::from_millis(300);

/// The state of an informer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The first list is in progress.
    Starting,
    /// The store holds all objects.
    Synced,
    /// The watch failed, and is tried again.
    Interrupted,
    /// The identity may not list or watch the kind. The informer has ended.
    Forbidden,
    /// The API server does not serve the kind. The informer has ended.
    NotServed,
}

/// What an informer watches.
pub(crate) struct Target {
    pub(crate) client: Client,
    pub(crate) kind: ApiResource,
    /// None for all namespaces.
    pub(crate) namespace: Option<String>,
    pub(crate) labels: Labels,
    pub(crate) availability: Availability,
    /// The memory that the lists of all informers share.
    pub(crate) memory: PageMemory,
}

/// One watch and its objects. Dropping it ends the watch.
pub(crate) struct Informer {
    shared: Arc<Shared>,
    task: AbortHandle,
    began: Instant,
}

struct Shared {
    store: Mutex<Store>,
    state: watch::Sender<State>,
    /// Whether a reader found the store incomplete and made a request instead: it did not see what the list will show.
    missed: Mutex<bool>,
}

/// Triggers a reconcile of an owner.
pub(crate) type Wake = Arc<dyn Fn(&str) + Send + Sync>;

impl Drop for Informer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Informer {
    /// Begins to watch.
    pub(crate) fn start(target: Target, memory: Memory, wake: Wake) -> Self {
        let (state, _) = watch::channel(State::Starting);
        let shared = Arc::new(Shared { store: Mutex::new(Store::new(memory)), state, missed: Mutex::new(false) });
        let task = tokio::spawn(run(target, Arc::clone(&shared), wake)).abort_handle();
        Self { shared, task, began: Instant::now() }
    }

    /// The objects.
    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        lock(&self.shared.store)
    }

    /// Whether it ended because the identity may not watch the kind or the kind is not served, and when it began.
    pub(crate) fn ended(&self) -> Option<(State, Instant)> {
        let state = *self.shared.state.borrow();
        matches!(state, State::Forbidden | State::NotServed).then_some((state, self.began))
    }

    /// Waits a limited time until the store holds all objects. Any other state means that it does not.
    pub(crate) fn synced(&self) -> impl Future<Output = State> + Send + use<> {
        let shared = Arc::clone(&self.shared);
        async move {
            let mut states = shared.state.subscribe();
            let first = *states.borrow_and_update();
            let patience = if first == State::Starting { PATIENCE } else { INTERRUPTED_PATIENCE };
            let settled = states.wait_for(|state| !matches!(state, State::Starting | State::Interrupted));
            let state = match tokio::time::timeout(patience, settled).await {
                Ok(Ok(state)) => *state,
                Ok(Err(_)) | Err(_) => State::Interrupted,
            };
            if state == State::Interrupted {
                *lock(&shared.missed) = true;
            }
            state
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// Watches until the kind may not be watched or is no longer served. After an interruption everything is listed again, since the
/// watch does not report when it continues.
async fn run(target: Target, shared: Arc<Shared>, wake: Wake) {
    let pages = Arc::new(Pages::new(&target.memory));
    let target = Target { client: paged(&target.client, &pages), ..target };
    let mut failures = 0;
    loop {
        let error = watch_once(&target, &pages, &shared, &wake, &mut failures).await;
        pages.free();
        if pages.shrink() {
            let Target { kind: ApiResource { kind, group, .. }, namespace, .. } = &target;
            tracing::debug!(
                kind,
                group,
                ?namespace,
                objects = pages.size(),
                "large objects: the pages have fewer of them"
            );
            continue;
        }
        let Target { kind: ApiResource { kind, group, .. }, namespace, .. } = &target;
        let state = match error.as_ref().and_then(refusal) {
            Some(403) => State::Forbidden,
            Some(404) => State::NotServed,
            _ => State::Interrupted,
        };
        tracing::debug!(kind, group, ?namespace, ?state, error = error.map(tracing::field::display), "the watch ended");
        shared.state.send_replace(state);
        if state != State::Interrupted {
            return;
        }
        let pause = PAUSES.get(failures).or(PAUSES.last()).copied().unwrap_or_default();
        let answers_again = target.availability.pause(pause, OUTAGE).await;
        failures = if answers_again { 0 } else { (failures + 1).min(PAUSES.len()) };
    }
}

/// Watches until the first error, or until the API server answers again after an outage.
async fn watch_once(
    target: &Target,
    pages: &Pages,
    shared: &Shared,
    wake: &Wake,
    failures: &mut usize,
) -> Option<watcher::Error> {
    let Target { client, kind, namespace, labels, .. } = target;
    let api: Api<Observed> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, kind),
        None => Api::all_with(client.clone(), kind),
    };
    // No streaming list (WatchList): kube requests it with resourceVersion 0, which an API server answers from its cache. That may be
    // older than what a previous process wrote; a list without a resourceVersion never is.
    let config = watcher::Config::default().labels(labels.set).page_size(pages.size());
    let mut events = watcher(api, config).boxed();
    // A watch that continued from before an outage would miss events if etcd was restored from a snapshot meanwhile.
    let mut returns = target.availability.returns().boxed();
    loop {
        let event = tokio::select! {
            Some(()) = returns.next() => return None,
            event = events.next() => event?,
        };
        let owners = match event {
            Err(error) => return Some(error),
            Ok(Event::Init) => {
                lock(&shared.store).begin_list();
                continue;
            }
            Ok(Event::InitApply(object) | Event::Apply(object)) => {
                let mut store = lock(&shared.store);
                let owners = store.observe(object.seen(labels));
                if let Some(Id { namespace, name }) = store.take_rewound() {
                    let place = namespace.map(|namespace| format!("{namespace}/")).unwrap_or_default();
                    target.availability.note_rewind(&format!("{} {place}{name}", kind.kind));
                }
                owners
            }
            Ok(Event::Delete(object)) => lock(&shared.store).observe_deletion(object.seen(labels)),
            Ok(Event::InitDone) => {
                pages.free();
                *failures = 0;
                let owners = lock(&shared.store).end_list();
                shared.state.send_replace(State::Synced);
                owners
            }
        };
        // Readers wait for the first list, and so see what it contains.
        let is_first = *shared.state.borrow() == State::Starting && !*lock(&shared.missed);
        if !is_first {
            for owner in &owners {
                wake(owner);
            }
        }
    }
}

/// The HTTP status with which the API server refused to list or watch.
fn refusal(error: &watcher::Error) -> Option<u16> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status.code),
        _ => None,
    }
}
