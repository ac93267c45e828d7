//! The other clusters that bundles are installed into: their clients, what is known of them, and the bounds of both.
//!
//! A kubeconfig is what a tenant wrote, and its server may be hostile, slow or gone. So each has a client with its own connections, whose
//! answers are bounded in size, memory and time; one reconcile at a time; and slots and memory apart from the reconciles of this cluster. Namespaces
//! and accounts have a share of the kubeconfigs in use, so that one tenant keeps no other one out. A cluster that
//! did not answer is not asked again for some seconds, so that the BundleDeployments that name it end at once. Nothing is watched there.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use chandler_api::BundleDeployment;
use chandler_client::{
    Allowance, AllowanceSpent, AnswerLimits, AnswerMemory, Availability, Fence, NearServer, TargetError, TargetRules,
    bounded, fenced, insistent, target,
};
use chandler_core::{Digest, Reason, causes};
use chandler_decisions::problem::Problem;
use chandler_proxies::Proxies;
use chandler_rollout::{Rollout, readable};
use chandler_runtime::{Capacity, ClusterInfo, ClusterInfoWatch, Slots};
use chandler_turns::{KeyedGuard, KeyedLocks};
use kube::{Client, api::GetParams, core::Request};
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::OnceCell;

use crate::options::TargetOptions;

/// What the answers of one cluster have together in one reconcile. Objects take ten to fifteen times their bytes once they are parsed.
const ANSWERS: AnswerLimits = AnswerLimits { bytes: 32 << 20, memory: 256 << 20, own: 8 << 20 };
/// The memory that the answers of all clusters have together, beyond the part that each has for itself, in bytes.
const ALL_ANSWERS: usize = 384 << 20;
/// The longest UID of a namespace, in bytes. API servers make one of 36.
const UID: usize = 128;
/// How long a reconcile may ask another cluster.
const TIME: Duration = Duration::from_mins(2);
/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(30);
/// How long a cluster that did not answer is not asked again.
const PAUSE: Duration = Duration::from_secs(10);
/// The bytes of the names of all kinds of one cluster. A large cluster has some ten thousand.
const KINDS: usize = 4 << 20;
/// How long a kubeconfig that no reconcile uses stays open.
const UNUSED: Duration = Duration::from_mins(5);
/// The memory of the reconciles of all other clusters, in bytes.
const RECONCILES: usize = 24 << 20;
/// The namespace that every cluster has, whose UID identifies the cluster.
const IDENTITY: &str = "kube-system";

/// Which kubeconfig a BundleDeployment names: the key of a Secret, and the account that reads it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    namespace: String,
    name: String,
    entry: Option<String>,
    account: Option<(Option<String>, String)>,
}

impl Key {
    /// The kubeconfig that a BundleDeployment names, if it names one.
    pub(crate) fn of(deployment: &BundleDeployment) -> Option<Self> {
        let spec = &deployment.spec;
        let secret = spec.kube_config.as_ref()?.secret_ref.clone();
        let account = spec.service_account.as_ref().map(|account| (account.namespace.clone(), account.name.clone()));
        Some(Self { namespace: spec.install_namespace.clone(), name: secret.name, entry: secret.key, account })
    }

    /// The account that reads the Secret, with its namespace.
    fn account(&self) -> Option<(&str, &str)> {
        let (namespace, name) = self.account.as_ref()?;
        Some((namespace.as_ref().unwrap_or(&self.namespace), name))
    }

