//! Certificates for keys: Fulcio, and the log of certificates (RFC 6962).

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CustomExtension, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData as _, SanType, SerialNumber, SigningKey as _,
};
use sha2::{Digest as _, Sha256};
use time::{Duration, OffsetDateTime};
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// The list of promises of the log of certificates, 1.3.6.1.4.1.11129.2.4.2.
const PROMISES: &[u64] = &[1, 3, 6, 1, 4, 1, 11129, 2, 4, 2];
/// The extensions of Fulcio.
const FULCIO: &[u64] = &[1, 3, 6, 1, 4, 1, 57264, 1];

/// Whom a certificate is for.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The issuer of the token.
    pub issuer: String,
    /// The subject: an email address, or a URI.
    pub subject: String,
    /// Whether the subject is called an email address, even if it reads like a URI.
    pub is_email: bool,
    /// Further claims: the last number of the identifier of Fulcio's extension, and its text.
    pub claims: Vec<(u64, String)>,
    /// When the certificate begins to be valid. It is valid for ten minutes.
    pub from: OffsetDateTime,
    /// Whether the log of certificates has it.
    pub is_logged: bool,
}

impl Identity {
    /// An identity whose certificate is valid now.
    pub fn new(issuer: &str, subject: &str) -> Self {
        let from = OffsetDateTime::now_utc() - Duration::minutes(5);
        let is_email = !subject.contains("://");
        let (issuer, subject) = (issuer.to_owned(), subject.to_owned());
        Self { issuer, subject, is_email, claims: Vec::new(), from, is_logged: true }
    }

    /// A workflow of GitHub Actions in a repository (`owner/name`).
    pub fn github(repository: &str, reference: &str) -> Self {
        let uri = format!("https://github.com/{repository}");
        let workflow = format!("{uri}/.github/workflows/release.yaml@{reference}");
        let claims = vec![(12, uri), (14, reference.to_owned())];
        Self { claims, ..Self::new("https://token.actions.githubusercontent.com", &workflow) }
    }
}

pub(crate) struct Fulcio {
    authority: CertifiedIssuer<'static, KeyPair>,
    log: KeyPair,
}

impl Fulcio {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, "fulcio");
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let authority = CertifiedIssuer::self_signed(params, key).unwrap();
        Self { authority, log: KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap() }
    }

    pub(crate) fn authority(&self) -> Vec<u8> {
        self.authority.der().to_vec()
    }

    pub(crate) fn log_key(&self) -> &KeyPair {
        &self.log
    }

    /// The certificate of a key, as DER.
    pub(crate) fn certify(&self, key: &KeyPair, identity: &Identity) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.serial_number = Some(SerialNumber::from_slice(&Sha256::digest(key.subject_public_key_info())[..16]));
        params.distinguished_name = rcgen::DistinguishedName::new();
        (params.not_before, params.not_after) = (identity.from, identity.from + Duration::minutes(10));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
        let subject = identity.subject.clone().try_into().unwrap();
        let name = if identity.is_email { SanType::Rfc822Name } else { SanType::URI };
        params.subject_alt_names = vec![name(subject)];
        let issuer = [(8, identity.issuer.clone())];
        for (number, text) in issuer.into_iter().chain(identity.claims.clone()) {
            let oid = [FULCIO, &[number]].concat();
            params.custom_extensions.push(CustomExtension::from_oid_content(&oid, der(0x0c, text.as_bytes())));
        }
        let without_promise = params.signed_by(key, &self.authority).unwrap();
        if !identity.is_logged {
            return without_promise.der().to_vec();
        }
        let (_, parsed) = X509Certificate::from_der(without_promise.der()).unwrap();
        let promise = self.promise(parsed.tbs_certificate.as_ref());
        let list = der(0x04, &sized(&sized(&promise)));
        params.custom_extensions.push(CustomExtension::from_oid_content(PROMISES, list));
        params.signed_by(key, &self.authority).unwrap().der().to_vec()
    }

    /// The promise of the log to have a certificate (RFC 6962 §3.2).
    fn promise(&self, certificate: &[u8]) -> Vec<u8> {
        let time = u64::try_from(OffsetDateTime::now_utc().unix_timestamp()).unwrap() * 1000;
        let issuer = Sha256::digest(self.authority.key().subject_public_key_info());
        let length = u32::try_from(certificate.len()).unwrap().to_be_bytes();
        let entry = [&[0, 0][..], &time.to_be_bytes(), &[0, 1], &issuer, &length[1..], certificate, &[0, 0]].concat();
        let signature = self.log.sign(&entry).unwrap();
        let log = Sha256::digest(self.log.subject_public_key_info());
        [&[0][..], &log, &time.to_be_bytes(), &[0, 0], &[4, 3], &sized(&signature)].concat()
    }
}

/// Bytes after their length in two bytes.
fn sized(bytes: &[u8]) -> Vec<u8> {
    [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
}

/// A value of ASN.1 in DER.
fn der(tag: u8, bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len();
    let header = match u8::try_from(length) {
        Ok(short @ ..0x80) => vec![tag, short],
        Ok(long) => vec![tag, 0x81, long],
        Err(_) => [&[tag, 0x82][..], &u16::try_from(length).unwrap().to_be_bytes()].concat(),
    };
    [header, bytes.to_vec()].concat()
}
