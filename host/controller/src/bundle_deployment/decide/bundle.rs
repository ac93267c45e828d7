//! What the status says of a bundle itself: its description, and what its provisioner warned of. Pure.

use chandler_api::{BundleDescription, BundleProperty, BundleWarning, bundle::WARNINGS};
use chandler_core::{Description, Diagnostic, Release, Severity, text::printable};

/// Bytes of one warning's message. With it the warnings of a status take ten kibibytes at the most.
const MESSAGE_BYTES: usize = 1024;

/// The code of the entry that stands for the warnings that are not listed.
const OMITTED: &str = "WarningsOmitted";

/// What a rendered bundle says of itself, and what is odd about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct BundleFacts {
    /// What it is, provides and needs; none where its provisioner does not tell.
    pub(crate) description: Option<BundleDescription>,
    /// What its provisioner warned of, as much as a status holds.
    pub(crate) warnings: Vec<BundleWarning>,
}

/// What the status says of the bundle of a release.
pub(crate) fn facts(release: &Release) -> BundleFacts {
    BundleFacts { description: description(release.description()), warnings: warnings(release.findings()) }
}

fn description(told: &Description) -> Option<BundleDescription> {
    let property =
        |told: &chandler_core::Property| BundleProperty { kind: told.kind.clone(), value: told.value.clone() };
    (!told.is_empty()).then(|| BundleDescription {
        name: told.name.clone(),
        package: told.package.clone(),
        version: told.version.clone(),
        properties: told.properties.iter().map(property).collect(),
        omitted_properties: (told.omitted > 0).then(|| i64::try_from(told.omitted).unwrap_or(i64::MAX)),
    })
}

/// The first warnings, and how many more there are. What is only worth knowing is left to the command line.
fn warnings(findings: &[Diagnostic]) -> Vec<BundleWarning> {
    let all: Vec<&Diagnostic> = findings.iter().filter(|finding| finding.severity != Severity::Info).collect();
    // The entry that counts the rest takes one of the places.
    let listed = if all.len() > WARNINGS { WARNINGS - 1 } else { all.len() };
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
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let long = of(vec![finding(Severity::Warning, &"ä".repeat(4000))]);
        assert!(long[0].message.len() <= MESSAGE_BYTES && long[0].message.ends_with('…'));
    }

    #[test]
    fn a_bundle_that_says_nothing_has_no_description() {
        let release = Release::new(vec![], vec![], vec![]);
        assert_eq!(facts(&release).description, None);
        let property = chandler_core::Property { kind: "olm.package".into(), value: json!({"packageName": "p"}) };
        let told = Description {
            version: Some("1.0.0".into()),
            properties: vec![property],
            omitted: 3,
            ..Description::default()
        };
        let described = facts(&release.described(told)).description.unwrap();
        assert_eq!(
            serde_json::to_value(described).unwrap(),
            json!({"version": "1.0.0", "omittedProperties": 3,
                   "properties": [{"type": "olm.package", "value": {"packageName": "p"}}]})
        );
    }
}
