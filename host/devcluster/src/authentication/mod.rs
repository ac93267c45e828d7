//! Authentication.
//!
//! | module | holds |
//! |---|---|
//! | [`jwt`] | signing tokens and verifying signatures |
//! | [`claims`] | the claims of tokens, and their validation |
//! | [`openid`] | the documents with which other services can verify tokens |
//! | this module | the accepted credentials: the administrator's token and the tokens of ServiceAccounts |

pub mod claims;
pub mod jwt;
pub mod openid;

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_devcluster_apimachinery::access::{
    User,
    user::{AUTHENTICATED, MASTERS},
};
use serde::Deserialize as _;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;

use self::{
    claims::{Claims, ISSUER, LEGACY_ISSUER, LegacyClaims},
    jwt::{SigningKey, TokenError, claimed_issuer},
};
use crate::store::Store;

/// The name of the administrator.
pub const ADMINISTRATOR: &str = "kubernetes-admin";

/// Why a credential is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// The token is not known to any user.
    #[error("invalid bearer token")]
    Unknown,
    /// The token is the cluster's own and not valid, for this reason.
    #[error("[invalid bearer token, {0}]")]
    Invalid(String),
}

/// Authenticates users by their credentials. Without an administrator's token and a key every user is anonymous.
#[derive(Clone, Default)]
pub struct Authenticator {
    /// The digest of the administrator's token, so that it can be compared in constant time.
    administrator: Option<[u8; 32]>,
    key: Option<Arc<SigningKey>>,
    /// The address of the API, e.g. `https://127.0.0.1:34567`.
    url: String,
}

impl std::fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authenticator").field("key", &self.key).field("url", &self.url).finish_non_exhaustive()
    }
}

impl Authenticator {
    /// Accepts a token as the administrator's, and tokens of ServiceAccounts that this key has signed.
    pub fn new(administrator: &str, key: SigningKey, url: &str) -> Self {
        Self {
            administrator: Some(Sha256::digest(administrator).into()),
            key: Some(Arc::new(key)),
            url: url.to_owned(),
        }
    }

    /// The key that signs the tokens of ServiceAccounts.
    pub fn key(&self) -> Option<&SigningKey> {
        self.key.as_deref()
    }

    /// The address of the API.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The user of a request with this `Authorization` header. Without the header, or with another scheme than `Bearer`, the user is anonymous.
    ///
    /// # Errors
    /// When there is a token and it is not accepted.
    pub fn authenticate(&self, store: &Store, now: OffsetDateTime, header: Option<&[u8]>) -> Result<User, Rejected> {
        let Some(token) = header.and_then(bearer_token) else { return Ok(User::anonymous()) };
        self.review(store, now, token, &[ISSUER.to_owned()]).map(|(user, _)| user)
    }

    /// The user of a token, and for which of these audiences it is.
    ///
    /// # Errors
    /// When the token is not accepted.
    pub fn review(
        &self,
        store: &Store,
        now: OffsetDateTime,
        token: &[u8],
        audiences: &[String],
    ) -> Result<(User, Vec<String>), Rejected> {
        if self.is_administrator(token) {
            return Ok((User::new(ADMINISTRATOR, &[MASTERS, AUTHENTICATED]), audiences.to_vec()));
        }
        let token = std::str::from_utf8(token).map_err(|_| Rejected::Unknown)?;
        let key = self.key.as_deref().ok_or(Rejected::Unknown)?;
        let issuer = claimed_issuer(token).filter(|issuer| issuer == ISSUER || issuer == LEGACY_ISSUER);
        let issuer = issuer.ok_or(Rejected::Unknown)?;
        let claims = key.verify(token).map_err(|error| match error {
            TokenError::Form => Rejected::Unknown,
            other => Rejected::Invalid(other.to_string()),
        })?;
        let malformed = |_| Rejected::Invalid("its claims are malformed".to_owned());
        if issuer == LEGACY_ISSUER {
            if !audiences.iter().any(|audience| audience == ISSUER) {
                return Err(Rejected::Invalid("the token is for the API server only".to_owned()));
            }
            let claims = LegacyClaims::deserialize(&claims).map_err(malformed)?;
            let user = claims.user(store, now, |secret| holds(secret, token)).map_err(Rejected::Invalid)?;
            return Ok((user, vec![ISSUER.to_owned()]));
        }
        let claims = Claims::deserialize(&claims).map_err(malformed)?;
        claims.user(store, now, audiences).map_err(Rejected::Invalid)
    }

    fn is_administrator(&self, token: &[u8]) -> bool {
        let Some(expected) = self.administrator else { return false };
        let digest: [u8; 32] = Sha256::digest(token).into();
        // All bytes are compared.
        let difference = digest.iter().zip(expected).fold(0, |difference, (left, right)| difference | (left ^ right));
        std::hint::black_box(difference) == 0
    }
}

/// The token of a header `Bearer <token>`; `None` for other schemes and for an empty token.
fn bearer_token(header: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = header.trim_ascii().split_at_checked(7)?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"Bearer ") && !token.is_empty()).then_some(token)
}

/// Whether a Secret holds a token.
fn holds(secret: &Value, token: &str) -> bool {
    secret.pointer("/data/token").and_then(Value::as_str) == Some(STANDARD.encode(token).as_str())
}

#[cfg(test)]
mod tests;
