//! Issues the TLS certificate of a registry.

use std::{net::IpAddr, sync::Arc};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};

use crate::StartError;

/// The TLS configuration of the server, and the PEM certificate authority that clients must trust.
pub(crate) fn server(address: IpAddr) -> Result<(Arc<ServerConfig>, String), StartError> {
    let failed = |error: &dyn std::fmt::Display| StartError::Tls(error.to_string());
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(DnType::CommonName, "chandler development registry");
    let authority_key = KeyPair::generate().map_err(|error| failed(&error))?;
    let authority = CertifiedIssuer::self_signed(authority, authority_key).map_err(|error| failed(&error))?;
    let mut leaf = CertificateParams::new(vec!["localhost".to_owned()]).map_err(|error| failed(&error))?;
    leaf.subject_alt_names.push(SanType::IpAddress(address));
    let leaf_key = KeyPair::generate().map_err(|error| failed(&error))?;
    let leaf = leaf.signed_by(&leaf_key, &authority).map_err(|error| failed(&error))?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(leaf_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .map_err(|error| failed(&error))?;
    Ok((Arc::new(config), authority.pem()))
}
