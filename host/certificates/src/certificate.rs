//! Parses certificates.

use std::{collections::BTreeSet, fmt, net::IpAddr};

use pem::{EncodeConfig, LineEnding, Pem};
use time::OffsetDateTime;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

/// The PEM label of a certificate.
const LABEL: &str = "CERTIFICATE";

/// A parsed certificate.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Certificate {
    der: Vec<u8>,
    pub(crate) not_before: OffsetDateTime,
    pub(crate) not_after: OffsetDateTime,
    /// The DNS names and IP addresses that it is valid for.
    pub(crate) names: BTreeSet<String>,
    /// The bits of its public key.
    pub(crate) public_key: Vec<u8>,
    /// Whether it may sign other certificates.
    pub(crate) is_authority: bool,
    /// Whether its extended key usage has client authentication.
    pub(crate) is_for_clients: bool,
}

impl fmt::Debug for Certificate {
    /// Certificates are public, but their bytes are useless in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { not_before, not_after, names, is_authority, .. } = self;
        write!(f, "Certificate({names:?}, {not_before} to {not_after}, authority: {is_authority})")
    }
}

impl Certificate {
    /// Parses DER. Returns `None` if it is not a certificate.
    pub(crate) fn read(der: Vec<u8>) -> Option<Self> {
        let (rest, parsed) = X509Certificate::from_der(&der).ok()?;
        if !rest.is_empty() {
            return None;
        }
        let names = match parsed.subject_alternative_name().ok()? {
            Some(names) => names.value.general_names.iter().filter_map(name).collect(),
            None => BTreeSet::new(),
        };
        let time = |time: i64| OffsetDateTime::from_unix_timestamp(time).ok();
        let validity = parsed.validity();
        let usage = parsed.extended_key_usage().ok().flatten();
        Some(Self {
            not_before: time(validity.not_before.timestamp())?,
            not_after: time(validity.not_after.timestamp())?,
            names,
            public_key: parsed.public_key().subject_public_key.data.to_vec(),
            is_authority: parsed.is_ca(),
            is_for_clients: usage.is_some_and(|usage| usage.value.client_auth),
            der,
        })
    }

    /// All certificates of a PEM text; those that cannot be parsed are left out.
    pub(crate) fn read_all(text: &[u8]) -> Vec<Self> {
        let parts = pem::parse_many(text).unwrap_or_default();
        parts
            .into_iter()
            .filter(|part| part.tag() == LABEL)
            .filter_map(|part| Self::read(part.into_contents()))
            .collect()
    }

    /// The certificate as PEM; the same certificate always gives the same text.
    pub(crate) fn pem(&self) -> String {
        encode(LABEL, &self.der)
    }

    pub(crate) fn is_valid_at(&self, now: OffsetDateTime) -> bool {
        self.not_before <= now && now < self.not_after
    }

    /// Whether this authority signed it.
    pub(crate) fn is_signed_by(&self, authority: &Self) -> bool {
        let parse = |der| X509Certificate::from_der(der).ok().map(|(_, parsed)| parsed);
        let (Some(own), Some(other)) = (parse(&self.der), parse(&authority.der)) else { return false };
        authority.is_authority
            && own.issuer() == other.subject()
            && own.verify_signature(Some(other.public_key())).is_ok()
    }
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(address) => match address.len() {
            4 => <[u8; 4]>::try_from(*address).ok().map(|address| IpAddr::from(address).to_string()),
            _ => <[u8; 16]>::try_from(*address).ok().map(|address| IpAddr::from(address).to_string()),
        },
        _ => None,
    }
}

/// PEM with line feeds on every platform.
pub(crate) fn encode(label: &str, der: &[u8]) -> String {
    pem::encode_config(&Pem::new(label, der), EncodeConfig::new().set_line_ending(LineEnding::LF))
}
