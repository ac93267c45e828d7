//! Verdicts over signatures of a whole instance of Sigstore, in both forms of cosign.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as well")]

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_core::Digest;
use chandler_test_support::signatures::{Identity, Key, Signed, Sigstore, statement};
use chandler_verify::{Annotations, MOST_SIGNATURES, Policy, Refused, Signature, TrustRoot, Verdict, Verifier};
use rcgen::{PKCS_ECDSA_P384_SHA384, PKCS_ED25519};
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};

const MANIFEST: &[u8] = br#"{"schemaVersion":2,"layers":[],"config":{}}"#;
const ISSUER: &str = "https://accounts.example";
const SUBJECT: &str = "https://github.com/org/app";

fn image() -> Digest {
    Digest::of(MANIFEST)
}

fn verifier(sigstore: &Sigstore) -> Verifier {
    Verifier::new(&TrustRoot::parse(&sigstore.trusted_root()).unwrap()).unwrap()
}

fn policy(policy: Value) -> Policy {
    Policy::parse(&serde_json::from_value(policy).unwrap()).unwrap()
}

fn key(key: &Key) -> Value {
    json!({"publicKey": {"key": key.public()}})
}

fn logged_key(key: &Key) -> Value {
    json!({"publicKey": {"key": key.public(), "requireTransparencyLog": true}})
}

fn keyless(subject: Value) -> Value {
    json!({"keyless": {"issuer": ISSUER, "subject": subject}})
}

fn equal() -> Value {
    keyless(json!({"equal": SUBJECT}))
}

fn payload(signed: Signed) -> Signature {
    let annotations = serde_json::from_value(json!(signed.annotations)).unwrap();
    Signature::Payload { payload: signed.payload, annotations }
}

fn bundle(bundle: &Value) -> Signature {
    Signature::Bundle(bundle.to_string().into_bytes())
}

/// The verdict about one signer that must have signed.
fn verify(sigstore: &Sigstore, signer: Value, signatures: &[Signature]) -> Result<Verdict, Refused> {
    verifier(sigstore).verify(&policy(json!({"allOf": [signer]})), MANIFEST, signatures)
}

