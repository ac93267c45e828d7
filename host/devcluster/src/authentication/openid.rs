//! The documents with which other services can verify the tokens of ServiceAccounts (OpenID Connect Discovery 1.0).

use serde_json::{Value, json};

use super::{Authenticator, claims::ISSUER, jwt};

/// Where the keys are served.
pub const KEYS_PATH: &str = "/openid/v1/jwks";
/// Media type of [`keys`].
pub const KEYS_TYPE: &str = "application/jwk-set+json";

/// `/.well-known/openid-configuration`
pub fn configuration(authenticator: &Authenticator) -> Value {
    json!({
        "issuer": ISSUER,
        "jwks_uri": format!("{}{KEYS_PATH}", authenticator.url()),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [jwt::ALGORITHM],
    })
}

/// `/openid/v1/jwks`
pub fn keys(authenticator: &Authenticator) -> Value {
    authenticator.key().map_or_else(|| json!({"keys": []}), jwt::SigningKey::key_set)
}
