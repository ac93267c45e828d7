//! Installs and uninstalls one version.

use std::{collections::BTreeSet, path::Path};

use chandler::read::naming;

use crate::{attempt, entry::Entry, packages::Package, plane::Plane};

/// Installs a version as a user would, and uninstalls it.
pub async fn install(plane: &Plane, package: &str, directory: &Path) -> anyhow::Result<Entry> {
    let before = plane.objects().await?;
    let mut entry = Entry::new(package, Package::version(directory));
    attempt::attempt(plane, "install", directory, &mut entry).await?;
    uninstall(plane, &before, &mut entry).await?;
    Ok(entry)
}

/// Uninstalls a package, and notes what remains. Its namespaces are deleted at the end.
pub(crate) async fn uninstall(plane: &Plane, before: &BTreeSet<String>, entry: &mut Entry) -> anyhow::Result<()> {
    let name = entry.package.as_str();
    if plane.deployment(name).await?.is_some() {
        let output = plane.run_waiting(&["delete", name, "--yes"]).await?;
        if !output.is_success() {
            let error = output.text.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
            entry.leftovers.push(format!("uninstall: {error}"));
        }
    }
    let namespaces = [naming::namespace(name), attempt::watched(name)];
    entry.leftovers.extend(plane.leftovers(before, &namespaces).await?);
    for namespace in &namespaces {
        plane.delete_namespace(namespace).await?;
    }
    Ok(())
}
