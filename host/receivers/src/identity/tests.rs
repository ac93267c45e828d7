use proptest::prelude::*;
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use serde_json::json;

use super::*;
use crate::Keys;

const NOW: i64 = 1_800_000_060;
const EMAIL: &str = "push@project.iam.gserviceaccount.com";

/// A token for RS256 and one for PS256, which OpenSSL signed, and the public key. The private key was deleted.
const RSA: &str = include_str!("rsa.json");

fn spec() -> ReceiverOidc {
    ReceiverOidc {
        issuer: None,
        audience: Some("https://hooks.example.com/".to_owned()),
        subjects: Vec::new(),
        claims: BTreeMap::from([("email".to_owned(), EMAIL.to_owned())]),
    }
}

fn expected_of(oidc: &ReceiverOidc) -> Expected {
    Expected::new("pushes", ReceiverType::GooglePubsub, Some(oidc)).unwrap().unwrap()
}

fn expected() -> Expected {
    expected_of(&spec())
}

fn claims() -> Value {
    json!({"iss": GOOGLE, "aud": "https://hooks.example.com/", "sub": "1", "iat": NOW - 60, "exp": NOW + 3540,
           "email": EMAIL, "email_verified": true})
}

fn with(changes: &Value) -> Value {
    let mut claims = claims();
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
            value => claims[name] = value.clone(),
        }
    }
    claims
}

fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// A key for ES256, as the issuer publishes it.
struct Signer {
    pair: EcdsaKeyPair,
    jwk: Value,
}

impl Signer {
    fn new(name: &str) -> Self {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap();
        let point = pair.public_key().as_ref();
        let (x, y) = (URL_SAFE_NO_PAD.encode(&point[1..33]), URL_SAFE_NO_PAD.encode(&point[33..]));
        Self { jwk: json!({"kty": "EC", "crv": "P-256", "kid": name, "x": x, "y": y}), pair }
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let signed = format!("{}.{}", encoded(header), encoded(claims));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    }
}

fn keys(jwks: &[Value]) -> Keys {
    Keys::parse(json!({"keys": jwks}).to_string().as_bytes()).unwrap()
}

fn judged(token: &str, keys: &Keys, expected: &Expected) -> Result<(), Unproven> {
    let token = Presented::parse(token)?;
    token.check(expected, NOW)?;
    keys.verify(&token)
}

#[test]
fn a_token_is_accepted_with_its_key_only() {
    let rsa: Value = serde_json::from_str(RSA).unwrap();
    let rs256 = rsa["RS256"].as_str().unwrap().to_owned();
    let of_rsa = keys(&[rsa["jwk"].clone()]);
    let signer = Signer::new("a");
    let es256 = signer.sign(&json!({"alg": "ES256", "kid": "a"}), &claims());
    let of_es = keys(&[signer.jwk]);
    for (token, own, other) in [(rs256, &of_rsa, &of_es), (es256, &of_es, &of_rsa)] {
        assert_eq!(judged(&token, own, &expected()), Ok(()), "{token}");
        assert_eq!(judged(&token, other, &expected()), Err(Unproven::UnknownKey), "a key of another kind");
        let (content, signature) = token.rsplit_once('.').unwrap();
        let other = format!("{content}.{}", URL_SAFE_NO_PAD.encode([1; 64]));
        assert_eq!(judged(&other, own, &expected()), Err(Unproven::Signature));
        let (header, _) = content.split_once('.').unwrap();
        let later = encoded(&with(&json!({"exp": NOW + 86_400})));
        assert_eq!(judged(&format!("{header}.{later}.{signature}"), own, &expected()), Err(Unproven::Signature));
    }
    assert_eq!(judged(rsa["PS256"].as_str().unwrap(), &of_rsa, &expected()), Err(Unproven::Algorithm));
}

#[test]
fn no_token_without_a_signature_of_the_issuer_is_accepted() {
    let signer = Signer::new("a");
    let public = keys(&[signer.jwk.clone(), json!({"kty": "oct", "kid": "a", "k": "c2VjcmV0"})]);
    for alg in ["none", "None", "", "HS256", "HS512", "RS512", "PS256", "ES512", "EdDSA", "RSA-OAEP"] {
        let token = signer.sign(&json!({"alg": alg, "kid": "a"}), &claims());
        assert_eq!(judged(&token, &public, &expected()), Err(Unproven::Algorithm), "{alg}");
        let (content, _) = token.rsplit_once('.').unwrap();
        assert_eq!(judged(&format!("{content}."), &public, &expected()), Err(Unproven::Algorithm), "{alg}");
    }
    let header = json!({"alg": "ES256", "kid": "a"});
    let token = signer.sign(&header, &claims());
    let (content, _) = token.rsplit_once('.').unwrap();
    assert_eq!(judged(&format!("{content}."), &public, &expected()), Err(Unproven::Signature));
    assert_eq!(judged(&Signer::new("a").sign(&header, &claims()), &public, &expected()), Err(Unproven::Signature));
    // A key that the token itself brings along does not count.
    let stranger = Signer::new("a");
    let brought = stranger.sign(&json!({"alg": "ES256", "jwk": stranger.jwk, "jku": "https://x.example"}), &claims());
    assert_eq!(judged(&brought, &public, &expected()), Err(Unproven::UnknownKey));
    let critical = signer.sign(&json!({"alg": "ES256", "kid": "a", "crit": ["exp"]}), &claims());
    assert_eq!(judged(&critical, &public, &expected()), Err(Unproven::Malformed));
}

