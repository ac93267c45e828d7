//! What was found unsafe before a release was rolled out, and by configuration did not stop it. Pure.

use chandler_api::{BundleWarning, Reason, ReleaseInUse, bundle::WARNINGS};

/// Bytes of one warning's message.
const MESSAGE_BYTES: usize = 1024;

/// The warnings of a release. They are found only in the pass that changes a definition, so they are kept for as long as it
/// is the same release.
pub(crate) fn of_release(before: Option<&ReleaseInUse>, digest: &str, found: &[String]) -> Vec<BundleWarning> {
    let mut warnings = match before {
        Some(before) if before.digest == digest => before.warnings.clone(),
        _ => Vec::new(),
    };
    for message in found {
        let message = message.get(..message.floor_char_boundary(MESSAGE_BYTES)).unwrap_or_default().to_owned();
        let warning = BundleWarning { code: Reason::UnsafeCRDUpgrade.to_string(), message };
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
        let first = of_release(None, "a", &["x".into(), "x".into()]);
        assert_eq!(texts(&first), ["x"]);
        let before = ReleaseInUse { digest: "a".into(), warnings: first, ..ReleaseInUse::default() };
        assert_eq!(texts(&of_release(Some(&before), "a", &[])), ["x"]);
        assert_eq!(texts(&of_release(Some(&before), "a", &["y".into()])), ["x", "y"]);
        assert!(of_release(Some(&before), "b", &[]).is_empty());
        let many: Vec<String> = (0..50).map(|number| format!("{number}{}", "é".repeat(1000))).collect();
        let bounded = of_release(None, "a", &many);
        assert_eq!(bounded.len(), WARNINGS);
        assert!(bounded.iter().all(|warning| warning.message.len() <= MESSAGE_BYTES));
    }
}
