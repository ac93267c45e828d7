//! Replaces images and versions in the strings of objects.
//!
//! Images are replaced first, as in the tooling: the tag of a replaced image is replaced with it.

use chandler_sdk::{
    Diagnostic,
    yaml::{Node, pointer_segment},
};
use serde_json::Value;

use crate::{
    images::Replacements,
    manifest::Manifest,
    versions::{Missing, SNAPSHOT, Versions},
};

/// The replacements.
pub(crate) struct Substitution<'a> {
    /// The images.
    pub(crate) images: Replacements,
    /// The versions.
    pub(crate) versions: &'a Versions,
}

/// The findings of a replacement.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Errors in the bundle.
    pub(crate) content: Vec<Diagnostic>,
    /// Missing configuration.
    pub(crate) configuration: Vec<Diagnostic>,
    /// Findings that do not block the release.
    pub(crate) warnings: Vec<Diagnostic>,
}

impl Substitution<'_> {
    /// Whether there is nothing to replace.
    pub(crate) fn is_empty(&self) -> bool {
        self.images.is_empty() && self.versions.is_empty()
    }

    /// The object of a manifest after replacement.
    pub(crate) fn apply(&self, manifest: &Manifest, findings: &mut Findings) -> Value {
        let mut value = manifest.node.to_json();
        each_text(&mut value, &mut String::new(), &mut |text, pointer| {
            if let Some((replaced, left)) = self.images.replace(text) {
                *text = replaced;
                if left {
                    findings.warnings.push(image_not_replaced(manifest, pointer));
                }
            }
            if self.versions.is_empty() {
                return;
            }
            if let Some((replaced, missing)) = self.versions.replace(text) {
                *text = replaced;
                for missing in missing {
                    findings.version(&missing, manifest, pointer);
                }
            }
        });
        value
    }
}

/// Calls a function with every string of a value, except keys, and its JSON pointer.
fn each_text(value: &mut Value, pointer: &mut String, visit: &mut impl FnMut(&mut String, &str)) {
    let length = pointer.len();
    match value {
        Value::String(text) => visit(text, pointer),
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                pointer.push('/');
                pointer.push_str(&index.to_string());
                each_text(item, pointer, visit);
                pointer.truncate(length);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                pointer.push('/');
                pointer.push_str(&pointer_segment(key));
                each_text(member, pointer, visit);
                pointer.truncate(length);
            }
        }
        _ => {}
    }
}

fn at(finding: Diagnostic, manifest: &Manifest, pointer: &str) -> Diagnostic {
    let Manifest { node, path, .. } = manifest;
    let node: &Node = node;
    finding.at(path).within(node, pointer)
}

fn image_not_replaced(manifest: &Manifest, pointer: &str) -> Diagnostic {
    let message = "the text names an image in a form that cannot be replaced";
    at(Diagnostic::warning("ImageNotReplaced", message), manifest, pointer)
        .help("end the reference with white space, a quote or the end of the text")
}

impl Findings {
    fn version(&mut self, missing: &Missing, manifest: &Manifest, pointer: &str) {
        match missing {
            Missing::Release => {
                let message =
                    format!("{SNAPSHOT} is the placeholder for the version of the release, which is not configured");
                let finding = Diagnostic::warning("ReleaseVersionNotConfigured", message);
                self.warnings.push(at(finding, manifest, pointer).help("set releaseVersion, too"));
            }
            Missing::Component(name) => {
                let message = format!("unknown version reference {name:?}");
                let finding = at(Diagnostic::error("UnknownVersionReference", message), manifest, pointer);
                self.configuration.push(finding.help(format!("set componentVersions.{name}")));
            }
            Missing::Unnamed => {
                let message = "empty version references are not allowed";
                let finding = at(Diagnostic::error("EmptyVersionReference", message), manifest, pointer);
                self.content.push(finding.help(format!("name a component in lower-case letters after {SNAPSHOT}-")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_strings_of_a_value_are_visited_and_no_keys() {
        let mut value = json!({"a": ["x", {"b/c~": "y"}], "x": 1, "n": null});
        let mut seen = Vec::new();
        each_text(&mut value, &mut String::new(), &mut |text, pointer| {
            seen.push(format!("{pointer}={text}"));
            text.push('!');
        });
        assert_eq!(seen, ["/a/0=x", "/a/1/b~1c~0=y"]);
        assert_eq!(value, json!({"a": ["x!", {"b/c~": "y!"}], "x": 1, "n": null}));
    }
}
