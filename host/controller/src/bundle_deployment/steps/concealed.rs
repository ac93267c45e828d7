//! Concealed: what a provisioner reports about a bundle whose configuration has values of Secrets. Pure.
//!
//! The status is cluster-scoped, so other tenants read it. A chart or a component can write a value in a form that no search for it finds, such
//! as reversed or in hexadecimal digits. So its texts are left out, and its codes and the places in files of the bundle and in the
//! configuration stay. The built-in provisioners are part of the controller, and quote values as they are, which are then hidden.

use chandler_core::{Content, Description, Diagnostic, Location, Release, pointer::unescape};
use chandler_engine::{CallError, CallLog, InvalidOutput, LimitExceeded, Trapped};
use serde_json::{Map, Value};

/// In place of a text.
const HIDDEN: &str =
    "the text is hidden, since the configuration has values of Secrets; `chandler render` with these values shows it";
/// In place of a code that is not a CamelCase word.
const CODE: &str = "Hidden";
/// The path of places in the configuration.
const CONFIG: &str = "config";
/// The most bytes of a code.
const CODE_BYTES: usize = 64;

/// What texts may name.
pub(super) struct Known<'a> {
    /// The bundle.
    pub(super) content: &'a dyn Content,
    /// The configuration.
    pub(super) config: &'a Map<String, Value>,
}

impl Known<'_> {
    /// A release without texts of its provisioner: neither its objects nor its digest change.
    pub(super) fn release(&self, release: &Release) -> Release {
        let findings = release.findings().iter().map(|finding| self.finding(finding)).collect();
        let Description { name, package, version, properties: _, omitted: _ } = release.description();
        let (name, package, version) = (name.clone(), package.clone(), version.clone());
        let description = Description { name, package, version, ..Description::default() };
        Release::new(release.objects().to_vec(), release.probes().to_vec(), findings).described(description)
    }

    /// An error without texts of the provisioner.
    pub(super) fn error(&self, error: CallError) -> CallError {
        let all = |findings: Vec<Diagnostic>| findings.iter().map(|finding| self.finding(finding)).collect();
        match error {
            CallError::InvalidContent(findings) => CallError::InvalidContent(all(findings)),
            CallError::InvalidConfiguration(findings) => CallError::InvalidConfiguration(all(findings)),
            CallError::UnsupportedContent(findings) => CallError::UnsupportedContent(all(findings)),
            CallError::Failed { reason: _, findings } => CallError::Failed { reason: None, findings: all(findings) },
            CallError::Trapped(Trapped { trap, frames, log: _ }) => {
                CallError::Trapped(Trapped { trap, frames, log: CallLog::default() })
            }
            CallError::LimitExceeded(exceeded) => {
                CallError::LimitExceeded(Box::new(LimitExceeded { object: None, ..*exceeded }))
            }
            CallError::InvalidOutput(_) => {
                CallError::InvalidOutput(Box::new(InvalidOutput::Contract(HIDDEN.to_owned())))
            }
            // They have limits and texts of the host.
            other => other,
        }
    }

    fn finding(&self, finding: &Diagnostic) -> Diagnostic {
        let Diagnostic { severity, code, message: _, location, related: _, help: _, url: _ } = finding;
        let is_word = code.len() <= CODE_BYTES && code.bytes().all(|byte| byte.is_ascii_alphabetic());
        let code = if is_word { code.as_str() } else { CODE };
        let location = location.as_ref().and_then(|location| self.location(location));
        Diagnostic { location, ..Diagnostic::new(*severity, code, HIDDEN) }
    }

    /// A place, if it is in a file of the bundle or in the configuration.
    fn location(&self, location: &Location) -> Option<Location> {
        if location.path == CONFIG {
            let pointer = location.pointer.as_ref()?;
            let below = pointer.strip_prefix('/')?;
            let (first, rest) = below.split_at(below.find('/').unwrap_or(below.len()));
            self.config.get(&unescape(first))?.pointer(rest)?;
            return Some(Location { path: CONFIG.to_owned(), pointer: Some(pointer.clone()), ..Location::default() });
        }
        let entry = self.content.entries(&location.path, None, 1).into_iter().next();
        let is_file = entry.is_some_and(|entry| entry.path == location.path);
        is_file.then(|| Location { pointer: None, ..location.clone() })
    }
}

