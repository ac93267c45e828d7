//! Caches a loaded bundle between the calls of an instance.
//!
//! The host requests the schema of the configuration before the objects, in the same instance, and the schema depends
//! on the bundle. Parsing is most of the work, so that the bundle of the first call is kept for the second.

use std::cell::RefCell;

use chandler_sdk::Content;

use super::{Loaded, read_bundle};
use crate::compatibility::Compatibility;

thread_local! {
    /// The digest of a bundle, and the bundle.
    static PREFETCHED: RefCell<Option<(String, Loaded)>> = const { RefCell::new(None) };
}

/// Loads a bundle, passes it to a function, and keeps it for the next [`load`].
pub(crate) fn prefetch<T>(content: &dyn Content, look: impl FnOnce(&Loaded) -> T) -> T {
    let loaded = read_bundle(content, Compatibility::default());
    let result = look(&loaded);
    PREFETCHED.set(Some((content.digest(), loaded)));
    result
}

/// Loads a bundle.
pub(crate) fn load(content: &dyn Content, compatibility: Compatibility) -> Loaded {
    let kept = PREFETCHED.take().filter(|(digest, loaded)| loaded.serves(compatibility) && *digest == content.digest());
    kept.map_or_else(|| read_bundle(content, compatibility), |(_, loaded)| loaded)
}

#[cfg(test)]
mod tests {
    use chandler_sdk::testing;

    use super::*;

    const ANNOTATIONS: &str = "annotations: {operators.operatorframework.io.bundle.package.v1: harbour}\n";
    const CSV: &str =
        "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: harbour.v1}\n";
    const OLD: &str =
        "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata: {name: piers}\n";

    fn bundle(files: &[(&str, &str)]) -> testing::Bundle {
        let common = [("metadata/annotations.yaml", ANNOTATIONS), ("manifests/csv.yaml", CSV)];
        testing::Bundle::new(common.into_iter().chain(files.iter().copied()))
    }

    fn ahead(content: &dyn Content) {
        prefetch(content, |loaded| assert!(loaded.errors.is_empty(), "{:?}", loaded.errors));
    }

    #[test]
    fn a_prefetched_bundle_is_used_once() {
        let content = bundle(&[]);
        ahead(&content);
        assert!(PREFETCHED.with_borrow(Option::is_some));
        assert!(load(&content, Compatibility::Extended).bundle.is_some());
        assert!(PREFETCHED.with_borrow(Option::is_none));
    }

    #[test]
    fn a_prefetch_is_not_used_for_another_bundle() {
        ahead(&bundle(&[]));
        let other = bundle(&[("manifests/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: tides}\n")]);
        assert_eq!(load(&other, Compatibility::Extended).bundle.unwrap().others.len(), 1);
    }

    #[test]
    fn a_prefetch_is_not_used_for_another_compatibility() {
        let content = bundle(&[("manifests/crd.yaml", OLD)]);
        for (compatibility, version) in [(Compatibility::Extended, "v1"), (Compatibility::Reference, "v1beta1")] {
            ahead(&content);
            let bundle = load(&content, compatibility).bundle.unwrap();
            let versions: Vec<_> = bundle.crds.iter().map(|crd| crd.api_version.as_str()).collect();
            assert_eq!(versions, [format!("apiextensions.k8s.io/{version}")]);
        }
    }
}