/// Why the only signature is refused.
fn refusal(sigstore: &Sigstore, signer: Value, signature: Signature) -> String {
    match verify(sigstore, signer, &[signature]) {
        Err(Refused::NoMatch { found, .. }) => found.strip_prefix("signature 1: ").unwrap().to_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn both_forms_of_keys_are_verified() {
    let sigstore = Sigstore::new();
    for algorithm in [&rcgen::PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_ED25519] {
        let (own, other) = (Key::new(algorithm), Key::new(algorithm));
        let forms = || {
            [
                payload(own.payload(&image(), None)),
                payload(own.payload(&image(), Some(&sigstore))),
                bundle(&own.bundle(&image(), None)),
                bundle(&own.bundle(&image(), Some(&sigstore))),
            ]
        };
        for signature in forms() {
            let verdict = verify(&sigstore, key(&own), std::slice::from_ref(&signature)).unwrap();
            assert!(verdict.signers[0].starts_with("the public key "), "{verdict:?}");
            assert_eq!(refusal(&sigstore, key(&other), signature), "it is not made with this key");
        }
    }
    let own = Key::default();
    for signature in [own.message_bundle(MANIFEST, None), own.message_bundle(MANIFEST, Some(&sigstore))] {
        verify(&sigstore, key(&own), &[bundle(&signature)]).unwrap();
    }
}

#[test]
fn a_signature_by_openssl_with_an_rsa_key_is_verified() {
    let payload = include_bytes!("rsa.payload.json").to_vec();
    let signature = STANDARD.encode(include_bytes!("rsa.signature"));
    let annotations = serde_json::from_value(json!({"dev.cosignproject.cosign/signature": signature})).unwrap();
    let signer = json!({"publicKey": {"key": include_str!("rsa.pem")}});
    let sigstore = Sigstore::new();
    verify(&sigstore, signer.clone(), &[Signature::Payload { payload, annotations }]).unwrap();
    assert_eq!(
        refusal(&sigstore, signer, self::payload(Key::default().payload(&image(), None))),
        "it is not made with this key"
    );
}

#[test]
fn a_log_entry_is_demanded_of_a_key_where_the_policy_says_so() {
    let (sigstore, foreign, own) = (Sigstore::new(), Sigstore::new(), Key::default());
    for signature in [
        payload(own.payload(&image(), Some(&sigstore))),
        bundle(&own.bundle(&image(), Some(&sigstore))),
        bundle(&own.message_bundle(MANIFEST, Some(&sigstore))),
    ] {
        verify(&sigstore, logged_key(&own), std::slice::from_ref(&signature)).unwrap();
        refusal(&sigstore, logged_key(&Key::default()), signature);
    }
    for signature in [
        payload(own.payload(&image(), None)),
        bundle(&own.bundle(&image(), None)),
        payload(own.payload(&image(), Some(&foreign))),
        bundle(&own.bundle(&image(), Some(&foreign))),
    ] {
        refusal(&sigstore, logged_key(&own), signature);
    }
}

#[test]
fn a_signature_that_no_log_has_is_called_so_in_both_forms() {
    let (sigstore, own) = (Sigstore::new(), Key::default());
    let certified = Key::certified(&sigstore, &Identity::new(ISSUER, SUBJECT));
    let nowhere = "it is in no transparency log";
    for (signer, signature, expected) in [
        (logged_key(&own), payload(own.payload(&image(), None)), nowhere),
        (logged_key(&own), bundle(&own.bundle(&image(), None)), nowhere),
        (logged_key(&own), bundle(&own.message_bundle(MANIFEST, None)), nowhere),
        (equal(), payload(certified.payload(&image(), None)), nowhere),
        (equal(), bundle(&certified.bundle(&image(), None)), nowhere),
        // The wrong signer matters more.
        (logged_key(&Key::default()), payload(own.payload(&image(), None)), "it is not made with this key"),
    ] {
        assert_eq!(refusal(&sigstore, signer, signature), expected);
    }
}

#[test]
fn an_email_address_that_reads_like_the_wanted_uri_is_called_one() {
    let sigstore = Sigstore::new();
    let identity = Identity { is_email: true, ..Identity::new(ISSUER, SUBJECT) };
    let signature = bundle(&Key::certified(&sigstore, &identity).bundle(&image(), Some(&sigstore)));
    assert_eq!(
        refusal(&sigstore, keyless(json!({"prefix": "https://github.com/org"})), signature),
        "its subject is the email address https://github.com/org/app"
    );
}

#[test]
fn both_forms_of_keyless_signatures_are_verified() {
    let sigstore = Sigstore::new();
    let own = Key::certified(&sigstore, &Identity::new(ISSUER, SUBJECT));
    let forms = || {
        [
            payload(own.payload(&image(), Some(&sigstore))),
            bundle(&own.bundle(&image(), Some(&sigstore))),
            bundle(&own.message_bundle(MANIFEST, Some(&sigstore))),
        ]
    };
    for signature in forms() {
        for subject in [
            json!({"equal": SUBJECT}),
            json!({"prefix": "https://github.com/org"}),
            json!({"prefix": "https://github.com/org/"}),
        ] {
            verify(&sigstore, keyless(subject), std::slice::from_ref(&signature)).unwrap();
        }
        let found = "its subject is https://github.com/org/app";
        for (signer, expected) in [
            (keyless(json!({"equal": "https://github.com/org"})), found),
            (keyless(json!({"prefix": "https://github.com/or"})), found),
            (keyless(json!({"prefix": "https://github.com/org/app/"})), found),
            (
                json!({"keyless": {"issuer": "https://other.example", "subject": {"equal": SUBJECT}}}),
                "its issuer is https://accounts.example",
            ),
            (json!({"githubAction": {"owner": "org"}}), "its issuer is https://accounts.example"),
        ] {
            assert_eq!(refusal(&sigstore, signer, signature.clone()), expected);
        }
    }
}

#[test]
fn a_prefix_does_not_match_a_longer_name() {
    let sigstore = Sigstore::new();
    for (subject, matches) in [
        ("https://github.com/org/app", true),
        ("https://github.com/org-evil/app", false),
        ("https://github.com/org", false),
        ("https://github.com.evil.example/org/app", false),
        ("org@github.com", false),
    ] {
        let own = Key::certified(&sigstore, &Identity::new(ISSUER, subject));
        let signature = bundle(&own.bundle(&image(), Some(&sigstore)));
        let verdict = verify(&sigstore, keyless(json!({"prefix": "https://github.com/org"})), &[signature]);
        assert_eq!(verdict.is_ok(), matches, "{subject}: {verdict:?}");
    }
}

#[test]
fn workflows_are_those_of_the_repository_that_ran() {
    let sigstore = Sigstore::new();
    let main = "refs/heads/main";
    let action = |owner: &str, repo: Option<&str>, reference: Option<&str>| json!({"githubAction": {"owner": owner, "repo": repo, "ref": reference}});
    let own = Key::certified(&sigstore, &Identity::github("org/app", main));
    let signature = payload(own.payload(&image(), Some(&sigstore)));
    for (signer, expected) in [
        (action("org", None, None), None),
        (action("org", Some("app"), None), None),
        (action("org", Some("app"), Some(main)), None),
        (action("or", None, None), Some("its repository is https://github.com/org/app")),
        (action("org", Some("ap"), None), Some("its repository is https://github.com/org/app")),
        (action("org", Some("app"), Some("refs/heads/other")), Some("its ref is refs/heads/main")),
    ] {
        match expected {
            None => drop(verify(&sigstore, signer, std::slice::from_ref(&signature)).unwrap()),
            Some(expected) => assert_eq!(refusal(&sigstore, signer, signature.clone()), expected),
        }
    }
    // A workflow of a stranger that calls a reusable workflow of the organization has the organization's subject.
    let mut caller = Identity::github("org/shared", main);
    caller.claims = vec![(12, "https://github.com/stranger/app".to_owned()), (14, main.to_owned())];
    let stranger = Key::certified(&sigstore, &caller);
    let signature = bundle(&stranger.bundle(&image(), Some(&sigstore)));
    assert_eq!(
        refusal(&sigstore, action("org", None, None), signature),
        "its repository is https://github.com/stranger/app"
    );
    // Without the claims nothing is known of the repository.
    let none = Identity { claims: Vec::new(), ..Identity::github("org/app", main) };
    let signature = bundle(&Key::certified(&sigstore, &none).bundle(&image(), Some(&sigstore)));
    assert_eq!(refusal(&sigstore, action("org", None, None), signature), "its certificate names no repository");
}

#[test]
fn a_signature_of_another_image_is_refused() {
    let sigstore = Sigstore::new();
    let other = Digest::of(b"another image");
    let own = Key::certified(&sigstore, &Identity::new(ISSUER, SUBJECT));
    let plain = Key::default();
    for (signer, signature) in [
        (key(&plain), payload(plain.payload(&other, None))),
        (key(&plain), bundle(&plain.bundle(&other, None))),
        (equal(), payload(own.payload(&other, Some(&sigstore)))),
        (equal(), bundle(&own.bundle(&other, Some(&sigstore)))),
    ] {
        assert_eq!(refusal(&sigstore, signer, signature), "it is for another image");
    }
    let message = bundle(&plain.message_bundle(b"another image", None));
    assert_eq!(refusal(&sigstore, key(&plain), message), "it is not made with this key");
    // The payload of this image, with the signature of that one.
    let mut swapped = plain.payload(&other, None);
    swapped.payload = plain.payload(&image(), None).payload;
    assert_eq!(refusal(&sigstore, key(&plain), payload(swapped)), "it is not made with this key");
    let mut swapped = plain.bundle(&other, None);
    swapped["dsseEnvelope"]["payload"] = plain.bundle(&image(), None)["dsseEnvelope"]["payload"].clone();
    assert_eq!(refusal(&sigstore, key(&plain), bundle(&swapped)), "it is not made with this key");
}

#[test]
fn an_attestation_is_no_signature() {
    let (sigstore, own) = (Sigstore::new(), Key::default());
    let with = |name: &str, value: Value| {
        let mut statement = statement(&image());
        statement[name] = value;
        bundle(&own.bundle_of(&statement, None))
    };
    for (signature, expected) in [
        (
            with("predicateType", json!("https://cosign.sigstore.dev/attestation/vuln/v1")),
            "it is an attestation of the type https://cosign.sigstore.dev/attestation/vuln/v1, and not a signature",
        ),
        (with("_type", json!("other")), "its statement has the type other"),
        (with("subject", json!([])), "it is for another image"),
        (with("subject", json!([{"digest": {"sha512": image().hex()}}])), "it is for another image"),
    ] {
        assert_eq!(refusal(&sigstore, key(&own), signature), expected);
    }
    let scan = own.payload_of(
        json!({"critical": {"image": {"docker-manifest-digest": image()}, "type": "findings"}}).to_string().into(),
        None,
        OffsetDateTime::now_utc(),
    );
    assert_eq!(refusal(&sigstore, key(&own), payload(scan)), "its payload has the type findings");
}

#[test]
fn a_certificate_counts_only_while_it_is_valid_and_from_a_trusted_authority() {
    let (sigstore, foreign) = (Sigstore::new(), Sigstore::new());
    let now = OffsetDateTime::now_utc();
    let at = |from: Duration| Identity { from: now + from, ..Identity::new(ISSUER, SUBJECT) };
    // The log has the signature since now, in the form that states no time of its own.
    let signed =
        |own: &Key| [payload(own.payload(&image(), Some(&sigstore))), bundle(&own.bundle(&image(), Some(&sigstore)))];
    let expired = Key::certified(&sigstore, &at(Duration::minutes(-30)));
    let early = Key::certified(&sigstore, &at(Duration::minutes(30)));
    let unlogged = Key::certified(&sigstore, &Identity { is_logged: false, ..at(Duration::minutes(-5)) });
    let untrusted = Key::certified(&foreign, &at(Duration::minutes(-5)));
    for (own, expected) in [
        (&expired, "certificate chain validation failed: CertExpired"),
        (&early, "certificate chain validation failed: CertNotValidYet"),
        (&unlogged, "signed certificate timestamp"),
        (&untrusted, "InvalidSignatureForPublicKey"),
    ] {
        for signature in signed(own) {
            let found = refusal(&sigstore, equal(), signature);
            assert!(found.contains(expected), "{found}");
        }
    }
    // A certificate alone proves no time.
    let own = Key::certified(&sigstore, &at(Duration::minutes(-5)));
    for signature in [payload(own.payload(&image(), None)), bundle(&own.bundle(&image(), None))] {
        refusal(&sigstore, equal(), signature);
    }
    // A signature of long ago stays valid, since the log saw it in time.
    let old = Key::certified(&sigstore, &at(Duration::days(-365)));
    let text = old.payload(&image(), None).payload;
    let past = old.payload_of(text, Some(&sigstore), now - Duration::days(365) + Duration::minutes(5));
    verify(&sigstore, equal(), &[payload(past)]).unwrap();
}

#[test]
fn an_entry_that_was_changed_is_refused() {
    let sigstore = Sigstore::new();
    let own = Key::certified(&sigstore, &Identity::new(ISSUER, SUBJECT));
    let good = own.payload(&image(), Some(&sigstore));
    let entry: Value = serde_json::from_str(&good.annotations["dev.sigstore.cosign/bundle"]).unwrap();
    let other = own.payload(&Digest::of(b"another image"), Some(&sigstore));
    let foreign: Value = serde_json::from_str(&other.annotations["dev.sigstore.cosign/bundle"]).unwrap();
    let with = |pointer: &str, value: Value| {
        let mut entry = entry.clone();
        *entry.pointer_mut(pointer).unwrap() = value;
        entry
    };
    let time = entry["Payload"]["integratedTime"].as_i64().unwrap();
    for entry in [
        with("/SignedEntryTimestamp", foreign["SignedEntryTimestamp"].clone()),
        with("/SignedEntryTimestamp", json!("AAAA")),
        with("/Payload/integratedTime", json!(time - 1)),
        with("/Payload/logIndex", json!(1)),
        with("/Payload/logID", json!("00".repeat(32))),
        with("/Payload/body", foreign["Payload"]["body"].clone()),
        // A true entry, of another signature.
        foreign.clone(),
    ] {
        let mut changed = good.clone();
        changed.annotations.insert("dev.sigstore.cosign/bundle".to_owned(), entry.to_string());
        refusal(&sigstore, equal(), payload(changed));
    }
    let good = own.bundle(&image(), Some(&sigstore));
    let entry = "/verificationMaterial/tlogEntries/0";
    let other = own.bundle(&Digest::of(b"another image"), Some(&sigstore));
    for (path, value) in [
        ("/inclusionProof/hashes/0", json!(STANDARD.encode([0; 32]))),
        ("/inclusionProof/logIndex", json!("0")),
        (
            "/inclusionProof/checkpoint/envelope",
            other.pointer(&format!("{entry}/inclusionProof/checkpoint/envelope")).unwrap().clone(),
        ),
        ("/inclusionProof", Value::Null),
        ("/inclusionPromise/signedEntryTimestamp", json!("AAAA")),
        ("/integratedTime", json!("1")),
        ("/canonicalizedBody", other.pointer(&format!("{entry}/canonicalizedBody")).unwrap().clone()),
    ] {
        let mut changed = good.clone();
        *changed.pointer_mut(&format!("{entry}{path}")).unwrap() = value;
        assert!(!refusal(&sigstore, equal(), bundle(&changed)).is_empty(), "{path}");
    }
    verify(&sigstore, equal(), &[bundle(&good)]).unwrap();
}

#[test]
fn a_policy_counts_signers_and_not_signatures() {
    let sigstore = Sigstore::new();
    let (one, two, three) = (Key::default(), Key::default(), Key::default());
    let own = Key::certified(&sigstore, &Identity::new(ISSUER, SUBJECT));
    let signatures = [
        payload(one.payload(&image(), None)),
        bundle(&one.bundle(&image(), None)),
        bundle(&own.bundle(&image(), Some(&sigstore))),
    ];
    let verify = |value: Value| verifier(&sigstore).verify(&policy(value), MANIFEST, &signatures);
    let any = |minimum: u32, signers: &[Value]| json!({"anyOf": {"minimumMatches": minimum, "signers": signers}});
    verify(json!({"allOf": [key(&one), equal()]})).unwrap();
    verify(any(1, &[key(&one), key(&two)])).unwrap();
    verify(any(2, &[key(&one), key(&two), equal()])).unwrap();
    // The first signed twice.
    let error = verify(any(2, &[key(&one), key(&two), key(&three)])).unwrap_err().to_string();
    assert!(error.contains("wanted: 1 of the public key"), "{error}");
    let error = verify(json!({"allOf": [key(&one), key(&two)]})).unwrap_err().to_string();
    assert!(error.contains("signature 1: it is not made with this key"), "{error}");
    // Both parts must hold.
    let both = json!({"allOf": [key(&one)], "anyOf": {"signers": [key(&two)]}});
    assert!(verify(both).is_err());
    let strict = policy(json!({"allOf": [key(&one)]})).and(policy(json!({"allOf": [key(&two)]})));
    assert!(verifier(&sigstore).verify(&strict, MANIFEST, &signatures).is_err());
}

#[test]
fn an_image_without_signatures_and_one_with_too_many_are_refused() {
    let (sigstore, own) = (Sigstore::new(), Key::default());
    let unsigned = verify(&sigstore, key(&own), &[]).unwrap_err();
    assert!(matches!(unsigned, Refused::Unsigned { .. }));
    assert!(unsigned.to_string().starts_with("it is not signed; wanted: the public key "), "{unsigned}");
    let many = vec![bundle(&own.bundle(&image(), None)); MOST_SIGNATURES + 1];
    assert_eq!(verify(&sigstore, key(&own), &many), Err(Refused::TooMany));
    let bad = vec![Signature::Bundle(b"\x1b[31m{".to_vec()); MOST_SIGNATURES];
    let error = verify(&sigstore, key(&own), &bad).unwrap_err().to_string();
    assert!(error.len() < 1500 && error.ends_with("28 signatures more") && !error.contains('\x1b'), "{error}");
}

#[test]
fn signatures_that_cannot_be_read_do_not_hide_good_ones() {
    let (sigstore, own) = (Sigstore::new(), Key::default());
    let text = |text: &str| Signature::Bundle(text.as_bytes().to_vec());
    let broken = |name: &str, value: &str| {
        let mut signed = own.payload(&image(), Some(&sigstore));
        signed.annotations.insert(name.to_owned(), value.to_owned());
        payload(signed)
    };
    let mut without = own.payload(&image(), None);
    without.annotations.clear();
    let deep = "[".repeat(100_000);
    let mut signatures = vec![
        text(""),
        text("null"),
        text("{}"),
        text(&deep),
        text(r#"{"mediaType":"x","verificationMaterial":{},"messageSignature":{}}"#),
        Signature::Payload { payload: deep.into_bytes(), annotations: Annotations::default() },
        Signature::Payload { payload: b"{}".to_vec(), annotations: Annotations::default() },
        payload(without),
        broken("dev.cosignproject.cosign/signature", "no base64!"),
        broken("dev.sigstore.cosign/certificate", "no PEM"),
        broken("dev.sigstore.cosign/bundle", "{"),
        broken(
            "dev.sigstore.cosign/bundle",
            r#"{"SignedEntryTimestamp":"","Payload":{"body":"e30=","integratedTime":9223372036854775807,"logIndex":-1,"logID":"zz"}}"#,
        ),
        broken("dev.sigstore.cosign/rfc3161timestamp", "[]"),
    ];
    for signature in &signatures {
        refusal(&sigstore, key(&own), signature.clone());
        refusal(&sigstore, equal(), signature.clone());
        refusal(&sigstore, logged_key(&own), signature.clone());
    }
    signatures.push(bundle(&own.bundle(&image(), None)));
    verify(&sigstore, key(&own), &signatures).unwrap();
}

#[test]
fn a_trusted_root_is_pinned() {
    let public = TrustRoot::public().unwrap();
    let verifier = Verifier::new(&public).unwrap();
    let demand = policy(json!({"allOf": [equal()]}));
    let sigstore = Sigstore::new();
    let own = Key::certified(&sigstore, &Identity::new(ISSUER, SUBJECT));
    assert!(verifier.verify(&demand, MANIFEST, &[bundle(&own.bundle(&image(), Some(&sigstore)))]).is_err());
    let private = TrustRoot::parse(&sigstore.trusted_root()).unwrap();
    assert_ne!(verifier.proof(&demand), Verifier::new(&private).unwrap().proof(&demand));
    for text in ["", "{}", "[]", &" ".repeat(2 << 20)] {
        let error = TrustRoot::parse(text).unwrap_err().to_string();
        assert!(error.starts_with("it is not a trusted root of Sigstore (trusted_root.json): "), "{error}");
    }
}
