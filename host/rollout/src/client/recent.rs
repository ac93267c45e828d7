//! Answers that are used again for some seconds, so that many owners that begin at once ask once. A caller for whom an older answer
//! suffices gets one while it is kept.

use std::{
    collections::HashMap,
    hash::Hash,
    time::{Duration, Instant},
};

use chandler_turns::KeyedLocks;
use parking_lot::{Mutex, MutexGuard};

/// Answers by key. Each is used again until its time to live is over, counted from before the question, or until it is forgotten.
pub(crate) struct Recent<K, V> {
    lifetime: Duration,
    /// How long answers are kept for callers that accept older ones.
    kept: Duration,
    /// The total weight up to which answers are remembered.
    capacity: usize,
    weigh: fn(&V) -> usize,
    now: fn() -> Instant,
    entries: Mutex<Entries<K, V>>,
    /// Locked while a question is asked.
    asking: KeyedLocks<K>,
}

struct Entries<K, V> {
    known: HashMap<K, Known<V>>,
    /// How often answers were forgotten.
    forgotten: u64,
}

struct Known<V> {
    value: V,
    weight: usize,
    since: Instant,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer<V> {
    pub(crate) value: V,
    /// Whether it was given earlier.
    pub(crate) reused: bool,
}

impl<K: Clone + Eq + Hash, V: Clone> Recent<K, V> {
    pub(crate) fn new(lifetime: Duration, capacity: usize, weigh: fn(&V) -> usize) -> Self {
        let entries = Entries { known: HashMap::new(), forgotten: 0 };
        Self {
            lifetime,
            kept: lifetime,
            capacity,
            weigh,
            now: Instant::now,
            entries: Mutex::new(entries),
            asking: KeyedLocks::default(),
        }
    }

    /// Keeps answers for this long, for callers that accept older ones.
    pub(crate) fn keeping(self, kept: Duration) -> Self {
        Self { kept: kept.max(self.lifetime), ..self }
    }

    /// The answer that was given some seconds ago, or a new one. Of several callers with the same key, one asks at a time. No
    /// answer, and an error, are not remembered.
    pub(crate) async fn get<E>(
        &self,
        key: &K,
        ask: impl Future<Output = Result<Option<V>, E>>,
    ) -> Result<Option<Answer<V>>, E> {
        self.get_since(key, self.lifetime, ask).await
    }

    /// Like [`get`](Self::get), for a caller that accepts an answer for as long as it is kept.
    pub(crate) async fn get_kept<E>(
        &self,
        key: &K,
        ask: impl Future<Output = Result<Option<V>, E>>,
    ) -> Result<Option<Answer<V>>, E> {
        self.get_since(key, self.kept, ask).await
    }

    async fn get_since<E>(
        &self,
        key: &K,
        age: Duration,
        ask: impl Future<Output = Result<Option<V>, E>>,
    ) -> Result<Option<Answer<V>>, E> {
        if let Some(value) = self.known(key, age) {
            return Ok(Some(Answer { value, reused: true }));
        }
        let _asking = self.asking.lock(key).await;
        if let Some(value) = self.known(key, age) {
            return Ok(Some(Answer { value, reused: true }));
        }
        let (began, forgotten) = ((self.now)(), self.entries().forgotten);
        let Some(value) = ask.await? else { return Ok(None) };
        self.remember(key, &value, began, forgotten);
        Ok(Some(Answer { value, reused: false }))
    }

    /// Forgets the answers for these keys, and those that are on their way.
    pub(crate) fn forget(&self, concerned: impl Fn(&K) -> bool) {
        let mut entries = self.entries();
        entries.forgotten = entries.forgotten.wrapping_add(1);
        entries.known.retain(|key, _| !concerned(key));
    }

    fn known(&self, key: &K, age: Duration) -> Option<V> {
        let (now, entries) = ((self.now)(), self.entries());
        entries.known.get(key).filter(|known| now < known.since + age).map(|known| known.value.clone())
    }

    fn remember(&self, key: &K, value: &V, began: Instant, forgotten: u64) {
        let (now, weight) = ((self.now)(), (self.weigh)(value));
        let mut entries = self.entries();
        entries.known.retain(|_, known| now < known.since + self.kept);
        if entries.forgotten != forgotten || weight > self.capacity {
            return;
        }
        entries.known.remove(key);
        while entries.known.values().map(|known| known.weight).sum::<usize>() > self.capacity - weight {
            let oldest = entries.known.iter().min_by_key(|(_, known)| known.since).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            entries.known.remove(&oldest);
        }
        let known = Known { value: value.clone(), weight, since: began };
        entries.known.insert(key.clone(), known);
    }

    fn entries(&self) -> MutexGuard<'_, Entries<K, V>> {
        self.entries.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, convert::Infallible, sync::LazyLock};

    use futures::future::join_all;

    use super::*;

    const LIFETIME: Duration = Duration::from_secs(5);

    thread_local! {
        /// How much time has passed in a test, which runs on one thread.
        static PASSED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    fn advance(time: Duration) {
        PASSED.set(PASSED.get() + time);
    }

    fn now() -> Instant {
        static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
        *BEGIN + PASSED.get()
    }

    fn recent(capacity: usize) -> Recent<&'static str, usize> {
        Recent { now, ..Recent::new(LIFETIME, capacity, |_| 1) }
    }

