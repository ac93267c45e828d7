//! Reads the Events about one of Chandler's objects, and about the objects that it installed, with the rights of the user.

use std::collections::{BTreeMap, BTreeSet};

use chandler_api::{
    Alert, BundleDeployment, Catalog, PlatformOperator, PlatformPolicy, ProvisionerClass, Receiver, ReportingKind,
    Resolution,
};
use chandler_core::ObjectKey;
use futures::{Stream, StreamExt as _, stream};
use k8s_openapi::api::core::v1::Event;
use kube::{Api, Client, Resource, ResourceExt as _, api::ListParams, runtime::watcher};

use super::{below, cluster, explained, reported};
use crate::{
    CommandError,
    view::{
        api_error, events,
        tree::{ObjectStatus, TreeNode},
    },
};

/// The namespace of Events about cluster-scoped objects.
pub(super) const CLUSTER_NAMESPACE: &str = "default";

/// The objects whose Events are read.
#[derive(Debug, Default)]
pub struct Scope {
    /// The objects, without the versions of their kinds.
    objects: BTreeSet<ObjectKey>,
    /// For one object, the field selector of its Events.
    fields: Option<String>,
    /// What could not be read of the objects that are installed.
    pub unreadable: Vec<String>,
}

impl Scope {
    /// One object.
    pub fn of_object(kind: ReportingKind, name: &str) -> Self {
        let fields = format!("involvedObject.kind={kind},involvedObject.name={name}");
        Self { objects: BTreeSet::from([own_key(kind, name)]), fields: Some(fields), ..Self::default() }
    }

    /// An object with everything that it installed, down to the Pods: of a Resolution, the BundleDeployments of its set with their objects; of a
    /// PlatformOperator, its BundleDeployment with its objects.
    pub async fn with_objects(client: &Client, kind: ReportingKind, name: &str) -> Result<Self, CommandError> {
        let mut scope = Self { fields: None, ..Self::of_object(kind, name) };
        match kind {
            ReportingKind::BundleDeployment => {
                scope.add_objects(client, &cluster::deployment(client, name).await?).await;
            }
            ReportingKind::Resolution => {
                let resolution = reported::get::<chandler_api::Resolution>(client, name).await?;
                for deployment in explained::of_resolution(client, resolution).await?.deployments.values() {
                    scope.add_deployment(client, deployment).await;
                }
            }
            ReportingKind::PlatformOperator => {
                let operator: PlatformOperator = reported::get(client, name).await?;
                if let Some(active) = operator.status.and_then(|status| status.active_bundle_deployment) {
                    let deployment = cluster::deployment(client, &active.name).await?;
                    scope.add_deployment(client, &deployment).await;
                }
            }
            ReportingKind::Catalog
            | ReportingKind::ProvisionerClass
            | ReportingKind::PlatformPolicy
            | ReportingKind::Receiver
            | ReportingKind::Alert => {}
        }
        Ok(scope)
    }

    async fn add_deployment(&mut self, client: &Client, deployment: &BundleDeployment) {
        self.objects.insert(own_key(ReportingKind::BundleDeployment, &deployment.name_any()));
        self.add_objects(client, deployment).await;
    }

    async fn add_objects(&mut self, client: &Client, deployment: &BundleDeployment) {
        let mut members = cluster::members(client, deployment).await;
        let below = below::read(client, &mut members).await;
        self.add_nodes(below.nodes(&members.objects));
        self.unreadable.append(&mut members.unreadable);
    }

    fn add_nodes(&mut self, nodes: Vec<TreeNode>) {
        for TreeNode { object: ObjectStatus { key, .. }, dependents } in nodes {
            self.objects.insert(unversioned(key));
            self.add_nodes(dependents);
        }
    }

    /// Whether an Event is about one of the objects.
    fn has(&self, event: &Event) -> bool {
        self.objects.contains(&unversioned(events::object(event)))
    }

    /// The namespaces in which the Events about the objects are.
    fn namespaces(&self) -> BTreeSet<&str> {
        self.objects.iter().map(|key| key.namespace.as_deref().unwrap_or(CLUSTER_NAMESPACE)).collect()
    }
}

fn unversioned(key: ObjectKey) -> ObjectKey {
    ObjectKey { version: String::new(), ..key }
}

