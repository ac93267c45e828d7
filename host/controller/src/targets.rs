//! The other clusters that bundles are installed into: their clients, what is known of them, and the bounds of both.
//!
//! A kubeconfig is what a tenant wrote, and its server may be hostile, slow or gone. So each has a client with its own connections, whose
//! answers are bounded in size and time; one reconcile at a time; and slots and memory apart from the reconciles of this cluster. A cluster that
//! did not answer is not asked again for some seconds, so that the BundleDeployments that name it end at once. Nothing is watched there.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use chandler_api::BundleDeployment;
use chandler_client::{Allowance, Availability, NearServer, TargetError, TargetRules, bounded, insistent, target};
use chandler_core::{Digest, Reason, causes};
use chandler_decisions::problem::Problem;
use chandler_proxies::Proxies;
use chandler_rollout::{Rollout, readable};
use chandler_runtime::{Capacity, ClusterInfo, ClusterInfoWatch, Slots};
use chandler_turns::{KeyedGuard, KeyedLocks};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::options::TargetOptions;

/// The bytes of all answers of one cluster in one reconcile.
const ANSWERS: usize = 32 << 20;
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

impl Targets {
    /// `home` is the cluster of the BundleDeployments, and `rollout` makes what rolls releases out with a client of another one.
    pub(crate) fn new(
        home: Client,
        options: TargetOptions,
        info_for: Duration,
        rollout: impl Fn(Client) -> Rollout + Send + Sync + 'static,
    ) -> Self {
        Self {
            options,
            proxies: Proxies::from_environment(),
            info_for,
            open: Mutex::default(),
            turns: KeyedLocks::default(),
            slots: Slots::new(options.most, Capacity::new("reconciles of other clusters", RECONCILES)),
            rollout: Box::new(rollout),
            home,
            home_uid: OnceCell::new(),
        }
    }

    /// Waits for the turn of a reconcile with this kubeconfig.
    pub(crate) async fn turn<'a>(&'a self, key: &'a Key) -> KeyedGuard<'a, Key> {
        self.turns.lock(key).await
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
    /// lead to another one. `in_use` says which kubeconfigs BundleDeployments name, if there are as many open ones as allowed.
    ///
    /// # Errors
    /// Why nothing can be installed there now.
    pub(crate) async fn begin(
        &self,
        key: &Key,
        kubeconfig: &[u8],
        in_use: impl FnOnce() -> HashSet<Key>,
    ) -> Result<(Arc<Target>, Arc<ClusterInfo>), Problem> {
        let (client, known) = self.open(key, kubeconfig, in_use)?;
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
        in_use: impl FnOnce() -> HashSet<Key>,
    ) -> Result<(Client, Known), Problem> {
        let (digest, now) = (Digest::of(kubeconfig), Instant::now());
        let mut open = self.open.lock();
        open.retain(|other, entry| other == key || now.duration_since(entry.used) < UNUSED);
        if open.get(key).is_none_or(|entry| entry.digest != digest) {
            let most = usize::from(self.options.most);
            if !open.contains_key(key) && open.len() >= most {
                // A cluster that does not answer, or that no BundleDeployment names any more, keeps no other one out.
                let in_use = in_use();
                open.retain(|other, entry| in_use.contains(other) && entry.down.is_none());
                if open.len() >= most {
                    return Err(self.full());
                }
            }
            // Another kubeconfig replaces the earlier one, and may lead to another cluster.
            open.remove(key);
            let rules = TargetRules { allow_loopback: self.options.allow_loopback };
            let client = target(kubeconfig, rules, &self.proxies).map_err(|error| invalid(&key.secret(), &error))?;
            let allowance = Arc::<Allowance>::default();
            let client = readable(&insistent(&bounded(&client, &allowance, REQUEST)));
            let target = Arc::default();
            open.insert(key.clone(), Open { digest, client, allowance, target, info: None, used: now, down: None });
        }
        let Some(entry) = open.get_mut(key) else { return Err(self.full()) };
        entry.used = now;
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

async fn uid(client: &Client) -> Result<String, kube::Error> {
    let namespace = Api::<Namespace>::all(client.clone()).get_metadata(IDENTITY).await?;
    Ok(namespace.metadata.uid.unwrap_or_default())
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
    let code = match error {
        kube::Error::Api(status) => status.code,
        _ => 0,
    };
    let what = match code {
        401 => "refuses the credentials: write a kubeconfig with valid ones into the Secret".to_owned(),
        403 => format!(
            "does not let the user of the kubeconfig get the namespace {IDENTITY}, whose UID identifies the cluster: grant that"
        ),
        0 => "does not answer; the controller tries again".to_owned(),
        code => format!("answers with the status {code}; the controller tries again"),
    };
    let message = format!("spec.kubeConfig: the cluster of the kubeconfig in Secret {secret} {what}");
    tracing::debug!(secret, %error, "another cluster is unavailable");
    Problem::transient(Reason::TargetUnavailable, message)
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

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
        Targets::new(client(), options, Duration::from_mins(5), |client| {
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
            assert!(targets.open(&key(name), &kubeconfig("x"), all).is_ok(), "{name}");
        }
        let full = targets.open(&key("c"), &kubeconfig("x"), all).err().unwrap();
        assert_eq!(full.reason, Reason::TargetNotAllowed);
        // Rotated credentials take the place of the earlier ones.
        assert!(targets.open(&key("a"), &kubeconfig("rotated"), all).is_ok());
        assert_eq!(targets.open.lock().len(), 2);
        // One that is not valid takes no place.
        assert_eq!(targets.open(&key("b"), b"{}", all).err().unwrap().reason, Reason::InvalidKubeConfig);
        assert!(targets.open(&key("c"), &kubeconfig("x"), all).is_ok());
        // Nor does one that no BundleDeployment names any more, or whose cluster is away.
        assert!(targets.open(&key("d"), &kubeconfig("x"), || HashSet::from(["c", "d"].map(key))).is_ok());
        let away = Problem::transient(Reason::TargetUnavailable, "away");
        targets.open.lock().get_mut(&key("c")).unwrap().down = Some((Instant::now() + PAUSE, away));
        assert!(targets.open(&key("a"), &kubeconfig("x"), all).is_ok());
        assert!(!targets.open.lock().contains_key(&key("c")));
    }

    #[tokio::test]
    async fn a_cluster_that_did_not_answer_is_not_asked_for_some_seconds() {
        chandler_tls::TlsSettings::default().install();
        let targets = targets(1);
        let none = HashSet::new;
        assert!(targets.open(&key("a"), &kubeconfig("x"), none).is_ok());
        let problem = Problem::transient(Reason::TargetUnavailable, "away");
        let down = |from: Instant| targets.open.lock().get_mut(&key("a")).unwrap().down = Some((from, problem.clone()));
        down(Instant::now() + PAUSE);
        assert_eq!(targets.open(&key("a"), &kubeconfig("x"), none).err().as_ref(), Some(&problem));
        assert!(targets.open(&key("a"), &kubeconfig("rotated"), none).is_ok(), "other credentials may be accepted");
        down(Instant::now());
        assert!(targets.open(&key("a"), &kubeconfig("rotated"), none).is_ok());
    }
}
