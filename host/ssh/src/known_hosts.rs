//! The known_hosts file: which server has which key.
//!
//! Source: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT". Keys are compared byte by byte and not decoded. Unlike ssh, a server on another
//! port than 22 is not looked for under its name without the port.

mod names;

use std::str::FromStr;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use self::names::Names;
use crate::HostKeyError;

/// The longest file in bytes: the size limit of a Secret.
const LONGEST: usize = 1 << 20;
/// The types of keys that are trusted. Others are passed over: no server is asked for them.
const TYPES: [&str; 5] =
    ["ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa"];

/// The keys of servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownHosts(Vec<Line>);

/// A text is not a known_hosts file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KnownHostsError {
    /// It is larger than 1 MiB.
    #[error("is larger than 1 MiB")]
    TooLong,
    /// It has no key.
    #[error("has no host key; ssh-keyscan HOST prints the keys of a server")]
    Empty,
    /// A line cannot be read.
    #[error("line {line}: {problem}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    number: usize,
    marker: Marker,
    names: Names,
    kind: &'static str,
    key: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marker {
    None,
    Authority,
    Revoked,
}

impl FromStr for KnownHosts {
    type Err = KnownHostsError;

    fn from_str(text: &str) -> Result<Self, KnownHostsError> {
        if text.len() > LONGEST {
            return Err(KnownHostsError::TooLong);
        }
        let mut lines = Vec::new();
        for (at, text) in text.lines().enumerate() {
            let number = at + 1;
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            lines.extend(line(number, text).map_err(|problem| KnownHostsError::Line { line: number, problem })?);
        }
        if lines.is_empty() { Err(KnownHostsError::Empty) } else { Ok(Self(lines)) }
    }
}

/// A line, or `None` if its key is of a type that is not used.
fn line(number: usize, text: &str) -> Result<Option<Line>, &'static str> {
    let mut words = text.split([' ', '\t']).filter(|word| !word.is_empty());
    let mut first = words.next().unwrap_or_default();
    let marker = match first {
        "@cert-authority" => Marker::Authority,
        "@revoked" => Marker::Revoked,
        other if other.starts_with('@') => return Err("it has an unknown marker"),
        _ => Marker::None,
    };
    if marker != Marker::None {
        first = words.next().unwrap_or_default();
    }
    let (Some(kind), Some(key)) = (words.next(), words.next()) else {
        return Err("it has to be a host name, a type and a key");
    };
    let names = names::parse(first)?;
    let Some(kind) = TYPES.into_iter().find(|known| *known == kind) else { return Ok(None) };
    let key = STANDARD.decode(key).map_err(|_| "its key is not base64")?;
    // RFC 4253, section 6.6: the type is the first string of the key.
    let mut prefix = u32::try_from(kind.len()).unwrap_or_default().to_be_bytes().to_vec();
    prefix.extend_from_slice(kind.as_bytes());
    if !key.starts_with(&prefix) || key.len() <= prefix.len() {
        return Err("its key is not of the type that it names");
    }
    Ok(Some(Line { number, marker, names, kind, key }))
}

impl KnownHosts {
    /// The keys of a server. The host is in lower case, an address of IPv6 without brackets.
    ///
    /// # Errors
    /// There are none.
    pub fn of(&self, host: &str, port: u16) -> Result<Known, HostKeyError> {
        let name = if port == 22 { host.to_owned() } else { format!("[{host}]:{port}") };
        let (mut keys, mut revoked, mut authority) = (Vec::new(), Vec::new(), None);
        for line in self.0.iter().filter(|line| line.names.contain(&name)) {
            match line.marker {
                Marker::None => keys.push((line.kind, line.key.clone())),
                Marker::Revoked => revoked.push((line.number, line.key.clone())),
                Marker::Authority => authority = authority.or(Some(line.number)),
            }
        }
        match (keys.is_empty(), authority) {
            (false, _) => Ok(Known { name, keys, revoked }),
            (true, Some(line)) => Err(HostKeyError::Authority { name, line }),
            (true, None) => Err(HostKeyError::Unknown(name)),
        }
    }
}

/// The keys of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    name: String,
    keys: Vec<(&'static str, Vec<u8>)>,
    revoked: Vec<(usize, Vec<u8>)>,
}

impl Known {
    /// The server, as known_hosts files name it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether there is a key of this type.
    pub(crate) fn has(&self, kind: &str) -> bool {
        self.keys.iter().any(|(known, _)| *known == kind)
    }

    /// Checks the key of the server, in the form of RFC 4253, section 6.6.
    ///
    /// # Errors
    /// It is revoked, or none of the known ones.
    pub fn check(&self, key: &[u8]) -> Result<(), HostKeyError> {
        if let Some((line, _)) = self.revoked.iter().find(|(_, revoked)| revoked == key) {
            return Err(HostKeyError::Revoked(*line));
        }
        if self.keys.iter().any(|(_, known)| known == key) {
            return Ok(());
        }
        let digest = ring::digest::digest(&ring::digest::SHA256, key);
        let fingerprint = format!("SHA256:{}", STANDARD.encode(digest).trim_end_matches('='));
        Err(HostKeyError::Changed { name: self.name.clone(), fingerprint })
    }
}

#[cfg(test)]
mod tests;
