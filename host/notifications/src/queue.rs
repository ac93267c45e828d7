//! The notifications that wait for one server.
//!
//! All of it is bounded, whatever happens in the cluster: the notifications that wait, the repetitions that are remembered, and what is sent in
//! a minute. Tenants share these limits: namespaces take turns, and within a namespace its accounts; the longest queue loses the oldest when too many wait, and what a tenant has not used
//! of its share of a minute still waits when the minute is used up.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    ops::Bound::{Excluded, Unbounded},
    sync::Arc,
    time::{Duration, Instant},
};

use chandler_api::AlertSeverity;
use chandler_core::Digest;
use k8s_openapi::jiff::Timestamp;

use crate::{Notification, Tenant};

/// The most notifications that wait for a server. Beyond that, the oldest one of the namespace with most of them is dropped, of its
/// account with most of them.
pub const WAITING: usize = 100;
/// The most notifications that are sent in a minute.
pub const PER_MINUTE: u32 = 30;
/// How long a notification is not sent again.
pub const REPETITION: Duration = Duration::from_hours(1);
/// The most notifications that are remembered for that.
const REMEMBERED: usize = 1024;

const MINUTE: Duration = Duration::from_mins(1);

/// The notifications that wait for one server: one of each tenant in turn, and the oldest one first.
#[derive(Debug)]
pub struct Queue {
    /// The name of the Alert.
    alert: String,
    /// What waits, by tenant. No list is empty.
    waiting: BTreeMap<Tenant, VecDeque<Arc<Notification>>>,
    /// The namespace of the tenant whose notification was sent last.
    last: String,
    /// The account whose notification was sent last, of each namespace with notifications that wait.
    last_of: BTreeMap<String, String>,
    sent_before: HashMap<Digest, Sent>,
    order: VecDeque<(Instant, Digest)>,
    minute: Option<Minute>,
    left_out: LeftOut,
}

/// What was sent in a minute: at most [`PER_MINUTE`].
#[derive(Clone, Debug)]
struct Minute {
    begin: Instant,
    /// The notifications of objects, by tenant.
    by_tenant: BTreeMap<Tenant, u32>,
    /// The notifications that others were left out.
    notices: u32,
}

impl Minute {
    fn new(begin: Instant) -> Self {
        Self { begin, by_tenant: BTreeMap::new(), notices: 0 }
    }

    fn sent(&self) -> u32 {
        self.notices + self.by_tenant.values().sum::<u32>()
    }
}

/// When a notification was sent, and about which object.
#[derive(Debug)]
struct Sent {
    since: Instant,
    uid: String,
    severity: AlertSeverity,
}

/// The next name after the last one, or else the first.
fn after<'a>(names: &BTreeSet<&'a str>, last: &str) -> Option<&'a str> {
    let after = names.range::<str, _>((Excluded(last), Unbounded)).next();
    after.or_else(|| names.first()).copied()
}

/// What was left out since the last notification that says so.
#[derive(Debug, Default)]
struct LeftOut {
    number: u64,
    severity: AlertSeverity,
}

impl LeftOut {
    fn add(&mut self, notification: &Notification) {
        self.number += 1;
        self.severity = self.severity.max(notification.severity);
    }
}

/// What became of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// It waits.
    Waits,
    /// It waits, and the oldest one was dropped.
    DroppedOldest,
    /// It was sent within the last hour, or waits.
    Repetition,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send this notification.
    Send(Arc<Notification>),
    /// Look again after this time: the limit of the minute is reached. This number of notifications was left out just now.
    Wait(Duration, u64),
    /// Nothing waits.
    Idle,
}

impl Queue {
    /// An empty queue of the Alert of this name.
    pub fn new(alert: &str) -> Self {
        Self {
            alert: alert.to_owned(),
            waiting: BTreeMap::new(),
            last: String::new(),
            last_of: BTreeMap::new(),
            sent_before: HashMap::new(),
            order: VecDeque::new(),
            minute: None,
            left_out: LeftOut::default(),
        }
    }

