//! A bundle, a provisioner or a release on one line.

use chandler_api::{BundleCandidate, BundleDeployment, BundleDescription, ProvisionerInUse, ReleaseInUse};

use super::text::count;

/// The class of a provisioner, with the name and version of the component.
pub fn provisioner(provisioner: &ProvisionerInUse) -> String {
    let name = [&provisioner.name, &provisioner.version].into_iter().flatten().map(String::as_str);
    let name = name.collect::<Vec<_>>().join(" ");
    if name.is_empty() { provisioner.class.clone() } else { format!("{} ({name})", provisioner.class) }
}

/// The provisioner of the installed release and another one, with their digests, or `None` if they are the same.
pub fn provisioners(installed: &ProvisionerInUse, new: &ProvisionerInUse) -> Option<String> {
    if (&installed.class, &installed.digest) == (&new.class, &new.digest) {
        return None;
    }
    let class = if installed.class == new.class { "" } else { new.class.as_str() };
    let before = format!("class {}, {}", installed.class, component(installed));
    let after = [class, &component(new)].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    let after = if class.is_empty() { after } else { format!("class {after}") };
    Some(format!("{before} -> {after}"))
}

/// The name, version and digest of a component.
pub fn component(provisioner: &ProvisionerInUse) -> String {
    let name = [&provisioner.name, &provisioner.version].into_iter().flatten().map(String::as_str);
    let name = name.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    let digest = &provisioner.digest;
    if name.is_empty() { digest.clone() } else { format!("{name} ({digest})") }
}

/// The provisioner class of a BundleDeployment: the spec's or, if the spec names none, the one that the controller detected. `None` if
/// neither is known; then it is detected here.
pub fn class(deployment: &BundleDeployment) -> Option<&str> {
    let named = Some(deployment.spec.provisioner_class_name.as_str()).filter(|name| !name.is_empty());
    let detected = || Some(deployment.status.as_ref()?.provisioner.as_ref()?.class.as_str());
    named.or_else(detected)
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
    use serde_json::json;

    use super::*;

    #[test]
    fn the_class_is_that_of_the_spec_or_the_detected_one() {
        let deployment = |spec: Option<&str>, status: Option<&str>| -> BundleDeployment {
            let mut object = json!({
                "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "a"},
                "spec": {"installNamespace": "n", "source": {"type": "image"}},
            });
            if let Some(class) = spec {
                object["spec"]["provisionerClassName"] = json!(class);
            }
            if let Some(class) = status {
                object["status"] = json!({"provisioner": {"class": class, "digest": ""}});
            }
            serde_json::from_value(object).unwrap()
        };
        for (spec, status, expected) in
            [(Some("a"), Some("b"), Some("a")), (None, Some("b"), Some("b")), (None, None, None)]
        {
            assert_eq!(class(&deployment(spec, status)), expected, "{spec:?} {status:?}");
        }
    }

    #[test]
    fn a_change_of_the_provisioner_names_the_class_and_both_components() {
        let of = |class: &str, version: &str, digest: &str| ProvisionerInUse {
            class: class.into(),
            name: Some("sail".into()),
            version: Some(version.into()),
            digest: digest.into(),
            ..ProvisionerInUse::default()
        };
        let (old, new) = (of("helm", "1.0.0", "sha256:1"), of("helm", "1.0.0", "sha256:2"));
        assert_eq!(provisioners(&old, &old), None);
        assert_eq!(
            provisioners(&old, &new).as_deref(),
            Some("class helm, sail 1.0.0 (sha256:1) -> sail 1.0.0 (sha256:2)")
        );
        assert_eq!(
            provisioners(&old, &of("plain", "2.0.0", "sha256:3")).as_deref(),
            Some("class helm, sail 1.0.0 (sha256:1) -> class plain, sail 2.0.0 (sha256:3)")
        );
    }

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
