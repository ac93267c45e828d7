//! Serving certificates, and Secrets with generated values, that a release asks the host for.
//!
//! A provisioner never sees a key. It marks the objects that need one ([`annotations`]), and the host *completes* the
//! release on its way to the cluster: it adds the Secrets, and writes into every client configuration the authorities by
//! which the API server trusts them. What a provisioner rendered, and so its digest, stays as it was.
//!
//! Nothing here talks to a cluster. All state is in the Secrets, so that a crash at any point is repaired by the next pass:
//!
//! 1. [`Declarations::of`] tells what the release asks for.
//! 2. [`Stored::read`] takes a Secret apart, as it is in the cluster.
//! 3. [`decide`](decide::decide) tells what to do about it at a given time, and [`Decision::take`] makes of it what
//!    the Secret is to hold, with new keys where they are needed.
//! 4. [`Declarations::complete`] makes the release that is applied.
//!
//! # Replacing a certificate
//!
//! A certificate is served only after everything that checks it trusts its authority, and an authority is trusted until
//! the last certificate that it signed has expired. So a replacement takes two steps. The first *announces*: the next
//! certificate is put into the Secret, beside the one that is served, and its authority into every client configuration.
//! When all of these are written, the second *switches*: the next certificate becomes the one that is served. Pods may read
//! it whenever they like, since both are trusted.
//!
//! Each certificate has an authority of its own, whose key is thrown away as soon as it has signed. There is no key by
//! which certificates for other names could be made, and nothing to guard but the Secret itself.
//!
//! | module | holds |
//! |---|---|
//! | [`annotations`] | how objects are marked |
//! | [`declaration`] | what a release asks for |
//! | [`policy`] | how long certificates live, and when they are replaced |
//! | [`stored`] | a Secret, taken apart |
//! | [`decide`](mod@decide) | what to do about it |
//! | [`material`] | what a Secret is to hold |
//! | `take` | makes the keys that a decision needs |
//! | [`complete`] | the release with Secrets and authorities |
//! | [`trust`] | whether an object in the cluster trusts an authority |
//! | `issue` | new keys and certificates |
//! | `certificate` | what is written in a certificate |
//! | [`generated`] | Secrets whose values the host generates |

pub mod annotations;
mod certificate;
pub mod complete;
pub mod decide;
pub mod declaration;
pub mod generated;
mod issue;
pub mod material;
pub mod policy;
pub mod stored;
mod take;
pub mod trust;

pub use decide::{Cause, Decision};
pub use declaration::{Declaration, DeclarationError, Declarations, Target};
pub use issue::IssueError;
pub use material::{Authority, Material};
pub use policy::Policy;
pub use stored::{Stored, Unusable};