    /// Takes a notification.
    pub fn push(&mut self, notification: Arc<Notification>, now: Instant) -> Pushed {
        self.forget(now);
        let content = notification.content();
        if self.sent_before.contains_key(&content) {
            return Pushed::Repetition;
        }
        let Notification { uid, severity, .. } = notification.as_ref();
        self.sent_before.insert(content.clone(), Sent { since: now, uid: uid.clone(), severity: *severity });
        self.order.push_back((now, content));
        let is_full = self.number_waiting() >= WAITING;
        if is_full {
            self.drop_oldest(&notification.tenant);
        }
        self.waiting.entry(notification.tenant.clone()).or_default().push_back(notification);
        if is_full { Pushed::DroppedOldest } else { Pushed::Waits }
    }

    fn number_waiting(&self) -> usize {
        self.waiting.values().map(VecDeque::len).sum()
    }

    /// Drops the oldest notification of the namespace with most of them, of its account with most of them, with one that this tenant adds.
    fn drop_oldest(&mut self, adds: &Tenant) {
        let mut namespaces: BTreeMap<&str, usize> = BTreeMap::new();
        for (tenant, waiting) in &self.waiting {
            *namespaces.entry(&tenant.namespace).or_default() += waiting.len();
        }
        let longest = namespaces
            .into_iter()
            .max_by_key(|(namespace, waiting)| waiting + usize::from(*namespace == adds.namespace));
        let Some((namespace, _)) = longest else { return };
        let accounts = self.waiting.iter().filter(|(tenant, _)| tenant.namespace == namespace);
        let longest = accounts.max_by_key(|(tenant, waiting)| waiting.len() + usize::from(*tenant == adds));
        let Some(tenant) = longest.map(|(tenant, _)| tenant.clone()) else { return };
        if let Some(oldest) = self.pop(&tenant) {
            self.leave_out(&oldest);
        }
    }

