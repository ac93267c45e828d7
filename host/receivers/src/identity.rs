//! Identity tokens of OpenID Connect: JSON Web Tokens (RFC 7519) in the header `Authorization`, and the claims that authenticate a request.
//!
//! A token is untrusted until [`Keys::verify`](crate::Keys::verify) accepts its signature. The claims are compared before, so that a token for
//! another audience needs no keys: what is compared and what is signed are the same bytes.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chandler_api::{ReceiverOidc, ReceiverType};
use http::{HeaderMap, header::AUTHORIZATION};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value};

use crate::keys::Algorithm;

/// The issuer of Google's identity tokens, which Pub/Sub sends.
pub const GOOGLE: &str = "https://accounts.google.com";
/// What the audience begins with if a Receiver names none. Its name follows.
pub const AUDIENCE: &str = "chandler.dev/receivers/";
/// The longest token, in bytes.
const LONGEST: usize = 16 << 10;
/// How far clocks may differ, in seconds.
const LEEWAY: f64 = 60.0;

/// Why a token does not authenticate a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unproven {
    /// No header, two of them, or another scheme than Bearer.
    #[error("the request has not exactly one header Authorization with a bearer token")]
    Missing,
    /// Not a JSON Web Token of at most 16 KiB, or one with extensions that are not known.
    #[error("the token is not a JSON Web Token")]
    Malformed,
    /// Another algorithm than the accepted ones.
    #[error("the token has an algorithm that is not accepted")]
    Algorithm,
    /// The claim `iss`.
    #[error("another issuer issued the token")]
    Issuer,
    /// The claim `aud`.
    #[error("the token is for another audience")]
    Audience,
    /// The claim `sub`, or another one that the Receiver demands.
    #[error("the token has another subject, or not the claims that the Receiver demands")]
    Claims,
    /// The claim `exp`.
    #[error("the token has expired")]
    Expired,
    /// The claims `nbf` and `iat`.
    #[error("the token is not valid yet")]
    TooEarly,
    /// The issuer has no such key.
    #[error("the issuer has no key with which the token may be signed")]
    UnknownKey,
    /// The signature does not fit.
    #[error("the signature of the token is wrong")]
    Signature,
}

/// A spec that would accept no tokens, or the tokens of everyone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOidc {
    /// The type needs it.
    #[error("spec.oidc is missing: spec.type needs it")]
    Missing,
    /// The type has no identity tokens.
    #[error("spec.oidc is set: only the types oidc and google-pubsub have identity tokens")]
    Unused,
    /// No issuer, and no default.
    #[error("spec.oidc.issuer is missing")]
    NoIssuer,
    /// Not a URL of an issuer.
    #[error("spec.oidc.issuer is not an https URL without user, query and fragment")]
    Issuer,
    /// Everyone with an account of the issuer would be accepted.
    #[error("spec.oidc has neither subjects nor claims: everyone with a token of the issuer would be accepted")]
    Everyone,
    /// A pattern begins with a wildcard.
    #[error("a subject or a claim of spec.oidc is empty, or begins with *")]
    Pattern,
}

/// What a token must contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    issuer: String,
    audience: String,
    subjects: Vec<String>,
    claims: BTreeMap<String, String>,
}

impl Expected {
    /// What the Receiver of this name demands; `None` for types without identity tokens.
    ///
    /// # Errors
    /// The spec would accept no tokens, or the tokens of everyone.
    pub fn new(name: &str, kind: ReceiverType, oidc: Option<&ReceiverOidc>) -> Result<Option<Self>, InvalidOidc> {
        let oidc = match (kind.has_identity_tokens(), oidc) {
            (false, None) => return Ok(None),
            (false, Some(_)) => return Err(InvalidOidc::Unused),
            (true, None) => return Err(InvalidOidc::Missing),
            (true, Some(oidc)) => oidc,
        };
        let ReceiverOidc { issuer, audience, subjects, claims } = oidc;
        let default = (kind == ReceiverType::GooglePubsub).then(|| GOOGLE.to_owned());
        let issuer = issuer.clone().or(default).ok_or(InvalidOidc::NoIssuer)?;
        let host = issuer.strip_prefix("https://").ok_or(InvalidOidc::Issuer)?;
        let is_odd = |letter: char| "@?#".contains(letter) || letter.is_whitespace() || letter.is_control();
        if host.is_empty() || host.starts_with('/') || host.contains(is_odd) {
            return Err(InvalidOidc::Issuer);
        }
        if subjects.is_empty() && claims.is_empty() {
            return Err(InvalidOidc::Everyone);
        }
        if subjects.iter().chain(claims.values()).any(|pattern| pattern.is_empty() || pattern.starts_with('*')) {
            return Err(InvalidOidc::Pattern);
        }
        let audience = audience.clone().unwrap_or_else(|| format!("{AUDIENCE}{name}"));
        Ok(Some(Self { issuer, audience, subjects: subjects.clone(), claims: claims.clone() }))
    }

