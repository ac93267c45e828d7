//! Default names for the BundleDeployment and namespace of a bundle.

use std::path::Path;

/// The longest name of a BundleDeployment, in characters: the limit in its CRD.
const LONGEST: usize = 52;
/// Extensions that are removed from file names.
const EXTENSIONS: &[&str] = &[".tar.gz", ".tgz", ".tar.zst", ".tar", ".zip"];

/// Derives the name of a BundleDeployment from the path, URL or image reference of its bundle: the last part that is not a version, as
/// a DNS label. `./harbour-operator.v0.1.0` and `quay.io/x/harbour-operator:v1` give
/// `harbour-operator`, `apicast/0.1.1` gives `apicast`.
pub fn deployment(bundle: &str) -> String {
    let absolute = std::path::absolute(Path::new(bundle)).ok().filter(|path| path.exists());
    let path = absolute.map_or_else(|| bundle.to_owned(), |path| path.to_string_lossy().into_owned());
    if let Some((url, query)) = path.strip_prefix("git+").and_then(|url| url.split_once('?')) {
        let directory = form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "directory");
        let directory = directory.and_then(|(_, directory)| directory.rsplit('/').find_map(label));
        return directory.unwrap_or_else(|| deployment(url));
    }
    let url = path.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"));
    let reference = match url {
        // Without the host, a query and a fragment.
        Some((_, rest)) => {
            rest.split(['?', '#']).next().and_then(|rest| rest.split_once('/')).map_or("", |(_, path)| path)
        }
        None => path.split_once('@').map_or(path.as_str(), |(name, _)| name),
    };
    reference.rsplit(['/', '\\']).find_map(label).unwrap_or_else(|| "bundle".to_owned())
}

/// Derives the name of a catalog from its path, URL or image reference: for a directory its last part, even if that is a version, since
/// `catalogs/v4.19` and `catalogs/v4.20` are two catalogs; else as for a [bundle](deployment).
pub fn catalog(place: &str) -> String {
    let directory = std::path::absolute(Path::new(place)).ok().filter(|path| path.is_dir());
    let last = directory.as_deref().and_then(Path::file_name).and_then(|name| as_label(&name.to_string_lossy()));
    last.unwrap_or_else(|| deployment(place))
}

/// The default namespace to install into. The suffix makes it unlikely that the bundle contains a Namespace of the same name.
pub fn namespace(deployment: &str) -> String {
    format!("{deployment}-system")
}

/// A part of a path as a DNS label; `None` if the part is a version or has no character that a label allows.
fn label(part: &str) -> Option<String> {
    let part = EXTENSIONS.iter().find_map(|extension| part.strip_suffix(extension)).unwrap_or(part);
    let label = as_label(part.split([':', '.']).next()?)?;
    let is_version = label.strip_prefix('v').unwrap_or(&label).bytes().all(|byte| byte.is_ascii_digit());
    (!is_version).then_some(label)
}

/// Text as a DNS label, with a dash for what a label does not allow; `None` if nothing is left.
fn as_label(text: &str) -> Option<String> {
    let mut label = String::new();
    for c in text.to_ascii_lowercase().chars() {
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            label.push(c);
        } else if !label.is_empty() && !label.ends_with('-') {
            label.push('-');
        }
    }
    label.truncate(LONGEST);
    let label = label.trim_end_matches('-');
    (!label.is_empty()).then(|| label.to_owned())
}

#[cfg(test)]
mod tests {
    use chandler_core::dns_name;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_catalog_in_a_directory_has_the_name_of_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        for (place, name) in [("catalogs/v4.20", "v4-20"), ("Community_Operators", "community-operators"), ("4", "4")] {
            let path = directory.path().join(place);
            std::fs::create_dir_all(&path).unwrap();
            assert_eq!(catalog(&path.to_string_lossy()), name);
        }
        assert_eq!(catalog("quay.io/operatorhubio/catalog:latest"), "catalog");
        assert_eq!(catalog("registry.example.com/redhat-operator-index:v4.20"), "redhat-operator-index");
        assert_eq!(catalog("https://example.com/catalogs/mine.tar.gz"), "mine");
    }

    #[test]
    fn a_name_is_the_last_part_that_is_not_a_version() {
        for (bundle, name) in [
            ("tests/fixtures/registry/harbour-operator.v0.1.0", "harbour-operator"),
            ("./bundles/apicast/0.1.1/", "apicast"),
            ("./bundles/apicast/v2", "apicast"),
            ("Light_House-1.2.tar.gz", "light-house-1"),
            ("x/lighthouse.tgz", "lighthouse"),
            ("quay.io/example/harbour-bundle:v1.2.0", "harbour-bundle"),
            ("localhost:5000/harbour@sha256:0123", "harbour"),
            ("https://example.com/x/lighthouse.v1.2.0.tar.zst?token=a/b#sha256=0", "lighthouse"),
            ("https://example.com/lighthouse/v1.2.0.zip", "lighthouse"),
            ("https://example.com/", "bundle"),
            ("git+https://example.com/team/harbour.git?branch=main", "harbour"),
            ("git+https://example.com/team/all.git?branch=main&directory=bundles/bell/v1.2", "bell"),
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
        fn every_bundle_gets_a_valid_name(bundle: String) {
            let name = deployment(&bundle);
            prop_assert!(dns_name::is_part(&name) && name.len() <= LONGEST, "{name}");
            prop_assert!(dns_name::is_label(&namespace(&name)));
        }
    }
}
