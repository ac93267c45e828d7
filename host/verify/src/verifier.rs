//! The verdict.

use std::{cell::OnceCell, fmt};

use chandler_core::{
    Digest,
    text::{count, one_line},
};
use sigstore_verify::{PublicKeyVerificationPolicy, VerificationPolicy, crypto::CertificateInfo};

use crate::{
    MOST_SIGNATURES, Policy, Signature, TrustRoot, TrustRootError, crypto,
    evidence::Evidence,
    policy::Clause,
    requirement::{Key, Requirement},
};

/// The most signatures that an error speaks of.
const SHOWN: usize = 4;
/// The most characters of an error about one signature.
const CHARACTERS: usize = 240;
/// Why a signature does not count that must be in a log. The library speaks of the form of bundles, in which signatures are brought to it.
const NO_LOG: &str = "it is in no transparency log";

/// Verifies signatures with one trusted root.
pub struct Verifier {
    library: sigstore_verify::Verifier,
    root: Digest,
}

/// The signatures satisfy the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The signers that the policy names and that signed, as texts for people.
    pub signers: Vec<String>,
}

/// The signatures do not satisfy the policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no signature.
    #[error("it is not signed; wanted: {wanted}")]
    Unsigned {
        /// The signers that the policy wants.
        wanted: String,
    },
    /// No signature is by a signer that the policy wants.
    #[error("it is not signed as wanted; wanted: {wanted}; {found}")]
    NoMatch {
        /// The signers that the policy wants.
        wanted: String,
        /// What is wrong with each signature.
        found: String,
    },
    /// There are more signatures than are read.
    #[error("it has more than {MOST_SIGNATURES} signatures")]
    TooMany,
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").field("root", &self.root).finish_non_exhaustive()
    }
}

impl Verifier {
    /// A verifier with this trusted root.
    ///
    /// # Errors
    /// The root has a key or certificate that cannot be used.
    pub fn new(root: &TrustRoot) -> Result<Self, TrustRootError> {
        crypto::install();
        let library =
            sigstore_verify::Verifier::new(&root.root).map_err(|error| TrustRootError(one_line(&error.to_string())))?;
        Ok(Self { library, root: root.digest().clone() })
    }

    /// The digest of the policy and of the trusted root: what a verdict depends on, besides the image and the clock.
    pub fn proof(&self, policy: &Policy) -> Digest {
        Digest::of_json(&(policy.digest(), &self.root))
    }

    /// Whether the signatures satisfy the policy for the image with this manifest, or index of manifests.
    pub fn verify(&self, policy: &Policy, manifest: &[u8], signatures: &[Signature]) -> Result<Verdict, Refused> {
        if signatures.len() > MOST_SIGNATURES {
            return Err(Refused::TooMany);
        }
        let image = Digest::of(manifest);
        let candidates: Vec<Candidate<'_>> =
            signatures.iter().map(|signature| Candidate::new(self, signature, manifest, &image)).collect();
        let mut signers = Vec::new();
        for clause in &policy.clauses {
            signers.extend(satisfied(clause, &candidates)?);
        }
        signers.dedup();
        Ok(Verdict { signers })
    }
}

/// A signature whose certificate is verified at most once.
struct Candidate<'a> {
    verifier: &'a Verifier,
    evidence: Result<Evidence<'a>, String>,
    certificate: OnceCell<Result<CertificateInfo, String>>,
}

impl<'a> Candidate<'a> {
    fn new(verifier: &'a Verifier, signature: &'a Signature, manifest: &'a [u8], image: &Digest) -> Self {
        Self { verifier, evidence: Evidence::read(signature, manifest, image), certificate: OnceCell::new() }
    }

    /// Whether this signature is by a signer; if not, why.
    fn check(&self, requirement: &Requirement) -> Result<(), String> {
        let evidence = self.evidence.as_ref().map_err(String::clone)?;
        match requirement {
            Requirement::Key(key) if key.requires_log => self.logged(evidence, key),
            Requirement::Key(key) => evidence.is_by(key),
            Requirement::Keyless { .. } | Requirement::GitHub { .. } => {
                let certificate = self.certificate.get_or_init(|| self.certified(evidence));
                requirement.check(certificate.as_ref().map_err(String::clone)?)
            }
        }
    }

    /// Whether the key made the signature, and a log has it.
    fn logged(&self, evidence: &Evidence<'_>, key: &Key) -> Result<(), String> {
        if !evidence.has_log_entry() {
            evidence.is_by(key)?;
            return Err(NO_LOG.to_owned());
        }
        let policy = PublicKeyVerificationPolicy::new(key.der());
        let verified = self.verifier.library.verify(evidence.artifact(), evidence.bundle(), &policy);
        let verified = verified.map_err(|error| error.to_string())?;
        if verified.tlog_verified() { Ok(()) } else { Err(NO_LOG.to_owned()) }
    }

    /// The certificate of the signature, with everything verified but whose it is.
    fn certified(&self, evidence: &Evidence<'_>) -> Result<CertificateInfo, String> {
        if !evidence.has_log_entry() {
            return Err(NO_LOG.to_owned());
        }
        // The identity is checked afterwards, since the library compares whole identities only.
        let policy = VerificationPolicy::any_identity();
        let verified = self.verifier.library.verify(evidence.artifact(), evidence.bundle(), &policy);
        let verified = verified.map_err(|error| error.to_string())?;
        let is_complete = verified.certificate_verified() && verified.sct_verified() && verified.tlog_verified();
        let certificate = verified.certificate().filter(|_| is_complete).cloned();
        certificate.ok_or_else(|| "its certificate is not verified".to_owned())
    }
}

/// The signers of a clause that signed, if they are enough.
fn satisfied(clause: &Clause, candidates: &[Candidate<'_>]) -> Result<Vec<String>, Refused> {
    let mut signers = Vec::new();
    let mut missing = Vec::new();
    for requirement in &clause.signers {
        let checks: Vec<_> = candidates.iter().map(|candidate| candidate.check(requirement)).collect();
        if checks.iter().any(Result::is_ok) {
            signers.push(shortened(&requirement.to_string()));
        } else {
            missing.push((requirement, checks));
        }
    }
    if signers.len() >= clause.minimum {
        return Ok(signers);
    }
    let names: Vec<String> = missing.iter().map(|(requirement, _)| shortened(&requirement.to_string())).collect();
    let needed = clause.minimum - signers.len();
    let wanted = match names.len() {
        all if all == needed => names.join(" and "),
        _ => format!("{needed} of {}", names.join(", ")),
    };
    let Some((_, checks)) = missing.first().filter(|(_, checks)| !checks.is_empty()) else {
        return Err(Refused::Unsigned { wanted });
    };
    let problems = checks.iter().filter_map(|check| check.as_ref().err());
    let mut found: Vec<String> =
        problems.enumerate().take(SHOWN).map(|(at, why)| format!("signature {}: {}", at + 1, shortened(why))).collect();
    if checks.len() > SHOWN {
        found.push(format!("{} more", count(checks.len() - SHOWN, "signature")));
    }
    Err(Refused::NoMatch { wanted, found: found.join("; ") })
}

/// A text that may come from a signature, on one line and bounded.
fn shortened(text: &str) -> String {
    let text = one_line(text);
    match text.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