    /// The issuer, as its tokens name it.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }
}

/// A token whose signature has not been verified.
#[derive(Clone, Debug)]
pub struct Presented<'a> {
    pub(crate) algorithm: Algorithm,
    /// The name of the key.
    pub(crate) key: Option<String>,
    /// Header and payload as they are signed.
    pub(crate) signed: &'a str,
    pub(crate) signature: Vec<u8>,
    claims: Map<String, Value>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    /// Extensions that a reader must understand. None are understood.
    #[serde(default)]
    crit: Option<IgnoredAny>,
}

impl<'a> Presented<'a> {
    /// The token of a request.
    ///
    /// # Errors
    /// The request has none, or one that cannot be read or is not signed with an accepted algorithm.
    pub fn of(headers: &'a HeaderMap) -> Result<Self, Unproven> {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let value = values.next().filter(|_| values.next().is_none()).and_then(|value| value.to_str().ok());
        let (scheme, token) = value.and_then(|value| value.split_once(' ')).ok_or(Unproven::Missing)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(Unproven::Missing);
        }
        Self::parse(token)
    }

    fn parse(token: &'a str) -> Result<Self, Unproven> {
        if token.len() > LONGEST {
            return Err(Unproven::Malformed);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(Unproven::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(Unproven::Malformed)?;
        let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| Unproven::Malformed);
        let header: Header = serde_json::from_slice(&decoded(header)?).map_err(|_| Unproven::Malformed)?;
        if header.crit.is_some() {
            return Err(Unproven::Malformed);
        }
        let algorithm = Algorithm::from_name(&header.alg).ok_or(Unproven::Algorithm)?;
        let claims = serde_json::from_slice(&decoded(claims)?).map_err(|_| Unproven::Malformed)?;
        Ok(Self { algorithm, key: header.kid, signed, signature: decoded(signature)?, claims })
    }

    /// Compares the claims at this time, in seconds since 1970. The result counts only if the signature is verified, too.
    ///
    /// # Errors
    /// The token is not what the Receiver demands.
    pub fn check(&self, expected: &Expected, now: i64) -> Result<(), Unproven> {
        let Expected { issuer, audience, subjects, claims } = expected;
        if self.text("iss") != Some(issuer.as_str()) {
            return Err(Unproven::Issuer);
        }
        let is_audience = |value: &Value| value.as_str() == Some(audience.as_str());
        let is_for_us = match self.claims.get("aud") {
            Some(Value::Array(all)) => all.iter().any(is_audience),
            one => one.is_some_and(is_audience),
        };
        if !is_for_us {
            return Err(Unproven::Audience);
        }
        let has_subject = || {
            let subject = self.text("sub");
            subjects.iter().any(|pattern| subject.is_some_and(|subject| matches(pattern, subject)))
        };
        let has = |(name, pattern): (&String, &String)| match self.claims.get(name) {
            Some(Value::String(text)) => matches(pattern, text),
            Some(value @ (Value::Bool(_) | Value::Number(_))) => matches(pattern, &value.to_string()),
            _ => false,
        };
        // An address that the issuer has not verified is one that anyone may have entered.
        let is_verified = || self.claims.get("email_verified") == Some(&Value::Bool(true));
        if !(subjects.is_empty() || has_subject())
            || !claims.iter().all(has)
            || (claims.contains_key("email") && !is_verified())
            || (subjects.is_empty() && claims.is_empty())
        {
            return Err(Unproven::Claims);
        }
        #[expect(clippy::cast_precision_loss, reason = "seconds of this millennium have an exact representation")]
        let now = now as f64;
        if !self.time("exp")?.is_some_and(|expires| expires + LEEWAY > now) {
            return Err(Unproven::Expired);
        }
        for name in ["nbf", "iat"] {
            if self.time(name)?.is_some_and(|time| time - LEEWAY > now) {
                return Err(Unproven::TooEarly);
            }
        }
        Ok(())
    }

    fn text(&self, claim: &str) -> Option<&str> {
        self.claims.get(claim).and_then(Value::as_str)
    }

    /// A time in seconds since 1970.
    fn time(&self, claim: &str) -> Result<Option<f64>, Unproven> {
        match self.claims.get(claim) {
            None => Ok(None),
            Some(value) => value.as_f64().map(Some).ok_or(Unproven::Malformed),
        }
    }
}

/// Whether a text fits a pattern, in which * matches any number of characters.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    // The first place of each part leaves the most for the following ones; the last part is at the end.
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return text.ends_with(part);
        }
        let Some((_, after)) = text.split_once(part) else { return false };
        text = after;
    }
    true
}

#[cfg(test)]
mod tests;
