//! Which signatures the administrator demands of which images, beside those that a source demands itself.
//!
//! A source can demand more, never less: both hold. The rule with the longest matching name decides. Other spellings of a name are that
//! name, as in the settings for registries. Another name of the same registry is another name here, so that only a rule for `*` covers
//! everything.

use std::{collections::BTreeMap, fmt, sync::Arc};

use chandler_content::{ImageReference, RequiredSignatures};
use chandler_registries::normalized;
use chandler_verify::{Policy, PolicyError, TrustRoot, TrustRootError, Verification, Verifier};
use serde::Deserialize;

/// The name that matches every image.
const EVERY: &str = "*";

/// The file of an administrator.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageVerificationFile {
    /// The version of this format: `chandler.dev/v1alpha1`.
    pub api_version: String,
    /// `ImageVerification`.
    pub kind: String,
    /// The rules.
    pub rules: Vec<ImageVerificationRule>,
}

/// A rule: either a policy, or that no signature is demanded.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageVerificationRule {
    /// Registries, as `quay.io`, and repositories or the first segments of their names, as `quay.io/org`; `*` for all images.
    pub images: Vec<String>,
    /// The signatures that the images must have.
    #[serde(default)]
    pub verification: Option<Verification>,
    /// Whether the images need no signature, although a rule with a shorter name demands one.
    #[serde(default)]
    pub allow_unsigned: bool,
}

impl ImageVerificationFile {
    /// The version of the format.
    pub const API_VERSION: &str = "chandler.dev/v1alpha1";
    /// The kind of the format.
    pub const KIND: &str = "ImageVerification";
}

/// The rules cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct ImageRulesError {
    /// The path of the field, such as `rules[0].images`.
    pub path: String,
    /// What is wrong with it.
    pub problem: String,
}

/// The signatures that an image must have cannot be determined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignaturesError {
    /// The policy of the object that names the image cannot be used. The path is below its field `verification`.
    #[error("verification.{0}")]
    Policy(#[from] PolicyError),
    /// Signatures cannot be verified.
    #[error("the trusted root is not usable: {0}")]
    TrustRoot(#[from] TrustRootError),
}

/// The rules, parsed, and the verifier with its trusted root.
#[derive(Clone)]
pub struct ImageRules {
    verifier: Result<Arc<Verifier>, TrustRootError>,
    rules: Arc<[Rule]>,
}

struct Rule {
    name: String,
    policy: Option<Policy>,
}

impl fmt::Debug for ImageRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.rules.iter().map(|rule| &rule.name)).finish()
    }
}

impl Default for ImageRules {
    /// No rule, and the trusted root of Sigstore's public instance.
    fn default() -> Self {
        Self { verifier: verifier(None), rules: Arc::default() }
    }
}

fn verifier(root: Option<&TrustRoot>) -> Result<Arc<Verifier>, TrustRootError> {
    let verifier = match root {
        Some(root) => Verifier::new(root),
        None => Verifier::new(&TrustRoot::public()?),
    };
    verifier.map(Arc::new)
}

impl ImageRules {
    /// The rules of a file, and the trusted root; `None` for Sigstore's public instance.
    ///
    /// # Errors
    /// A rule without a name, with a name that another rule has, or that demands neither or both.
    pub fn parse(file: &ImageVerificationFile) -> Result<Self, ImageRulesError> {
        let refuse = |path: String, problem: String| Err(ImageRulesError { path, problem });
        for (path, found, wanted) in [
            ("apiVersion", &file.api_version, ImageVerificationFile::API_VERSION),
            ("kind", &file.kind, ImageVerificationFile::KIND),
        ] {
            if found != wanted {
                return refuse(path.to_owned(), format!("it is {found:?}; want {wanted:?}"));
            }
        }
        let mut rules = Vec::new();
        let mut names = BTreeMap::new();
        for (at, ImageVerificationRule { images, verification, allow_unsigned }) in file.rules.iter().enumerate() {
            let policy = match (verification, allow_unsigned) {
                (Some(verification), false) => Some(policy(verification, at)?),
                (None, true) => None,
                _ => {
                    return refuse(format!("rules[{at}]"), "set either verification or allowUnsigned: true".to_owned());
                }
            };
            if images.is_empty() {
                return refuse(format!("rules[{at}].images"), "it names no image; `*` names all".to_owned());
            }
            for image in images {
                let Some(name) = name(image) else {
                    let problem = format!("{image:?} is not a registry, or a repository without a tag");
                    return refuse(format!("rules[{at}].images"), problem);
                };
                match names.insert(name.clone(), at) {
                    None => rules.push(Rule { name, policy: policy.clone() }),
                    // Two spellings of one name, which say the same.
                    Some(before) if before == at => {}
                    Some(_) => {
                        return refuse(format!("rules[{at}].images"), format!("{image:?} has a rule before"));
                    }
                }
            }
        }
        Ok(Self { verifier: verifier(None), rules: rules.into() })
    }

