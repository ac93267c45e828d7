//! Where the controller exports traces.

use std::{env, path::PathBuf};

use chandler_traces::{EndpointError, ExportOptions};

use super::values;

/// Where the controller exports traces, and which.
#[derive(Clone, Debug, clap::Args)]
pub struct TracesArguments {
    /// Export traces to the OpenTelemetry collector at this URL, such as `http://collector.monitoring:4318`, over OTLP with HTTP and protobuf
    /// [default: not exported]
    ///
    /// The URL must not contain credentials: set headers with the environment variable OTEL_EXPORTER_OTLP_HEADERS (docs/monitoring.md).
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT", hide_env_values = true)]
    pub otlp_endpoint: Option<String>,

    /// Share of the reconciles whose traces are exported, from 0 to 1
    #[arg(long, value_name = "RATIO", default_value = "1", value_parser = values::ratio)]
    pub trace_sample_ratio: f64,
}

impl TracesArguments {
    /// How traces are exported, if they are.
    ///
    /// # Errors
    /// The URL is not valid. The error does not repeat it, as clap would: it may contain a password.
    pub fn options(&self) -> Result<Option<ExportOptions>, EndpointError> {
        let Some(url) = self.otlp_endpoint.as_deref().filter(|url| !url.is_empty()) else { return Ok(None) };
        Ok(Some(ExportOptions {
            endpoint: url.parse()?,
            ratio: self.trace_sample_ratio,
            certificate_authority: env::var_os("OTEL_EXPORTER_OTLP_CERTIFICATE")
                .filter(|path| !path.is_empty())
                .map(PathBuf::from),
            version: env!("CARGO_PKG_VERSION"),
        }))
    }
}
