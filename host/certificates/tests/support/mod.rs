//! Shared by the tests: an independent verifier.

use std::{sync::Arc, time::Duration};

use rustls::{
    RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier as _},
    crypto::ring,
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject as _},
};
use time::OffsetDateTime;

/// Whether a client with these authorities accepts the certificate for a server name at this time.
pub(crate) fn accepts(authorities: &str, certificate: &str, name: &str, now: OffsetDateTime) -> bool {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(authorities.as_bytes()) {
        roots.add(authority.unwrap()).unwrap();
    }
    if roots.is_empty() {
        return false;
    }
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let now = UnixTime::since_unix_epoch(Duration::from_secs(now.unix_timestamp().try_into().unwrap()));
    let name = ServerName::try_from(name.to_owned()).unwrap();
    verifier.verify_server_cert(&certificate, &[], &name, &[], now).is_ok()
}
