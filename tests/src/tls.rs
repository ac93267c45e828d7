//! Checks whether a client that trusts certain CAs accepts a server, with a real TLS handshake in memory.

use std::{io, sync::Arc};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
};

/// What a server needs for TLS, as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its certificate.
    pub certificate: Vec<u8>,
    /// Its key.
    pub key: Vec<u8>,
}

/// Runs the handshake. The error says which side refused and why. `authorities` is PEM, as in a `caBundle`.
pub fn handshake(server: &Identity, authorities: &[u8], name: &str) -> Result<(), String> {
    let provider = Arc::new(ring::default_provider());
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(authorities) {
        roots.add(authority.map_err(text)?).map_err(text)?;
    }
    let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(text)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).map_err(text)?;
    let mut client = ClientConnection::new(Arc::new(client), name).map_err(text)?;

    let chain = CertificateDer::pem_slice_iter(&server.certificate).collect::<Result<Vec<_>, _>>().map_err(text)?;
    let key = PrivateKeyDer::from_pem_slice(&server.key).map_err(text)?;
    let server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(text)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(text)?;
    let mut server = ServerConnection::new(Arc::new(server)).map_err(text)?;

    while client.is_handshaking() || server.is_handshaking() {
        let mut wire = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut wire).map_err(text)?;
        }
        feed(&wire, |bytes| server.read_tls(bytes))?;
        server.process_new_packets().map_err(|error| format!("the server refuses: {error}"))?;
        let mut wire = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut wire).map_err(text)?;
        }
        feed(&wire, |bytes| client.read_tls(bytes))?;
        client.process_new_packets().map_err(|error| format!("the client refuses: {error}"))?;
    }
    Ok(())
}

fn feed(wire: &[u8], mut read: impl FnMut(&mut dyn io::Read) -> io::Result<usize>) -> Result<(), String> {
    let mut wire = wire;
    while !wire.is_empty() {
        read(&mut wire).map_err(text)?;
    }
    Ok(())
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
