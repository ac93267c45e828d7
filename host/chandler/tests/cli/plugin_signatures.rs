//! `chandler plugin sign`, `verify` and `pull`.

use std::{fs, os::unix::fs::PermissionsExt as _};

use chandler_devregistry::{Options, Registry};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519};

use crate::{registries::User, support::root};

/// The files of a new key: private, public.
pub(crate) fn key(user: &User, name: &str, algorithm: &'static rcgen::SignatureAlgorithm) -> [String; 2] {
    let pair = KeyPair::generate_for(algorithm).unwrap();
    [(format!("{name}.pem"), pair.serialize_pem()), (format!("{name}.pub"), pair.public_key_pem())].map(
        |(name, text)| {
            let path = user.home.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            path.to_str().unwrap().to_owned()
        },
    )
}

#[test]
fn a_signed_component_is_verified_and_pulled_by_the_keys_that_signed_it() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let registry = runtime.block_on(Registry::start(Options::default())).unwrap();
    let user = User::new();
    let component = root().join("target/plugins/plain.wasm");
    let image = format!("{}/provisioners/plain:v1", registry.host());
    let pinned = user.run(&["plugin", "push", component.to_str().unwrap(), &image]).data();
    let [one, one_public] = key(&user, "one", &PKCS_ECDSA_P256_SHA256);
    let [two, two_public] = key(&user, "two", &PKCS_ED25519);
    let [_, other_public] = key(&user, "other", &PKCS_ECDSA_P256_SHA256);
    let verify = |keys: &[&str]| user.run(&[&["plugin", "verify", &image], keys].concat());

    let unsigned = verify(&["--key", &one_public]);
    assert_eq!(unsigned.code, Some(8), "{}", unsigned.stderr);
    let dry = user.run(&["plugin", "sign", &image, "--key", &one, "--dry-run"]);
    assert!(dry.stderr.contains("nothing was pushed"), "{}", dry.stderr);
    assert_eq!(verify(&["--key", &one_public]).code, Some(8), "a dry run signs nothing");

    assert_eq!(user.run(&["plugin", "sign", &image, "--key", &one]).data(), pinned);
    let again = user.run(&["plugin", "sign", &image, "--key", &one]);
    assert!(again.stderr.contains("is signed with this key already"), "{}", again.stderr);
    assert_eq!(again.data(), pinned);
    assert_eq!(verify(&["--key", &one_public]).data(), pinned);
    assert_eq!(verify(&["--key", &other_public]).code, Some(8));
    assert_eq!(verify(&["--key", &one_public, "--key", &two_public]).code, Some(8), "both must have signed");
    // The earlier signature stays, once.
    let second = user.run(&["plugin", "sign", &image, "--key", &two]);
    assert!(second.stderr.contains("2 signatures"), "{}", second.stderr);
    assert_eq!(verify(&["--key", &one_public, "--key", &two_public]).data(), pinned);

    let policy = user.home.path().join("policy.yaml");
    let indented = fs::read_to_string(&two_public).unwrap().replace('\n', "\n      ");
    fs::write(&policy, format!("allOf:\n- publicKey:\n    key: |\n      {indented}\n")).unwrap();
    assert_eq!(verify(&["--verification", policy.to_str().unwrap()]).data(), pinned);
    assert_eq!(verify(&["--verification", policy.to_str().unwrap(), "--key", &other_public]).code, Some(8));

    let to = user.home.path().join("pulled.wasm");
    let pull = |public: &str| user.run(&["plugin", "pull", &image, "--to", to.to_str().unwrap(), "--key", public]);
    let refused = pull(&other_public);
    assert_eq!(refused.code, Some(8), "{}", refused.stderr);
    assert!(!to.exists(), "a refused component is not written");
    assert_eq!(pull(&one_public).data(), pinned);
    assert!(fs::read(&to).unwrap() == fs::read(&component).unwrap());
    let unchecked = user.run(&["plugin", "pull", &image, "--to", to.to_str().unwrap()]);
    assert!(unchecked.stderr.contains("not checked"), "{}", unchecked.stderr);
}

#[test]
fn mistakes_with_keys_are_refused_before_the_registry_is_asked() {
    let user = User::new();
    let [_, public] = key(&user, "one", &PKCS_ECDSA_P256_SHA256);
    let [open, _] = key(&user, "open", &PKCS_ECDSA_P256_SHA256);
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).unwrap();
    let image = "registry.invalid/sail:v1";
    for (arguments, part) in [
        (vec!["plugin", "sign", image, "--key", &public], "not a private key"),
        (vec!["plugin", "sign", image, "--key", &open], "chmod 600"),
        (vec!["plugin", "sign", image, "--key", "absent.pem"], "failed to read"),
        (vec!["plugin", "sign", "sail:v1", "--key", &public], "no registry"),
        (vec!["plugin", "verify", image], "who must have signed"),
        (vec!["plugin", "verify", image, "--key", "README.md"], "cannot be used"),
        (vec!["plugin", "verify", image, "--verification", "README.md"], "cannot be used"),
    ] {
        let refused = user.run(&arguments);
        assert_eq!(refused.code, Some(2), "{arguments:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(part), "{arguments:?}: {}", refused.stderr);
    }
}
