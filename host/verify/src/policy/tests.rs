use rcgen::{KeyPair, PKCS_ECDSA_P384_SHA384, PKCS_ED25519};
use serde_json::{Value, json};

use super::*;

fn parse(policy: Value) -> Result<Policy, PolicyError> {
    Policy::parse(&serde_json::from_value(policy).unwrap())
}

fn key() -> Value {
    json!({"publicKey": {"key": KeyPair::generate().unwrap().public_key_pem()}})
}

fn action(owner: &str) -> Value {
    json!({"githubAction": {"owner": owner}})
}

#[test]
fn policies_are_parsed() {
    let (p384, ed25519) = (&PKCS_ECDSA_P384_SHA384, &PKCS_ED25519);
    let other = |algorithm| json!({"publicKey": {"key": KeyPair::generate_for(algorithm).unwrap().public_key_pem(), "requireTransparencyLog": true}});
    let uri = json!({"keyless": {"issuer": "https://a.example", "subject": {"prefix": "https://github.com/org"}}});
    let mail = json!({"keyless": {"issuer": "https://a.example", "subject": {"equal": "a@example.com"}}});
    let signers = [key(), other(p384), other(ed25519), uri, mail, action("org")];
    let policy =
        parse(json!({"allOf": signers, "anyOf": {"minimumMatches": 2, "signers": [key(), action("org")]}})).unwrap();
    let counts: Vec<_> = policy.clauses.iter().map(|clause| (clause.minimum, clause.signers.len())).collect();
    assert_eq!(counts, [(6, 6), (2, 2)]);
    let texts: Vec<_> = policy.clauses[0].signers.iter().map(ToString::to_string).collect();
    assert!(texts[0].starts_with("the public key "), "{texts:?}");
    assert_eq!(
        texts[3..],
        [
            "https://github.com/org/… (issuer https://a.example)",
            "a@example.com (issuer https://a.example)",
            "GitHub Actions of org"
        ]
    );
}

#[test]
fn what_cannot_be_demanded_is_refused() {
    let rsa = include_str!("../../tests/rsa.pem");
    let keyless = |subject: Value| json!({"allOf": [{"keyless": {"issuer": "https://a.example", "subject": subject}}]});
    let twice = key();
    let logged = |key: &str| json!({"allOf": [{"publicKey": {"key": key, "requireTransparencyLog": true}}]});
    for (policy, path, problem) in [
        (json!({}), "allOf", "demands no signature"),
        (json!({"anyOf": {"signers": []}}), "anyOf.signers", "it has 0 signers"),
        (json!({"allOf": vec![key(); 17]}), "allOf", "it has 17 signers"),
        (json!({"allOf": [twice, twice]}), "allOf[1]", "listed before"),
        (json!({"anyOf": {"minimumMatches": 0, "signers": [key()]}}), "anyOf.minimumMatches", "between 1 and 1"),
        (json!({"anyOf": {"minimumMatches": 2, "signers": [key()]}}), "anyOf.minimumMatches", "between 1 and 1"),
        (json!({"allOf": [{}]}), "allOf[0]", "exactly one of"),
        (json!({"allOf": [{"publicKey": {"key": "x"}, "githubAction": {"owner": "a"}}]}), "allOf[0]", "exactly one of"),
        (json!({"allOf": [{"publicKey": {"key": "ssh-ed25519 AAAA"}}]}), "allOf[0].publicKey.key", "as PEM"),
        (
            json!({"allOf": [{"publicKey": {"key": "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"}}]}),
            "allOf[0].publicKey.key",
            "not a usable public key",
        ),
        (logged(rsa), "allOf[0].publicKey.requireTransparencyLog", "not possible with an RSA key"),
        (keyless(json!({})), "allOf[0].keyless.subject", "exactly one of"),
        (keyless(json!({"equal": "a", "prefix": "https://b"})), "allOf[0].keyless.subject", "exactly one of"),
        (keyless(json!({"equal": " "})), "allOf[0].keyless.subject.equal", "empty"),
        // It would match every URI.
        (keyless(json!({"prefix": "https://"})), "allOf[0].keyless.subject.prefix", "with a host"),
        (keyless(json!({"prefix": "https:///"})), "allOf[0].keyless.subject.prefix", "with a host"),
        (keyless(json!({"prefix": ""})), "allOf[0].keyless.subject.prefix", "with a host"),
        (
            json!({"allOf": [{"keyless": {"issuer": "", "subject": {"equal": "a"}}}]}),
            "allOf[0].keyless.issuer",
            "empty",
        ),
        (json!({"allOf": [action("")]}), "allOf[0].githubAction.owner", "not the name"),
        (json!({"allOf": [action("org/app")]}), "allOf[0].githubAction.owner", "not the name"),
        (
            json!({"allOf": [{"githubAction": {"owner": "a", "repo": "b/c"}}]}),
            "allOf[0].githubAction.repo",
            "not the name",
        ),
        (json!({"allOf": [{"githubAction": {"owner": "a", "ref": "main"}}]}), "allOf[0].githubAction.ref", "refs/"),
    ] {
        let error = parse(policy.clone()).unwrap_err();
        assert_eq!(error.path, path, "{policy}: {error}");
        assert!(error.problem.contains(problem), "{policy}: {error}");
    }
}

#[test]
fn a_mistyped_field_is_an_error() {
    for policy in [
        json!({"allof": [key()]}),
        json!({"anyOf": {"minimum": 2, "signers": [key()]}}),
        json!({"allOf": [{"githubAction": {"owner": "a", "repository": "b"}}]}),
        json!({"allOf": [{"publicKey": {"key": "x", "requireTlog": true}}]}),
    ] {
        let parsed = serde_json::from_value::<Verification>(policy.clone());
        assert!(parsed.unwrap_err().to_string().contains("unknown field"), "{policy}");
    }
}

#[test]
fn the_digest_follows_what_is_demanded() {
    let (one, other) = (json!({"allOf": [action("a")]}), json!({"allOf": [action("b")]}));
    let digest = |policy: &Value| parse(policy.clone()).unwrap().digest();
    assert_eq!(digest(&one), digest(&one));
    let both = parse(one.clone()).unwrap().and(parse(other.clone()).unwrap());
    let any = json!({"anyOf": {"signers": [action("a"), action("b")]}});
    let digests = [digest(&one), digest(&other), both.digest(), digest(&any)];
    assert!(digests.iter().enumerate().all(|(at, digest)| !digests[..at].contains(digest)));
}
