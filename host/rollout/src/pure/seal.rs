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

    /// The mark of an object that is created again after the one with this UID was deleted: `REVISION.UID.` and 64 hexadecimal digits.
    /// `None` for a UID that is not [plain](is_plain).
    pub(crate) fn mark_after(&self, owner: &str, id: &ObjectId, revision: u64, before: &str) -> Option<String> {
        let what = format!("revision {revision} after {before}");
        is_plain(before).then(|| format!("{revision}.{before}.{}", self.digits(&[&what, owner, &id.text()])))
    }

    /// The revision that a mark of this object names, 0 if it names none. `None` for a mark that another seal made, or that was
    /// copied or changed.
    pub(crate) fn revision(&self, owner: &str, id: &ObjectId, mark: &str) -> Option<u64> {
        let mut parts = mark.splitn(3, '.');
        let (first, second, third) = (parts.next(), parts.next(), parts.next());
        let revision = if second.is_some() { first?.parse().ok()? } else { 0 };
        let made = match second.filter(|_| third.is_some()) {
            Some(before) => self.mark_after(owner, id, revision, before)?,
            None => self.mark(owner, id, revision),
        };
        (made == mark).then_some(revision)
    }

    /// Whether a mark is of an object that was created again after the one with this UID.
    pub(crate) fn succeeds(&self, owner: &str, id: &ObjectId, mark: &str, before: &str) -> bool {
        let mut parts = mark.split('.').skip(1);
        let (named, digits) = (parts.next(), parts.next());
        named == Some(before) && digits.is_some() && self.revision(owner, id, mark).is_some()
    }

    fn digits(&self, lines: &[&str]) -> String {
        // HMAC accepts a key of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return String::new() };
        mac.update(lines.join("\n").as_bytes());
        Digest::from_hash(mac.finalize().into_bytes().into()).hex().to_owned()
    }
}

/// Whether a UID can be a part of a mark. Every API server makes such UIDs.
fn is_plain(uid: &str) -> bool {
    !uid.is_empty() && uid.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
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
    fn a_mark_of_an_object_that_was_created_again_names_the_one_before() {
        let seal = Seal::new([7; 32]);
        let mark = seal.mark_after("uid", &id("a"), 3, "u-1").unwrap();
        let succeeds = |mark: &str, before| seal.succeeds("uid", &id("a"), mark, before);
        assert_eq!(seal.revision("uid", &id("a"), &mark), Some(3));
        assert!(succeeds(&mark, "u-1") && !succeeds(&mark, "u-2") && !succeeds(&seal.mark("uid", &id("a"), 3), "u-1"));
        let digits = mark.rsplit_once('.').unwrap().1;
        for forged in [
            format!("3.u-2.{digits}"),
            format!("4.u-1.{digits}"),
            format!("3..{digits}"),
            format!("3.{digits}"),
            format!("3.u-1.{}", seal.mark("uid", &id("a"), 0)),
            format!("{mark}.x"),
            "3.u-1.".to_owned(),
            "3.u-1".to_owned(),
        ] {
            assert!(seal.revision("uid", &id("a"), &forged).is_none() && !succeeds(&forged, "u-1"), "{forged}");
        }
        assert!(!Seal::new([8; 32]).succeeds("uid", &id("a"), &mark, "u-1"));
        assert!(!seal.succeeds("uid", &id("b"), &mark, "u-1"), "copied to another object");
        assert!(["", "a.b", "a\nb"].iter().all(|odd| seal.mark_after("uid", &id("a"), 3, odd).is_none()));
        let unrevised = seal.mark_after("uid", &id("a"), 0, "u-1").unwrap();
        assert_eq!(seal.revision("uid", &id("a"), &unrevised), Some(0));
    }

    #[test]
    fn a_seal_is_never_shown() {
        assert!(!format!("{:?}", Seal::new([7; 32])).contains('7'));
    }
}