#[cfg(test)]
mod tests {
    use chandler_core::{MemoryContent, Property, Related, Severity};
    use serde_json::json;

    use super::*;

    const SECRET: &str = "2retnuh";

    fn finding(code: &str, path: &str, pointer: Option<&str>) -> Diagnostic {
        let location = Location {
            path: path.to_owned(),
            line: Some(3),
            pointer: pointer.map(str::to_owned),
            ..Location::default()
        };
        Diagnostic {
            location: Some(location.clone()),
            related: vec![Related { location, message: SECRET.to_owned() }],
            help: Some(SECRET.to_owned()),
            url: Some(format!("https://{SECRET}.example.com")),
            ..Diagnostic::new(Severity::Warning, code, format!("the password is {SECRET}"))
        }
    }

    fn with<R>(test: impl FnOnce(Known<'_>) -> R) -> R {
        let content = MemoryContent::new([("templates/a.yaml", "a")]);
        let config = json!({"password": "hunter2", "list": [{"a": 1}]}).as_object().cloned().unwrap();
        test(Known { content: &content, config: &config })
    }

    #[test]
    fn texts_are_left_out_and_codes_and_places_stay() {
        let findings = vec![
            finding("Deprecated", "templates/a.yaml", Some("/2retnuh")),
            finding("InvalidValue", "config", Some("/list/0/a")),
            finding(SECRET, SECRET, None),
            finding("Odd", "config", Some("/2retnuh")),
        ];
        let shown = with(|known| known.release(&Release::new(vec![], vec![], findings)));
        assert!(!serde_json::to_string(shown.findings()).unwrap().contains(SECRET), "{:?}", shown.findings());
        assert!(shown.findings().iter().all(|it| it.message == HIDDEN && it.severity == Severity::Warning));
        let places: Vec<_> = shown
            .findings()
            .iter()
            .map(|it| {
                let place = it.location.as_ref().map(|it| (it.path.as_str(), it.line, it.pointer.as_deref()));
                (it.code.as_str(), place)
            })
            .collect();
        let expected = [
            ("Deprecated", Some(("templates/a.yaml", Some(3_u32), None))),
            ("InvalidValue", Some(("config", None, Some("/list/0/a")))),
            ("Hidden", None),
            ("Odd", None),
        ];
        assert_eq!(places, expected);
    }

    #[test]
    fn the_objects_and_the_digest_of_a_release_stay_and_its_properties_do_not() {
        let property = Property { kind: SECRET.to_owned(), value: json!(SECRET) };
        let description =
            Description { version: Some("1.0.0".to_owned()), properties: vec![property], ..Description::default() };
        let release = Release::new(vec![], vec![], vec![finding("Odd", SECRET, None)]).described(description);
        let shown = with(|known| known.release(&release));
        assert_eq!((shown.digest(), shown.objects()), (release.digest(), release.objects()));
        assert_eq!(shown.description().version.as_deref(), Some("1.0.0"));
        assert!(shown.description().properties.is_empty());
    }

    #[test]
    fn no_error_has_a_text_of_the_provisioner() {
        let findings = || vec![finding(SECRET, SECRET, Some(SECRET))];
        for error in [
            CallError::InvalidContent(findings()),
            CallError::InvalidConfiguration(findings()),
            CallError::UnsupportedContent(findings()),
            CallError::Failed { reason: Some(SECRET.to_owned()), findings: findings() },
            CallError::InvalidOutput(Box::new(InvalidOutput::Schema(SECRET.to_owned()))),
        ] {
            let (reason, retry) = (error.reason(), error.retry());
            let shown = with(|known| known.error(error));
            assert_eq!((shown.reason(), shown.retry()), (reason, retry));
            assert!(!format!("{shown} {shown:?}").contains(SECRET), "{shown}");
            assert!(shown.to_string().contains("`chandler render`"), "{shown}");
        }
    }
}
