//! Whether a request comes from the owner of the token.

use chandler_api::ReceiverType;
use http::{HeaderMap, header::AUTHORIZATION};

use crate::Token;

/// Whether a request with these headers and this body, at the path of the Receiver, is authentic. A header that occurs twice is refused:
/// a proxy in front may read another one of them. Docker Hub and Quay sign nothing, so that the path is what they know. Identity tokens
/// are judged by [`identity`](crate::identity): the token of the Receiver does not authenticate such requests.
pub fn is_authentic(kind: ReceiverType, token: &Token, headers: &HeaderMap, body: &[u8]) -> bool {
    let header = |name: &str| {
        let mut values = headers.get_all(name).iter();
        values.next().filter(|_| values.next().is_none()).map(http::HeaderValue::as_bytes)
    };
    match kind {
        ReceiverType::GenericHmac => header("x-signature").is_some_and(|value| is_signed(token, value, body)),
        ReceiverType::Github => header("x-hub-signature-256")
            .filter(|value| value.starts_with(b"sha256="))
            .is_some_and(|value| is_signed(token, value, body)),
        ReceiverType::Gitea | ReceiverType::Forgejo => {
            let own = if kind == ReceiverType::Forgejo { header("x-forgejo-signature") } else { None };
            let code = own.or_else(|| header("x-gitea-signature")).and_then(|value| hex::decode(value).ok());
            code.is_some_and(|code| token.signed_sha256(body, &code))
        }
        ReceiverType::Gitlab => header("x-gitlab-token").is_some_and(|value| token.is(value)),
        ReceiverType::Harbor | ReceiverType::Distribution => header(AUTHORIZATION.as_str())
            .is_some_and(|value| token.is(value) | token.is(value.strip_prefix(b"Bearer ").unwrap_or_default())),
        ReceiverType::Dockerhub | ReceiverType::Quay => true,
        ReceiverType::Oidc | ReceiverType::GooglePubsub => false,
    }
}

/// Whether a header such as `sha256=HEX` has the signature of the body.
fn is_signed(token: &Token, header: &[u8], body: &[u8]) -> bool {
    let code = |prefix: &[u8]| header.strip_prefix(prefix).and_then(|code| hex::decode(code).ok());
    match (code(b"sha256="), code(b"sha512=")) {
        (Some(code), _) => token.signed_sha256(body, &code),
        (None, Some(code)) => token.signed_sha512(body, &code),
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use hmac::{Hmac, Mac as _};
    use http::{HeaderName, HeaderValue};
    use sha2::{Sha256, Sha512};

    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";
    const BODY: &[u8] = br#"{"a":1}"#;

    fn sha256(key: &str, body: &[u8]) -> String {
        hex::encode(Hmac::<Sha256>::new_from_slice(key.as_bytes()).unwrap().chain_update(body).finalize().into_bytes())
    }

    fn sha512(key: &str, body: &[u8]) -> String {
        hex::encode(Hmac::<Sha512>::new_from_slice(key.as_bytes()).unwrap().chain_update(body).finalize().into_bytes())
    }

    fn accepts(kind: ReceiverType, headers: &[(&'static str, String)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        is_authentic(kind, &Token::new(TOKEN.as_bytes()).unwrap(), &map, BODY)
    }

    #[test]
    fn each_type_accepts_what_its_sender_sends_and_nothing_else() {
        use ReceiverType::{Distribution, Forgejo, GenericHmac, Gitea, Github, Gitlab, Harbor};
        let (good, other) = (sha256(TOKEN, BODY), sha256("another token of thirty-two bytes", BODY));
        let prefixed = format!("sha256={good}");
        let wrong = TOKEN.replace('0', "1");
        for (kind, header, value, expected) in [
            (GenericHmac, "x-signature", prefixed.clone(), true),
            (GenericHmac, "x-signature", format!("sha512={}", sha512(TOKEN, BODY)), true),
            (GenericHmac, "x-signature", format!("sha512={good}"), false),
            (GenericHmac, "x-signature", good.clone(), false),
            (GenericHmac, "x-signature", format!("sha256={}", &good[..62]), false),
            (GenericHmac, "x-signature", "sha256=".to_owned(), false),
            (GenericHmac, "x-signature", format!("sha256={other}"), false),
            (GenericHmac, "x-signature", format!("sha256={}", sha256(TOKEN, b"{}")), false),
            (GenericHmac, "x-hub-signature-256", prefixed.clone(), false),
            (Github, "x-hub-signature-256", prefixed.clone(), true),
            (Github, "x-hub-signature-256", format!("sha512={}", sha512(TOKEN, BODY)), false),
            (Github, "x-hub-signature-256", format!("sha256={other}"), false),
            (Github, "x-hub-signature", prefixed.clone(), false),
            (Gitea, "x-gitea-signature", good.clone(), true),
            (Gitea, "x-gitea-signature", prefixed.clone(), false),
            (Gitea, "x-forgejo-signature", good.clone(), false),
            (Forgejo, "x-forgejo-signature", good.clone(), true),
            (Forgejo, "x-gitea-signature", good.clone(), true),
            (Forgejo, "x-gitea-signature", other.clone(), false),
            (Gitlab, "x-gitlab-token", TOKEN.to_owned(), true),
            (Gitlab, "x-gitlab-token", wrong.clone(), false),
            (Gitlab, "x-gitlab-token", String::new(), false),
            (Harbor, "authorization", TOKEN.to_owned(), true),
            (Harbor, "authorization", format!("Bearer {TOKEN}"), true),
            (Harbor, "authorization", format!("Basic {TOKEN}"), false),
            (Distribution, "authorization", format!("Bearer {TOKEN}"), true),
            (Distribution, "authorization", format!("Bearer {wrong}"), false),
            (Distribution, "authorization", "Bearer ".to_owned(), false),
        ] {
            assert_eq!(accepts(kind, &[(header, value.clone())]), expected, "{kind:?} {header}: {value}");
            // Neither one of them counts if there are two.
            assert!(!accepts(kind, &[(header, value.clone()), (header, value)]), "{kind:?} {header} twice");
        }
        for kind in ReceiverType::ALL {
            let is_path_alone = matches!(kind, ReceiverType::Dockerhub | ReceiverType::Quay);
            assert_eq!(accepts(*kind, &[]), is_path_alone, "{kind:?}");
        }
    }
}
