//! Keeps the caches of content and releases within their budgets, and removes records of deleted BundleDeployments.

use std::{
    collections::HashSet,
    sync::{Arc, Weak},
    time::Duration,
};

use chandler_content::{StoreError, Users, component_tree};
use chandler_core::Digest;
use chandler_decisions::account::requester;
use chandler_turns::Requester;
use kube::ResourceExt as _;
use tokio::time::MissedTickBehavior;

use crate::{
    bundle_deployment::{Installer, RELEASES},
    catalog::CatalogStates,
};

/// The interval of the cleanup.
const INTERVAL: Duration = Duration::from_hours(1);

/// Removes the least recently used entries at an interval until the rest is within the budgets, and content also after much was added.
/// Content that a BundleDeployment or a
/// Catalog uses is kept, so that it does not depend on its registry. Never returns.
pub(crate) async fn run(installer: &Arc<Installer>, catalogs: &Arc<CatalogStates>) {
    connect_users(installer, catalogs).await;
    let mut tick = tokio::time::interval(INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick is immediate, before the BundleDeployments are listed.
    tick.tick().await;
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = installer.memory.growth.is_due() => {
                content(installer, catalogs).await;
                continue;
            }
        }
        uploads(installer).await;
        content(installer, catalogs).await;
        releases(installer).await;
        records(installer).await;
        installer.targets.close_unused();
    }
}

/// Lets the cache of content find out what is in use, once the BundleDeployments and Catalogs are known, and each Catalog was tried: until then,
/// nothing is removed to make room.
async fn connect_users(installer: &Arc<Installer>, catalogs: &Arc<CatalogStates>) {
    // An error means that the controller is stopping.
    if !installer.deployments.ready().await || !catalogs.ready().await {
        return;
    }
    let (weak, catalogs): (Weak<Installer>, _) = (Arc::downgrade(installer), Arc::downgrade(catalogs));
    installer.preparer.components.images.store().users_from(move || {
        let (installer, catalogs) = (weak.upgrade()?, catalogs.upgrade()?);
        let is_known = catalogs.known().iter().all(|catalog| catalog.is_tried);
        is_known.then(|| users(&installer, &catalogs))
    });
}

/// Forgets content that was uploaded for BundleDeployments that are gone. It is then removed like other unused content.
async fn uploads(installer: &Installer) {
    let existing: HashSet<(String, String)> = installer
        .deployments
        .all()
        .iter()
        .map(|guarded| (guarded.name_any(), guarded.uid().unwrap_or_default()))
        .collect();
    let store = installer.preparer.components.images.store().clone();
    let kept = tokio::task::spawn_blocking(move || {
        store.retain_uploads(|upload| existing.contains(&(upload.name.clone(), upload.uid.clone())))
    });
    match kept.await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(%error, "failed to forget uploads"),
        Err(error) => tracing::warn!(%error, "forgetting uploads was interrupted"),
    }
}

async fn content(installer: &Installer, catalogs: &CatalogStates) {
    installer.memory.growth.cleans();
    let used = users(installer, catalogs);
    let (store, budget) =
        (installer.preparer.components.images.store().clone(), installer.cluster.options.unused_content_bytes());
    let known = installer.memory.growth.known();
    let collected = tokio::task::spawn_blocking(move || {
        let collected = store.collect(&|digest| used.contains_key(digest), budget)?;
        let gone: Vec<_> = known.into_iter().filter(|digest| !store.has(digest)).collect();
        Ok::<_, StoreError>((collected, gone))
    });
    let collected = collected.await.map(|collected| {
        collected.map(|(collected, gone)| {
            installer.memory.growth.removed(&gone);
            collected
        })
    });
    if let Ok(Ok(collected)) = &collected {
        installer.cluster.metrics.cleaned("content", collected.kept_bytes);
    }
    match collected {
        Ok(Ok(collected)) if collected.removed > 0 => {
            tracing::info!(
                removed = collected.removed,
                freed_bytes = collected.freed_bytes,
                "cleaned the content cache"
            );
        }
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(%error, "failed to clean the content cache"),
        Err(error) => tracing::warn!(%error, "cleaning the content cache was interrupted"),
    }
}

async fn releases(installer: &Installer) {
    let (releases, used) = (installer.preparer.releases.clone(), installer.memory.in_use.all());
    let collected = tokio::task::spawn_blocking(move || releases.collect(&used)).await;
    if let Ok(Ok(collected)) = &collected {
        installer.cluster.metrics.cleaned(RELEASES, collected.kept_bytes);
    }
    match collected {
        Ok(Ok(collected)) if collected.removed > 0 => {
            tracing::info!(
                removed = collected.removed,
                kept_bytes = collected.kept_bytes,
                "cleaned the cache of releases"
            );
        }
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(%error, "failed to clean the cache of releases"),
        Err(error) => tracing::warn!(%error, "cleaning the cache of releases was interrupted"),
    }
}

/// Removes the records of BundleDeployments that were deleted without their finalizer.
async fn records(installer: &Installer) {
    let names: HashSet<String> = installer.deployments.all().iter().map(|guarded| guarded.name_any()).collect();
    match installer.records.sweep(|name| names.contains(name)).await {
        Ok(0) => {}
        Ok(removed) => tracing::info!(removed, "removed records of deleted BundleDeployments"),
        Err(error) => tracing::warn!(%error, "failed to remove records of deleted BundleDeployments"),
    }
}

/// Who uses which content: the content of all revisions in the records, of what each spec describes, of catalogs, and components.
fn users(installer: &Installer, catalogs: &CatalogStates) -> Users {
    let mut users = Users::new();
    let own = catalogs.content_in_use().into_iter();
    let pulled = installer.preparer.classes.pulled();
    for digest in own.chain(pulled.iter().map(|(digest, bytes)| component_tree(digest, *bytes))) {
        users.insert(digest, vec![Requester::controller()]);
    }
    for guarded in installer.deployments.all() {
        let Ok(deployment) = &guarded.0 else { continue };
        let requester = requester(deployment, &installer.cluster.options.accounts);
        let state = installer.records.known(&deployment.name_any()).map(|record| record.state());
        let history = state.iter().flat_map(|state| &state.history).map(|revision| &revision.content_digest);
        let described = deployment.status.as_ref().and_then(|status| status.content_digest.as_ref());
        // Until its record is read, the status says which revisions it has.
        let copied = deployment.status.iter().filter(|_| state.is_none()).flat_map(|status| &status.history);
        let copied = copied.map(|revision| &revision.content_digest);
        let digests = described.into_iter().chain(history).chain(copied);
        for digest in digests.filter_map(|digest| digest.parse::<Digest>().ok()) {
            let known = users.entry(digest).or_default();
            if !known.contains(&requester) {
                known.push(requester.clone());
            }
        }
    }
    users
}
