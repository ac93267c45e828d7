//! The secret with which an owner marks its objects. Pure.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_core::Digest;
use hmac::{Hmac, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::pure::holdings::ObjectId;

/// A secret of one owner for marking the objects that it writes. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Seal([u8; 32]);

impl Seal {
    /// The seal with these bytes, which must be secret.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The mark of an object that a revision of the owner writes: `REVISION.` and 64 hexadecimal digits, or the digits alone for revision
    /// 0, which means an owner without revisions. It is valid for one kind, namespace and name only, so copying it to another object proves
    /// nothing.
    pub(crate) fn mark(&self, owner: &str, id: &ObjectId, revision: u64) -> String {
        match revision {
            0 => self.digits(&[owner, &id.text()]),
            // The UID of an owner has no space, so no mark without a revision has this text.
            _ => format!("{revision}.{}", self.digits(&[&format!("revision {revision}"), owner, &id.text()])),
        }
    }

    /// The revision that a mark of this object names, 0 if it names none. `None` for a mark that another seal made, or that was
    /// copied or changed.
    pub(crate) fn revision(&self, owner: &str, id: &ObjectId, mark: &str) -> Option<u64> {
        let revision = match mark.split_once('.') {
            Some((number, _)) => number.parse().ok()?,
            None => 0,
        };
        (self.mark(owner, id, revision) == mark).then_some(revision)
    }

    fn digits(&self, lines: &[&str]) -> String {
        // HMAC accepts a key of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return String::new() };
        mac.update(lines.join("\n").as_bytes());
        Digest::from_hash(mac.finalize().into_bytes().into()).hex().to_owned()
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal")
    }
}

impl Serialize for Seal {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(self.0))
    }
}

impl<'de> Deserialize<'de> for Seal {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = STANDARD.decode(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)?;
        let bytes = bytes.try_into().map_err(|_| serde::de::Error::custom("a seal has 32 bytes"))?;
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> ObjectId {
        ObjectId { group: "apps".into(), kind: "Deployment".into(), namespace: Some("n".into()), name: name.into() }
    }

    #[test]
    fn a_mark_names_its_revision_and_nothing_else_can() {
        let seal = Seal::new([7; 32]);
        let mark = |revision| seal.mark("uid", &id("a"), revision);
        let revision = |mark: &str| seal.revision("uid", &id("a"), mark);
        assert_eq!((mark(0).len(), revision(&mark(0))), (64, Some(0)), "as earlier versions of Chandler wrote it");
        assert_eq!(revision(&mark(3)), Some(3));
        let digits = |mark: &str| mark.split_once('.').map(|(_, digits)| digits.to_owned()).unwrap_or_default();
        for forged in [
            format!("4.{}", digits(&mark(3))),
            format!("03.{}", digits(&mark(3))),
            format!("0.{}", mark(0)),
            digits(&mark(3)),
            format!("3.{}", mark(0)),
            String::new(),
            ".".to_owned(),
            "99999999999999999999999.0".to_owned(),
        ] {
            assert_eq!(revision(&forged), None, "{forged}");
        }
        for other in [
            Seal::new([8; 32]).mark("uid", &id("a"), 3),
            seal.mark("other", &id("a"), 3),
            seal.mark("uid", &id("b"), 3),
        ] {
            assert_eq!(revision(&other), None, "of another seal, owner or object");
        }
    }

    #[test]
    fn a_seal_is_never_shown() {
        assert!(!format!("{:?}", Seal::new([7; 32])).contains('7'));
    }
}
