//! Whether and when a delivery is retried.

use std::{fmt, time::Duration};

use crate::EndpointError;

/// The most attempts to deliver one notification.
pub const ATTEMPTS: u32 = 5;
/// The longest time from the first attempt to the begin of the last one.
pub const TOTAL: Duration = Duration::from_mins(10);
/// The pause after the first attempt. It doubles with each further one.
const FIRST: Duration = Duration::from_secs(2);
/// The longest pause that a server may ask for.
const LONGEST: Duration = Duration::from_mins(5);

/// Why a server did not take a notification. The text has neither the URL nor anything that the server sent, apart from the status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The server answered with this status, and asked to wait.
    Status(u16, Option<Duration>),
    /// The server did not answer in time.
    TimedOut,
    /// The connection failed.
    Unreachable,
    /// DNS does not know the host.
    NameNotResolved,
    /// The certificate of the server is not trusted.
    NotTrusted,
    /// The host has an address that nothing is sent to.
    AddressNotAllowed,
    /// The controller has no file descriptor left.
    NoDescriptor,
    /// The URL or the Secret cannot be used.
    Endpoint(EndpointError),
    /// The API server did not return the Secret.
    SecretUnreadable,
}

impl Failure {
    /// Whether a later attempt may succeed without a change.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Status(status, _) => matches!(status, 408 | 425 | 429 | 500..=599),
            Self::TimedOut
            | Self::Unreachable
            | Self::NameNotResolved
            | Self::NoDescriptor
            | Self::SecretUnreadable => true,
            Self::NotTrusted | Self::AddressNotAllowed | Self::Endpoint(_) => false,
        }
    }

    /// The pause before the next attempt; `None` if there is none. `attempts` have failed, the first one `elapsed` ago.
    pub fn pause(&self, attempts: u32, elapsed: Duration) -> Option<Duration> {
        let asked = if let Self::Status(_, asked) = self { *asked } else { None };
        let doubled = FIRST.saturating_mul(2_u32.saturating_pow(attempts.saturating_sub(1)));
        let pause = asked.unwrap_or_default().max(doubled).min(LONGEST);
        (self.is_transient() && attempts < ATTEMPTS && elapsed + pause <= TOTAL).then_some(pause)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status, _) if (300..400).contains(status) => {
                write!(f, "the server answered with status {status}, and redirects are not followed")
            }
            Self::Status(status, _) => write!(f, "the server answered with status {status}"),
            Self::TimedOut => f.write_str("the server did not answer in time"),
            Self::Unreachable => f.write_str("the connection to the server failed"),
            Self::NameNotResolved => f.write_str("the host of the URL is not in DNS"),
            Self::NotTrusted => f.write_str("the certificate of the server is not trusted"),
            Self::AddressNotAllowed => f.write_str(
                "the host of the URL has an address that nothing is sent to (link-local, multicast or unspecified)",
            ),
            Self::NoDescriptor => f.write_str("the controller has no file descriptor left for a connection"),
            Self::Endpoint(error) => error.fmt(f),
            Self::SecretUnreadable => f.write_str("the API server did not return the Secret"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transient_failures_are_retried_a_few_times() {
        let seconds = |failure: &Failure| -> Vec<u64> {
            let (mut elapsed, mut pauses) = (Duration::ZERO, Vec::new());
            while let Some(pause) = failure.pause(u32::try_from(pauses.len()).unwrap() + 1, elapsed) {
                elapsed += pause;
                pauses.push(pause.as_secs());
                assert!(pauses.len() < 100);
            }
            pauses
        };
        assert_eq!(seconds(&Failure::Status(503, None)), [2, 4, 8, 16]);
        assert_eq!(seconds(&Failure::Unreachable), [2, 4, 8, 16]);
        assert_eq!(seconds(&Failure::Status(429, Some(Duration::from_secs(7)))), [7, 7, 8, 16]);
        assert_eq!(
            seconds(&Failure::Status(429, Some(Duration::MAX))),
            [300, 300],
            "a server cannot block it for longer"
        );
        for permanent in [Failure::Status(404, None), Failure::Status(302, None), Failure::NotTrusted] {
            assert!(seconds(&permanent).is_empty(), "{permanent}");
        }
    }
}
