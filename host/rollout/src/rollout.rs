//! The entry point of the controller: [`Rollout`], with one file per call.

mod advance;
pub mod causes;
mod observe;
mod preview;
mod query;
mod survey;
mod teardown;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Instant,
};

use chandler_core::{Digest, Release};
use chandler_health::probe::Compiler;
use chandler_informers::Informers;
use chandler_permissions::{Account, Installation};
use kube::Client;
use parking_lot::Mutex;
use serde_json::Value;

use crate::{
    client::{
        account,
        cluster::Cluster,
        recent_answers::{Purpose, RecentAnswers},
    },
    pure::{
        causes::Causes,
        deletion_plan::DeletionPlan,
        error::RolloutError,
        owner::Owner,
        refusals::{OnRefusal, Refusals},
    },
    read::{
        comparisons::Comparisons,
        discovery::Discovery,
        parent::{self, Parents},
        permissions::{AccessReview, Reviewed, Work},
        resolve,
    },
};

/// How a [`Rollout`] works.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many objects are remembered that match the release although the API server stores them in a different notation. Each
    /// takes about 150 bytes; comparing an object that was forgotten costs one dry run.
    pub remembered: usize,
    /// How Chandler is installed. It determines which objects a release may contain.
    pub installation: Installation,
}

impl Default for Options {
    fn default() -> Self {
        Self { remembered: 50_000, installation: Installation::default() }
    }
}

/// Rolls releases out to an API server. One instance serves all owners; its memory only saves requests.
pub struct Rollout {
    cluster: Cluster,
    /// The cluster of the owners, if it is not the cluster of their objects.
    home: Option<Cluster>,
    discovery: Discovery,
    /// What was asked about ServiceAccounts and namespaces some seconds ago.
    recent: RecentAnswers,
    /// Compiled health rules.
    compiler: Compiler,
    /// The releases in progress that passed every check, by the UIDs of their owners.
    in_progress: Mutex<HashMap<String, InProgress>>,
    /// The owners whose deletion waits for objects, by UID.
    tearing_down: Mutex<HashSet<String>>,
    /// The causes that were found below unhealthy objects, by times since the origin.
    causes: Mutex<Causes>,
    origin: Instant,
    /// The parents that were written last.
    parents: Parents,
    /// Objects that were found to match the release although they look different.
    comparisons: Comparisons,
    /// How Chandler is installed. It determines which objects a release may contain.
    installation: Installation,
}

/// A release in progress that passed every check.
#[derive(Clone)]
struct InProgress {
    release: Digest,
    account: Option<Account>,
    /// What the permissions of the account were reviewed for.
    reviewed: Reviewed,
}

impl Rollout {
    /// Creates a rollout that uses this client.
    pub fn new(client: Client, options: Options) -> Self {
        Self {
            cluster: Cluster::new(client.clone()),
            home: None,
            discovery: Discovery::new(client),
            recent: RecentAnswers::default(),
            comparisons: Comparisons::new(options.remembered),
            installation: options.installation,
            compiler: Compiler::default(),
            in_progress: Mutex::default(),
            tearing_down: Mutex::default(),
            causes: Mutex::default(),
            origin: Instant::now(),
            parents: Parents::default(),
        }
    }

    /// Reads the objects of owners from these informers where possible. They must select the objects of this process's owners.
    pub fn with_informers(self, informers: &Arc<Informers>) -> Self {
        Self { cluster: self.cluster.with_informers(informers), ..self }
    }

    /// Reads and writes the owners themselves with this client: they are in another cluster than their objects. Their
    /// [`Owner::elsewhere`](crate::Owner) must be set.
    #[must_use]
    pub fn for_owners_of(self, home: Client) -> Self {
        Self { home: Some(Cluster::new(home)), ..self }
    }

    /// The cluster of the owners.
    fn home(&self) -> &Cluster {
        self.home.as_ref().unwrap_or(&self.cluster)
    }

    /// The client for the objects of an owner. An owner of another cluster than the objects is refused here unless it says so, and the other
    /// way round: objects would get references that the garbage collector misunderstands, or lack them.
    async fn actor(&self, owner: &Owner) -> Result<Cluster, RolloutError> {
        self.actor_for(owner, Purpose::Write).await
    }

    async fn actor_for(&self, owner: &Owner, purpose: Purpose) -> Result<Cluster, RolloutError> {
        self.check_cluster(owner)?;
        account::actor(&self.cluster, &self.recent, owner, purpose).await
    }