#[test]
fn a_token_is_verified_with_one_key() {
    let (signer, newer) = (Signer::new("a"), Signer::new("b"));
    let (one, both) = (keys(std::slice::from_ref(&signer.jwk)), keys(&[signer.jwk.clone(), newer.jwk.clone()]));
    let token = newer.sign(&json!({"alg": "ES256", "kid": "b"}), &claims());
    assert_eq!(judged(&token, &one, &expected()), Err(Unproven::UnknownKey), "it is newer than the keys");
    assert_eq!(judged(&token, &both, &expected()), Ok(()));
    let unnamed = signer.sign(&json!({"alg": "ES256"}), &claims());
    assert_eq!(judged(&unnamed, &one, &expected()), Ok(()), "the single key of its kind");
    assert_eq!(judged(&unnamed, &both, &expected()), Err(Unproven::UnknownKey), "no key is guessed");
}

#[test]
fn every_claim_counts() {
    use Unproven::{Audience, Claims, Expired, Issuer, Malformed, TooEarly};
    let (signer, header) = (Signer::new("a"), json!({"alg": "ES256", "kid": "a"}));
    let public = keys(std::slice::from_ref(&signer.jwk));
    for (changes, result) in [
        (json!({}), Ok(())),
        (json!({"iss": "https://accounts.google.com/"}), Err(Issuer)),
        (json!({"iss": null}), Err(Issuer)),
        (json!({"aud": ["https://other.example.com", "https://hooks.example.com/"]}), Ok(())),
        (json!({"aud": "https://hooks.example.com"}), Err(Audience)),
        (json!({"aud": []}), Err(Audience)),
        (json!({"aud": null}), Err(Audience)),
        (json!({"aud": {"https://hooks.example.com/": 1}}), Err(Audience)),
        (json!({"email": "other@project.iam.gserviceaccount.com"}), Err(Claims)),
        (json!({"email": [EMAIL]}), Err(Claims)),
        (json!({"email": null}), Err(Claims)),
        (json!({"email_verified": false}), Err(Claims)),
        (json!({"email_verified": "true"}), Err(Claims)),
        (json!({"email_verified": null}), Err(Claims)),
        (json!({"exp": NOW - 61}), Err(Expired)),
        (json!({"exp": NOW - 59}), Ok(())),
        (json!({"exp": NOW.to_string()}), Err(Malformed)),
        (json!({"exp": null}), Err(Expired)),
        (json!({"nbf": NOW + 61}), Err(TooEarly)),
        (json!({"nbf": NOW + 59}), Ok(())),
        (json!({"nbf": "never"}), Err(Malformed)),
        (json!({"iat": NOW + 61}), Err(TooEarly)),
        (json!({"iat": null}), Ok(())),
    ] {
        let token = signer.sign(&header, &with(&changes));
        assert_eq!(judged(&token, &public, &expected()), result, "{changes}");
    }
}

#[test]
fn subjects_and_claims_are_patterns_and_both_count() {
    let subject = "repo:example/shop:ref:refs/heads/main";
    let (signer, header) = (Signer::new("a"), json!({"alg": "ES256", "kid": "a"}));
    let public = keys(std::slice::from_ref(&signer.jwk));
    let more = json!({"sub": subject, "repository_id": 123, "ref_protected": true, "actor": {"name": "x"}});
    let token = signer.sign(&header, &with(&more));
    let judge = |subjects: &[&str], claims: &[(&str, &str)]| {
        let subjects = subjects.iter().map(|text| (*text).to_owned()).collect();
        let claims = claims.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        judged(&token, &public, &expected_of(&ReceiverOidc { subjects, claims, ..spec() }))
    };
    for (subjects, claims, accepted) in [
        (&[subject][..], &[][..], true),
        (&["repo:example/shop:*"], &[], true),
        (&["repo:example/other:*", "repo:example/shop:*"], &[], true),
        (&["repo:example/shop"], &[], false),
        (&[], &[("repository_id", "123"), ("ref_protected", "true")], true),
        (&[], &[("repository_id", "123"), ("ref_protected", "false")], false),
        (&[subject], &[("repository_id", "124")], false),
        (&["repo:example/other:*"], &[("repository_id", "123")], false),
        (&[subject], &[("actor", "{*")], false),
        (&[subject], &[("missing", "a*")], false),
    ] {
        let result = if accepted { Ok(()) } else { Err(Unproven::Claims) };
        assert_eq!(judge(subjects, claims), result, "{subjects:?} {claims:?}");
    }
}