    /// The Secret, for messages.
    pub(crate) fn secret(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// Another cluster, with the credentials of a kubeconfig.
pub(crate) struct Target {
    /// The UID of its namespace kube-system.
    pub(crate) uid: String,
    /// What rolls releases out there.
    pub(crate) rollout: Rollout,
}

/// A kubeconfig that is in use.
struct Open {
    digest: Digest,
    client: Client,
    allowance: Arc<Allowance>,
    target: Arc<OnceCell<Arc<Target>>>,
    info: Option<(Instant, Arc<ClusterInfo>)>,
    used: Instant,
    /// Whether a BundleDeployment that used it had objects there.
    holds: bool,
    /// Until when it is not asked, and why.
    down: Option<(Instant, Problem)>,
}

/// The other clusters.
pub(crate) struct Targets {
    options: TargetOptions,
    proxies: Proxies,
    /// How long facts about a cluster are used.
    info_for: Duration,
    open: Mutex<HashMap<Key, Open>>,
    answers: AnswerMemory,
    /// Holds writes back while another controller may be the leader; `None` without an election.
    fence: Option<Fence>,
    turns: KeyedLocks<Key>,
    /// The slots of their reconciles.
    pub(crate) slots: Slots,
    rollout: Box<dyn Fn(Client) -> Rollout + Send + Sync>,
    home: Client,
    home_uid: OnceCell<String>,
}

/// The facts about the clusters of BundleDeployments that are installed into another one, by name of the BundleDeployment.
#[derive(Default)]
pub(crate) struct TargetInfo(Mutex<HashMap<String, Arc<ClusterInfo>>>);

impl TargetInfo {
    pub(crate) fn get(&self, name: &str) -> Option<Arc<ClusterInfo>> {
        self.0.lock().get(name).cloned()
    }

    pub(crate) fn note(&self, name: &str, info: Arc<ClusterInfo>) {
        self.0.lock().insert(name.to_owned(), info);
    }

    pub(crate) fn forget(&self, name: &str) {
        self.0.lock().remove(name);
    }
}

/// The turn of a reconcile with a kubeconfig. When it ends, so does the use of the memory for answers.
pub(crate) struct Turn<'a> {
    targets: &'a Targets,
    key: &'a Key,
    _guard: KeyedGuard<'a, Key>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(open) = self.targets.open.lock().get(self.key) {
            open.allowance.end();
        }
    }
}

impl Targets {
    /// `home` is the cluster of the BundleDeployments, `fence` holds writes to all clusters back, and `rollout` makes what rolls releases out with
    /// a client of another cluster.
    pub(crate) fn new(
        home: Client,
        fence: Option<Fence>,
        options: TargetOptions,
        info_for: Duration,
        rollout: impl Fn(Client) -> Rollout + Send + Sync + 'static,
    ) -> Self {
        Self {
            options,
            proxies: Proxies::from_environment(),
            info_for,
            open: Mutex::default(),
            answers: AnswerMemory::new(ALL_ANSWERS),
            fence,
            turns: KeyedLocks::default(),
            slots: Slots::new(options.most, Capacity::new("reconciles of other clusters", RECONCILES)),
            rollout: Box::new(rollout),
            home,
            home_uid: OnceCell::new(),
        }
    }

    /// Waits for the turn of a reconcile with this kubeconfig.
    pub(crate) async fn turn<'a>(&'a self, key: &'a Key) -> Turn<'a> {
        Turn { targets: self, key, _guard: self.turns.lock(key).await }
    }

    /// The numbers of kubeconfigs in use, by whether their cluster answered last, for the metrics.
    pub(crate) fn states(&self) -> Vec<(&'static str, usize)> {
        let open = self.open.lock();
        let down = open.values().filter(|entry| entry.down.is_some()).count();
        vec![("available", open.len() - down), ("unavailable", down)]
    }

    /// Closes the kubeconfigs that no reconcile used for some minutes.
    pub(crate) fn close_unused(&self) {
        let now = Instant::now();
        self.open.lock().retain(|_, entry| now.duration_since(entry.used) < UNUSED);
    }

    /// Why no kubeconfig is used at all, if that is so.
    pub(crate) fn refusal(&self) -> Option<Problem> {
        let message = "spec.kubeConfig: the controller installs bundles into its own cluster only: an administrator allows other clusters with \
                       --target-clusters";
        (self.options.most == 0).then(|| Problem::transient(Reason::TargetNotAllowed, message))
    }

    /// The cluster of a kubeconfig, and the facts about it, for one reconcile. Asks the cluster who it is: the kubeconfig may be the same and
    /// lead to another one. `holds`: the BundleDeployment has objects there. `in_use` says which kubeconfigs BundleDeployments name, if there are as
    /// many open ones as allowed.
    ///
    /// # Errors
    /// Why nothing can be installed there now.
    pub(crate) async fn begin(
        &self,
        key: &Key,
        kubeconfig: &[u8],
        holds: bool,
        in_use: impl FnOnce() -> HashSet<Key>,
    ) -> Result<(Arc<Target>, Arc<ClusterInfo>), Problem> {
        let (client, known) = self.open(key, kubeconfig, holds, in_use)?;
        let found = self.identify(&client, &known, key).await;
        let mut open = self.open.lock();
        let Some(entry) = open.get_mut(key) else { return Err(self.full()) };
        match found {
            Ok((target, info)) => {
                entry.info = Some(info.clone());
                Ok((target, info.1))
            }
            Err(problem) => {
                entry.down = Instant::now().checked_add(PAUSE).map(|until| (until, problem.clone()));
                Err(problem)
            }
        }
    }