    /// These rules with another trusted root.
    ///
    /// # Errors
    /// The root has a key or certificate that cannot be used.
    pub fn with_trust_root(mut self, root: &TrustRoot) -> Result<Self, TrustRootError> {
        self.verifier = Ok(verifier(Some(root))?);
        Ok(self)
    }

    /// The signatures that an image must have, for a source with this policy, or `None` if neither demands one.
    pub(crate) fn required(
        &self,
        image: &ImageReference,
        own: Option<&Policy>,
    ) -> Result<Option<RequiredSignatures>, TrustRootError> {
        let policy = match (self.policy(image), own) {
            (None, None) => return Ok(None),
            (Some(policy), None) | (None, Some(policy)) => policy.clone(),
            (Some(rule), Some(own)) => rule.clone().and(own.clone()),
        };
        Ok(Some(RequiredSignatures::new(policy, self.verifier.clone()?)))
    }

    /// Whether a rule demands signatures of an image.
    pub(crate) fn demands(&self, image: &ImageReference) -> bool {
        self.policy(image).is_some()
    }

    /// The policy of the rule with the longest name that matches.
    fn policy(&self, image: &ImageReference) -> Option<&Policy> {
        let full = image.normalized_name();
        let matches = |rule: &&Rule| {
            let rest = full.strip_prefix(rule.name.as_str());
            rule.name == EVERY || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.rules.iter().filter(matches).max_by_key(|rule| rule.name.len())?.policy.as_ref()
    }
}

fn policy(verification: &Verification, at: usize) -> Result<Policy, ImageRulesError> {
    Policy::parse(verification).map_err(|PolicyError { path, problem }| ImageRulesError {
        path: format!("rules[{at}].verification.{path}"),
        problem,
    })
}

/// A name as images are compared with it: a registry and the first segments of a repository.
fn name(image: &str) -> Option<String> {
    if image == EVERY {
        return Some(image.to_owned());
    }
    let image = image.trim_end_matches('/').to_ascii_lowercase();
    let (registry, repository) = image.split_once('/').unwrap_or((&image, "any"));
    // The registry in the name of an image, as container tools parse it.
    let is_registry = registry.contains(['.', ':']) || registry == "localhost";
    let parsed: ImageReference = format!("{registry}/{repository}").parse().ok()?;
    let has_no_tag = parsed.digest().is_none() && !repository.contains([':', '@']);
    if !is_registry || !has_no_tag {
        return None;
    }
    // Not the parsed name: `docker.io/a` parses to `docker.io/library/a`.
    Some(normalized(&image))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rules(rules: Value) -> Result<ImageRules, ImageRulesError> {
        let file = json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "ImageVerification", "rules": rules});
        ImageRules::parse(&serde_json::from_value(file).unwrap())
    }

    fn by(owner: &str) -> Value {
        json!({"allOf": [{"githubAction": {"owner": owner}}]})
    }

    fn policy_by(owner: &str) -> Policy {
        Policy::parse(&serde_json::from_value(by(owner)).unwrap()).unwrap()
    }

    #[test]
    fn the_longest_name_decides() {
        let rules = rules(json!([
            {"images": ["*"], "verification": by("all")},
            {"images": ["quay.io", "docker.io/org"], "verification": by("quay")},
            {"images": ["quay.io/org/app", "localhost:5000/"], "verification": by("app")},
            {"images": ["quay.io/org/open"], "allowUnsigned": true},
            {"images": ["localhost", "LOCALHOST:443/"], "verification": by("here")},
        ]))
        .unwrap();
        for (image, owner) in [
            ("ghcr.io/a", Some("all")),
            ("quay.io/a:v1", Some("quay")),
            ("QUAY.io/a:v1", Some("quay")),
            ("quay.io/org/app:v1", Some("app")),
            ("quay.io/org/app/part:v1", Some("app")),
            ("quay.io/org/app-evil", Some("quay")),
            ("quay.io/org/open/a", None),
            ("quay.io.evil.example/a", Some("all")),
            // Other spellings of the same registry.
            ("quay.io:443/org/open/a", None),
            ("QUAY.io:443/org/app", Some("app")),
            ("org/a", Some("quay")),
            ("index.docker.io/org/a", Some("quay")),
            ("Docker.io:443/org/a", Some("quay")),
            ("localhost:5000/a", Some("app")),
            ("localhost/free/a", Some("here")),
            ("localhost:443/free/a", Some("here")),
            ("LocalHost:80/free/a", Some("here")),
            // Another registry of the same host.
            ("quay.io:5000/org/open/a", Some("all")),
        ] {
            let found = rules.policy(&image.parse().unwrap()).cloned();
            assert_eq!(found, owner.map(policy_by), "{image}");
        }
    }

    #[test]
    fn a_source_demands_more_and_never_less() {
        let rules = rules(json!([{"images": ["quay.io"], "verification": by("rule")}])).unwrap();
        let proof = |image: &str, own: Option<Policy>| {
            let required = rules.required(&image.parse().unwrap(), own.as_ref()).unwrap();
            required.map(|required| format!("{required:?}"))
        };
        let expected =
            |policy: Policy| Some(format!("{:?}", RequiredSignatures::new(policy, rules.verifier.clone().unwrap())));
        assert_eq!(proof("ghcr.io/a", None), None);
        assert_eq!(proof("ghcr.io/a", Some(policy_by("own"))), expected(policy_by("own")));
        assert_eq!(proof("quay.io/a", None), expected(policy_by("rule")));
        assert_eq!(proof("quay.io/a", Some(policy_by("own"))), expected(policy_by("rule").and(policy_by("own"))));
    }

    #[test]
    fn unusable_rules_are_refused() {
        for (value, path, problem) in [
            (json!([{"images": ["*"]}]), "rules[0]", "either verification or allowUnsigned"),
            (json!([{"images": ["*"], "verification": by("a"), "allowUnsigned": true}]), "rules[0]", "either"),
            (json!([{"images": ["*"], "verification": {}}]), "rules[0].verification.allOf", "demands no signature"),
            (json!([{"images": [], "allowUnsigned": true}]), "rules[0].images", "names no image"),
            (json!([{"images": ["org"], "allowUnsigned": true}]), "rules[0].images", "not a registry"),
            (json!([{"images": [""], "allowUnsigned": true}]), "rules[0].images", "not a registry"),
            (json!([{"images": ["quay.io/*"], "allowUnsigned": true}]), "rules[0].images", "not a registry"),
            (json!([{"images": ["quay.io/a:v1"], "allowUnsigned": true}]), "rules[0].images", "without a tag"),
            (
                json!([{"images": ["quay.io"], "allowUnsigned": true}, {"images": ["QUAY.io/"], "allowUnsigned": true}]),
                "rules[1].images",
                "has a rule before",
            ),
        ] {
            let error = rules(value.clone()).unwrap_err();
            assert_eq!(error.path, path, "{value}: {error}");
            assert!(error.problem.contains(problem), "{value}: {error}");
        }
        let other = ImageVerificationFile { api_version: "v1".into(), kind: "ImageVerification".into(), rules: vec![] };
        assert_eq!(ImageRules::parse(&other).unwrap_err().path, "apiVersion");
    }
}
