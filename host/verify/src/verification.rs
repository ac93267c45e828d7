//! A policy as users write it, in the API and in files.
//!
//! An unknown field is an error: a policy with a mistyped field would demand less than its author thinks.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

/// Who must have signed an image. At least one of allOf and anyOf is set; if both are, both must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = open)]
pub struct Verification {
    /// Signers that must all have signed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub all_of: Vec<Signer>,
    /// Signers of which some must have signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub any_of: Option<AnyOf>,
}

/// Signers of which some must have signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = open)]
pub struct AnyOf {
    /// How many of the signers must have signed. Default: 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 16), extend("format" = "int32"))]
    pub minimum_matches: u32,
    /// The signers.
    #[schemars(length(min = 1, max = 16))]
    pub signers: Vec<Signer>,
}

fn one() -> u32 {
    1
}

/// A signer: exactly one of publicKey, keyless and githubAction is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = open)]
pub struct Signer {
    /// The holder of a private key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_key: Option<PublicKey>,
    /// An identity that an OpenID Connect issuer confirmed, in a certificate of Fulcio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyless: Option<Keyless>,
    /// Workflows of GitHub Actions in the repositories of an owner, or in one repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub github_action: Option<GitHubAction>,
}

/// The holder of a private key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = open)]
pub struct PublicKey {
    /// The public key as PEM: ECDSA P-256 or P-384, Ed25519, or RSA of 2048 bits or more.
    #[schemars(length(min = 1, max = 8192))]
    pub key: String,
    /// Whether the signature must be in a transparency log of the trusted root as well. Not possible with RSA.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub require_transparency_log: bool,
}

/// An identity that an OpenID Connect issuer confirmed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = open)]
pub struct Keyless {
    /// The URL of the issuer, exactly as in the certificate.
    #[schemars(length(min = 1, max = 1024))]
    pub issuer: String,
    /// The identity: exactly one of equal and prefix is set.
    pub subject: Subject,
}

/// The identity in a certificate: an email address or a URI.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = open)]
pub struct Subject {
    /// The whole identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub equal: Option<String>,
    /// The first segments of a URI, such as `https://github.com/org`: it matches `https://github.com/org/app`, but not
    /// `https://github.com/org-evil`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub prefix: Option<String>,
}

/// Workflows of GitHub Actions. The repository whose workflow ran counts, not the repository of a reusable workflow that it called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = open)]
pub struct GitHubAction {
    /// The owner of the repository, in the case that GitHub shows.
    #[schemars(length(min = 1, max = 100))]
    pub owner: String,
    /// The repository. Default: all of the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub repo: Option<String>,
    /// The ref that the workflow ran for, such as refs/heads/main. Default: any.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub reference: Option<String>,
}

/// The schema of a CRD does not refuse unknown fields: the API server drops them, or warns.
fn open(schema: &mut Schema) {
    schema.remove("additionalProperties");
}
