//! Keeps the Resolution of all PlatformOperators as wanted.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter::successors,
    sync::Arc,
};

use chandler_api::{
    BundleDeployment, PlatformOperator, Reason, Resolution, ServiceAccountReference, names::OWNER_NAME_LABEL,
};
use chandler_catalog::Indexes;
use chandler_permissions::{Account, DefaultAccount, Unnamed};
use chandler_records::RecordError;
use chandler_resolution::{
    installation::ready,
    manifests,
    platform::{InForce, Plan, Refused, Settings, Wanted, plan::plan, resolution},
};
use chandler_rollout::impersonating;
use chandler_runtime::GenerationTracker;
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
};
use tokio::sync::Mutex;

use super::{namespace_removal, namespaces::Namespaces, states::PlatformOperatorStates};
use crate::{
    absent,
    catalog::CatalogStates,
    cluster::Cluster,
    deployments::Deployments,
    platform_policy::Policies,
    resolution::{Membership, ResolutionStates, Sets},
};

/// A request to the API server failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    /// A request for a PlatformOperator, its Resolution or its namespace.
    #[error("failed to write a PlatformOperator, its Resolution or its namespace: {}", chandler_source::api_message(.0))]
    Request(#[from] kube::Error),
    /// The namespace of its package.
    #[error("failed to create the namespace: {}", chandler_source::api_message(.0))]
    Namespace(#[source] kube::Error),
    /// The record of the set.
    #[error("failed to read the record of the set: {0}")]
    Record(#[from] RecordError),
}

impl ReconcileError {
    /// What the status reports, or `None` if the watch will deliver a newer state.
    pub(super) fn reported(&self) -> Option<String> {
        match self {
            Self::Request(request @ kube::Error::Api(_)) => Some(chandler_source::api_message(request)),
            // The API server did not respond: the status cannot be written, either.
            Self::Request(_) => None,
            Self::Namespace(_) => Some(self.to_string()),
            Self::Record(error) => (!error.is_transient()).then(|| self.to_string()),
        }
    }
}

impl chandler_runtime::ReconcileError for ReconcileError {
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Request(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found())
    }

    fn of_status(error: kube::Error) -> Self {
        Self::Request(error)
    }
}

/// How many BundleDeployments between a PlatformOperator and a member of the set are looked at. Labels can name each other in a circle.
const MOST_OWNERS: usize = 16;

/// What all reconciles of PlatformOperators share.
pub(crate) struct Platform {
    pub(super) cluster: Arc<Cluster>,
    pub(super) deployments: Deployments,
    pub(super) states: Arc<PlatformOperatorStates>,
    catalogs: Arc<CatalogStates>,
    resolutions: Arc<ResolutionStates>,
    sets: Arc<Sets>,
    policies: Arc<Policies>,
    pub(super) generations: GenerationTracker,
    namespaces: Namespaces,
    /// Locked while the Resolution is planned and written. Whether this controller has created it, and the watch has not delivered it yet.
    writing: Mutex<bool>,
}

/// What all PlatformOperators want, and the results.
pub(super) struct Planned {
    pub(super) plan: Plan,
    /// The Resolution, if it belongs to PlatformOperators.
    pub(super) resolution: Option<Resolution>,
    /// The members of its set.
    pub(super) membership: Membership,
    /// The BundleDeployments of its set, by package.
    pub(super) members: BTreeMap<String, BundleDeployment>,
    /// Whether it is as wanted.
    pub(super) is_current: bool,
    /// Why the Resolution cannot be written.
    pub(super) blocked: Option<String>,
    /// The policy within which it is planned.
    pub(super) policy: Arc<InForce>,
    /// Why the namespace of a package could not be created, by package.
    pub(super) failed: BTreeMap<String, kube::Error>,
}

impl Platform {
    pub(crate) fn new(
        (cluster, deployments): (&Arc<Cluster>, &Deployments),
        states: &Arc<PlatformOperatorStates>,
        (catalogs, indexes): (&Arc<CatalogStates>, &Indexes),
        (resolutions, sets): (&Arc<ResolutionStates>, &Arc<Sets>),
        policies: &Arc<Policies>,
    ) -> Self {
        Self {
            cluster: Arc::clone(cluster),
            deployments: deployments.clone(),
            states: Arc::clone(states),
            catalogs: Arc::clone(catalogs),
            resolutions: Arc::clone(resolutions),
            sets: Arc::clone(sets),
            policies: Arc::clone(policies),
            generations: GenerationTracker::default(),
            namespaces: Namespaces::new(indexes),
            writing: Mutex::default(),
        }
    }

    /// Waits for the first lists: before them nothing would seem to be installed, and no catalog to exist. False means that the controller
    /// is stopping.
    pub(super) async fn ready(&self) -> bool {
        self.deployments.ready().await
            && self.catalogs.ready().await
            && self.resolutions.ready().await
            && self.policies.ready().await
    }

    /// Plans the Resolution, and writes what differs.
    pub(super) async fn apply(&self) -> Result<Planned, ReconcileError> {
        let mut is_created = self.writing.lock().await;
        let guarded = self.states.operators();
        let operators: Vec<&PlatformOperator> = guarded.iter().filter_map(|it| it.0.as_ref().ok()).collect();
        let name = &self.cluster.options.platform_resolution;
        let existing = self.resolutions.get(name);
        if existing.is_some() {
            *is_created = false;
        }
        let is_foreign = existing.as_ref().is_some_and(|existing| !resolution::is_managed(existing));
        let settings = self.settings(&operators);
        let mut planned = Planned {
            plan: plan(&operators),
            resolution: existing.filter(resolution::is_managed),
            membership: Membership::default(),
            members: BTreeMap::new(),
            is_current: false,
            blocked: None,
            policy: self.policies.in_force(),
            failed: BTreeMap::new(),
        };
        planned.plan.restrict(&operators, &planned.policy, planned.resolution.as_ref());
        if let Some(resolution) = &planned.resolution {
            planned.membership = Membership::read(&self.sets, resolution).await?;
            planned.members = self.members(&planned.membership);
        }
        let namespaces = self.place(&operators, &mut planned).await;
        if is_foreign {
            planned.blocked = Some(foreign(name));
            return Ok(planned);
        }
        let orphaned = self.orphaned(&operators);
        let existing = planned.resolution.as_ref();
        let all = operators.len() < guarded.len();
        let kept = resolution::kept(existing, &orphaned, all, &planned.plan);
        let wanted = resolution::wanted(&planned.plan, &kept, &namespaces, &settings);
        if let Some(wanted) = &wanted {
            self.create_namespaces(wanted, &settings, &mut planned).await;
        }
        self.write(wanted, &mut planned, &mut is_created).await?;
        Ok(planned)
    }

    /// Creates, changes or deletes the Resolution, if it differs.
    async fn write(
        &self,
        wanted: Option<Resolution>,
        planned: &mut Planned,
        is_created: &mut bool,
    ) -> Result<(), kube::Error> {
        let api: Api<Resolution> = Api::all(self.cluster.client.clone());
        let name = &self.cluster.options.platform_resolution;
        match (planned.resolution.as_ref(), wanted) {
            (None, None) => planned.is_current = true,
            (Some(existing), _) if existing.metadata.deletion_timestamp.is_some() => {}
            (Some(existing), None) => {
                absent::delete(&api, existing).await?;
            }
            (Some(existing), Some(wanted)) => {
                let change = resolution::change(existing, &wanted).map_err(kube::Error::SerdeError)?;
                planned.is_current = change.is_none();
                if let Some(change) = change {
                    api.patch(name, &PatchParams::default(), &Patch::Merge(change)).await?;
                }
            }
            (None, Some(wanted)) => match api.create(&PostParams::default(), &wanted).await {
                Err(kube::Error::Api(status)) if status.is_already_exists() => {
                    planned.blocked = (!*is_created).then(|| foreign(name));
                }
                created => {
                    drop(created?);
                    *is_created = true;
                }
            },
        }
        Ok(())
    }

    /// The BundleDeployments of the set by package, whatever their names are. A label would not prove that the set created them.
    fn members(&self, membership: &Membership) -> BTreeMap<String, BundleDeployment> {
        let all = self.deployments.all();
        let deployments = all.iter().filter_map(|guarded| guarded.0.as_ref().ok());
        let members = deployments.filter(|deployment| manifests::is_named(deployment) && membership.has(deployment));
        members.map(|member| (manifests::package(member), member.clone())).collect()
    }

    /// Whether a member of the set installs a PlatformOperator, itself or by way of BundleDeployments that it installs. Labels are enough
    /// to know that: forging one only means that the forger's own PlatformOperator is deleted before its package is.
    pub(super) fn is_bundled(&self, membership: &Membership, operator: &PlatformOperator) -> bool {
        let owner = |labels: &BTreeMap<String, String>| self.deployments.get(labels.get(OWNER_NAME_LABEL)?);
        let owners = successors(owner(operator.labels()), |it| owner(it.labels()));
        owners.take(MOST_OWNERS).any(|it| membership.has(&it))
    }

    /// Deletes the namespace of a package that is uninstalled, if the controller created it for the package, nothing needs it and nothing
    /// is left in it. If that cannot be determined, or the deletion fails, the namespace stays.
    pub(super) async fn remove_namespace(&self, operator: &PlatformOperator, planned: &Planned) {
        let package = &operator.spec.package.name;
        let Some(name) = operator.status.as_ref().and_then(|status| status.namespace.as_ref()) else { return };
        // Nothing that would need it is planned meanwhile.
        let _writing = self.writing.lock().await;
        let is_wanted = planned.resolution.as_ref().is_some_and(|it| resolution::uses_namespace(it, name, package));
        let is_named =
            |it: &PlatformOperator| it.spec.install_namespace.as_ref() == Some(name) && it.uid() != operator.uid();
        let operators = self.states.operators();
        let deployments = self.deployments.all();
        let is_used = is_wanted
            || operators.iter().any(|it| it.0.as_ref().map_or(true, is_named))
            || deployments.iter().any(|it| it.0.as_ref().map_or(true, |it| it.spec.install_namespace == *name));
        let options = &self.cluster.options;
        if is_used || *name == options.system_namespace || *name == options.platform_resolution {
            return;
        }
        let Some(installer) = self.installer() else { return };
        match namespace_removal::remove_if_empty(&self.cluster.client, &installer, name, package).await {
            Ok(true) => {
                tracing::info!(name, package, "deleted the empty namespace of a package that is uninstalled");
                self.namespaces.missing(name);
            }
            Ok(false) => {}
            Err(error) => {
                tracing::debug!(name, package, %error, "the namespace of a package that is uninstalled stays");
            }
        }
    }

    /// The client that installs packages: its permissions decide what may be deleted.
    fn installer(&self) -> Option<Client> {
        let (client, options) = (&self.cluster.client, &self.cluster.options);
        let of = |namespace: &String, name: &String| {
            impersonating(client, &Account { namespace: namespace.clone(), name: name.clone() }).ok()
        };
        match (&options.platform_account, &options.accounts.unnamed) {
            (Some(name), _) => of(&options.system_namespace, name),
            (None, Unnamed::Controller) => Some(client.clone()),
            (None, Unnamed::Default(DefaultAccount { namespace: Some(namespace), name })) => of(namespace, name),
            // An account of the namespace itself keeps the namespace.
            (None, Unnamed::Default(_) | Unnamed::Refused) => None,
        }
    }

    fn settings(&self, operators: &[&PlatformOperator]) -> Settings {
        let options = &self.cluster.options;
        let account = options.platform_account.as_ref().map(|name| ServiceAccountReference {
            name: name.clone(),
            namespace: Some(options.system_namespace.clone()),
        });
        // The controller sees the Resolution only if it is selected like the PlatformOperators.
        let first = operators.iter().min_by_key(|it| (it.creation_timestamp().map(|time| time.0), it.name_any()));
        let labels = first.map(|first| options.watch_selector.needed(first.labels())).unwrap_or_default();
        Settings { name: options.platform_resolution.clone(), service_account: account, labels }
    }

    /// The namespace of each package. A package that is in no catalog is refused, unless it was there before: then the resolver decides.
    async fn place(&self, operators: &[&PlatformOperator], planned: &mut Planned) -> BTreeMap<String, String> {
        let (catalogs, rules) = (self.catalogs.known(), &self.cluster.options.platform_packages);
        self.namespaces.retain(&catalogs);
        let (mut namespaces, mut refused) = (BTreeMap::new(), BTreeMap::<String, Refused>::new());
        let elsewhere = installed_elsewhere(planned);
        for wanted in &planned.plan.packages {
            let package = &wanted.request.name;
            let installed = || planned.members.get(package).map(|member| member.spec.install_namespace.clone());
            let before = || {
                let resolution = planned.resolution.as_ref()?;
                resolution::namespace(resolution, package)
                    .filter(|_| resolution::asks_for(resolution, package))
                    .cloned()
            };
            let is_new = !planned.resolution.as_ref().is_some_and(|it| resolution::asks_for(it, package));
            let policy = planned.policy.as_ref().as_ref().ok().and_then(Option::as_ref);
            let required_by = policy.filter(|policy| policy.must_be_operators).map(|policy| policy.name.clone());
            let must_be_operator = is_new && (rules.must_be_operators || required_by.is_some());
            let known = wanted.namespace.clone().or_else(installed).or_else(before);
            let suggested = if known.is_none() || must_be_operator {
                let limited = policy.and_then(|policy| policy.limit(&wanted.request).ok());
                let request = limited.unwrap_or_else(|| wanted.request.clone());
                let wanted = Wanted { request, ..wanted.clone() };
                self.namespaces.suggested(&wanted, &catalogs, must_be_operator).await
            } else {
                Ok(String::new())
            };
            let namespace = match (suggested, known) {
                _ if is_new && !rules.allowed.is_empty() && !rules.allowed.contains(package) => {
                    Err(Refused::NotAllowed {
                        package: package.clone(),
                        allowed: rules.allowed.iter().cloned().collect(),
                        policy: None,
                    })
                }
                (Err(Refused::NotPlatformOperator { package, .. }), _) => {
                    Err(Refused::NotPlatformOperator { package, policy: required_by })
                }
                (Err(refused), None) => Err(refused),
                (_, Some(known)) => Ok(known),
                (Ok(suggested), None) => Ok(suggested),
            };
            match namespace {
                // Packages of another set may pass to this one, and keep their namespace.
                Ok(_) if wanted.namespace.is_none() && elsewhere.contains(package) => {}
                Err(Refused::Unknown { .. }) if !is_new => {}
                Ok(namespace) => drop(namespaces.insert(package.clone(), namespace)),
                Err(reason) => drop(refused.insert(package.clone(), reason)),
            }
        }
        // A package that no PlatformOperator names any more also keeps its namespace, if others need it.
        for (package, member) in &planned.members {
            let namespace = &member.spec.install_namespace;
            if planned.plan.wanted(package).is_none() && *namespace != self.cluster.options.platform_resolution {
                namespaces.insert(package.clone(), namespace.clone());
            }
        }
        planned.plan.refuse(operators, |wanted| refused.get(&wanted.request.name).cloned());
        namespaces
    }

    /// The packages of PlatformOperators that are deleted with `--cascade=orphan`.
    fn orphaned(&self, operators: &[&PlatformOperator]) -> BTreeSet<String> {
        let orphaned = operators.iter().filter(|it| it.metadata.deletion_timestamp.is_some());
        orphaned.filter(|it| self.generations.is_orphaning(**it)).map(|it| it.spec.package.name.clone()).collect()
    }

    async fn create_namespaces(&self, wanted: &Resolution, settings: &Settings, planned: &mut Planned) {
        let Some(set) = wanted.spec.output.as_ref().and_then(|output| output.resolve_set.as_ref()) else { return };
        let shared = [(String::new(), &set.install_namespace)];
        let own = set.namespaces.iter().map(|(package, namespace)| (package.clone(), namespace));
        for (package, namespace) in shared.into_iter().chain(own) {
            if planned.members.get(&package).is_some_and(lacks_namespace) {
                self.namespaces.missing(namespace);
            }
            if let Err(error) =
                self.namespaces.ensure(&self.cluster.client, namespace, &package, &settings.labels).await
            {
                tracing::debug!(namespace, %error, "the namespace could not be created");
                planned.failed.insert(package, error);
            }
        }
    }
}

/// The packages that the status of the Resolution names, and that BundleDeployments outside of its set have.
fn installed_elsewhere(planned: &Planned) -> BTreeSet<String> {
    let reported = planned.resolution.iter().filter_map(|it| it.status.as_ref()).flat_map(|status| &status.members);
    let elsewhere = reported.filter(|it| it.bundle_deployment.is_some() && !planned.members.contains_key(&it.package));
    elsewhere.filter(|it| it.state.is_some()).map(|it| it.package.clone()).collect()
}

fn lacks_namespace(deployment: &BundleDeployment) -> bool {
    ready(deployment).is_some_and(|ready| ready.reason == Reason::InstallNamespaceNotFound.as_str())
}

fn foreign(name: &str) -> String {
    format!(
        "Resolution {name} exists, and the controller did not create it for PlatformOperators: delete it, or run the controller with \
         another name (--platform-resolution)"
    )
}
