//! A bundle, a provisioner or a release on one line.

use chandler_api::{BundleCandidate, BundleDescription, ProvisionerInUse, ReleaseInUse};

use super::text::count;

/// The class of a provisioner, with the name and version of the component.
pub fn provisioner(provisioner: &ProvisionerInUse) -> String {
    let name = [&provisioner.name, &provisioner.version].into_iter().flatten().map(String::as_str);
    let name = name.collect::<Vec<_>>().join(" ");
    if name.is_empty() { provisioner.class.clone() } else { format!("{} ({name})", provisioner.class) }
}

/// The number of objects and stages of a release, and its digest.
pub fn release(release: &ReleaseInUse) -> String {
    let number = |count| usize::try_from(count).unwrap_or_default();
    let (objects, stages) = (count(number(release.objects), "object"), count(number(release.stages), "stage"));
    format!("{objects} in {stages}, {}", release.digest)
}

/// The package and version of the installed bundle, else its name.
pub fn bundle(bundle: &BundleDescription) -> Option<String> {
    named(bundle.name.as_ref(), bundle.package.as_ref(), bundle.version.as_ref())
}

/// The package and version of a bundle that is not installed, else its name.
pub fn candidate(bundle: &BundleCandidate) -> Option<String> {
    named(bundle.name.as_ref(), bundle.package.as_ref(), bundle.version.as_ref())
}

fn named(name: Option<&String>, package: Option<&String>, version: Option<&String>) -> Option<String> {
    match (package, version) {
        (Some(package), Some(version)) => Some(format!("{package} {version}")),
        (package, version) => name.or(package).or(version).cloned(),
    }
}

/// The installed version and the pending one: `1.2.0 -> 1.3.0`. `None` if neither bundle has a version.
pub fn versions(installed: Option<&BundleDescription>, pending: Option<&BundleCandidate>) -> Option<String> {
    let installed = installed.and_then(|bundle| bundle.version.as_deref());
    match (installed, pending.and_then(|bundle| bundle.version.as_deref())) {
        (Some(installed), Some(pending)) if installed == pending => Some(format!("{installed}, changed")),
        (Some(installed), Some(pending)) => Some(format!("{installed} -> {pending}")),
        (None, Some(pending)) => Some(format!("{pending}, not installed yet")),
        (Some(installed), None) => Some(installed.to_owned()),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pending_version_is_beside_the_installed_one() {
        let text = |installed: Option<&str>, pending: Option<&str>| {
            let version = |version: &str| Some(version.to_owned());
            let installed =
                installed.map(|it| BundleDescription { version: version(it), ..BundleDescription::default() });
            let pending = pending.map(|it| BundleCandidate { version: version(it), ..BundleCandidate::default() });
            versions(installed.as_ref(), pending.as_ref()).unwrap_or_default()
        };
        assert_eq!(text(Some("1.2.0"), Some("1.3.0")), "1.2.0 -> 1.3.0");
        assert_eq!(text(Some("1.2.0"), Some("1.2.0")), "1.2.0, changed");
        assert_eq!(text(None, Some("1.3.0")), "1.3.0, not installed yet");
        assert_eq!((text(Some("1.2.0"), None).as_str(), text(None, None).as_str()), ("1.2.0", ""));
    }
}
