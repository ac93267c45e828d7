//! Serving certificates and generated Secrets that a release requests.
//!
//! A provisioner never sees a key. It annotates the objects that need one ([`annotations`]), and the host *completes*
//! the release before it is applied: it adds the Secrets, and writes the CA bundles by which the API server trusts them
//! into the client configurations. The release as rendered, and thus its digest, does not change.
//!
//! This crate has no client. All state is in the Secrets, so the next reconcile recovers from a crash at any point:
//!
//! 1. [`Declarations::of`] reads the requests of the release.
//! 2. [`Stored::read`] parses the Secret from the cluster.
//! 3. [`decide`](decide::decide) decides what to do with it at a given time, and [`Decision::carry_out`] computes its new
//!    content, with new keys if needed.
//! 4. [`Declarations::complete`] adds the result to the release that is applied.
//!
//! # Replacing a certificate
//!
//! A certificate is served only after all its clients trust its authority, and an authority is trusted until the last
//! certificate that it signed has expired. A replacement therefore takes two steps. The first *announces* the next
//! certificate: it is added to the Secret beside the served one, and its authority is added to all client
//! configurations. Once these are written, the second step *switches*: the next certificate is served. Pods may reload
//! it at any time, since both are trusted.
//!
//! Each certificate has its own authority, whose key is discarded as soon as it has signed. No key exists that could
//! sign certificates for other names, and only the Secret itself needs protection.
//!
//! | module | holds |
//! |---|---|
//! | [`annotations`] | the annotations |
//! | [`declaration`] | the certificates that a release requests |
//! | [`policy`] | lifetime and renewal of certificates |
//! | [`stored`] | a parsed Secret |
//! | [`decide`](mod@decide) | decides what to do with a Secret |
//! | [`material`] | the content of a Secret |
//! | `carry_out` | carries out a decision: generates keys |
//! | [`completion`] | all of this for one release, with the reads of the caller |
//! | [`complete`](mod@complete) | the release with Secrets and CA bundles |
//! | [`trust`] | checks whether an object in the cluster trusts an authority |
//! | `issue` | issues keys and certificates |
//! | `certificate` | parses certificates |
//! | [`generated`] | Secrets with generated values |
//! | [`ServingCertificate`] | certificates of servers of the host itself |

pub mod annotations;
mod carry_out;
mod certificate;
pub mod complete;
pub mod completion;
pub mod decide;
pub mod declaration;
pub mod generated;
mod issue;
pub mod material;
pub mod policy;
mod serving;
pub mod stored;
pub mod trust;

pub use decide::{Cause, Decision};
pub use declaration::{Declaration, DeclarationError, Declarations, Target};
pub use issue::IssueError;
pub use material::{Authority, Material};
pub use policy::Policy;
pub use serving::ServingCertificate;
pub use stored::{Stored, Unusable};
