//! The certificate of the server: generated here, or from a Secret.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use chandler_certificates::{Policy, ServingCertificate};
use chandler_tls::TlsSettings;
use futures::{
    Stream, StreamExt as _,
    stream::{self, BoxStream},
};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client,
    runtime::{WatchStreamExt as _, watcher},
};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use time::OffsetDateTime;

/// How long after a failure a certificate is made again.
const RETRY: Duration = Duration::from_mins(1);

/// A certificate to serve.
pub(crate) struct Served {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    /// The authority by which clients trust it, if it is not one of the system.
    pub(crate) authority: Option<String>,
}

impl Served {
    /// The certificates of a chain and their key, both in PEM.
    fn new(certificate: &[u8], key: &[u8], authority: Option<String>) -> Result<Self, Unusable> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
        let chain = chain.map_err(|_| Unusable::Pem("tls.crt"))?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| Unusable::Pem("tls.key"))?;
        let served = Self { chain, key, authority };
        // A key of another certificate is found here, and not when it is served.
        served.config(&TlsSettings::default())?;
        Ok(served)
    }

    /// How connections with this certificate are served.
    ///
    /// # Errors
    /// The key does not belong to the certificate.
    pub(crate) fn config(&self, tls: &TlsSettings) -> Result<Arc<ServerConfig>, rustls::Error> {
        let builder = ServerConfig::builder_with_provider(tls.provider()).with_safe_default_protocol_versions()?;
        let mut config = builder.with_no_client_auth().with_single_cert(self.chain.clone(), self.key.clone_key())?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// A certificate cannot be served.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error("{0}")]
    Issue(#[from] chandler_certificates::IssueError),
    #[error("{0} is not a valid PEM file")]
    Pem(&'static str),
    #[error("it has no key {0}")]
    Missing(&'static str),
    #[error("{0}")]
    Tls(#[from] rustls::Error),
}

/// The certificates of a service: from a Secret of this namespace if one is named, and made for these names otherwise. `what` is what is
/// served, for the log.
pub(crate) fn of_service(
    what: &'static str,
    client: &Client,
    namespace: &str,
    secret: Option<&str>,
    names: BTreeSet<String>,
) -> BoxStream<'static, Served> {
    match secret {
        Some(secret) => of_secret(what, Api::namespaced(client.clone(), namespace), secret.to_owned()).boxed(),
        None => made(what, names).boxed(),
    }
}

/// Certificates for these names: one now, and another before that one expires.
pub(crate) fn made(what: &'static str, names: BTreeSet<String>) -> impl Stream<Item = Served> + Send {
    let first = OffsetDateTime::now_utc();
    stream::unfold((names, first), move |(names, mut due)| async move {
        loop {
            tokio::time::sleep(Duration::try_from(due - OffsetDateTime::now_utc()).unwrap_or_default()).await;
            match make(&names) {
                Ok((served, renewal)) => return Some((served, (names, renewal))),
                Err(error) => tracing::warn!(%error, "a certificate for {what} could not be made"),
            }
            due = OffsetDateTime::now_utc() + RETRY;
        }
    })
}

fn make(names: &BTreeSet<String>) -> Result<(Served, OffsetDateTime), Unusable> {
    let made = ServingCertificate::issue(names, OffsetDateTime::now_utc(), &Policy::default())?;
    Ok((Served::new(made.certificate.as_bytes(), made.key.as_bytes(), Some(made.authority))?, made.renewal))
}

/// The certificates of a Secret of type `kubernetes.io/tls`, as it changes. Its key `ca.crt` has the authority, if the system does not
/// know it.
fn of_secret(what: &'static str, api: Api<Secret>, name: String) -> impl Stream<Item = Served> + Send {
    let selected = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let secrets = watcher(api, selected).default_backoff().applied_objects();
    secrets.filter_map(move |secret| {
        let served = usable(what, &name, secret);
        async move { served }
    })
}

/// The certificate of a Secret as it was read, if it can be served.
fn usable(what: &'static str, name: &str, secret: Result<Secret, watcher::Error>) -> Option<Served> {
    let served = match secret {
        Ok(secret) => read(&secret).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    if let Err(error) = &served {
        tracing::warn!(secret = name, error, "the certificate for {what} is not usable");
    }
    served.ok()
}

fn read(secret: &Secret) -> Result<Served, Unusable> {
    let data = secret.data.as_ref();
    let value = |key: &'static str| data.and_then(|data| data.get(key)).map(|value| value.0.as_slice());
    let certificate = value("tls.crt").ok_or(Unusable::Missing("tls.crt"))?;
    let key = value("tls.key").ok_or(Unusable::Missing("tls.key"))?;
    let authority = value("ca.crt").map(|text| String::from_utf8(text.to_vec()).map_err(|_| Unusable::Pem("ca.crt")));
    Served::new(certificate, key, authority.transpose()?)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    #[tokio::test]
    async fn a_certificate_is_made_at_once() {
        let names = BTreeSet::from(["localhost".to_owned(), "127.0.0.1".to_owned()]);
        let mut made = std::pin::pin!(made("content", names));
        let served = made.next().await.unwrap();
        assert!(served.authority.unwrap().contains("BEGIN CERTIFICATE"));
    }

    #[test]
    fn the_log_names_what_has_no_certificate() {
        let lines = crate::logged::during(|| assert!(usable("webhooks", "hooks", Ok(Secret::default())).is_none()));
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(
            lines[0].contains("the certificate for webhooks is not usable") && lines[0].contains("tls.crt"),
            "{lines:?}"
        );
        assert!(!lines[0].contains("content"), "{lines:?}");
    }

    #[test]
    fn a_secret_without_a_certificate_is_refused() {
        let names = BTreeSet::from(["localhost".to_owned()]);
        let made = ServingCertificate::issue(&names, OffsetDateTime::now_utc(), &Policy::default()).unwrap();
        let of = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())));
            read(&Secret { data: Some(pairs.collect()), ..Secret::default() })
        };
        let whole = of(&[("tls.crt", &made.certificate), ("tls.key", &made.key)]).unwrap();
        assert_eq!(whole.authority, None);
        for (pairs, expected) in [
            (vec![], "it has no key tls.crt"),
            (vec![("tls.crt", made.certificate.as_str())], "it has no key tls.key"),
            (vec![("tls.crt", "x"), ("tls.key", &made.key)], ""),
            (vec![("tls.crt", &made.certificate), ("tls.key", "x")], "tls.key is not a valid PEM file"),
        ] {
            let Err(error) = of(&pairs) else { panic!("{pairs:?}") };
            assert!(error.to_string().contains(expected) && !error.to_string().contains("PRIVATE"), "{error}");
        }
    }
}
