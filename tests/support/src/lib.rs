//! What the tests of several crates share.
//!
//! | module | feature | contents |
//! |---|---|---|
//! | [`needs`] | | requirements of tests (fixtures, kubectl, git, sshd), and how tests skip without them |
//! | `git` | `git` | git servers: git http-backend, sshd |
//! | `signatures` | `signatures` | an instance of Sigstore: keys, certificates, log entries, signatures in both forms of cosign |

#[cfg(feature = "git")]
pub mod git;
pub mod needs;
#[cfg(feature = "signatures")]
pub mod signatures;