    /// Asks, and returns how many questions there were so far.
    async fn ask(recent: &Recent<&'static str, usize>, key: &'static str, count: &Cell<usize>) -> Answer<usize> {
        let ask = async {
            tokio::task::yield_now().await;
            count.set(count.get() + 1);
            Ok::<_, Infallible>(Some(count.get()))
        };
        recent.get(&key, ask).await.unwrap().unwrap()
    }

    #[tokio::test]
    async fn an_answer_is_used_again_for_its_time_to_live() {
        let (recent, count) = (recent(9), Cell::new(0));
        assert_eq!(ask(&recent, "a", &count).await, Answer { value: 1, reused: false });
        advance(LIFETIME.saturating_sub(Duration::from_millis(1)));
        assert_eq!(ask(&recent, "a", &count).await, Answer { value: 1, reused: true });
        assert_eq!(ask(&recent, "b", &count).await.value, 2);
        advance(Duration::from_millis(1));
        assert_eq!(ask(&recent, "a", &count).await, Answer { value: 3, reused: false });
    }

    #[tokio::test]
    async fn an_older_answer_suffices_for_some_callers() {
        let (recent, count) = (recent(9).keeping(2 * LIFETIME), Cell::new(0));
        let ask_kept = async || {
            let ask = async { Ok::<_, Infallible>(Some(count.replace(count.get() + 1) + 1)) };
            recent.get_kept(&"a", ask).await.unwrap().unwrap()
        };
        ask(&recent, "a", &count).await;
        advance(LIFETIME);
        assert_eq!(ask_kept().await, Answer { value: 1, reused: true });
        assert_eq!(ask(&recent, "a", &count).await, Answer { value: 2, reused: false });
        advance(LIFETIME);
        assert_eq!(ask_kept().await.value, 2, "a newer answer counts for all");
        recent.forget(|_| true);
        assert_eq!(ask_kept().await.value, 3);
        advance(2 * LIFETIME);
        assert_eq!(ask_kept().await.value, 4);
    }

    #[tokio::test]
    async fn the_time_to_live_counts_from_the_question() {
        let recent = recent(9);
        let slow = async {
            advance(LIFETIME);
            Ok::<_, Infallible>(Some(1))
        };
        recent.get(&"a", slow).await.unwrap();
        let count = Cell::new(1);
        assert_eq!(ask(&recent, "a", &count).await.value, 2);
    }

    #[tokio::test]
    async fn many_callers_ask_once() {
        let (recent, count) = (recent(9), Cell::new(0));
        let answers = join_all((0..20).map(|_| ask(&recent, "a", &count))).await;
        assert!(answers.iter().all(|answer| answer.value == 1));
        assert!(recent.asking.is_empty(), "no lock is left over");
    }

    #[tokio::test]
    async fn neither_absence_nor_an_error_is_remembered() {
        let (recent, count) = (recent(9), Cell::new(0));
        assert_eq!(recent.get(&"a", async { Ok::<_, Infallible>(None) }).await, Ok(None));
        assert_eq!(recent.get(&"a", async { Err("no") }).await, Err("no"));
        assert!(!ask(&recent, "a", &count).await.reused);
    }

    #[tokio::test]
    async fn an_answer_is_forgotten_even_on_its_way() {
        let (recent, count) = (recent(9), Cell::new(0));
        ask(&recent, "a", &count).await;
        ask(&recent, "b", &count).await;
        recent.forget(|key| *key == "a");
        assert_eq!(ask(&recent, "a", &count).await.value, 3);
        assert!(ask(&recent, "b", &count).await.reused);
        recent.forget(|_| true);
        let forgetting = async {
            recent.forget(|_| true);
            Ok::<_, Infallible>(Some(0))
        };
        recent.get(&"a", forgetting).await.unwrap();
        assert_eq!(ask(&recent, "a", &count).await.value, 4);
    }

    #[tokio::test]
    async fn the_oldest_answers_make_room() {
        let (recent, count) = (recent(2), Cell::new(0));
        for key in ["a", "b", "c"] {
            ask(&recent, key, &count).await;
            advance(Duration::from_millis(1));
        }
        assert!(ask(&recent, "b", &count).await.reused && ask(&recent, "c", &count).await.reused);
        assert!(!ask(&recent, "a", &count).await.reused);
        let heavy: Recent<&str, usize> = Recent::new(LIFETIME, 1, |_| 2);
        ask(&heavy, "a", &count).await;
        assert!(!ask(&heavy, "a", &count).await.reused, "an answer beyond the capacity is not remembered");
    }

    #[tokio::test]
    async fn a_caller_that_gives_up_leaves_the_turn_to_the_next() {
        let (recent, count) = (recent(9), Cell::new(0));
        let never = recent.get(&"a", std::future::pending::<Result<_, Infallible>>());
        assert!(futures::poll!(Box::pin(never)).is_pending());
        assert_eq!(ask(&recent, "a", &count).await.value, 1);
        assert!(recent.asking.is_empty());
    }
}
