//! Certificates of servers of the host itself, which no release requests.

use std::collections::BTreeSet;

use time::OffsetDateTime;

use crate::{issue, issue::IssueError, policy::Policy};

/// A serving certificate with its key, and the authority by which clients trust it. The authority signed nothing else, and its key is
/// gone.
#[derive(Clone)]
pub struct ServingCertificate {
    /// The certificate, as PEM.
    pub certificate: String,
    /// The private key, as PEM.
    pub key: String,
    /// The authority, as PEM.
    pub authority: String,
    /// When the certificate is due for replacement.
    pub renewal: OffsetDateTime,
}

impl ServingCertificate {
    /// Issues a certificate for these DNS names and IP addresses.
    ///
    /// # Errors
    /// A name cannot be in a certificate.
    pub fn issue(names: &BTreeSet<String>, now: OffsetDateTime, policy: &Policy) -> Result<Self, IssueError> {
        let pair = issue::issue(names, now, policy)?;
        Ok(Self {
            certificate: pair.certificate.pem(),
            key: pair.key().to_owned(),
            authority: pair.authority.pem(),
            renewal: policy.renewal(pair.certificate.not_before, pair.certificate.not_after),
        })
    }
}
