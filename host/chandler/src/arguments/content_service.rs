//! The content service: where it listens, and how commands reach it.

use std::{net::SocketAddr, path::PathBuf};

use chandler_controller::ContentOptions;

use super::values;
use crate::read::content_service::{ContentClientOptions, base};

/// Whether and where the controller serves content.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ContentServiceArguments {
    /// Serve the content of bundles and catalogs over HTTPS on this address, such as 0.0.0.0:8443 [default: it is not served]
    ///
    /// Callers need a token of the API server, and permission to get the path: deploy/content.yaml.
    #[arg(long, value_name = "ADDRESS")]
    pub content_address: Option<SocketAddr>,

    /// Name of the Service in front of it, and of the ConfigMap with its URL and CA for clients
    #[arg(long, value_name = "NAME", default_value = "chandler-content", requires = "content_address", value_parser = values::dns_label)]
    pub content_service: String,

    /// URL under which clients reach it [default: the Service's; on a loopback address, that address]
    #[arg(long, value_name = "URL", requires = "content_address", value_parser = base)]
    pub content_url: Option<String>,

    /// Secret of type kubernetes.io/tls with its certificate [default: the controller makes one]
    #[arg(long, value_name = "SECRET", requires = "content_address", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub content_tls_secret: Option<String>,
}

impl ContentServiceArguments {
    /// The options, if the service is wanted.
    pub fn options(&self) -> Option<ContentOptions> {
        Some(ContentOptions {
            address: self.content_address?,
            service: self.content_service.clone(),
            url: self.content_url.clone(),
            tls_secret: self.content_tls_secret.clone(),
        })
    }
}

/// How a command reaches the content service.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ContentClientArguments {
    /// Name of the ConfigMap in the system namespace with the URL and the authority of the content service
    #[arg(long, value_name = "NAME", default_value = "chandler-content", value_parser = values::dns_label)]
    pub content_service: String,

    /// URL of the content service, such as the address of `kubectl port-forward` [default: from the ConfigMap]
    #[arg(long, value_name = "URL", value_parser = base)]
    pub content_url: Option<String>,

    /// File with a token of the API server [default: the token of the kubeconfig]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

impl ContentClientArguments {
    /// The options.
    pub fn options(&self) -> ContentClientOptions {
        ContentClientOptions {
            content_service: self.content_service.clone(),
            content_url: self.content_url.clone(),
            token_file: self.token_file.clone(),
        }
    }
}
