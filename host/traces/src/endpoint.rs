//! The URL of a collector.

use std::{fmt, str::FromStr};

use url::Url;

/// The base URL of a collector, to which the paths of OTLP are appended. It contains no credentials, so that it may be logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint(Url);

/// Text is not the URL of a collector. The message does not repeat the text, which may contain a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Not a URL, or not of HTTP.
    #[error("not a URL such as http://collector.monitoring:4318")]
    Url,
    /// A user or a password.
    #[error("the URL contains credentials; set them as headers with OTEL_EXPORTER_OTLP_HEADERS")]
    Credentials,
    /// A query or a fragment.
    #[error("the URL of a collector has neither a query nor a fragment")]
    Query,
}

impl Endpoint {
    /// The URL that traces are posted to.
    pub fn traces(&self) -> String {
        format!("{}/v1/traces", self.0.as_str().trim_end_matches('/'))
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let url = Url::parse(text).map_err(|_| EndpointError::Url)?;
        if !["http", "https"].contains(&url.scheme()) || !url.has_host() {
            return Err(EndpointError::Url);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EndpointError::Credentials);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(EndpointError::Query);
        }
        Ok(Self(url))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_no_credentials_and_messages_do_not_repeat_them() {
        for (text, expected) in [
            ("http://collector:4318", Ok("http://collector:4318/v1/traces")),
            ("https://collector/otlp/", Ok("https://collector/otlp/v1/traces")),
            ("https://ann:s3cret@collector", Err(EndpointError::Credentials)),
            ("https://s3cret@collector", Err(EndpointError::Credentials)),
            ("https://collector?key=s3cret", Err(EndpointError::Query)),
            ("https://collector#s3cret", Err(EndpointError::Query)),
            ("grpc://collector", Err(EndpointError::Url)),
            ("s3cret", Err(EndpointError::Url)),
            ("", Err(EndpointError::Url)),
        ] {
            let parsed = text.parse::<Endpoint>();
            assert_eq!(parsed.clone().map(|endpoint| endpoint.traces()), expected.map(str::to_owned), "{text}");
            let message = parsed.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(!message.contains("s3cret"), "{message}");
        }
    }
}
