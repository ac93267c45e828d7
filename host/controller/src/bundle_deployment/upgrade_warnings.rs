//! What was found unsafe before a release was rolled out, and by configuration did not stop it. Pure.

use chandler_api::{BundleWarning, Reason, ReleaseInUse, bundle::WARNINGS};
use chandler_core::ObjectKey;
use chandler_rollout::disposal;

/// Bytes of one warning's message.
const MESSAGE_BYTES: usize = 1024;

/// The warnings of a release. What its definitions break is found only in the pass that changes them, so it is kept for as long
/// as it is the same release; which definitions stay behind is found in every pass.
pub(crate) fn of_release(
    before: Option<&ReleaseInUse>,
    digest: &str,
    found: &[String],
    kept: &[ObjectKey],
) -> Vec<BundleWarning> {
    let mut warnings = match before {
        Some(before) if before.digest == digest => before.warnings.clone(),
        _ => Vec::new(),
    };
    warnings.retain(|warning| warning.code == Reason::UnsafeCRDUpgrade.as_str());
    let found = found.iter().map(|message| (Reason::UnsafeCRDUpgrade, message.clone()));
    let kept = kept.iter().map(|definition| (Reason::CustomResourcesExist, disposal::kept(definition)));
    for (reason, message) in found.chain(kept) {
        let message = message.get(..message.floor_char_boundary(MESSAGE_BYTES)).unwrap_or_default().to_owned();
        let warning = BundleWarning { code: reason.to_string(), message };
        if warnings.len() < WARNINGS && !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_stay_with_their_release() {
        let texts = |warnings: &[BundleWarning]| -> Vec<String> {
            warnings.iter().map(|warning| warning.message.clone()).collect()
        };
        let first = of_release(None, "a", &["x".into(), "x".into()], &[]);
        assert_eq!(texts(&first), ["x"]);
        let before = ReleaseInUse { digest: "a".into(), warnings: first, ..ReleaseInUse::default() };
        assert_eq!(texts(&of_release(Some(&before), "a", &[], &[])), ["x"]);
        assert_eq!(texts(&of_release(Some(&before), "a", &["y".into()], &[])), ["x", "y"]);
        assert!(of_release(Some(&before), "b", &[], &[]).is_empty());
        let definition = ObjectKey {
            group: "apiextensions.k8s.io".into(),
            version: "v1".into(),
            kind: "CustomResourceDefinition".into(),
            namespace: None,
            name: "oxen.example.com".into(),
        };
        let kept = of_release(Some(&before), "a", &[], &[definition]);
        assert_eq!(kept.len(), 2);
        assert!(
            kept[1].message.starts_with("CustomResourceDefinition.apiextensions.k8s.io oxen.example.com is not in")
        );
        let before = ReleaseInUse { warnings: kept, ..before };
        assert_eq!(texts(&of_release(Some(&before), "a", &[], &[])), ["x"], "it is gone");
        let many: Vec<String> = (0..50).map(|number| format!("{number}{}", "é".repeat(1000))).collect();
        let bounded = of_release(None, "a", &many, &[]);
        assert_eq!(bounded.len(), WARNINGS);
        assert!(bounded.iter().all(|warning| warning.message.len() <= MESSAGE_BYTES));
    }
}