#[test]
fn a_spec_that_accepts_no_one_or_everyone_is_refused() {
    use InvalidOidc::{Everyone, Issuer, Missing, NoIssuer, Pattern, Unused};
    let of = |kind, oidc: Option<ReceiverOidc>| Expected::new("pushes", kind, oidc.as_ref());
    let issuer = |text: &str| Some(ReceiverOidc { issuer: Some(text.to_owned()), ..spec() });
    let (oidc, google) = (ReceiverType::Oidc, ReceiverType::GooglePubsub);
    for kind in ReceiverType::ALL.iter().copied().filter(|kind| !kind.has_identity_tokens()) {
        assert_eq!(of(kind, None), Ok(None));
        assert_eq!(of(kind, Some(spec())), Err(Unused));
    }
    assert_eq!(of(google, None), Err(Missing));
    assert_eq!(of(oidc, Some(spec())), Err(NoIssuer));
    assert_eq!(of(google, Some(spec())).unwrap().unwrap().issuer(), GOOGLE);
    for text in ["https://issuer.example.com", "https://issuer.example.com:8443/path"] {
        assert_eq!(of(oidc, issuer(text)).unwrap().unwrap().issuer(), text);
    }
    for text in [
        "http://issuer.example.com",
        "https://",
        "https:///x",
        "https://ann:s3cret@issuer.example.com",
        "https://issuer.example.com?x",
        "https://issuer.example.com#x",
        "https://issuer.example.com/a b",
        "file:///etc/passwd",
    ] {
        assert_eq!(of(oidc, issuer(text)), Err(Issuer), "{text}");
    }
    assert_eq!(of(google, Some(ReceiverOidc { claims: BTreeMap::new(), ..spec() })), Err(Everyone));
    for text in ["", "*", "*:main"] {
        assert_eq!(of(google, Some(ReceiverOidc { subjects: vec![text.to_owned()], ..spec() })), Err(Pattern));
    }
    let named = of(google, Some(ReceiverOidc { audience: None, ..spec() })).unwrap().unwrap();
    assert_eq!(named.audience, "chandler.dev/receivers/pushes");
}

#[test]
fn the_token_is_in_one_header() {
    let token = Signer::new("a").sign(&json!({"alg": "ES256"}), &claims());
    let of = |values: &[String]| {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, value.parse().unwrap());
        }
        Presented::of(&headers).map(drop)
    };
    let bearer = format!("Bearer {token}");
    assert_eq!(of(std::slice::from_ref(&bearer)), Ok(()));
    assert_eq!(of(&[format!("bearer {token}")]), Ok(()));
    assert_eq!(of(&[]), Err(Unproven::Missing));
    assert_eq!(of(&[bearer.clone(), bearer]), Err(Unproven::Missing));
    assert_eq!(of(&[format!("Basic {token}")]), Err(Unproven::Missing));
    assert_eq!(of(std::slice::from_ref(&token)), Err(Unproven::Missing));
    for text in ["a", "a.b", "a.b.c", "..", "a.b.c.d"] {
        assert_eq!(of(&[format!("Bearer {text}")]), Err(Unproven::Malformed), "{text}");
    }
    let long = format!("Bearer {}", "a".repeat(LONGEST + 1));
    assert_eq!(of(&[long]), Err(Unproven::Malformed));
    let deep = format!("{}.{}.", encoded(&json!({"alg": "ES256"})), URL_SAFE_NO_PAD.encode("[".repeat(5000)));
    assert_eq!(of(&[format!("Bearer {deep}")]), Err(Unproven::Malformed));
}

#[test]
fn a_wildcard_matches_any_characters_and_the_rest_itself() {
    for (pattern, text, expected) in [
        ("a", "a", true),
        ("a", "ab", false),
        ("a*", "a", true),
        ("a*", "ab", true),
        ("a*", "ba", false),
        ("a*c", "abc", true),
        ("a*c", "abcd", false),
        ("a*c", "a", false),
        ("a*a", "a", false),
        ("a*b*c", "a-b-b-c", true),
        ("a*b*b", "a-b", false),
        ("a**b", "ab", true),
        ("a.c", "abc", false),
    ] {
        assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
    }
}

proptest! {
    /// Parts of the pattern with anything between them fit it.
    #[test]
    fn a_text_that_is_made_from_a_pattern_fits(parts in prop::collection::vec("[ab]{0,3}", 1..5), between in "[ab]{0,4}") {
        prop_assert!(matches(&parts.join("*"), &parts.join(&between)));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*", pattern in "[ab*]{0,8}") {
        let _ = Presented::parse(&text);
        let _ = matches(&pattern, &text);
        prop_assert!(Keys::parse(text.as_bytes()).is_err());
    }
}
