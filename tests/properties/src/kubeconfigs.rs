//! Kubeconfigs of other clusters, which tenants write.

use std::net::IpAddr;

use chandler_client::{TargetRules, target_config};
use chandler_core::reach::{Reach, reach};

use crate::memory;

/// A few copies of the text, as a document and as JSON.
const FIXED: usize = 1 << 20;
const PER_BYTE: usize = 1000;

/// A kubeconfig makes a client that runs no program, reads no file and skips no check, or is refused in a message that repeats nothing of it.
pub(crate) fn holds(input: &[u8]) {
    memory::bounded(input, FIXED, PER_BYTE, || {
        for allow_loopback in [false, true] {
            let config = match target_config(input, TargetRules { allow_loopback }) {
                Ok(config) => config,
                Err(error) => {
                    let message = error.to_string();
                    assert!(
                        message.len() < 300 && message.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
                        "{message}"
                    );
                    continue;
                }
            };
            let server = &config.cluster_url;
            assert_eq!(server.scheme_str(), Some("https"));
            let host = server.host().expect("a host").trim_start_matches('[').trim_end_matches(']');
            let nearest = if allow_loopback { Reach::Loopback } else { Reach::Private };
            let literal = host.parse::<IpAddr>().ok();
            assert!(literal.is_none_or(|address| reach(address) <= nearest), "a near address");
            assert!(server.authority().is_some_and(|of| !of.as_str().contains('@')), "credentials in the URL");
            let auth = &config.auth_info;
            assert!(auth.exec.is_none() && auth.auth_provider.is_none(), "a program");
            assert!(
                auth.token_file.is_none() && auth.client_certificate.is_none() && auth.client_key.is_none(),
                "a file"
            );
            assert!(auth.impersonate.is_none() && auth.impersonate_groups.is_none(), "another user");
            assert!(auth.username.is_none() && auth.password.is_none(), "a password");
            assert!(config.proxy_url.is_none() && config.root_cert_file.is_none() && !config.accept_invalid_certs);
            assert!(auth.token.is_some() || auth.client_certificate_data.is_some(), "credentials of its own");
        }
    });
}
