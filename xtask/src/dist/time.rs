//! The time that the files of an image have.

use std::env;

use anyhow::Context as _;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// Which variable chooses the time. <https://reproducible-builds.org/specs/source-date-epoch/>
const VARIABLE: &str = "SOURCE_DATE_EPOCH";

/// A time that depends on nothing but `SOURCE_DATE_EPOCH`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct BuildTime(OffsetDateTime);

impl BuildTime {
    /// What the variable has, or else 1970.
    pub(super) fn from_environment() -> anyhow::Result<Self> {
        let Some(text) = env::var_os(VARIABLE) else { return Ok(Self(OffsetDateTime::UNIX_EPOCH)) };
        Self::parse(&text.to_string_lossy())
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let wrong = || format!("{VARIABLE} must be a number of seconds since 1970, and is {text:?}");
        let seconds = text.parse::<u64>().ok().and_then(|seconds| i64::try_from(seconds).ok()).with_context(wrong)?;
        Ok(Self(OffsetDateTime::from_unix_timestamp(seconds).with_context(wrong)?))
    }

    /// Seconds since 1970.
    pub(super) fn seconds(self) -> u64 {
        self.0.unix_timestamp().try_into().unwrap_or_default()
    }

    /// Such as `1970-01-01T00:00:00Z`.
    pub(super) fn rfc3339(self) -> anyhow::Result<String> {
        Ok(self.0.format(&Rfc3339)?)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The time of images in tests.
    pub(in super::super) fn of_test() -> BuildTime {
        BuildTime::parse("86400").unwrap()
    }

    #[test]
    fn the_time_is_a_number_of_seconds() {
        assert_eq!((of_test().seconds(), of_test().rfc3339().unwrap().as_str()), (86_400, "1970-01-02T00:00:00Z"));
        for wrong in ["", "-1", "1.5", "yesterday", "9223372036854775807"] {
            let error = BuildTime::parse(wrong).unwrap_err().to_string();
            assert_eq!(error, format!("SOURCE_DATE_EPOCH must be a number of seconds since 1970, and is {wrong:?}"));
        }
    }
}
