//! Upgrades through the versions of a package.

use serde_json::json;

use crate::{attempt, entry::Entry, newest, packages::Package, plane::Plane};

/// Installs the oldest version, upgrades to each next one, and uninstalls the last. A version that is refused leaves the installed one as
/// it is, and the next is tried from there.
pub async fn upgrade(plane: &Plane, package: &Package, mut report: impl FnMut(&Entry)) -> anyhow::Result<Vec<Entry>> {
    let before = plane.objects().await?;
    let mut entries: Vec<Entry> = Vec::new();
    for directory in &package.versions {
        let mut entry = Entry::new(&package.name, Package::version(directory));
        let exists = plane.deployment(&package.name).await?.is_some();
        attempt::attempt(plane, if exists { "upgrade" } else { "install" }, directory, &mut entry).await?;
        if entry.reasons.iter().any(|reason| reason == "ImmutableField") {
            // Each version needs its own consent.
            plane.patch(&package.name, &json!({"spec": {"rollout": {"onImmutable": null}}})).await?;
        }
        report(&entry);
        entries.push(entry);
    }
    if let Some(last) = entries.last_mut() {
        newest::uninstall(plane, &before, last).await?;
    }
    Ok(entries)
}
