//! The signatures that an artifact must have, from files.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use chandler_content::RequiredSignatures;
use chandler_verify::{Policy, PublicKey, Signer, TrustRoot, Verification, Verifier};
use chandler_yaml::{Limits, from_node, parse};

use super::file;
use crate::{CommandError, view::text::one_line};

/// The largest file, in bytes.
const LIMIT: u64 = 1 << 20;

/// Who must have signed an artifact.
#[derive(Clone, Debug, Default)]
pub struct SignerOptions {
    /// Files with public keys, whose holders must all have signed.
    pub keys: Vec<PathBuf>,
    /// A file with a policy, as in `spec.verification` of a ProvisionerClass.
    pub verification: Option<PathBuf>,
    /// The file with the trusted root; `None` for the public instance of Sigstore.
    pub trusted_root: Option<PathBuf>,
}

/// The signatures that an artifact must have, or `None` if nothing demands one.
///
/// # Errors
/// A file cannot be read, or has no key, policy or root.
pub fn required(options: &SignerOptions) -> Result<Option<RequiredSignatures>, CommandError> {
    let by_keys = (!options.keys.is_empty()).then(|| keys(&options.keys)).transpose()?;
    let by_policy = options.verification.as_deref().map(policy).transpose()?;
    let policy = match (by_keys, by_policy) {
        (None, None) => return Ok(None),
        (Some(policy), None) | (None, Some(policy)) => policy,
        (Some(one), Some(other)) => one.and(other),
    };
    let root = match &options.trusted_root {
        None => TrustRoot::public(),
        Some(path) => TrustRoot::parse(&text(path)?),
    };
    let verifier = root.and_then(|root| Verifier::new(&root));
    let verifier = verifier.map_err(|error| CommandError::usage("the trusted root cannot be used").because(&error))?;
    Ok(Some(RequiredSignatures::new(policy, Arc::new(verifier))))
}

fn keys(paths: &[PathBuf]) -> Result<Policy, CommandError> {
    let mut all_of = Vec::new();
    for path in paths {
        let key = PublicKey { key: text(path)?, ..PublicKey::default() };
        all_of.push(Signer { public_key: Some(key), ..Signer::default() });
    }
    Policy::parse(&Verification { all_of, any_of: None }).map_err(|error| {
        CommandError::usage("the keys cannot be used")
            .because(&error)
            .hint("--key names a public key as PEM, such as cosign.pub: `openssl pkey -in KEY -pubout`")
    })
}

fn policy(path: &Path) -> Result<Policy, CommandError> {
    let failed = |problem: String| {
        CommandError::usage(format!("the policy in {} cannot be used", one_line(&path.display().to_string())))
            .cause(problem)
            .hint("the file has what spec.verification of a ProvisionerClass has, such as `allOf: [...]`")
    };
    let text = text(path)?;
    let documents = parse(text.as_bytes(), &Limits::default()).map_err(|error| failed(error.to_string()))?;
    let [document] = documents.as_slice() else {
        return Err(failed(format!("it has {} YAML documents instead of one", documents.len())));
    };
    // Of two values of one key, either could be meant.
    if let Some(warning) = document.warnings.first() {
        return Err(failed(format!("line {}: {}", warning.line, warning.message)));
    }
    let verification: Verification = from_node(&document.root).map_err(|error| failed(error.to_string()))?;
    Policy::parse(&verification).map_err(|error| failed(error.to_string()))
}

fn text(path: &Path) -> Result<String, CommandError> {
    let failed = || CommandError::usage(format!("failed to read {}", one_line(&path.display().to_string())));
    let bytes = file::read(path, LIMIT).map_err(|error| failed().because(&error))?;
    String::from_utf8(bytes).map_err(|_| failed().cause("it is not text"))
}
