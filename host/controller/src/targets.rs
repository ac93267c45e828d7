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
mod tests {
    use chandler_client::FenceKeeper;
    use kube::{client::Body, core::Status};

    use super::*;

    fn answer(code: u16, message: &str) -> kube::Error {
        kube::Error::Api(Box::new(Status { code, message: message.to_owned(), ..Status::failure("", "") }))
    }

    #[test]
    fn nothing_that_an_unknown_server_answers_is_shown() {
        for code in [401, 403, 404, 500] {
            let problem = unreachable_with("shop/there", &answer(code, "s3cret"));
            assert_eq!((problem.reason, problem.terminal), (Reason::TargetUnavailable, false));
            assert!(
                !problem.message.contains("s3cret") && problem.message.contains("shop/there"),
                "{}",
                problem.message
            );
        }
        insta::assert_snapshot!(unreachable_with("shop/there", &answer(401, "")).message, @"spec.kubeConfig: the cluster of the kubeconfig in Secret shop/there refuses the credentials: write a kubeconfig with valid ones into the Secret");
        let near = unreachable_with("shop/there", &kube::Error::Service(Box::new(NearServer)));
        assert_eq!(near.reason, Reason::InvalidKubeConfig);
        let large = unreachable_with("shop/there", &kube::Error::Service(Box::new(AllowanceSpent::Bytes)));
        assert!(large.message.contains("more data than the controller reads"), "{}", large.message);
    }

    fn targets(most: u16) -> Targets {
        let client = || {
            Client::new(
                tower::service_fn(|_: http::Request<kube::client::Body>| {
                    std::future::pending::<Result<http::Response<kube::client::Body>, std::convert::Infallible>>()
                }),
                "default",
            )
        };
        let options = TargetOptions { most, ..TargetOptions::default() };
        Targets::new(client(), None, options, Duration::from_mins(5), |client| {
            Rollout::new(client, chandler_rollout::Options::default())
        })
    }

    fn key(name: &str) -> Key {
        Key { namespace: "shop".into(), name: name.into(), entry: None, account: None }
    }

    fn kubeconfig(token: &str) -> Vec<u8> {
        format!(
            "{{clusters: [{{name: a, cluster: {{server: 'https://api.invalid'}}}}], users: [{{name: a, user: {{token: '{token}'}}}}], \
             contexts: [{{name: a, context: {{cluster: a, user: a}}}}], current-context: a}}"
        )
        .into_bytes()
    }

    #[tokio::test]
    async fn as_many_kubeconfigs_are_open_as_the_administrator_allows() {
        chandler_tls::TlsSettings::default().install();
        assert!(targets(0).refusal().is_some_and(|problem| problem.message.contains("--target-clusters")));
        let targets = targets(2);
        assert!(targets.refusal().is_none());
        let all = || HashSet::from(["a", "b", "c", "d"].map(key));
        for name in ["a", "b", "a"] {
            assert!(targets.open(&key(name), &kubeconfig("x"), false, all).is_ok(), "{name}");
        }
        let full = targets.open(&key("c"), &kubeconfig("x"), false, all).err().unwrap();
        assert_eq!(full.reason, Reason::TargetNotAllowed);
        // Rotated credentials take the place of the earlier ones.
        assert!(targets.open(&key("a"), &kubeconfig("rotated"), false, all).is_ok());
        assert_eq!(targets.open.lock().len(), 2);
        // One that is not valid takes no place.
        assert_eq!(targets.open(&key("b"), b"{}", false, all).err().unwrap().reason, Reason::InvalidKubeConfig);
        assert!(targets.open(&key("c"), &kubeconfig("x"), false, all).is_ok());
        // Nor does one that no BundleDeployment names any more, or whose cluster is away.
        assert!(targets.open(&key("d"), &kubeconfig("x"), false, || HashSet::from(["c", "d"].map(key))).is_ok());
        let away = Problem::transient(Reason::TargetUnavailable, "away");
        targets.open.lock().get_mut(&key("c")).unwrap().down = Some((Instant::now() + PAUSE, away));
        assert!(targets.open(&key("a"), &kubeconfig("x"), false, all).is_ok());
        assert!(!targets.open.lock().contains_key(&key("c")));
    }

    fn of(namespace: &str, name: &str, account: &str) -> Key {
        let account = (Some("accounts".to_owned()), account.to_owned());
        Key { namespace: namespace.into(), name: name.into(), entry: None, account: Some(account) }
    }

