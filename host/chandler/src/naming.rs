//! The names that a bundle gets where nobody names it.

use std::path::Path;

/// The longest name of a BundleDeployment, as its CRD limits it.
const LONGEST: usize = 52;
/// What is cut from the end of file names.
const EXTENSIONS: &[&str] = &[".tar.gz", ".tgz", ".tar"];

/// A name for the BundleDeployment of a bundle, from its path or the reference of its image: the last part that is not a
/// version, in the form of a DNS label. `./harbour-operator.v0.1.0` and `quay.io/x/harbour-operator:v1` give
/// `harbour-operator`, `apicast/0.1.1` gives `apicast`.
pub fn deployment(bundle: &str) -> String {
    let absolute = std::path::absolute(Path::new(bundle)).ok().filter(|path| path.exists());
    let path = absolute.map_or_else(|| bundle.to_owned(), |path| path.to_string_lossy().into_owned());
    let reference = path.split_once('@').map_or(path.as_str(), |(name, _)| name);
    reference.rsplit(['/', '\\']).find_map(label).unwrap_or_else(|| "bundle".to_owned())
}

/// The namespace that a BundleDeployment installs into where nobody says: of its own, and not one that a bundle is likely
/// to bring along.
pub fn namespace(deployment: &str) -> String {
    format!("{deployment}-system")
}

/// A part of a path as a label; none where the part is a version or holds nothing that a label may.
fn label(part: &str) -> Option<String> {
    let part = EXTENSIONS.iter().find_map(|extension| part.strip_suffix(extension)).unwrap_or(part);
    let part = part.split([':', '.']).next()?.to_ascii_lowercase();
    let mut label = String::new();
    for c in part.chars() {
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            label.push(c);
        } else if !label.is_empty() && !label.ends_with('-') {
            label.push('-');
        }
    }
    label.truncate(LONGEST);
    let label = label.trim_end_matches('-');
    let is_version = label.strip_prefix('v').unwrap_or(label).bytes().all(|byte| byte.is_ascii_digit());
    (!is_version).then(|| label.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_come_from_the_last_part_that_is_not_a_version() {
        for (bundle, name) in [
            ("tests/fixtures/registry/harbour-operator.v0.1.0", "harbour-operator"),
            ("./bundles/apicast/0.1.1/", "apicast"),
            ("./bundles/apicast/v2", "apicast"),
            ("Light_House-1.2.tar.gz", "light-house-1"),
            ("x/lighthouse.tgz", "lighthouse"),
            ("quay.io/example/harbour-bundle:v1.2.0", "harbour-bundle"),
            ("localhost:5000/harbour@sha256:0123", "harbour"),
            ("///", "bundle"),
            ("日本", "bundle"),
        ] {
            assert_eq!(deployment(bundle), name, "{bundle}");
        }
    }

    #[test]
    fn the_current_directory_has_a_name() {
        assert_eq!(deployment("."), "chandler");
    }

    proptest! {
        #[test]
        fn every_bundle_gets_a_legal_name(bundle: String) {
            let name = deployment(&bundle);
            prop_assert!(crate::values::deployment_name(&name).is_ok(), "{name}");
            prop_assert!(crate::values::dns_label(&namespace(&name)).is_ok());
        }
    }
}
