//! Authentication of clients.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use chandler_core::Digest;
use http::{HeaderMap, Response, StatusCode, header::AUTHORIZATION};
use serde_json::json;

use crate::{
    response::{self, Body},
    route::{TOKEN, query_field},
};

/// The credentials that the registry requires.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Authentication {
    /// None.
    #[default]
    None,
    /// A name and a password with each request.
    Basic {
        /// The name.
        username: String,
        /// The password.
        password: String,
    },
    /// A token, which the registry's own token server issues for a name and a password, or for a refresh token equal to
    /// the password.
    Token {
        /// The name.
        username: String,
        /// The password.
        password: String,
    },
}

impl fmt::Debug for Authentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Basic { .. } => "Basic(redacted)",
            Self::Token { .. } => "Token(redacted)",
        })
    }
}

fn basic(username: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{username}:{password}")))
}

fn token(username: &str, password: &str) -> String {
    Digest::of(format!("{username}\0{password}").as_bytes()).hex().to_owned()
}

fn shown(headers: &HeaderMap) -> &str {
    headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

impl Authentication {
    /// The challenge for a request without valid credentials.
    pub(crate) fn challenge(&self, headers: &HeaderMap, base: &str) -> Option<Response<Body>> {
        let (expected, challenge) = match self {
            Self::None => return None,
            Self::Basic { username, password } => (basic(username, password), "Basic realm=\"registry\"".to_owned()),
            Self::Token { username, password } => (
                format!("Bearer {}", token(username, password)),
                format!("Bearer realm=\"{base}{TOKEN}\",service=\"devregistry\""),
            ),
        };
        if shown(headers) == expected {
            return None;
        }
        let mut response = response::error(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", "authentication required");
        response::header(&mut response, "www-authenticate", &challenge);
        Some(response)
    }

    /// The token server.
    pub(crate) fn issue(&self, headers: &HeaderMap, form: &Bytes) -> Response<Body> {
        let Self::Token { username, password } = self else {
            return response::error(StatusCode::NOT_FOUND, "UNSUPPORTED", "the registry does not issue tokens");
        };
        let form = std::str::from_utf8(form).unwrap_or_default();
        let refresh = query_field(form, "refresh_token").is_some_and(|token| token == *password);
        if refresh || shown(headers) == basic(username, password) {
            return response::json(StatusCode::OK, &json!({"token": token(username, password), "expires_in": 300}));
        }
        response::error(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", "incorrect username or password")
    }
}
