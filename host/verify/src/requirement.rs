//! One signer that a policy names, and whether a verified certificate is theirs.

use std::fmt;

use chandler_core::Digest;
use serde::Serialize;
use sigstore_verify::{
    SubjectAltName,
    crypto::{CertificateInfo, KeyAlgorithm, SigningScheme, validate_raw_public_key},
    types::DerPublicKey,
};

use crate::{
    policy::PolicyError,
    verification::{GitHubAction, Keyless, PublicKey, Signer},
};

/// The issuer of the tokens of GitHub Actions.
const GITHUB_ISSUER: &str = "https://token.actions.githubusercontent.com";

/// A signer that a policy names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Requirement {
    /// The holder of a key.
    Key(Key),
    /// An identity in a certificate.
    Keyless { issuer: String, subject: SubjectRule },
    /// Workflows of GitHub Actions.
    GitHub { owner: String, repo: Option<String>, reference: Option<String> },
}

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Key {
    /// The key as DER (SubjectPublicKeyInfo of RFC 5280).
    pub(crate) spki: Vec<u8>,
    /// Whether the signature must be in a log.
    pub(crate) requires_log: bool,
}

/// How an identity is compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum SubjectRule {
    /// It equals this text.
    Equal(String),
    /// It is a URI that begins with this text, which ends with `/`.
    Prefix(String),
}

impl Requirement {
    pub(crate) fn parse(signer: &Signer, path: &str) -> Result<Self, PolicyError> {
        match (&signer.public_key, &signer.keyless, &signer.github_action) {
            (Some(key), None, None) => Key::parse(key, path).map(Self::Key),
            (None, Some(keyless), None) => identity(keyless, path),
            (None, None, Some(action)) => workflows(action, path),
            _ => Err(PolicyError::at(path, "exactly one of publicKey, keyless, githubAction must be set")),
        }
    }

    /// Whether both name the same signer, whatever else they demand.
    pub(crate) fn is_same_signer(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Key(this), Self::Key(other)) => this.spki == other.spki,
            _ => self == other,
        }
    }

    /// Whether a verified certificate belongs to this signer; if not, why.
    pub(crate) fn check(&self, certificate: &CertificateInfo) -> Result<(), String> {
        match self {
            Self::Key(_) => Err("it is made with a certificate and not with the key".to_owned()),
            Self::Keyless { issuer, subject } => {
                equal("issuer", certificate.issuer.as_deref(), issuer)?;
                subject.check(certificate.identity.as_ref())
            }
            Self::GitHub { owner, repo, reference } => {
                equal("issuer", certificate.issuer.as_deref(), GITHUB_ISSUER)?;
                of_repository(certificate, owner, repo.as_deref())?;
                match reference {
                    Some(reference) => of_ref(certificate, reference),
                    None => Ok(()),
                }
            }
        }
    }
}

impl Key {
    fn parse(key: &PublicKey, path: &str) -> Result<Self, PolicyError> {
        let path = format!("{path}.publicKey");
        let refuse = |problem: String| PolicyError::at(format!("{path}.key"), problem);
        let unusable = |error: &dyn fmt::Display| refuse(format!("it is not a usable public key: {error}"));
        let der = DerPublicKey::from_pem(&key.key)
            .map_err(|_| refuse("it is not a public key as PEM (-----BEGIN PUBLIC KEY-----)".to_owned()))?;
        let algorithm = KeyAlgorithm::from_spki(&der).map_err(|error| unusable(&error))?;
        let scheme = match algorithm {
            KeyAlgorithm::EcdsaP256 | KeyAlgorithm::EcdsaP384 | KeyAlgorithm::Ed25519 => {
                algorithm.default_signing_scheme()
            }
            KeyAlgorithm::Rsa if key.require_transparency_log => {
                let problem = "it is not possible with an RSA key";
                return Err(PolicyError::at(format!("{path}.requireTransparencyLog"), problem));
            }
            KeyAlgorithm::Rsa => SigningScheme::RsaPkcs1Sha256,
            _ => {
                return Err(refuse("its algorithm is not one of ECDSA P-256, ECDSA P-384, Ed25519 and RSA".to_owned()));
            }
        };
        let key_bytes = sigstore_verify::crypto::VerificationKey::from_spki(&der).map_err(|error| unusable(&error))?;
        validate_raw_public_key(scheme, key_bytes.as_bytes()).map_err(|error| unusable(&error))?;
        Ok(Self { spki: der.as_bytes().to_vec(), requires_log: key.require_transparency_log })
    }

    /// The key for the library.
    pub(crate) fn der(&self) -> DerPublicKey {
        DerPublicKey::new(self.spki.clone())
    }
}