    #[tokio::test]
    async fn writes_to_other_clusters_wait_for_the_lease() {
        let (keeper, fence) = FenceKeeper::new(tokio::time::Instant::now());
        let targets = Targets { fence: Some(fence), ..targets(1) };
        let sent = Arc::<Mutex<Vec<http::Method>>>::default();
        let server = {
            let sent = Arc::clone(&sent);
            tower::service_fn(move |request: http::Request<Body>| {
                sent.lock().push(request.method().clone());
                async { Ok::<_, std::convert::Infallible>(http::Response::new(Body::empty())) }
            })
        };
        let allowance = Arc::new(Allowance::new(&targets.answers));
        allowance.renew(ANSWERS, TIME);
        let client = targets.safe(&Client::new(server, "default"), &allowance);
        let respond_to = |method: http::Method| {
            let request = http::Request::builder().method(method).uri("/").body(Body::empty()).unwrap();
            client.send(request)
        };
        assert!(respond_to(http::Method::GET).await.is_ok());
        let mut write = std::pin::pin!(respond_to(http::Method::DELETE));
        for _ in 0..100 {
            assert!(futures::poll!(&mut write).is_pending());
            tokio::task::yield_now().await;
        }
        assert_eq!(*sent.lock(), [http::Method::GET]);
        keeper.open_until(tokio::time::Instant::now() + TIME);
        assert!(write.await.is_ok());
        assert_eq!(*sent.lock(), [http::Method::GET, http::Method::DELETE]);
    }

    #[tokio::test]
    async fn one_tenant_keeps_no_other_one_out() {
        chandler_tls::TlsSettings::default().install();
        let targets = targets(3);
        let opens = |key: &Key, holds| {
            let all: HashSet<Key> = targets.open.lock().keys().cloned().collect();
            targets.open(key, &kubeconfig("x"), holds, || all).is_ok()
        };
        let is_open = |key: &Key| targets.open.lock().contains_key(key);
        // One namespace with many accounts, and one account with many namespaces.
        for greedy in [
            [of("shop", "a", "1"), of("shop", "b", "2"), of("shop", "c", "3"), of("shop", "d", "4")],
            [of("1", "a", "shop"), of("2", "a", "shop"), of("3", "a", "shop"), of("4", "a", "shop")],
        ] {
            targets.open.lock().clear();
            assert!(greedy[..3].iter().all(|key| opens(key, true)));
            assert!(!opens(&greedy[3], true), "it has a share already");
            let other = of("other", "a", "other");
            assert!(opens(&other, false) && is_open(&other));
            assert!(!is_open(&greedy[0]), "the one that was used least recently makes room");
            assert!(!opens(&greedy[0], true) && is_open(&other), "it does not take the place back");
            assert!(opens(&of("third", "a", "third"), false) && is_open(&other));
            assert!(!opens(&of("fourth", "a", "fourth"), false), "each has one place");
        }
    }

    #[tokio::test]
    async fn what_has_objects_comes_first() {
        chandler_tls::TlsSettings::default().install();
        let targets = targets(2);
        let opens = |name: &str, holds| {
            let key = of(name, "a", name);
            let all: HashSet<Key> = targets.open.lock().keys().cloned().chain([key.clone()]).collect();
            targets.open(&key, &kubeconfig("x"), holds, || all).is_ok()
        };
        assert!(opens("one", true) && opens("two", false));
        assert!(!opens("three", false));
        assert!(opens("three", true), "it takes the place of one without objects");
        assert!(!opens("two", false) && !opens("two", true), "all have objects");
    }

    #[test]
    fn only_the_uid_of_the_answer_is_read() {
        let answer = |uid: &str| format!(r#"{{"x":[[0],[0]],"metadata":{{"name":"kube-system","uid":"{uid}"}}}}"#);
        assert_eq!(identity(&answer("0d2c-1")).unwrap(), "0d2c-1");
        for uid in ["", "a b", "a\\nb", &"x".repeat(UID + 1)] {
            assert!(identity(&answer(uid)).is_err(), "{uid}");
        }
        assert!(identity(r#"{"metadata":{}}"#).is_err() && identity("[]").is_err());
    }

    #[tokio::test]
    async fn a_cluster_that_did_not_answer_is_not_asked_for_some_seconds() {
        chandler_tls::TlsSettings::default().install();
        let targets = targets(1);
        let none = HashSet::new;
        assert!(targets.open(&key("a"), &kubeconfig("x"), false, none).is_ok());
        let problem = Problem::transient(Reason::TargetUnavailable, "away");
        let down = |from: Instant| targets.open.lock().get_mut(&key("a")).unwrap().down = Some((from, problem.clone()));
        down(Instant::now() + PAUSE);
        assert_eq!(targets.open(&key("a"), &kubeconfig("x"), false, none).err().as_ref(), Some(&problem));
        assert!(
            targets.open(&key("a"), &kubeconfig("rotated"), false, none).is_ok(),
            "other credentials may be accepted"
        );
        down(Instant::now());
        assert!(targets.open(&key("a"), &kubeconfig("rotated"), false, none).is_ok());
    }
}
