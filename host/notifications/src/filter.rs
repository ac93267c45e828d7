//! Whether an Alert sends a notification.

use std::collections::BTreeMap;

use chandler_api::{AlertFilter, AlertKind};

use crate::Notification;

/// Whether the filter of an Alert selects a notification about an object with these labels. Objects of other kinds than [`AlertKind`] are
/// never selected.
pub fn selects(
    filter: Option<&AlertFilter>,
    notification: &Notification,
    labels: Option<&BTreeMap<String, String>>,
) -> bool {
    let Some(kind) = AlertKind::from_name(&notification.kind) else { return false };
    let Some(AlertFilter { kinds, names, match_labels, severity, reasons, exclude_reasons }) = filter else {
        return true;
    };
    let has_label = |(key, value): (&String, &String)| labels.and_then(|labels| labels.get(key)) == Some(value);
    (kinds.is_empty() || kinds.contains(&kind))
        && (names.is_empty() || names.contains(&notification.name))
        && match_labels.iter().all(has_label)
        && notification.severity >= severity.unwrap_or_default()
        && (reasons.is_empty() || reasons.contains(&notification.reason))
        && !exclude_reasons.contains(&notification.reason)
}

#[cfg(test)]
mod tests {
    use chandler_api::AlertSeverity;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::tests::notification;

    fn selected(filter: Value, notification: &Notification, labels: &[(&str, &str)]) -> bool {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        selects(Some(&serde_json::from_value(filter).unwrap()), notification, Some(&labels))
    }

    #[test]
    fn all_criteria_must_hold() {
        let it = notification();
        for (filter, expected) in [
            (json!({}), true),
            (json!({"kinds": ["Catalog"]}), false),
            (json!({"kinds": ["Catalog", "BundleDeployment"]}), true),
            (json!({"names": ["harbour"]}), true),
            (json!({"names": ["harbour-2"]}), false),
            (json!({"matchLabels": {"team": "a"}}), true),
            (json!({"matchLabels": {"team": "a", "tier": "x"}}), false),
            (json!({"matchLabels": {"team": "b"}}), false),
            (json!({"severity": "Warning"}), true),
            (json!({"reasons": ["UpgradeFailed"]}), true),
            (json!({"reasons": ["Healthy"]}), false),
            (json!({"excludeReasons": ["UpgradeFailed"]}), false),
            (json!({"reasons": ["UpgradeFailed"], "excludeReasons": ["UpgradeFailed"]}), false),
            (json!({"kinds": ["BundleDeployment"], "severity": "Warning", "reasons": ["Healthy"]}), false),
        ] {
            assert_eq!(selected(filter.clone(), &it, &[("team", "a")]), expected, "{filter}");
        }
        let info = Notification { severity: AlertSeverity::Info, ..it.clone() };
        assert!(!selected(json!({"severity": "Warning"}), &info, &[]));
        assert!(selected(json!({"severity": "Info"}), &info, &[]));
        assert!(!selects(None, &Notification { kind: "ConfigMap".to_owned(), ..it.clone() }, None));
        assert!(selects(None, &it, None));
    }

    proptest! {
        /// A further criterion never selects more.
        #[test]
        fn a_criterion_only_narrows(
            kinds in prop::sample::subsequence(AlertKind::ALL.map(AlertKind::as_str).to_vec(), 0..5),
            reasons in prop::collection::vec("[A-C]", 0..3),
            excluded in prop::collection::vec("[A-C]", 0..3),
            reason in "[A-D]",
            warning: bool,
        ) {
            let severity = if warning { AlertSeverity::Warning } else { AlertSeverity::Info };
            let it = Notification { reason: reason.clone(), severity, ..notification() };
            let all = json!({"kinds": kinds, "reasons": reasons, "excludeReasons": excluded, "severity": "Warning"});
            if selected(all.clone(), &it, &[]) {
                prop_assert!(warning && !excluded.contains(&reason));
                for key in ["kinds", "reasons", "excludeReasons", "severity"] {
                    let mut fewer = all.clone();
                    fewer.as_object_mut().unwrap().remove(key);
                    prop_assert!(selected(fewer, &it, &[]), "without {}", key);
                }
            }
        }
    }
}