    /// The client of a kubeconfig, which is opened unless it is in use.
    fn open(
        &self,
        key: &Key,
        kubeconfig: &[u8],
        holds: bool,
        in_use: impl FnOnce() -> HashSet<Key>,
    ) -> Result<(Client, Known), Problem> {
        let (digest, now) = (Digest::of(kubeconfig), Instant::now());
        let mut open = self.open.lock();
        open.retain(|other, entry| other == key || now.duration_since(entry.used) < UNUSED);
        if open.get(key).is_none_or(|entry| entry.digest != digest) {
            let rules = TargetRules { allow_loopback: self.options.allow_loopback };
            // A kubeconfig that is not valid takes no place from another one.
            let client = match target(kubeconfig, rules, &self.proxies) {
                Ok(client) => client,
                Err(error) => {
                    open.remove(key);
                    return Err(invalid(&key.secret(), &error));
                }
            };
            let most = usize::from(self.options.most);
            if !open.contains_key(key) && open.len() >= most {
                // A cluster that does not answer, or that no BundleDeployment names any more, keeps no other one out.
                let in_use = in_use();
                open.retain(|other, entry| in_use.contains(other) && entry.down.is_none());
                if open.len() >= most {
                    let gives = giver(&open, key, holds).ok_or_else(|| self.full())?;
                    open.remove(&gives);
                }
            }
            // Another kubeconfig replaces the earlier one, and may lead to another cluster.
            open.remove(key);
            let allowance = Arc::new(Allowance::new(&self.answers));
            let client = self.safe(&client, &allowance);
            let target = Arc::default();
            let entry = Open { digest, client, allowance, target, info: None, used: now, holds, down: None };
            open.insert(key.clone(), entry);
        }
        let Some(entry) = open.get_mut(key) else { return Err(self.full()) };
        entry.used = now;
        entry.holds |= holds;
        if let Some((until, problem)) = &entry.down {
            if now < *until {
                return Err(problem.clone());
            }
            entry.down = None;
        }
        entry.allowance.renew(ANSWERS, TIME);
        let info = entry.info.clone().filter(|(when, _)| when.elapsed() < self.info_for);
        Ok((entry.client.clone(), Known { target: Arc::clone(&entry.target), info }))
    }

    /// A client whose answers are bounded and can be parsed, and whose writes wait while another controller may be the leader.
    fn safe(&self, client: &Client, allowance: &Arc<Allowance>) -> Client {
        let bounded = bounded(client, allowance, REQUEST);
        let fenced = self.fence.as_ref().map_or_else(|| bounded.clone(), |fence| fenced(&bounded, fence.clone()));
        readable(&insistent(&fenced))
    }

    async fn identify(
        &self,
        client: &Client,
        known: &Known,
        key: &Key,
    ) -> Result<(Arc<Target>, (Instant, Arc<ClusterInfo>)), Problem> {
        let secret = key.secret();
        let uid = uid(client).await.map_err(|error| unreachable_with(&secret, &error))?;
        let home = self.home_uid.get_or_try_init(|| uid_of_home(&self.home)).await?;
        if uid == *home {
            let message = format!(
                "spec.kubeConfig: the kubeconfig in Secret {secret} leads to the cluster of the BundleDeployment itself: create one without \
                 spec.kubeConfig there, with spec.serviceAccount"
            );
            return Err(Problem::transient(Reason::InvalidKubeConfig, message));
        }
        let make = || async { Arc::new(Target { uid: uid.clone(), rollout: (self.rollout)(client.clone()) }) };
        let target = known.target.get_or_init(make).await;
        let target = if target.uid == uid {
            Arc::clone(target)
        } else {
            // The remembered objects are in another cluster.
            Arc::new(Target { uid, rollout: (self.rollout)(client.clone()) })
        };
        if let Some(info) = &known.info {
            return Ok((target, info.clone()));
        }
        let info = ClusterInfoWatch::new(client.clone(), Availability::default()).get().await;
        if info.api_kinds.iter().map(String::len).sum::<usize>() > KINDS {
            let message =
                format!("spec.kubeConfig: the cluster of the kubeconfig in Secret {secret} lists too many kinds");
            return Err(Problem::transient(Reason::TargetUnavailable, message));
        }
        if info.kubernetes_version.is_empty() || info.api_kinds.is_empty() {
            let message = format!(
                "spec.kubeConfig: the cluster of the kubeconfig in Secret {secret} reports neither its version nor its kinds; its user needs \
                 the permissions of the ClusterRole system:discovery"
            );
            return Err(Problem::transient(Reason::TargetUnavailable, message));
        }
        Ok((target, (Instant::now(), info)))
    }

