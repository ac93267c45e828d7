use proptest::prelude::*;

use super::*;

const TOKEN: &str = "s3cret-t0ken";

/// A kubeconfig with these members of its cluster and its user.
fn kubeconfig(cluster: &Value, user: &Value) -> Vec<u8> {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it", "preferences": {},
        "contexts": [{"name": "it", "context": {"cluster": "there", "user": "me", "namespace": "n"}}],
        "clusters": [{"name": "there", "cluster": cluster}],
        "users": [{"name": "other", "user": {"exec": {"command": "sh"}}}, {"name": "me", "user": user}],
    })
    .to_string()
    .into_bytes()
}

fn with_server(server: &str) -> Vec<u8> {
    kubeconfig(&json!({"server": server}), &json!({"token": TOKEN}))
}

fn strict(kubeconfig: &[u8]) -> Result<Config, TargetError> {
    target_config(kubeconfig, TargetRules::default())
}

fn authority() -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["there".to_owned()]).unwrap().self_signed(&key).unwrap();
    STANDARD.encode(certificate.pem())
}

#[test]
fn a_kubeconfig_with_inline_credentials_is_used() {
    let cluster = json!({"server": "https://api.there.example:6443/k8s/clusters/c-1", "certificate-authority-data": authority(),
        "tls-server-name": "there", "insecure-skip-tls-verify": false, "proxy-url": ""});
    let config = strict(&kubeconfig(&cluster, &json!({"token": TOKEN, "username": null}))).unwrap();
    assert_eq!(config.cluster_url.to_string(), "https://api.there.example:6443/k8s/clusters/c-1");
    assert_eq!(config.root_cert.map(|certificates| certificates.len()), Some(1));
    assert_eq!(config.tls_server_name.as_deref(), Some("there"));
    assert!(config.auth_info.token.is_some() && config.auth_info.exec.is_none() && config.proxy_url.is_none());
    assert!(!config.accept_invalid_certs);
}

#[test]
fn what_would_run_a_program_read_a_file_or_trust_anybody_is_refused_by_name() {
    let server = || json!({"server": "https://api.example"});
    let with = |mut value: Value, name: &str, member: Value| {
        value[name] = member;
        value
    };
    for (field, value) in [
        ("insecure-skip-tls-verify", json!(true)),
        ("certificate-authority", json!("/etc/passwd")),
        ("proxy-url", json!("http://ann:s3cret@10.0.0.1")),
    ] {
        let error =
            strict(&kubeconfig(&with(server(), field, value), &json!({"token": TOKEN}))).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("{field} of the kubeconfig is refused: ")) && !error.contains("s3cret"),
            "{error}"
        );
    }
    for (field, value) in [
        ("exec", json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "sh"})),
        ("auth-provider", json!({"name": "oidc"})),
        ("tokenFile", json!("/var/run/secrets/kubernetes.io/serviceaccount/token")),
        ("client-certificate", json!("/etc/passwd")),
        ("client-key", json!("/etc/passwd")),
        ("as", json!("system:admin")),
        ("as-groups", json!(["system:masters"])),
        ("as-uid", json!("1")),
        ("as-user-extra", json!({"a": ["b"]})),
        ("username", json!("ann")),
        ("password", json!("s3cret")),
    ] {
        let user = with(json!({"token": TOKEN}), field, value);
        let error = strict(&kubeconfig(&server(), &user)).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("{field} of the kubeconfig is refused: ")) && !error.contains("s3cret"),
            "{error}"
        );
    }
    let strange = with(server(), "s3cret-field", json!(1));
    let error = strict(&kubeconfig(&strange, &json!({"token": TOKEN}))).unwrap_err().to_string();
    assert_eq!(error, "the cluster of the kubeconfig has a field that is not supported: remove it");
}

