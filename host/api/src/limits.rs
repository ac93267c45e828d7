//! The limits of one call of a provisioner, parsed.

use std::time::Duration;

use crate::provisioner_class::ProvisionerLimits;

/// The limits of a class as numbers. A limit that the class does not set is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallLimits {
    /// Wall-clock time.
    pub timeout: Option<Duration>,
    /// Memory in bytes.
    pub memory: Option<u64>,
    /// Bytes that may be read from the bundle.
    pub read_bytes: Option<u64>,
    /// Bytes of all objects together.
    pub output_bytes: Option<u64>,
    /// The number of objects.
    pub objects: Option<u64>,
    /// Bytes of log messages that are kept.
    pub log_bytes: Option<u64>,
}

/// A limit that cannot be parsed. The schema refuses most of these; numbers that are too large remain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("spec.limits.{field}: {value:?} is not {want}")]
pub struct LimitError {
    field: &'static str,
    value: String,
    want: &'static str,
}

impl ProvisionerLimits {
    /// Parses the limits.
    pub fn parse(&self) -> Result<CallLimits, LimitError> {
        let bytes = |field, text: &Option<String>| {
            text.as_deref()
                .map(|text| quantity(text).ok_or_else(|| refused(field, text, "a number of bytes such as 64Mi")))
                .transpose()
        };
        Ok(CallLimits {
            timeout: self
                .timeout
                .as_deref()
                .map(|text| duration(text).ok_or_else(|| refused("timeout", text, "a duration such as 10s")))
                .transpose()?,
            memory: bytes("memory", &self.memory)?,
            read_bytes: bytes("readBytes", &self.read_bytes)?,
            output_bytes: bytes("outputBytes", &self.output_bytes)?,
            objects: self
                .objects
                .map(|count| u64::try_from(count).map_err(|_| refused("objects", &count.to_string(), "positive")))
                .transpose()?,
            log_bytes: bytes("logBytes", &self.log_bytes)?,
        })
    }
}

fn refused(field: &'static str, value: &str, want: &'static str) -> LimitError {
    LimitError { field, value: value.to_owned(), want }
}

/// A duration as Go's `time.ParseDuration` reads it, more than none.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let duration: kube::core::Duration = text.parse().ok()?;
    (!duration.is_negative()).then(|| duration.into()).filter(|duration| *duration > Duration::ZERO)
}

/// A whole number with a suffix of `k8s.io/apimachinery/pkg/api/resource`, decimal or binary.
fn quantity(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, suffix) = text.split_at_checked(digits)?;
    let number: u64 = number.parse().ok()?;
    let factor: u64 = match suffix {
        "" => 1,
        "k" => 1000,
        "M" => 1000_u64.pow(2),
        "G" => 1000_u64.pow(3),
        "T" => 1000_u64.pow(4),
        "P" => 1000_u64.pow(5),
        "E" => 1000_u64.pow(6),
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        "Pi" => 1 << 50,
        "Ei" => 1 << 60,
        _ => return None,
    };
    number.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_parsed() {
        let limits = ProvisionerLimits {
            timeout: Some("1m30s".into()),
            memory: Some("256Mi".into()),
            output_bytes: Some("5M".into()),
            objects: Some(7),
            log_bytes: Some("512".into()),
            read_bytes: None,
        };
        assert_eq!(
            limits.parse().unwrap(),
            CallLimits {
                timeout: Some(Duration::from_secs(90)),
                memory: Some(256 << 20),
                output_bytes: Some(5_000_000),
                objects: Some(7),
                log_bytes: Some(512),
                read_bytes: None,
            }
        );
    }

    #[test]
    fn an_invalid_limit_is_reported_with_its_field() {
        let memory = |text: &str| ProvisionerLimits { memory: Some(text.into()), ..Default::default() };
        for text in ["", "Mi", "1.5Gi", "-1", "1mi", "99999999999E", "18446744073709551616"] {
            assert_eq!(
                memory(text).parse().unwrap_err().to_string(),
                format!("spec.limits.memory: {text:?} is not a number of bytes such as 64Mi")
            );
        }
        let timeout = |text: &str| ProvisionerLimits { timeout: Some(text.into()), ..Default::default() };
        for text in ["", "0s", "10", "-1s", "soon"] {
            assert!(timeout(text).parse().is_err(), "{text}");
        }
    }
}
