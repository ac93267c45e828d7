//! What the tests of several crates share.
//!
//! | module | feature | contents |
//! |---|---|---|
//! | [`layers`] | | which modules of a crate the modules of a folder use |
//! | [`needs`] | | requirements of tests (fixtures, kubectl, git, sshd), and how tests skip without them |
//! | `docker_registry` | `docker-registry` | the registry of the CNCF, as Debian packages it |
//! | `git` | `git` | git servers: git http-backend, sshd |
//! | `proxy` | `proxy` | an HTTP proxy |
//! | `signatures` | `signatures` | an instance of Sigstore: keys, certificates, log entries, signatures in both forms of cosign |

#[cfg(feature = "docker-registry")]
pub mod docker_registry;
#[cfg(feature = "git")]
pub mod git;
pub mod layers;
pub mod needs;
#[cfg(feature = "proxy")]
pub mod proxy;
#[cfg(feature = "signatures")]
pub mod signatures;