    /// Like [`actor`](Self::actor), for a deletion.
    async fn actor_of_deletion(&self, owner: &Owner, purpose: Purpose) -> Result<Cluster, RolloutError> {
        self.check_cluster(owner)?;
        account::actor_of_deletion(&self.cluster, &self.recent, owner, purpose).await
    }

    fn check_cluster(&self, owner: &Owner) -> Result<(), RolloutError> {
        if owner.elsewhere == self.home.is_some() {
            return Ok(());
        }
        Err(RolloutError::WrongCluster(format!("{} {}", owner.kind, owner.name)))
    }

    /// Calls a function for each owner that a rollout wrote, with the object as the API server returned it. A rollout writes labels
    /// and annotations with the prefix [`PARENT_MARKS`](crate::PARENT_MARKS).
    #[must_use]
    pub fn notifying_of_parents(mut self, wrote: impl Fn(&Value) + Send + Sync + 'static) -> Self {
        self.parents.notify(Box::new(wrote));
        self
    }

    /// The parent of the owner's ApplySet; null if the owner does not exist.
    async fn parent_or_null(&self, owner: &Owner) -> Result<Value, RolloutError> {
        match parent::parent_of(self.home(), &self.parents, owner).await {
            Err(RolloutError::OwnerGone(_)) => Ok(Value::Null),
            parent => parent,
        }
    }

    /// The access review for the owner's ServiceAccount, or for the user of the kubeconfig; `None` if the controller uses its own rights.
    fn access_review<'a>(&'a self, actor: &'a Cluster, owner: &'a Owner) -> Option<AccessReview<'a>> {
        let account = owner.account.as_ref();
        if account.is_none() && !owner.elsewhere {
            return None;
        }
        let Self { cluster, discovery, recent, installation, .. } = self;
        Some(AccessReview { own: cluster, actor, discovery, recent, owner, account, installation })
    }

    /// Replaces a `Forbidden` error of a ServiceAccount, or of the user of a kubeconfig, by an error that lists every missing permission.
    async fn with_missing_permissions<T>(
        &self,
        result: Result<T, RolloutError>,
        actor: &Cluster,
        owner: &Owner,
        release: Option<&Release>,
    ) -> Result<T, RolloutError> {
        if let Err(error) = &result {
            self.recent.doubt(owner.account.as_ref(), error);
            self.discovery.doubt(error);
        }
        match (result, self.access_review(actor, owner)) {
            (Err(error), Some(access_review)) if error.is_forbidden() => {
                let desired = match release {
                    Some(release) => {
                        let mut refusals = Refusals::new(OnRefusal::Stop);
                        resolve::resolve(&self.discovery, owner, release, None, &mut refusals).await?
                    }
                    None => Vec::new(),
                };
                let parent = self.parent_or_null(owner).await?;
                let work = Work { parent: &parent, desired: &desired, unwanted: &DeletionPlan::default() };
                Box::pin(access_review.check(work)).await?;
                // No permission is missing. Something else forbids the request, such as a quota.
                Err(error)
            }
            (result, _) => result,
        }
    }

    /// What earlier calls of the same rollout found, if this release passed every check in them.
    fn in_progress(&self, owner: &Owner, release: &Release) -> Option<InProgress> {
        let in_progress = self.in_progress.lock();
        let is_same = |known: &&InProgress| known.release == *release.digest() && known.account == owner.account;
        in_progress.get(&owner.uid).filter(is_same).cloned()
    }

    /// Records whether a release is in progress and waits. After any failure everything is checked again.
    fn set_in_progress(&self, owner: &Owner, release: &Release, waits: bool, reviewed: Reviewed) {
        let mut in_progress = self.in_progress.lock();
        if waits {
            let (release, account) = (release.digest().clone(), owner.account.clone());
            in_progress.insert(owner.uid.clone(), InProgress { release, account, reviewed });
        } else {
            in_progress.remove(&owner.uid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RolloutRequest;

    /// Controllers run reconciles on any thread, so the futures must be `Send`. This test only has to compile.
    #[test]
    fn futures_of_calls_are_send() {
        fn assert_send<T: Send>(_: Option<T>) {}
        fn no_call<'a, F: Future + Send + 'a>(_: impl Fn(&'a Rollout, &'a RolloutRequest<'a>) -> F) {}
        no_call(|rollout, request| rollout.advance(request));
        no_call(|rollout, request| rollout.observe(request));
        no_call(|rollout, request| rollout.preview(request));
        no_call(|rollout, request| rollout.teardown(request.owner));
        assert_send(None::<Rollout>);
    }
}
