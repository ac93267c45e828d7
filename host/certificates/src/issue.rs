//! Issues keys and certificates.

use std::collections::BTreeSet;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use time::OffsetDateTime;

use crate::{certificate::Certificate, policy::Policy, stored::Pair};

/// The longest common name, in bytes (`ub-common-name` of RFC 5280, appendix A.1).
const COMMON_NAME_BYTES: usize = 64;

/// A certificate could not be issued.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to issue a certificate for {name}: {problem}")]
pub struct IssueError {
    /// The first name that it was for.
    name: String,
    /// The error.
    problem: String,
}

/// Issues a key and a certificate for these names, signed by a new authority that will never sign another one.
pub(crate) fn issue(names: &BTreeSet<String>, now: OffsetDateTime, policy: &Policy) -> Result<Pair, IssueError> {
    let name = names.first().cloned().unwrap_or_default();
    let failed = |problem: String| IssueError { name: name.clone(), problem };
    sign(names, now, policy)
        .map_err(|error| failed(error.to_string()))?
        .ok_or_else(|| failed("the issued certificate cannot be parsed".into()))
}

fn sign(names: &BTreeSet<String>, now: OffsetDateTime, policy: &Policy) -> Result<Option<Pair>, rcgen::Error> {
    let begin = now.saturating_sub(policy.backdate);
    let end = now.saturating_add(policy.lifetime);

    let authority_key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let mut authority = CertificateParams::default();
    (authority.not_before, authority.not_after) = (begin, end);
    // It may sign only end-entity certificates, no further authorities.
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    // Verifiers find an issuer by its name, so each authority has a unique one.
    let identifier = authority.key_identifier(&authority_key);
    authority.distinguished_name = named(&format!("chandler authority {}", short_hex(&identifier)));
    let authority_certificate = authority.self_signed(&authority_key)?;
    let issuer = Issuer::new(authority, authority_key);

    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let mut leaf = CertificateParams::new(names.iter().cloned().collect::<Vec<_>>())?;
    (leaf.not_before, leaf.not_after) = (begin, end);
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    if policy.for_clients {
        leaf.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
    }
    leaf.use_authority_key_identifier_extension = true;
    // Verifiers check only the alternative names; the common name is informational.
    let common = names.iter().find(|name| name.len() <= COMMON_NAME_BYTES);
    leaf.distinguished_name = named(common.map_or("chandler serving certificate", String::as_str));
    let leaf = leaf.signed_by(&key, &issuer)?;

    let certificate = Certificate::read(leaf.der().to_vec());
    let authority = Certificate::read(authority_certificate.der().to_vec());
    Ok(certificate.zip(authority).map(|(certificate, authority)| Pair::new(certificate, authority, &key)))
}

fn named(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

fn short_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().take(8).fold(String::new(), |mut text, byte| {
        // Writing into a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;
    use x509_parser::prelude::{FromDer as _, X509Certificate};

    use super::*;

    fn names() -> BTreeSet<String> {
        BTreeSet::from(["a.n".to_owned(), "a.n.svc".to_owned()])
    }

    #[test]
    fn a_certificate_is_accepted_and_its_authority_signs_nothing_else() {
        let now = datetime!(2026-01-01 0:00 UTC);
        let pair = issue(&names(), now, &Policy::default()).unwrap();
        assert_eq!(pair.certificate.names, names());
        assert_eq!(pair.certificate.not_before, now - Policy::default().backdate);
        assert_eq!(pair.certificate.not_after, now + Policy::default().lifetime);
        assert!(pair.certificate.is_signed_by(&pair.authority) && pair.authority.is_signed_by(&pair.authority));
        assert!(pair.authority.is_authority && !pair.certificate.is_authority);

        let (leaf, authority) = (pair.certificate.pem(), pair.authority.pem());
        let (leaf, authority) = (pem::parse(leaf).unwrap(), pem::parse(authority).unwrap());
        let (_, leaf) = X509Certificate::from_der(leaf.contents()).unwrap();
        let usage = leaf.extended_key_usage().unwrap().unwrap().value;
        assert!(usage.server_auth && !usage.client_auth && !usage.any);
        assert!(leaf.key_usage().unwrap().unwrap().value.digital_signature());
        let (_, authority) = X509Certificate::from_der(authority.contents()).unwrap();
        assert_eq!(authority.basic_constraints().unwrap().unwrap().value.path_len_constraint, Some(0));
        assert!(authority.key_usage().unwrap().unwrap().value.key_cert_sign());
    }

    #[test]
    fn a_certificate_of_a_peer_is_for_clients_and_has_addresses() {
        let names = BTreeSet::from(["127.0.0.1".to_owned(), "::1".to_owned(), "*.a.n".to_owned(), "a".to_owned()]);
        let policy = Policy { for_clients: true, ..Policy::default() };
        let pair = issue(&names, datetime!(2026-01-01 0:00 UTC), &policy).unwrap();
        assert_eq!(pair.certificate.names, names);
        let leaf = pem::parse(pair.certificate.pem()).unwrap();
        let (_, leaf) = X509Certificate::from_der(leaf.contents()).unwrap();
        let usage = leaf.extended_key_usage().unwrap().unwrap().value;
        assert!(usage.server_auth && usage.client_auth && !usage.any);
    }

    #[test]
    fn certificates_are_unique() {
        let now = datetime!(2026-01-01 0:00 UTC);
        let issue = || issue(&names(), now, &Policy::default()).unwrap();
        let (one, other) = (issue(), issue());
        assert_ne!(one.key(), other.key());
        assert_ne!(one.authority, other.authority);
        assert!(!one.certificate.is_signed_by(&other.authority));
    }

    #[test]
    fn a_long_name_is_not_used_as_common_name() {
        let long = BTreeSet::from([format!("{}.{}.svc", "a".repeat(63), "b".repeat(63))]);
        let pair = issue(&long, datetime!(2060-01-01 0:00 UTC), &Policy::default()).unwrap();
        assert_eq!(pair.certificate.names, long);
    }

    #[test]
    fn invalid_names_are_rejected() {
        let odd = BTreeSet::from(["ä".to_owned()]);
        let error = issue(&odd, datetime!(2026-01-01 0:00 UTC), &Policy::default()).unwrap_err();
        assert!(error.to_string().starts_with("failed to issue a certificate for ä: "), "{error}");
    }

    #[test]
    fn keys_are_not_logged() {
        let pair = issue(&names(), datetime!(2026-01-01 0:00 UTC), &Policy::default()).unwrap();
        let (_, secret) = pair.key().split_once('\n').unwrap();
        let shown = format!("{pair:?}");
        assert!(!shown.contains("PRIVATE") && !shown.contains(secret.lines().next().unwrap()), "{shown}");
    }
}
