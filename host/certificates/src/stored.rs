//! A parsed Secret with a certificate.
//!
//! | key | holds |
//! |---|---|
//! | `tls.crt`, `tls.key` | the served certificate and its key |
//! | `ca.crt` | all trusted authorities, newest first |
//! | `next.crt`, `next.key` | the announced certificate, which is not served yet, and its key |

use std::{collections::BTreeSet, fmt};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{KeyPair, PublicKeyData as _};
use serde_json::Value;
use time::OffsetDateTime;

use crate::{annotations::REQUEST, certificate::Certificate};

/// The served certificate, under the key that the Secret type `kubernetes.io/tls` requires.
pub(crate) const CERTIFICATE: &str = "tls.crt";
/// Its key.
pub(crate) const KEY: &str = "tls.key";
/// The trusted authorities.
pub(crate) const AUTHORITIES: &str = "ca.crt";
/// The announced certificate.
pub(crate) const NEXT_CERTIFICATE: &str = "next.crt";
/// Its key.
pub(crate) const NEXT_KEY: &str = "next.key";

/// The largest entry that is read, in bytes. Entries written by this crate are below ten thousand.
const MAX_ENTRY_BYTES: usize = 64 << 10;

/// A certificate with its key and its authority.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) certificate: Certificate,
    pub(crate) authority: Certificate,
    key: String,
}

impl fmt::Debug for Pair {
    /// Leaves out the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl Pair {
    pub(crate) fn new(certificate: Certificate, authority: Certificate, key: &KeyPair) -> Self {
        Self { certificate, authority, key: key.serialize_pem() }
    }

    /// The private key as PEM.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Parses a certificate with its key; its authority must be among `authorities`.
    fn read(certificate: Option<&[u8]>, key: Option<&[u8]>, authorities: &[Certificate]) -> Result<Self, Unusable> {
        let (Some(certificate), Some(key)) = (certificate, key) else { return Err(Unusable::Incomplete) };
        let mut certificates = Certificate::read_all(certificate);
        let certificate = if certificates.len() == 1 { certificates.pop() } else { None };
        let certificate = certificate.ok_or(Unusable::UnreadableCertificate)?;
        let key = str::from_utf8(key).map_err(|_| Unusable::UnreadableKey)?;
        // The error is dropped, since it might quote the key.
        let pair = KeyPair::from_pem(key).map_err(|_| Unusable::UnreadableKey)?;
        if pair.der_bytes() != certificate.public_key {
            return Err(Unusable::KeyOfAnother);
        }
        let authority = authorities.iter().find(|authority| certificate.is_signed_by(authority));
        let authority = authority.cloned().ok_or(Unusable::UnknownAuthority)?;
        Ok(Self { certificate, authority, key: key.to_owned() })
    }

    /// Why the certificate cannot be used for these names at this time, and by clients if `for_clients` is true, if it cannot.
    pub(crate) fn fault(&self, names: &BTreeSet<String>, for_clients: bool, now: OffsetDateTime) -> Option<Unusable> {
        if !self.certificate.is_valid_at(now) || !self.authority.is_valid_at(now) {
            return Some(Unusable::NotValid);
        }
        if let Some(missing) = names.difference(&self.certificate.names).next() {
            return Some(Unusable::NameMissing(missing.clone()));
        }
        (for_clients && !self.certificate.is_for_clients).then_some(Unusable::NotForClients)
    }
}

/// Why the certificate in a Secret cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// The Secret lacks a certificate or a key.
    #[error("the Secret lacks a certificate or a key")]
    Incomplete,
    /// The certificate cannot be parsed.
    #[error("the certificate cannot be parsed")]
    UnreadableCertificate,
    /// The key cannot be parsed.
    #[error("the key cannot be parsed")]
    UnreadableKey,
    /// The key does not match the certificate.
    #[error("the key does not match the certificate")]
    KeyOfAnother,
    /// No authority in the Secret signed the certificate.
    #[error("the certificate is not signed by any authority in the Secret")]
    UnknownAuthority,
    /// The certificate has expired, or is not valid yet.
    #[error("the certificate has expired or is not valid yet")]
    NotValid,
    /// The certificate is not valid for this name.
    #[error("the certificate is not valid for {0}")]
    NameMissing(String),
    /// The certificate is for servers only, and clients need it, too.
    #[error("the certificate is not for clients")]
    NotForClients,
}

/// A parsed Secret. Every Secret can be parsed, whatever it contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub(crate) served: Result<Pair, Unusable>,
    /// The announced pair, or `None` if it cannot be parsed.
    pub(crate) next: Option<Pair>,
    pub(crate) authorities: Vec<Certificate>,
    /// The last rotation request that was handled.
    pub(crate) request: Option<String>,
}

