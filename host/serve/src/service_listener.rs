//! An address behind a Service of its own, for the metrics or for webhooks.

use std::{
    future::Future,
    net::{SocketAddr, TcpListener},
};

use axum::Router;
use chandler_tls::TlsSettings;
use kube::Client;
use tokio::sync::watch;

use crate::{ServeError, certificate, https, server};

/// Where something is served behind a Service of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceOptions {
    /// The address to listen on.
    pub address: SocketAddr,
    /// The name of the Service of the cluster in front of it, for the certificate.
    pub service: String,
    /// A Secret of type `kubernetes.io/tls` in the system namespace. Default: certificates are made.
    pub tls_secret: Option<String>,
}

/// A bound address, on which nothing is served yet.
#[derive(Debug)]
pub(crate) struct ServiceListener {
    /// What is served, for messages and the log.
    what: &'static str,
    pub(crate) socket: TcpListener,
    options: ServiceOptions,
    namespace: String,
}

impl ServiceListener {
    /// Binds the address. `namespace` is the system namespace.
    ///
    /// # Errors
    /// The address is in use, or may not be used.
    pub(crate) fn bind(what: &'static str, options: ServiceOptions, namespace: &str) -> Result<Self, ServeError> {
        Ok(Self { what, socket: server::bind(what, options.address)?, options, namespace: namespace.to_owned() })
    }

    /// The address that is bound.
    ///
    /// # Errors
    /// The system does not say.
    pub(crate) fn address(&self) -> Result<SocketAddr, ServeError> {
        server::local_address(self.what, self.options.address, &self.socket)
    }

    /// Another handle of the same address.
    ///
    /// # Errors
    /// The process has too many open files.
    pub(crate) fn shared(&self) -> Result<Self, ServeError> {
        let socket = server::shared(self.what, self.options.address, &self.socket)?;
        Ok(Self { what: self.what, socket, options: self.options.clone(), namespace: self.namespace.clone() })
    }

    /// Serves until `shutdown` completes. `path` is what the log says after the address, `client` reads the Secret with the certificate, and
    /// `tls` is what connections may negotiate.
    ///
    /// # Errors
    /// Connections cannot be accepted.
    pub(crate) async fn serve(
        self,
        path: &str,
        router: Router,
        client: &Client,
        tls: watch::Receiver<TlsSettings>,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let Self { what, socket, options, namespace } = self;
        let names = https::names(&options.service, &namespace);
        let certificates = certificate::of_service(what, client, &namespace, options.tls_secret.as_deref(), names);
        let url = format!("https://{}{path}", options.address);
        let serving = https::Serving { socket, what, url, tls, limits: https::Limits::default() };
        let served = serving.run(router, certificates, None, shutdown).await;
        served.map_err(|source| ServeError::Accept { what, source })
    }
}