    /// Takes the oldest notification of a tenant.
    fn pop(&mut self, tenant: &Tenant) -> Option<Arc<Notification>> {
        let waiting = self.waiting.get_mut(tenant)?;
        let oldest = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(tenant);
        }
        oldest
    }

    /// The tenant whose turn it is: of the namespace after the last one the account after its last one, in the order of their names.
    fn turn(&self) -> Option<Tenant> {
        let namespaces = self.waiting.keys().map(|tenant| tenant.namespace.as_str()).collect();
        let namespace = after(&namespaces, &self.last)?;
        let accounts = self.waiting.keys().filter(|tenant| tenant.namespace == namespace);
        let last = self.last_of.get(namespace).map_or("", String::as_str);
        let account = after(&accounts.map(|tenant| tenant.account.as_str()).collect(), last)?;
        Some(Tenant { namespace: namespace.to_owned(), account: account.to_owned() })
    }

    /// Notes whose turn it was.
    fn had_turn(&mut self, Tenant { namespace, account }: Tenant) {
        self.last_of.insert(namespace.clone(), account);
        let waiting = &self.waiting;
        self.last_of.retain(|namespace, _| waiting.keys().any(|tenant| tenant.namespace == *namespace));
        self.last = namespace;
    }

    /// What to do now. A notification that is returned is out of the queue.
    pub fn next(&mut self, now: Instant, time: Timestamp) -> Next {
        let is_current = |minute: &Minute| now.saturating_duration_since(minute.begin) < MINUTE;
        let mut minute = self.minute.take().filter(is_current).unwrap_or_else(|| Minute::new(now));
        if minute.sent() >= PER_MINUTE {
            let left_out = self.leave_out_beyond_shares(&minute);
            let pause = MINUTE.saturating_sub(now.saturating_duration_since(minute.begin));
            self.minute = Some(minute);
            let is_idle = self.left_out.number == 0 && self.waiting.is_empty();
            return if is_idle { Next::Idle } else { Next::Wait(pause, left_out) };
        }
        // They are older than those that wait.
        let next = if self.left_out.number > 0 {
            let LeftOut { number, severity } = std::mem::take(&mut self.left_out);
            minute.notices += 1;
            Some(Arc::new(Notification::left_out(&self.alert, number, severity, time)))
        } else {
            self.turn().and_then(|tenant| {
                let notification = self.pop(&tenant)?;
                *minute.by_tenant.entry(tenant.clone()).or_default() += 1;
                self.had_turn(tenant);
                Some(notification)
            })
        };
        // A minute begins with the first notification.
        self.minute = Some(minute).filter(|minute| minute.sent() > 0);
        next.map_or(Next::Idle, Next::Send)
    }

    /// Leaves out what is more than the shares of the tenants in a minute that is used up, the oldest first, and returns the number. What is
    /// within its share waits for the next minute.
    fn leave_out_beyond_shares(&mut self, minute: &Minute) -> u64 {
        let active: BTreeSet<&Tenant> = minute.by_tenant.keys().chain(self.waiting.keys()).collect();
        // How many accounts of each namespace are active.
        let mut namespaces: BTreeMap<String, u32> = BTreeMap::new();
        for tenant in active {
            *namespaces.entry(tenant.namespace.clone()).or_default() += 1;
        }
        let number = u32::try_from(namespaces.len()).unwrap_or(u32::MAX).max(1);
        let share = PER_MINUTE.saturating_sub(minute.notices) / number;
        let mut left_out = Vec::new();
        for (tenant, waiting) in &mut self.waiting {
            let accounts = namespaces.get(&tenant.namespace).copied().unwrap_or(1).max(1);
            let share = (share / accounts).max(1);
            let rest = share.saturating_sub(minute.by_tenant.get(tenant).copied().unwrap_or_default());
            let beyond = waiting.len().saturating_sub(rest as usize);
            left_out.extend(waiting.drain(..beyond));
        }
        self.waiting.retain(|_, waiting| !waiting.is_empty());
        for notification in &left_out {
            self.leave_out(notification);
        }
        left_out.len() as u64
    }

    /// Notes any notification about an object, also one that the Alert does not select: a problem that comes back after a change for the better
    /// is not a repetition.
    pub fn note(&mut self, notification: &Notification) {
        if notification.severity == AlertSeverity::Info {
            self.sent_before.retain(|_, sent| sent.uid != notification.uid || sent.severity == AlertSeverity::Info);
        }
    }

    /// The delivery failed: if the same happens again, it is not a repetition.
    pub fn failed(&mut self, notification: &Notification) {
        self.sent_before.remove(&notification.content());
    }

    fn leave_out(&mut self, notification: &Notification) {
        self.left_out.add(notification);
        self.failed(notification);
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Drops all notifications, as if nothing had happened.
    pub fn clear(&mut self) {
        *self = Self { minute: self.minute.take(), ..Self::new(&self.alert) };
    }

    fn forget(&mut self, now: Instant) {
        while let Some((since, content)) = self.order.front() {
            if self.order.len() < REMEMBERED && now.saturating_duration_since(*since) < REPETITION {
                return;
            }
            // It may have been sent again since.
            if self.sent_before.get(content).is_some_and(|sent| sent.since == *since) {
                self.sent_before.remove(content);
            }
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::notification;

    fn numbered(number: usize) -> Arc<Notification> {
        Arc::new(Notification { message: number.to_string(), ..notification() })
    }

    fn sent(queue: &mut Queue, now: Instant) -> Vec<String> {
        let mut messages = Vec::new();
        while let Next::Send(notification) = queue.next(now, Timestamp::UNIX_EPOCH) {
            messages.push(notification.message.clone());
        }
        messages
    }

    #[test]
    fn a_flood_needs_bounded_memory_and_is_reported_once() {
        let (mut queue, now) = (Queue::new("chat"), Instant::now());
        let pushed: Vec<Pushed> = (0..10_000).map(|number| queue.push(numbered(number), now)).collect();
        assert_eq!(pushed.iter().filter(|pushed| **pushed == Pushed::DroppedOldest).count(), 10_000 - WAITING);
        assert_eq!(
            (queue.number_waiting(), queue.sent_before.len(), queue.order.len()),
            (WAITING, WAITING, REMEMBERED)
        );
        assert!(
            queue.waiting[&Tenant::default()].capacity() <= 4 * WAITING
                && queue.sent_before.capacity() <= 4 * REMEMBERED
        );
        let first = sent(&mut queue, now);
        assert_eq!(first.len(), PER_MINUTE as usize);
        assert!(first[0].starts_with("9900 more notifications were left out"), "{}", first[0]);
        assert_eq!(first[1], "9900", "the newest survive");
        // The rest of the minute is left out, and that is said once the minute has passed.
        queue.push(numbered(10_001), now);
        assert!(matches!(queue.next(now, Timestamp::UNIX_EPOCH), Next::Wait(pause, 1) if pause == MINUTE));
        let later = sent(&mut queue, now + MINUTE);
        assert_eq!(later.len(), 1);
        assert!(later[0].starts_with("72 more notifications were left out"), "{}", later[0]);
        assert!(sent(&mut queue, now + 2 * MINUTE).is_empty());
    }

    #[test]
    fn a_notification_is_sent_once_an_hour() {
        let (mut queue, now) = (Queue::new("chat"), Instant::now());
        assert_eq!(queue.push(numbered(1), now), Pushed::Waits);
        assert_eq!(queue.push(numbered(1), now), Pushed::Repetition);
        assert_eq!(sent(&mut queue, now), ["1"]);
        assert_eq!(queue.push(numbered(1), now + MINUTE), Pushed::Repetition);
        assert_eq!(queue.push(numbered(2), now + MINUTE), Pushed::Waits);
        assert_eq!(queue.push(numbered(1), now + REPETITION), Pushed::Waits);
        let other = Notification { uid: "another object of the same name".to_owned(), ..(*numbered(1)).clone() };
        assert_eq!(queue.push(Arc::new(other), now + REPETITION), Pushed::Waits);
    }

    #[test]
    fn the_limit_is_per_minute_and_nothing_is_left_out_below_it() {
        let (mut queue, now) = (Queue::new("chat"), Instant::now());
        for number in 0..PER_MINUTE as usize {
            queue.push(numbered(number), now);
        }
        assert_eq!(sent(&mut queue, now).len(), PER_MINUTE as usize);
        assert_eq!(queue.next(now, Timestamp::UNIX_EPOCH), Next::Idle);
        queue.push(numbered(100), now + MINUTE);
        assert_eq!(sent(&mut queue, now + MINUTE), ["100"]);
    }

    #[test]
    fn what_was_not_delivered_is_not_a_repetition_when_it_happens_again() {
        let (mut queue, now) = (Queue::new("chat"), Instant::now());
        queue.push(numbered(1), now);
        assert_eq!(sent(&mut queue, now), ["1"]);
        queue.failed(&numbered(1));
        assert_eq!(queue.push(numbered(1), now + MINUTE), Pushed::Waits);
        // The first occurrence ends later than an hour ago, and the second has not.
        assert_eq!(queue.push(numbered(1), now + REPETITION), Pushed::Repetition);
        assert_eq!(queue.push(numbered(1), now + REPETITION + MINUTE), Pushed::Waits);
    }

    #[test]
    fn a_problem_that_comes_back_is_not_a_repetition() {
        let (mut queue, now) = (Queue::new("chat"), Instant::now());
        let problem = Arc::new(Notification { severity: AlertSeverity::Warning, ..notification() });
        let fixed = Notification { severity: AlertSeverity::Info, message: "fixed".to_owned(), ..notification() };
        assert_eq!(queue.push(Arc::clone(&problem), now), Pushed::Waits);
        queue.note(&problem);
        queue.note(&Notification { uid: "another object".to_owned(), ..fixed.clone() });
        assert_eq!(queue.push(Arc::clone(&problem), now), Pushed::Repetition);
        queue.note(&fixed);
        assert_eq!(queue.push(problem, now), Pushed::Waits);
    }

    #[test]
    fn what_waits_can_be_dropped() {
        let (mut queue, now) = (Queue::new("chat"), Instant::now());
        queue.push(numbered(1), now);
        queue.clear();
        assert!(queue.is_empty() && queue.next(now, Timestamp::UNIX_EPOCH) == Next::Idle);
    }

    /// A notification of a tenant: `ACCOUNT` of a namespace of its own, or `NAMESPACE/ACCOUNT`.
    fn of(tenant: &str, number: usize) -> Arc<Notification> {
        let message = format!("{tenant} {number}");
        let (namespace, account) = tenant.split_once('/').unwrap_or((tenant, "installer"));
        let tenant = Tenant { namespace: namespace.to_owned(), account: account.to_owned() };
        Arc::new(Notification { tenant, message, ..notification() })
    }

    #[test]
    fn accounts_of_one_namespace_take_turns_and_get_no_more_than_another_namespace() {
        let (mut queue, now) = (Queue::new("chat"), Instant::now());
        for number in 0..10_000 {
            queue.push(of("accounts/noisy", number), now);
        }
        assert_eq!(queue.push(of("accounts/quiet", 0), now), Pushed::DroppedOldest);
        queue.push(of("other/one", 0), now);
        queue.push(of("accounts/noisy", 10_000), now);
        let messages = sent(&mut queue, now);
        // The first one says how many were left out.
        assert!(messages[..6].contains(&"accounts/quiet 0".to_owned()), "{messages:?}");
        assert!(messages[..6].contains(&"other/one 0".to_owned()), "{messages:?}");
        // The minute is used up, and the quiet one has not had its share.
        queue.push(of("accounts/noisy", 10_001), now);
        queue.push(of("accounts/quiet", 1), now);
        assert!(matches!(queue.next(now, Timestamp::UNIX_EPOCH), Next::Wait(_, 1)), "only of the noisy one");
        assert_eq!(sent(&mut queue, now + MINUTE).last().map(String::as_str), Some("accounts/quiet 1"));

        // Many accounts of one namespace have one turn together.
        let later = now + 2 * MINUTE;
        for account in 0..20 {
            queue.push(of(&format!("many/{account:02}"), 0), later);
        }
        queue.push(of("single/one", 0), later);
        queue.push(of("single/one", 1), later);
        let messages = sent(&mut queue, later);
        assert!(messages.iter().position(|it| it == "single/one 1").is_some_and(|place| place <= 3), "{messages:?}");
    }

    #[test]
    fn tenants_take_turns() {
        let (mut queue, now) = (Queue::new("chat"), Instant::now());
        for number in 0..3 {
            queue.push(of("a", number), now);
        }
        queue.push(of("b", 0), now);
        queue.push(of("c", 0), now);
        assert_eq!(sent(&mut queue, now), ["a 0", "b 0", "c 0", "a 1", "a 2"]);
    }

    #[test]
    fn a_tenant_whose_objects_change_all_the_time_takes_nothing_from_others() {
        let (mut queue, now) = (Queue::new("chat"), Instant::now());
        for number in 0..10_000 {
            queue.push(of("noisy", number), now);
        }
        assert_eq!(queue.push(of("quiet", 0), now), Pushed::DroppedOldest);
        queue.push(of("noisy", 10_000), now);
        assert!(sent(&mut queue, now).contains(&"quiet 0".to_owned()), "it is not the one that is dropped");
        // The minute is used up, and the quiet one has not had its share.
        queue.push(of("noisy", 10_001), now);
        for number in 1..4 {
            assert_eq!(queue.push(of("quiet", number), now), Pushed::Waits);
        }
        assert!(matches!(queue.next(now, Timestamp::UNIX_EPOCH), Next::Wait(_, 1)), "only of the noisy one");
        let later = sent(&mut queue, now + MINUTE);
        assert!(later[0].contains("more notifications were left out"), "{}", later[0]);
        assert_eq!(later[1..], ["quiet 1", "quiet 2", "quiet 3"]);
    }

    #[test]
    fn with_many_tenants_each_has_its_turn_and_memory_stays_bounded() {
        let (mut queue, now) = (Queue::new("chat"), Instant::now());
        for number in 0..20 {
            for tenant in 0..60 {
                queue.push(of(&format!("t{tenant:02}"), number), now);
            }
        }
        assert_eq!(queue.number_waiting(), WAITING);
        let mut tenants = std::collections::BTreeSet::new();
        for minute in 0..4 {
            let messages = sent(&mut queue, now + minute * MINUTE);
            assert!(messages.len() <= PER_MINUTE as usize && queue.number_waiting() <= WAITING);
            tenants.extend(messages.iter().filter(|it| it.starts_with('t')).map(|it| it[..3].to_owned()));
        }
        assert_eq!(tenants.len(), 60);
        assert!(queue.minute.is_none_or(|minute| minute.by_tenant.len() <= PER_MINUTE as usize));
    }
}