    fn full(&self) -> Problem {
        let message = format!(
            "spec.kubeConfig: the controller uses {} kubeconfigs already, as many as it may: an administrator allows more with \
             --target-clusters, or delete a BundleDeployment with another kubeconfig",
            self.options.most
        );
        Problem::transient(Reason::TargetNotAllowed, message)
    }
}

/// What is known of a cluster from earlier reconciles.
struct Known {
    target: Arc<OnceCell<Arc<Target>>>,
    info: Option<(Instant, Arc<ClusterInfo>)>,
}

/// The kubeconfig that another one replaces if all places are taken. The namespace or account that has at least two more than the asker gives one
/// up. One with one more does so for a BundleDeployment that has objects, which must be repaired and deleted, if the cluster of its own kubeconfig
/// has none. `None` if the asker has to wait.
fn giver(open: &HashMap<Key, Open>, asker: &Key, holds: bool) -> Option<Key> {
    let related = |key: &Key, account: bool| {
        let is_counted = |other: &&Key| {
            let same_account = key.account().is_some() && other.account() == key.account();
            if account { same_account } else { other.namespace == key.namespace }
        };
        open.keys().filter(is_counted).count()
    };
    let share = |key: &Key| related(key, true).max(related(key, false));
    let own = share(asker);
    let may_give = |(key, entry): &(&Key, &Open)| {
        let more = share(key).saturating_sub(own);
        more >= 2 || more == 1 && holds && !entry.holds
    };
    // The one with the most, and of these one without objects, then the one that was used least recently.
    let order = |(key, entry): &(&Key, &Open)| (share(key), !entry.holds, std::cmp::Reverse(entry.used));
    open.iter().filter(may_give).max_by_key(order).map(|(key, _)| key.clone())
}

/// The part of a namespace that identifies a cluster. Everything else in the answer is skipped while it is parsed, and takes no memory.
#[derive(Deserialize)]
struct Identity {
    metadata: IdentityMetadata,
}

#[derive(Deserialize)]
struct IdentityMetadata {
    uid: String,
}

async fn uid(client: &Client) -> Result<String, kube::Error> {
    let request = Request::new("/api/v1/namespaces").get_metadata(IDENTITY, &GetParams::default());
    let request = request.map_err(kube::Error::BuildRequest)?;
    let answer = client.request_text(request).await?;
    identity(&answer).map_err(kube::Error::SerdeError)
}

/// The UID in an answer.
fn identity(answer: &str) -> Result<String, serde_json::Error> {
    let Identity { metadata: IdentityMetadata { uid } } = serde_json::from_str(answer)?;
    let is_uid = (1..=UID).contains(&uid.len()) && uid.bytes().all(|byte| byte.is_ascii_graphic());
    is_uid.then_some(uid).ok_or_else(|| serde::de::Error::custom("metadata.uid is not a UID"))
}

async fn uid_of_home(client: &Client) -> Result<String, Problem> {
    uid(client).await.map_err(|error| {
        let message = format!(
            "failed to read the namespace {IDENTITY} of this cluster: {}",
            chandler_source::api_message(&error)
        );
        Problem::transient(Reason::Retrying, message)
    })
}

/// A kubeconfig that is not used.
pub(crate) fn invalid(secret: &str, error: &dyn std::fmt::Display) -> Problem {
    Problem::transient(Reason::InvalidKubeConfig, format!("spec.kubeConfig: Secret {secret}: {error}"))
}

/// A cluster that does not say who it is. Nothing that the server answered is shown: it may be any server that the controller reaches.
fn unreachable_with(secret: &str, error: &kube::Error) -> Problem {
    if let Some(near) = causes(error).find_map(|cause| cause.downcast_ref::<NearServer>()) {
        return invalid(secret, &TargetError::from(*near));
    }
    let is_large = causes(error).any(|cause| cause.downcast_ref() == Some(&AllowanceSpent::Bytes));
    let code = match error {
        kube::Error::Api(status) => status.code,
        _ => 0,
    };
    let what = match code {
        401 => "refuses the credentials: write a kubeconfig with valid ones into the Secret".to_owned(),
        403 => format!(
            "does not let the user of the kubeconfig get the namespace {IDENTITY}, whose UID identifies the cluster: grant that"
        ),
        0 if is_large => "answers with more data than the controller reads".to_owned(),
        0 => "does not answer; the controller tries again".to_owned(),
        code => format!("answers with the status {code}; the controller tries again"),
    };
    let message = format!("spec.kubeConfig: the cluster of the kubeconfig in Secret {secret} {what}");
    tracing::debug!(secret, %error, "another cluster is unavailable");
    Problem::transient(Reason::TargetUnavailable, message)
}

#[cfg(test)]
mod tests;
