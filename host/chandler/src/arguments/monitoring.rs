//! Where the controller answers probes and serves its metrics.

use std::net::SocketAddr;

use chandler_controller::ServiceOptions;

use super::values;

/// Where the controller answers probes and serves its metrics.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct MonitoringArguments {
    /// Answer the probes of the kubelet (/livez and /readyz) over HTTP on this address, such as 0.0.0.0:8081 [default: not answered]
    #[arg(long, value_name = "ADDRESS")]
    pub probe_address: Option<SocketAddr>,

    /// Serve metrics over HTTPS on this address, such as 0.0.0.0:9443 [default: not served]
    ///
    /// Callers need a token of the API server, and permission to get /metrics: deploy/metrics.yaml.
    #[arg(long, value_name = "ADDRESS")]
    pub metrics_address: Option<SocketAddr>,

    /// Name of the Service in front of the metrics, for the certificate
    #[arg(long, value_name = "NAME", default_value = "chandler-metrics", requires = "metrics_address", value_parser = values::dns_label)]
    pub metrics_service: String,

    /// Secret of type kubernetes.io/tls with the certificate of the metrics [default: the controller makes one]
    #[arg(long, value_name = "SECRET", requires = "metrics_address", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub metrics_tls_secret: Option<String>,
}

impl MonitoringArguments {
    /// Where metrics are served, if they are wanted.
    pub fn metrics(&self) -> Option<ServiceOptions> {
        Some(ServiceOptions {
            address: self.metrics_address?,
            service: self.metrics_service.clone(),
            tls_secret: self.metrics_tls_secret.clone(),
        })
    }
}
