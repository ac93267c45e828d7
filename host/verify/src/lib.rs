//! Signatures of images: a policy, a manifest and signatures in, a verdict out.
//!
//! Pure but for the clock: nothing is read from a network, so that a cluster without one verifies as well. `host/content` reads the
//! signatures from the registry of the image.
//!
//! | item | purpose |
//! |---|---|
//! | [`Verification`] | a policy as users write it: who must have signed |
//! | [`Policy`], [`PolicyError`] | a policy, parsed; policies are combined with [`Policy::and`] |
//! | [`TrustRoot`] | the certificate authorities and logs that keyless signatures are checked with |
//! | [`Signature`] | one signature as a registry stores it, in one of the two forms of cosign |
//! | [`Verifier`], [`Verdict`], [`Refused`] | whether the signatures satisfy the policy, and who signed |
//!
//! The crate `sigstore-verify` checks certificates, logs and times. It uses the cryptography of [`ring`] and of RustCrypto (`crypto`), so
//! that no C library is added.
//!
//! Everything in a signature is untrusted until it is verified: texts of it are escaped and shortened in messages. Only digests
//! identify an image, never the names in a signature.

mod bundle;
mod crypto;
mod evidence;
mod payload;
mod policy;
mod requirement;
mod signature;
mod trust;
mod verification;
mod verifier;

pub use policy::{Policy, PolicyError};
pub use signature::{Annotations, Signature};
pub use trust::{TrustRoot, TrustRootError};
pub use verification::{AnyOf, GitHubAction, Keyless, PublicKey, Signer, Subject, Verification};
pub use verifier::{Refused, Verdict, Verifier};

/// The most signatures of one image that are read. A registry that has more is refused.
pub const MOST_SIGNATURES: usize = 32;
/// The most bytes of one signature, and of the list of signatures.
pub const SIGNATURE_BYTES: u64 = 1 << 20;
