//! One version.

use std::{cmp::Ordering, fmt};

use crate::VersionError;

/// A version. Its parts are ordered as in semantic versioning; build metadata does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The first number.
    pub major: u64,
    /// The second number; 0 if the text has none.
    pub minor: u64,
    /// The third number; 0 if the text has none.
    pub patch: u64,
    /// What follows `-`, without it.
    pub prerelease: String,
    /// What follows `+`, without it.
    pub metadata: String,
    /// The text it was read from.
    pub original: String,
}

impl Version {
    /// Reads a version, with or without a leading `v`, whose minor and patch numbers may be missing.
    ///
    /// # Errors
    /// The text is not a version.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        let parts = Parts::of(text.strip_prefix('v').unwrap_or(text)).filter(|parts| parts.rest.is_empty());
        let parts = parts.ok_or(VersionError::Invalid)?;
        let number = |text: &str| -> Result<u64, VersionError> {
            if text.is_empty() {
                return Ok(0);
            }
            if !text.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(VersionError::Invalid);
            }
            text.parse().map_err(|_| VersionError::Number(text.to_owned()))
        };
        let (major, minor, patch) = (number(parts.major)?, number(parts.minor)?, number(parts.patch)?);
        let zero =
            |part: &str| part.len() > 1 && part.starts_with('0') && part.bytes().all(|byte| byte.is_ascii_digit());
        if parts.prerelease.split('.').any(zero) {
            return Err(VersionError::LeadingZero);
        }
        Ok(Self {
            major,
            minor,
            patch,
            prerelease: parts.prerelease.to_owned(),
            metadata: parts.metadata.to_owned(),
            original: text.to_owned(),
        })
    }

    /// The order of two versions.
    pub fn compare(&self, other: &Self) -> Ordering {
        (self.major, self.minor, self.patch)
            .cmp(&(other.major, other.minor, other.patch))
            .then_with(|| compare_prereleases(&self.prerelease, &other.prerelease))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.prerelease.is_empty() {
            write!(f, "-{}", self.prerelease)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

pub(crate) fn compare_prereleases(one: &str, other: &str) -> Ordering {
    match (one.is_empty(), other.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let (mut one, mut other) = (one.split('.'), other.split('.'));
    loop {
        let order = match (one.next(), other.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(a), Some(b)) => match (a.parse::<u64>(), b.parse::<u64>()) {
                (Ok(a), Ok(b)) => a.cmp(&b),
                (Ok(_), Err(_)) => Ordering::Less,
                (Err(_), Ok(_)) => Ordering::Greater,
                (Err(_), Err(_)) => a.cmp(b),
            },
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// A version or a pattern of versions, in parts; numbers may be wildcards.
pub(crate) struct Parts<'a> {
    pub(crate) major: &'a str,
    pub(crate) minor: &'a str,
    pub(crate) patch: &'a str,
    pub(crate) prerelease: &'a str,
    pub(crate) metadata: &'a str,
    /// What follows.
    pub(crate) rest: &'a str,
}

impl<'a> Parts<'a> {
    /// The longest pattern at the begin of the text, without a leading `v`.
    pub(crate) fn of(text: &'a str) -> Option<Self> {
        let number = |text: &'a str| -> Option<(&'a str, &'a str)> {
            let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, 'x' | 'X' | '*' | '|')));
            let (number, rest) = text.split_at(end.unwrap_or(text.len()));
            (!number.is_empty()).then_some((number, rest))
        };
        let (major, mut rest) = number(text)?;
        let mut further = || match rest.strip_prefix('.').and_then(number) {
            Some((part, after)) => {
                rest = after;
                part
            }
            None => "",
        };
        let (minor, patch) = (further(), further());
        let mut labels = |mark: char| match rest.strip_prefix(mark).and_then(identifiers) {
            Some((part, after)) => {
                rest = after;
                part
            }
            None => "",
        };
        let (prerelease, metadata) = (labels('-'), labels('+'));
        Some(Self { major, minor, patch, prerelease, metadata, rest })
    }
}

/// Identifiers with dots between them.
fn identifiers(text: &str) -> Option<(&str, &str)> {
    let mut end = 0;
    loop {
        let rest = text.get(end..)?;
        let length = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'-').count();
        if length == 0 {
            // A dot without an identifier behind it does not belong to the label.
            end = end.checked_sub(1)?;
            break;
        }
        end += length;
        if !text.get(end..)?.starts_with('.') {
            break;
        }
        end += 1;
    }
    Some(text.split_at(end))
}