fn identity(keyless: &Keyless, path: &str) -> Result<Requirement, PolicyError> {
    let refuse = |field: &str, problem: &str| Err(PolicyError::at(format!("{path}.keyless.{field}"), problem));
    if keyless.issuer.trim().is_empty() {
        return refuse("issuer", "it is empty");
    }
    let subject = match (&keyless.subject.equal, &keyless.subject.prefix) {
        (Some(equal), None) if equal.trim().is_empty() => return refuse("subject.equal", "it is empty"),
        (Some(equal), None) => SubjectRule::Equal(equal.clone()),
        (None, Some(prefix)) => match normalized(prefix) {
            Some(prefix) => SubjectRule::Prefix(prefix),
            None => return refuse("subject.prefix", "it is not a URI with a host, such as https://github.com/org/"),
        },
        _ => return refuse("subject", "exactly one of equal, prefix must be set"),
    };
    Ok(Requirement::Keyless { issuer: keyless.issuer.clone(), subject })
}

/// A prefix that ends with a slash, so that `…/org` does not match `…/org-evil`. It has a host, so that it does not match every URI.
fn normalized(prefix: &str) -> Option<String> {
    let (scheme, rest) = prefix.split_once("://")?;
    let host = rest.split('/').next().unwrap_or_default();
    let is_usable = !scheme.is_empty() && !host.is_empty() && !prefix.contains(char::is_whitespace);
    is_usable.then(|| format!("{}/", prefix.trim_end_matches('/')))
}

fn workflows(action: &GitHubAction, path: &str) -> Result<Requirement, PolicyError> {
    let path = format!("{path}.githubAction");
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
    };
    let GitHubAction { owner, repo, reference } = action;
    if !is_name(owner) {
        return Err(PolicyError::at(format!("{path}.owner"), "it is not the name of a user or organization"));
    }
    if repo.as_ref().is_some_and(|repo| !is_name(repo)) {
        return Err(PolicyError::at(format!("{path}.repo"), "it is not the name of a repository, without its owner"));
    }
    if reference.as_ref().is_some_and(|reference| !reference.starts_with("refs/")) {
        return Err(PolicyError::at(format!("{path}.ref"), "it does not begin with refs/, as refs/heads/main does"));
    }
    Ok(Requirement::GitHub { owner: owner.clone(), repo: repo.clone(), reference: reference.clone() })
}

impl SubjectRule {
    fn check(&self, found: Option<&SubjectAltName>) -> Result<(), String> {
        let is_theirs = match (self, found) {
            (Self::Equal(expected), Some(found)) => found.as_str() == expected,
            (Self::Prefix(prefix), Some(SubjectAltName::Uri(found))) => found.starts_with(prefix.as_str()),
            _ => false,
        };
        if is_theirs {
            return Ok(());
        }
        // It may read like the URI that is wanted.
        let found = found.map(|found| match found {
            SubjectAltName::Email(address) => format!("the email address {address}"),
            found => found.as_str().to_owned(),
        });
        Err(other("subject", found.as_deref()))
    }
}

fn equal(what: &str, found: Option<&str>, expected: &str) -> Result<(), String> {
    if found == Some(expected) { Ok(()) } else { Err(other(what, found)) }
}

fn other(what: &str, found: Option<&str>) -> String {
    match found {
        Some(found) => format!("its {what} is {found}"),
        None => format!("its certificate names no {what}"),
    }
}

/// The repository whose workflow ran, not the repository of a reusable workflow that it called: any workflow may call that.
fn of_repository(certificate: &CertificateInfo, owner: &str, repo: Option<&str>) -> Result<(), String> {
    let claims = &certificate.ci_claims;
    // Certificates of before 2023 have the short form only.
    let short = claims.deprecated_github.workflow_repository.as_ref();
    let short = || short.map(|name| format!("https://github.com/{name}"));
    let found = claims.source_repository_uri.clone().or_else(short);
    let prefix = format!("https://github.com/{owner}/");
    let is_theirs = found.as_deref().and_then(|uri| uri.strip_prefix(&prefix)).is_some_and(|name| match repo {
        Some(repo) => name == repo,
        None => !name.is_empty() && !name.contains('/'),
    });
    if is_theirs { Ok(()) } else { Err(other("repository", found.as_deref())) }
}

fn of_ref(certificate: &CertificateInfo, reference: &str) -> Result<(), String> {
    let claims = &certificate.ci_claims;
    let found = claims.source_repository_ref.as_ref().or(claims.deprecated_github.workflow_ref.as_ref());
    equal("ref", found.map(String::as_str), reference)
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => {
                write!(f, "the public key {}", Digest::of(&key.spki).short())?;
                if key.requires_log { write!(f, ", in a transparency log") } else { Ok(()) }
            }
            Self::Keyless { issuer, subject: SubjectRule::Equal(subject) } => write!(f, "{subject} (issuer {issuer})"),
            Self::Keyless { issuer, subject: SubjectRule::Prefix(prefix) } => write!(f, "{prefix}… (issuer {issuer})"),
            Self::GitHub { owner, repo, reference } => {
                write!(f, "GitHub Actions of {owner}")?;
                if let Some(repo) = repo {
                    write!(f, "/{repo}")?;
                }
                if let Some(reference) = reference {
                    write!(f, " at {reference}")?;
                }
                Ok(())
            }
        }
    }
}
