//! The token of a Receiver, and the path that follows from it.

use std::fmt;

use chandler_api::receiver::{LONGEST_TOKEN, SHORTEST_TOKEN};
use hmac::{
    Hmac, Mac,
    digest::{CtOutput, Digest as _, KeyInit},
};
use sha2::{Sha256, Sha512};

/// What all paths begin with.
pub const PREFIX: &str = "/hooks/";
/// Separates the key of paths from signatures: readers of a status know paths, and a path must be the signature of no body.
const PATH_KEY: &[u8] = b"chandler.dev/v1alpha1 Receiver path";

/// A token, which is never shown.
#[derive(Clone)]
pub struct Token(Vec<u8>);

/// A token that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidToken {
    /// It can be guessed.
    #[error("the token has {0} bytes, and at least {SHORTEST_TOKEN} are needed")]
    Short(usize),
    /// No header has room for it.
    #[error("the token has {0} bytes, and at most {LONGEST_TOKEN} are allowed")]
    Long(usize),
}

impl Token {
    /// The token in the value of a Secret. A line break at the end does not count, since files often end with one.
    ///
    /// # Errors
    /// It is too short or too long.
    pub fn new(value: &[u8]) -> Result<Self, InvalidToken> {
        let value = value.strip_suffix(b"\n").unwrap_or(value);
        let value = value.strip_suffix(b"\r").unwrap_or(value);
        match value.len() {
            length if length < SHORTEST_TOKEN => Err(InvalidToken::Short(length)),
            length if length > LONGEST_TOKEN => Err(InvalidToken::Long(length)),
            _ => Ok(Self(value.to_vec())),
        }
    }

    /// The path of the Receiver of this name. It cannot be guessed without the token, and does not reveal it.
    pub fn path(&self, name: &str) -> String {
        let key = keyed::<Hmac<Sha256>>(&self.0).chain_update(PATH_KEY).finalize().into_bytes();
        let code = keyed::<Hmac<Sha256>>(&key).chain_update(name.as_bytes()).finalize().into_bytes();
        format!("{PREFIX}{}", hex::encode(code))
    }

    /// Whether this is the HMAC-SHA256 of the bytes. Takes the same time wherever the two differ.
    pub(crate) fn signed_sha256(&self, bytes: &[u8], code: &[u8]) -> bool {
        keyed::<Hmac<Sha256>>(&self.0).chain_update(bytes).verify_slice(code).is_ok()
    }

    /// Whether this is the HMAC-SHA512 of the bytes. Takes the same time wherever the two differ.
    pub(crate) fn signed_sha512(&self, bytes: &[u8], code: &[u8]) -> bool {
        keyed::<Hmac<Sha512>>(&self.0).chain_update(bytes).verify_slice(code).is_ok()
    }

    /// Whether this is the token. Takes the same time wherever the two differ.
    pub(crate) fn is(&self, presented: &[u8]) -> bool {
        same(&self.0, presented)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

/// Whether two texts are the same, in a time that does not depend on where they differ.
pub fn same(one: &[u8], other: &[u8]) -> bool {
    CtOutput::<Sha256>::new(Sha256::digest(one)) == CtOutput::new(Sha256::digest(other))
}

/// HMAC takes keys of every length.
fn keyed<M: Mac + KeyInit>(key: &[u8]) -> M {
    <M as Mac>::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes keys of every length"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_follows_from_token_and_name_and_shows_neither() {
        let token = Token::new(&[b'a'; 32]).unwrap();
        let path = token.path("pushes");
        assert_eq!(path, Token::new(&[&[b'a'; 32][..], b"\n"].concat()).unwrap().path("pushes"));
        assert!(path.strip_prefix(PREFIX).is_some_and(|code| code.len() == 64), "{path}");
        assert_ne!(path, token.path("pushes2"));
        assert_ne!(path, Token::new(&[b'b'; 32]).unwrap().path("pushes"));
        assert_eq!(format!("{token:?}"), "Token(hidden)");
    }

    #[test]
    fn a_path_is_the_signature_of_no_body_that_its_readers_know() {
        let token = Token::new(&[b'a'; 32]).unwrap();
        let code = hex::decode(token.path("pushes").strip_prefix(PREFIX).unwrap()).unwrap();
        for body in [b"pushes".as_slice(), b"", PATH_KEY, &[PATH_KEY, b"pushes"].concat()] {
            assert!(!token.signed_sha256(body, &code));
        }
    }

    #[test]
    fn tokens_have_a_length_in_bounds() {
        let invalid = |length: usize| Token::new(&vec![b'x'; length]).err();
        assert_eq!((invalid(31), invalid(32)), (Some(InvalidToken::Short(31)), None));
        assert_eq!((invalid(4096), invalid(4097)), (None, Some(InvalidToken::Long(4097))));
        assert_eq!(Token::new(&[&[b'x'; 31][..], b"\n"].concat()).err(), Some(InvalidToken::Short(31)));
    }
}
