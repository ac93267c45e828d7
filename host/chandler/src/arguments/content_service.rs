//! The content service: where it listens, and how commands reach it.

use std::{net::SocketAddr, path::PathBuf};

use chandler_controller::ContentOptions;

use super::values;

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

/// A URL with a host and nothing after the path, without a slash at its end.
pub fn base(text: &str) -> Result<String, String> {
    let uri: http::Uri = text.parse().map_err(|_| "it is not a URL such as https://localhost:8443".to_owned())?;
    let is_whole = uri.scheme_str() == Some("https") && uri.query().is_none() && !text.contains(['@', '#']);
    if is_whole && uri.host().is_some() {
        Ok(text.trim_end_matches('/').to_owned())
    } else {
        Err("it is not an https URL of a host, such as https://localhost:8443".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_an_https_url_without_credentials() {
        assert_eq!(base("https://localhost:8443/").as_deref(), Ok("https://localhost:8443"));
        assert_eq!(base("https://example.com/content").as_deref(), Ok("https://example.com/content"));
        for refused in
            ["", "localhost:8443", "http://localhost", "https://user@host", "https://host?x", "https://host#x", "/x"]
        {
            assert!(base(refused).is_err(), "{refused}");
        }
    }
}