#[test]
fn servers_near_this_machine_are_refused() {
    for server in [
        "https://127.0.0.1:6443",
        "https://[::1]:6443",
        "https://[::ffff:127.0.0.1]",
        "https://169.254.169.254",
        "https://[fe80::1]",
        "https://0.0.0.0",
        "https://100.100.100.200",
    ] {
        assert_eq!(strict(&with_server(server)).err(), Some(NearServer.into()), "{server}");
    }
    for server in ["https://10.0.0.1:6443", "https://api.example", "https://1.1.1.1"] {
        assert!(strict(&with_server(server)).is_ok(), "{server}");
    }
    let tests = TargetRules { allow_loopback: true };
    assert!(target_config(&with_server("https://127.0.0.1:6443"), tests).is_ok());
    assert_eq!(target_config(&with_server("https://169.254.169.254"), tests).err(), Some(NearServer.into()));
}

#[test]
fn a_server_is_an_https_url_without_credentials() {
    for server in [
        "http://api.example",
        "api.example:6443",
        "https://ann:s3cret@api.example",
        "https://api.example/?a=s3cret",
        "",
        "https://",
    ] {
        let error = strict(&with_server(server)).unwrap_err().to_string();
        assert!(error.contains("server") && !error.contains("s3cret"), "{server}: {error}");
    }
}

#[test]
fn what_is_missing_or_malformed_is_named_without_its_content() {
    let server = json!({"server": "https://api.example"});
    let message = |kubeconfig: &[u8]| strict(kubeconfig).unwrap_err().to_string();
    let text = message(b"a: [s3cret");
    assert!(text.ends_with("of the kubeconfig is not valid YAML") && !text.contains("s3cret"), "{text}");
    insta::assert_snapshot!(message(b"a: 1\n---\nb: 2"), @"the kubeconfig has no valid single document");
    insta::assert_snapshot!(message(b"a: 1"), @"the kubeconfig has no valid current-context");
    insta::assert_snapshot!(message(b"current-context: s3cret"), @"the kubeconfig has no valid context of current-context");
    insta::assert_snapshot!(message(&vec![b'a'; KUBECONFIG_BYTES + 1]), @"the kubeconfig is larger than 256 KiB: keep one cluster, one user and one context in it");
    insta::assert_snapshot!(message(&kubeconfig(&server, &json!({}))), @"the kubeconfig has no valid credentials: set token, or client-certificate-data and client-key-data");
    insta::assert_snapshot!(message(&kubeconfig(&server, &json!({"token": "a\r\nb"}))), @"the kubeconfig has no valid token");
    insta::assert_snapshot!(message(&kubeconfig(&server, &json!({"client-key-data": "aaaa"}))), @"the kubeconfig has no valid client-certificate-data with its client-key-data");
    let cluster = json!({"server": "https://api.example", "certificate-authority-data": "s3cret!"});
    insta::assert_snapshot!(message(&kubeconfig(&cluster, &json!({"token": TOKEN}))), @"certificate-authority-data of the kubeconfig is not PEM in base64");
}

#[tokio::test]
async fn a_name_that_resolves_to_this_machine_is_refused_when_it_is_connected_to() {
    chandler_tls::TlsSettings::default().install();
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let server = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let client = target(&with_server(&server), TargetRules::default(), &Proxies::new(|_| None)).unwrap();
    let error = client.apiserver_version().await.unwrap_err();
    assert!(chandler_core::causes(&error).any(|cause| cause.to_string() == NearServer.to_string()), "{error:?}");
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = strict(&bytes);
    }

    /// However a kubeconfig is put together, it makes a client run no program, read no file and skip no check.
    #[test]
    fn no_member_of_a_kubeconfig_widens_what_its_author_may_do(
        cluster in prop::collection::btree_map("[a-z-]{1,26}", ".{0,20}", 0..5),
        user in prop::collection::btree_map("[a-zA-Z-]{1,26}", ".{0,20}", 0..5),
    ) {
        let mut cluster = json!(cluster);
        cluster["server"] = json!("https://api.example");
        let mut user = json!(user);
        user["token"] = json!(TOKEN);
        if let Ok(config) = strict(&kubeconfig(&cluster, &user)) {
            let auth = &config.auth_info;
            prop_assert!(auth.exec.is_none() && auth.auth_provider.is_none() && auth.token_file.is_none());
            prop_assert!(auth.client_certificate.is_none() && auth.client_key.is_none() && auth.impersonate.is_none());
            prop_assert!(config.proxy_url.is_none() && !config.accept_invalid_certs && config.root_cert_file.is_none());
        }
    }
}