fn own_key(kind: ReportingKind, name: &str) -> ObjectKey {
    let group = match kind {
        ReportingKind::BundleDeployment => BundleDeployment::group(&()),
        ReportingKind::Resolution => Resolution::group(&()),
        ReportingKind::PlatformOperator => PlatformOperator::group(&()),
        ReportingKind::Catalog => Catalog::group(&()),
        ReportingKind::ProvisionerClass => ProvisionerClass::group(&()),
        ReportingKind::PlatformPolicy => PlatformPolicy::group(&()),
        ReportingKind::Receiver => Receiver::group(&()),
        ReportingKind::Alert => Alert::group(&()),
    };
    ObjectKey {
        group: group.into_owned(),
        kind: kind.as_str().to_owned(),
        namespace: None,
        name: name.to_owned(),
        version: String::new(),
    }
}

/// Fails if the object does not exist.
pub async fn check_exists(client: &Client, kind: ReportingKind, name: &str) -> Result<(), CommandError> {
    match kind {
        ReportingKind::BundleDeployment => cluster::deployment(client, name).await.map(drop),
        ReportingKind::Resolution => reported::get::<chandler_api::Resolution>(client, name).await.map(drop),
        ReportingKind::PlatformOperator => reported::get::<PlatformOperator>(client, name).await.map(drop),
        ReportingKind::Catalog => reported::get::<Catalog>(client, name).await.map(drop),
        ReportingKind::ProvisionerClass => reported::get::<ProvisionerClass>(client, name).await.map(drop),
        ReportingKind::PlatformPolicy => reported::get::<PlatformPolicy>(client, name).await.map(drop),
        ReportingKind::Receiver => reported::get::<Receiver>(client, name).await.map(drop),
        ReportingKind::Alert => reported::get::<Alert>(client, name).await.map(drop),
    }
}

/// The Events about the objects, and the versions by their UIDs, so that a watch does not show them again.
#[derive(Debug, Default)]
pub struct Read {
    /// The Events, in no particular order.
    pub events: Vec<Event>,
    /// The namespaces whose Events could not be read, with the reason.
    pub unreadable: Vec<String>,
}

/// Reads the Events about the objects.
///
/// # Errors
/// No namespace could be read.
pub async fn read(client: &Client, scope: &Scope) -> Result<Read, CommandError> {
    let mut read = Read::default();
    let mut last = None;
    let namespaces = scope.namespaces();
    for namespace in &namespaces {
        if let Err(error) = list(client, namespace, scope, &mut read.events).await {
            let cause = api_error::explain(&error).map_or_else(|| error.to_string(), |explained| explained.cause);
            read.unreadable.push(format!("the Events of namespace {namespace}: {cause}"));
            last = Some(error);
        }
    }
    match last {
        Some(error) if read.unreadable.len() == namespaces.len() => {
            Err(CommandError::failed("failed to read the Events").because(&error))
        }
        _ => Ok(read),
    }
}

async fn list(client: &Client, namespace: &str, scope: &Scope, found: &mut Vec<Event>) -> Result<(), kube::Error> {
    let api: Api<Event> = Api::namespaced(client.clone(), namespace);
    let mut parameters =
        ListParams { field_selector: scope.fields.clone(), ..ListParams::default().limit(cluster::PAGE) };
    loop {
        let page = api.list(&parameters).await?;
        found.extend(page.items.into_iter().filter(|event| scope.has(event)));
        match page.metadata.continue_ {
            Some(token) if !token.is_empty() => parameters.continue_token = Some(token),
            _ => return Ok(()),
        }
    }
}

/// The Events about the objects from now on: new ones and repetitions. Those in `known` are left out.
pub fn follow<'a>(client: &Client, scope: &'a Scope, known: &[Event]) -> impl Stream<Item = Event> + 'a {
    let mut versions: BTreeMap<String, String> = known.iter().filter_map(version).collect();
    let watches = scope.namespaces().into_iter().map(|namespace| {
        let api: Api<Event> = Api::namespaced(client.clone(), namespace);
        let config = watcher::Config { field_selector: scope.fields.clone(), ..watcher::Config::default() };
        watcher(api, config).boxed()
    });
    stream::select_all(watches).filter_map(move |watched| {
        let event = match watched {
            Ok(watcher::Event::Apply(event) | watcher::Event::InitApply(event)) if scope.has(&event) => Some(event),
            Ok(_) => None,
            Err(error) => {
                tracing::debug!(%error, "the watch was interrupted");
                None
            }
        };
        let event = event.filter(|event| match version(event) {
            Some((uid, version)) => versions.insert(uid, version.clone()) != Some(version),
            None => true,
        });
        std::future::ready(event)
    })
}

/// The UID and the version of an Event.
fn version(event: &Event) -> Option<(String, String)> {
    Some((event.uid()?, event.resource_version()?))
}