impl Stored {
    /// Parses a Secret as the API server returns it.
    pub fn read(secret: &Value) -> Self {
        let entry = |name: &str| {
            let text = secret.get("data")?.get(name)?.as_str().filter(|text| text.len() <= MAX_ENTRY_BYTES)?;
            STANDARD.decode(text).ok()
        };
        let mut authorities = entry(AUTHORITIES).map(|text| Certificate::read_all(&text)).unwrap_or_default();
        authorities.retain(|authority| authority.is_authority);
        let pair = |certificate, key| Pair::read(entry(certificate).as_deref(), entry(key).as_deref(), &authorities);
        let request = secret.get("metadata").and_then(|metadata| metadata.get("annotations")?.get(REQUEST)?.as_str());
        Self {
            served: pair(CERTIFICATE, KEY),
            next: pair(NEXT_CERTIFICATE, NEXT_KEY).ok(),
            request: request.map(str::to_owned),
            authorities,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use time::{Duration, macros::datetime};

    use super::*;
    use crate::{issue::issue, policy::Policy};

    const NOW: OffsetDateTime = datetime!(2026-01-01 0:00 UTC);

    fn names() -> BTreeSet<String> {
        BTreeSet::from(["a.n.svc".to_owned()])
    }

    fn secret(served: &Pair, key: &str, authorities: &[&Pair]) -> Value {
        let authorities: String = authorities.iter().map(|pair| pair.authority.pem()).collect();
        json!({"data": {
            CERTIFICATE: STANDARD.encode(served.certificate.pem()),
            KEY: STANDARD.encode(key),
            AUTHORITIES: STANDARD.encode(authorities),
        }})
    }

    #[test]
    fn a_secret_round_trips() {
        let pair = issue(&names(), NOW, &Policy::default()).unwrap();
        let stored = Stored::read(&secret(&pair, pair.key(), &[&pair]));
        assert_eq!(stored.authorities, std::slice::from_ref(&pair.authority));
        assert_eq!((stored.served, stored.next, stored.request), (Ok(pair), None, None));
    }

    #[test]
    fn unusable_certificates_are_reported() {
        let issue = || issue(&names(), NOW, &Policy::default()).unwrap();
        let (pair, other) = (issue(), issue());
        let whole = || secret(&pair, pair.key(), &[&pair]);
        let with = |name: &str, value: Value| {
            let mut secret = whole();
            secret["data"][name] = value;
            secret
        };
        for (secret, want) in [
            (json!({}), Unusable::Incomplete),
            (json!({"data": []}), Unusable::Incomplete),
            (with(KEY, json!("not base64!")), Unusable::Incomplete),
            (with(KEY, json!("A".repeat(1 << 20))), Unusable::Incomplete),
            (with(CERTIFICATE, json!("")), Unusable::UnreadableCertificate),
            (with(CERTIFICATE, json!(STANDARD.encode(pair.key()))), Unusable::UnreadableCertificate),
            (with(KEY, json!("AAAA")), Unusable::UnreadableKey),
            (with(KEY, json!(STANDARD.encode(pair.certificate.pem()))), Unusable::UnreadableKey),
            (secret(&pair, other.key(), &[&pair]), Unusable::KeyOfAnother),
            (secret(&pair, pair.key(), &[&other]), Unusable::UnknownAuthority),
            (with(AUTHORITIES, json!(STANDARD.encode(pair.certificate.pem()))), Unusable::UnknownAuthority),
        ] {
            assert_eq!(Stored::read(&secret).served, Err(want), "{secret}");
        }
    }

    #[test]
    fn a_pair_is_usable_for_its_names_and_validity() {
        let pair = issue(&names(), NOW, &Policy::default()).unwrap();
        let end = NOW + Policy::default().lifetime;
        let more = BTreeSet::from(["a.n.svc".to_owned(), "b.n.svc".to_owned()]);
        for (names, now, want) in [
            (names(), NOW, None),
            (names(), end - Duration::SECOND, None),
            (names(), end, Some(Unusable::NotValid)),
            (names(), NOW - Duration::days(1), Some(Unusable::NotValid)),
            (more, NOW, Some(Unusable::NameMissing("b.n.svc".into()))),
            (BTreeSet::new(), NOW, None),
        ] {
            assert_eq!(pair.fault(&names, false, now), want, "{names:?} {now}");
        }
        assert_eq!(pair.fault(&names(), true, NOW), Some(Unusable::NotForClients));
        let for_clients = issue(&names(), NOW, &Policy { for_clients: true, ..Policy::default() }).unwrap();
        for clients in [true, false] {
            assert_eq!(for_clients.fault(&names(), clients, NOW), None);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_secret_can_be_read(entries in proptest::collection::btree_map("(tls|next|ca)\\.(crt|key)", "\\PC{0,200}", 0..6)) {
            let data: serde_json::Map<String, Value> = entries
                .into_iter()
                .flat_map(|(name, text)| [(name.clone(), json!(STANDARD.encode(&text))), (format!("{name}x"), json!(text))])
                .collect();
            Stored::read(&json!({"data": data}));
        }
    }
}
