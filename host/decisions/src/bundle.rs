//! What the status reports of a bundle: its description, and the warnings of its provisioner.

use chandler_api::{BundleDescription, BundleProperty, BundleWarning, bundle::WARNINGS};
use chandler_core::{Description, Diagnostic, Release, Severity, text::printable};

/// Bytes of one warning's message, so that the warnings of a status take at most ten kibibytes.
const MESSAGE_BYTES: usize = 1024;

/// The code of the entry that counts the warnings that are not listed.
const OMITTED: &str = "WarningsOmitted";

/// The description and the warnings of a rendered bundle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BundleFacts {
    /// What it is, provides and needs; `None` if its provisioner does not describe it.
    pub description: Option<BundleDescription>,
    /// The warnings of its provisioner, as many as a status holds.
    pub warnings: Vec<BundleWarning>,
}

/// What the status reports of the bundle of a release.
pub fn facts(release: &Release) -> BundleFacts {
    facts_with(release, &[])
}

/// Adds warnings of the host before the provisioner's.
pub fn facts_with(release: &Release, about: &[BundleWarning]) -> BundleFacts {
    let warnings = about.iter().cloned().chain(warnings(release.findings(), WARNINGS.saturating_sub(about.len())));
    BundleFacts { description: description(release.description()), warnings: warnings.collect() }
}

fn description(described: &Description) -> Option<BundleDescription> {
    let property = |it: &chandler_core::Property| BundleProperty { kind: it.kind.clone(), value: it.value.clone() };
    (!described.is_empty()).then(|| BundleDescription {
        name: described.name.clone(),
        package: described.package.clone(),
        version: described.version.clone(),
        properties: described.properties.iter().map(property).collect(),
        omitted_properties: (described.omitted > 0).then(|| i64::try_from(described.omitted).unwrap_or(i64::MAX)),
    })
}

/// The first warnings, at most `most`, and how many more there are. Only the command line shows findings of severity `info`.
fn warnings(findings: &[Diagnostic], most: usize) -> Vec<BundleWarning> {
    let all: Vec<&Diagnostic> = findings.iter().filter(|finding| finding.severity != Severity::Info).collect();
    // The entry that counts the rest takes one of the places.
    let listed = if all.len() > most { most.saturating_sub(1) } else { all.len() };
    let mut warnings: Vec<BundleWarning> = all.iter().take(listed).map(|finding| warning(finding)).collect();
    if all.len() > listed {
        let message = format!("{} more warnings are not listed; `chandler lint` shows all", all.len() - listed);
        warnings.push(BundleWarning { code: OMITTED.to_owned(), message });
    }
    warnings
}

fn warning(finding: &Diagnostic) -> BundleWarning {
    const ELLIPSIS: char = '…';
    let mut message = printable(&finding.to_string()).into_owned();
    if message.len() > MESSAGE_BYTES {
        message.truncate(message.floor_char_boundary(MESSAGE_BYTES - ELLIPSIS.len_utf8()));
        message.push(ELLIPSIS);
    }
    BundleWarning { code: finding.code.clone(), message }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn finding(severity: Severity, message: &str) -> Diagnostic {
        Diagnostic { help: Some("fix it".into()), ..Diagnostic::new(severity, "Odd", message) }
    }

    fn of(findings: Vec<Diagnostic>) -> Vec<BundleWarning> {
        facts(&Release::new(vec![], vec![], findings)).warnings
    }

    #[test]
    fn warnings_are_listed_and_the_rest_is_counted() {
        let odd = finding(Severity::Warning, "odd");
        let info = finding(Severity::Info, "worth knowing");
        assert_eq!(
            of(vec![info, odd.clone()]),
            [BundleWarning { code: "Odd".into(), message: "odd (help: fix it)".into() }]
        );
        let exactly = of(vec![odd.clone(); WARNINGS]);
        assert!(exactly.len() == WARNINGS && exactly.iter().all(|warning| warning.code == "Odd"));
        let many = of(vec![odd; WARNINGS + 5]);
        assert_eq!(many.len(), WARNINGS);
        assert_eq!(many[WARNINGS - 1].message, "6 more warnings are not listed; `chandler lint` shows all");
        let about = BundleWarning { code: "Host".into(), message: "first".into() };
        let release = Release::new(vec![], vec![], vec![finding(Severity::Warning, "odd"); WARNINGS]);
        let with = facts_with(&release, std::slice::from_ref(&about)).warnings;
        assert_eq!((with.len(), &with[0]), (WARNINGS, &about));
        assert_eq!(with[WARNINGS - 1].message, "2 more warnings are not listed; `chandler lint` shows all");
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let long = of(vec![finding(Severity::Warning, &"ä".repeat(4000))]);
        assert!(long[0].message.len() <= MESSAGE_BYTES && long[0].message.ends_with('…'));
    }

    #[test]
    fn a_bundle_without_a_description_has_none_in_the_status() {
        let release = Release::new(vec![], vec![], vec![]);
        assert_eq!(facts(&release).description, None);
        let property = chandler_core::Property { kind: "olm.package".into(), value: json!({"packageName": "p"}) };
        let description = Description {
            version: Some("1.0.0".into()),
            properties: vec![property],
            omitted: 3,
            ..Description::default()
        };
        let described = facts(&release.described(description)).description.unwrap();
        assert_eq!(
            serde_json::to_value(described).unwrap(),
            json!({"version": "1.0.0", "omittedProperties": 3,
                   "properties": [{"type": "olm.package", "value": {"packageName": "p"}}]})
        );
        let whole = Description { version: Some("1.0.0".into()), ..Description::default() };
        let described = facts(&Release::new(vec![], vec![], vec![]).described(whole)).description.unwrap();
        assert_eq!(described.omitted_properties, None);
    }
}
