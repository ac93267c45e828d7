//! The signatures that the controller demands of images, and the trusted root, from files.

use std::path::Path;

use chandler_source::{ImageRules, ImageVerificationFile};
use chandler_verify::TrustRoot;
use chandler_yaml::{Limits, from_node, parse};

use super::file;
use crate::CommandError;

/// The largest file, in bytes.
const LIMIT: u64 = 1 << 20;

/// Reads both files; none means no rule, and the root of Sigstore's public instance.
pub fn read(rules: Option<&Path>, root: Option<&Path>) -> Result<ImageRules, CommandError> {
    let parsed = match rules {
        Some(path) => rules_in(path)?,
        None => ImageRules::default(),
    };
    let Some(path) = root else { return Ok(parsed) };
    let failed = || CommandError::usage(format!("the trusted root in {} cannot be used", path.display()));
    let bytes = file::read(path, LIMIT).map_err(|error| failed().because(&error))?;
    let root = TrustRoot::parse(&String::from_utf8_lossy(&bytes)).map_err(|error| failed().because(&error))?;
    parsed.with_trust_root(&root).map_err(|error| failed().because(&error))
}

fn rules_in(path: &Path) -> Result<ImageRules, CommandError> {
    let failed = |cause: &dyn std::fmt::Display| {
        let message = format!("the rules for signatures of images in {} cannot be used: {cause}", path.display());
        CommandError::usage(message).hint("docs/sources.md has an example")
    };
    let bytes = file::read(path, LIMIT).map_err(|error| failed(&error))?;
    let documents = parse(&bytes, &Limits::default()).map_err(|error| failed(&error))?;
    let [document] = documents.as_slice() else {
        return Err(failed(&format!("it has {} YAML documents; want one", documents.len())));
    };
    // Of two values of one key, either could be meant.
    if let Some(warning) = document.warnings.first() {
        return Err(failed(&format!("line {}: {}", warning.line, warning.message)));
    }
    let file: ImageVerificationFile = from_node(&document.root).map_err(|error| failed(&error))?;
    ImageRules::parse(&file).map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "\
apiVersion: chandler.dev/v1alpha1
kind: ImageVerification
rules:
- images: ['*']
  verification:
    allOf:
    - githubAction: {owner: org}
";

    #[test]
    fn rules_are_read_strictly() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rules.yaml");
        let read_text = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read(Some(&path), None).map(|rules| format!("{rules:?}")).map_err(|error| format!("{error:?}"))
        };
        assert_eq!(read_text(RULES).unwrap(), r#"["*"]"#);
        for (text, cause) in [
            (String::new(), "it has 0 YAML documents; want one"),
            (format!("{RULES}---\n{RULES}"), "it has 2 YAML documents; want one"),
            (RULES.replace("allOf", "allof"), "unknown field `allof`"),
            (RULES.replace("rules:", "rule:"), "unknown field `rule`"),
            (format!("{RULES}kind: Other\n"), "kind"),
            (RULES.replace("owner: org", "owner: org/app"), "rules[0].verification.allOf[0].githubAction.owner"),
            (RULES.replace("v1alpha1", "v2"), "apiVersion"),
        ] {
            let error = read_text(&text).unwrap_err();
            assert!(error.contains(cause) && error.contains("rules.yaml"), "{error}");
        }
        let error = read(Some(&directory.path().join("absent")), None).unwrap_err();
        assert!(format!("{error:?}").contains("absent"));
        std::fs::write(&path, "{}").unwrap();
        let error = format!("{:?}", read(None, Some(&path)).unwrap_err());
        assert!(error.contains("the trusted root in") && error.contains("trusted_root.json"), "{error}");
    }
}
