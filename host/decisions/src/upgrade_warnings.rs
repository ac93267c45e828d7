//! Warnings about a release that did not stop its rollout: unsafe changes that the configuration or a user allows, objects that were
//! recreated, and fields that other field managers apply, too.

use chandler_api::{BundleWarning, Reason, ReleaseInUse, bundle::WARNINGS};
use chandler_core::ObjectKey;
use chandler_rollout::deletion_plan;

/// Bytes of one warning's message.
const MESSAGE_BYTES: usize = 1024;

/// The code of a warning about fields that other field managers apply, too.
const FIELDS_TAKEN_OVER: &str = "FieldsTakenOver";

/// The code of a warning about an object that was deleted and created again.
const OBJECT_RECREATED: &str = "ObjectRecreated";

/// What a reconcile found.
#[derive(Clone, Copy, Default)]
pub(crate) struct RolloutWarnings<'a> {
    /// Unsafe changes of CRDs.
    pub unsafe_upgrades: &'a [String],
    /// Fields that were taken over from other field managers.
    pub conflicts: &'a [String],
    /// Objects that were deleted and created again.
    pub recreated: &'a [String],
    /// CRDs that stay behind.
    pub kept: &'a [ObjectKey],
}

/// The warnings of a release. Only the reconcile that changes CRDs finds what they break, and only the one that takes fields over finds
/// those, so these warnings are kept for as long as the release is the same. Every reconcile finds which CRDs stay behind.
pub(crate) fn of_release(
    before: Option<&ReleaseInUse>,
    digest: &str,
    found: &RolloutWarnings<'_>,
) -> Vec<BundleWarning> {
    let mut warnings = match before {
        Some(before) if before.digest == digest => before.warnings.clone(),
        _ => Vec::new(),
    };
    warnings.retain(|warning| warning.code != Reason::CustomResourcesExist.as_str());
    let unsafe_upgrades =
        found.unsafe_upgrades.iter().map(|message| (Reason::UnsafeCRDUpgrade.as_str(), message.clone()));
    let conflicts = found.conflicts.iter().map(|message| (FIELDS_TAKEN_OVER, message.clone()));
    let recreated = found.recreated.iter().map(|message| (OBJECT_RECREATED, message.clone()));
    let kept = found.kept.iter().map(|crd| (Reason::CustomResourcesExist.as_str(), deletion_plan::kept(crd)));
    for (code, message) in unsafe_upgrades.chain(recreated).chain(conflicts).chain(kept) {
        let message = message.get(..message.floor_char_boundary(MESSAGE_BYTES)).unwrap_or_default().to_owned();
        let warning = BundleWarning { code: code.to_owned(), message };
        if warnings.len() < WARNINGS && !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    warnings
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn crd() -> ObjectKey {
        ObjectKey {
            group: "apiextensions.k8s.io".into(),
            version: "v1".into(),
            kind: "CustomResourceDefinition".into(),
            namespace: None,
            name: "oxen.example.com".into(),
        }
    }

    #[test]
    fn warnings_stay_with_their_release() {
        let texts = |warnings: &[BundleWarning]| -> Vec<String> {
            warnings.iter().map(|warning| warning.message.clone()).collect()
        };
        let of_release = |before: Option<&ReleaseInUse>, digest: &str, found: &[String], kept: &[ObjectKey]| {
            super::of_release(
                before,
                digest,
                &RolloutWarnings { unsafe_upgrades: found, kept, ..RolloutWarnings::default() },
            )
        };
        let first = of_release(None, "a", &["x".into(), "x".into()], &[]);
        assert_eq!(texts(&first), ["x"]);
        let before = ReleaseInUse { digest: "a".into(), warnings: first, ..ReleaseInUse::default() };
        assert_eq!(texts(&of_release(Some(&before), "a", &[], &[])), ["x"]);
        assert_eq!(texts(&of_release(Some(&before), "a", &["y".into()], &[])), ["x", "y"]);
        assert!(of_release(Some(&before), "b", &[], &[]).is_empty());
        let kept = of_release(Some(&before), "a", &[], &[crd()]);
        assert_eq!(kept.len(), 2);
        assert!(
            kept[1]
                .message
                .starts_with("CustomResourceDefinition.apiextensions.k8s.io oxen.example.com is no longer in")
        );
        let before = ReleaseInUse { warnings: kept, ..before };
        assert_eq!(texts(&of_release(Some(&before), "a", &[], &[])), ["x"], "it is gone");
        let many: Vec<String> = (0..50).map(|number| format!("{number}{}", "é".repeat(1000))).collect();
        let bounded = of_release(None, "a", &many, &[]);
        assert_eq!(bounded.len(), WARNINGS);
        assert!(bounded.iter().all(|warning| warning.message.len() <= MESSAGE_BYTES));
        let taken =
            super::of_release(None, "a", &RolloutWarnings { conflicts: &["x".into()], ..RolloutWarnings::default() });
        assert_eq!(taken, [BundleWarning { code: "FieldsTakenOver".into(), message: "x".into() }]);
    }
}
