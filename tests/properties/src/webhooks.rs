//! Webhooks of registries and git servers: their headers, signatures and payloads.

use chandler_api::ReceiverType;
use chandler_core::Digest;
use chandler_receivers::{Keys, Named, Presented, Repository, Token, is_authentic, payload::MOST_REPOSITORIES, read};
use http::{HeaderMap, HeaderName, HeaderValue};
use ring::hmac;

use crate::{archive::Archive, memory};

/// A few copies of the body, and the names in it.
const FIXED: usize = 1 << 20;
const PER_BYTE: usize = 200;
/// The most headers that are read: the server of webhooks accepts no more either.
const HEADERS: usize = 64;

/// The files `headers` (a name, a colon and a value in each line), `events` (a word in each line) and `body`.
pub(crate) fn holds(input: &[u8]) {
    let archive = Archive::read(input);
    let file = |name: &str| archive.files.get(name).map(Vec::as_slice).unwrap_or_default();
    let (headers, body) = (headers(file("headers")), file("body"));
    let events: Vec<String> = String::from_utf8_lossy(file("events")).lines().take(32).map(ToOwned::to_owned).collect();
    // An input cannot contain its own digest.
    let secret = Digest::of(input).hex().to_owned();
    let token = Token::new(secret.as_bytes()).expect("a digest is long enough");
    assert!(!token.path("pushes").contains(&secret), "the path reveals the token");
    memory::bounded(input, FIXED, PER_BYTE, || {
        for kind in ReceiverType::ALL.iter().copied() {
            let is_path_alone = matches!(kind, ReceiverType::Dockerhub | ReceiverType::Quay);
            assert_eq!(is_authentic(kind, &token, &headers, body), is_path_alone, "{kind:?}: it was made up");
            said(kind, &headers, body, &events);
        }
        signed(&secret, &token, &headers, body);
        identity(&headers, body);
        for line in String::from_utf8_lossy(body).lines().take(16) {
            repository(line);
        }
    });
}

/// What a request says is bounded, the same each time, and nothing more with a filter of events.
fn said(kind: ReceiverType, headers: &HeaderMap, body: &[u8], events: &[String]) {
    let all = read(kind, headers, body, &[]);
    assert_eq!(all, read(kind, headers, body, &[]), "{kind:?}: it is read one way");
    if let Ok(Named::Repositories(named)) = &all {
        assert!(!named.is_empty() && named.len() <= MOST_REPOSITORIES, "{kind:?}: {named:?}");
    }
    let Ok(counted) = read(kind, headers, body, events) else { return };
    let is_narrower = match (&counted, &all) {
        (Named::Nothing, _) | (_, Ok(Named::Anything)) => true,
        // A distribution reports several events at once, of which only some count.
        (Named::Repositories(some), Ok(Named::Repositories(all))) => some.is_subset(all),
        // The events that count name nothing, or the other ones named more than is compared.
        (Named::Anything, Ok(Named::Repositories(_))) => kind == ReceiverType::Distribution,
        _ => false,
    };
    assert!(is_narrower, "{kind:?}: {counted:?} of {all:?}");
}

/// The owner of the token is authentic, but neither with another body nor with the header twice.
fn signed(secret: &str, token: &Token, headers: &HeaderMap, body: &[u8]) {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let code = hex::encode(hmac::sign(&key, body));
    let bearer = format!("Bearer {secret}");
    for (kind, name, value) in [
        (ReceiverType::GenericHmac, "x-signature", format!("sha256={code}")),
        (ReceiverType::Github, "x-hub-signature-256", format!("sha256={code}")),
        (ReceiverType::Gitea, "x-gitea-signature", code.clone()),
        (ReceiverType::Forgejo, "x-forgejo-signature", code),
        (ReceiverType::Gitlab, "x-gitlab-token", secret.to_owned()),
        (ReceiverType::Harbor, "authorization", bearer.clone()),
        (ReceiverType::Distribution, "authorization", bearer),
    ] {
        let (name, value) = (HeaderName::from_static(name), HeaderValue::try_from(value).expect("a value"));
        let mut headers = headers.clone();
        headers.insert(name.clone(), value.clone());
        assert!(is_authentic(kind, token, &headers, body), "{kind:?}");
        let is_signature = !matches!(kind, ReceiverType::Gitlab | ReceiverType::Harbor | ReceiverType::Distribution);
        let other = [body, b" "].concat();
        assert_eq!(is_authentic(kind, token, &headers, &other), !is_signature, "{kind:?}: another body");
        headers.append(name, value);
        assert!(!is_authentic(kind, token, &headers, body), "{kind:?}: twice");
    }
}

/// An identity token and the keys of its issuer are read or refused. An input contains no key with a signature that fits.
fn identity(headers: &HeaderMap, body: &[u8]) {
    let Ok(token) = Presented::of(headers) else { return };
    assert!(Keys::parse(body).unwrap_or_default().verify(&token).is_err(), "it was made up");
}

/// A name is read as one thing, whatever its case.
fn repository(text: &str) {
    for of in [Repository::of_text, Repository::of_url, Repository::of_path] {
        assert_eq!(of(text), of(text), "{text:?}");
    }
    assert_eq!(Repository::of_path(text), Repository::of_path(&text.to_ascii_lowercase()), "{text:?}");
}

fn headers(text: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in text.split(|byte| *byte == b'\n').take(HEADERS) {
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let name = parts.next().and_then(|name| HeaderName::from_bytes(name.trim_ascii()).ok());
        let value = parts.next().and_then(|value| HeaderValue::from_bytes(value.trim_ascii()).ok());
        if let (Some(name), Some(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    headers
}
