//! The certificates of the system.

use rustls::RootCertStore;

/// The certificates that the system trusts, read from its files. Files that cannot be read and certificates that cannot be parsed are logged and left out.
pub fn system_roots() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "certificates of the system could not be read");
    }
    let mut roots = RootCertStore::empty();
    let (_, ignored) = roots.add_parsable_certificates(found.certs);
    if ignored > 0 {
        tracing::debug!(ignored, "certificates of the system could not be parsed");
    }
    roots
}
