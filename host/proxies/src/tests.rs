use proptest::prelude::*;

use super::*;

fn proxies(variables: &[(&str, &str)]) -> Proxies {
    let variables: Vec<_> = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Proxies::new(|name| variables.iter().find(|(set, _)| set == name).map(|(_, value)| value.clone()))
}

/// The proxy for a URL like `https://host:port`.
fn of(proxies: &Proxies, url: &str) -> Option<String> {
    let url: http::Uri = url.parse().unwrap();
    let proxy = proxies.select(url.scheme_str().unwrap(), url.host().unwrap(), url.port_u16()).unwrap();
    proxy.map(|proxy| format!("{proxy:?}"))
}

#[test]
fn the_scheme_and_the_variables_choose_the_proxy() {
    let (secure, plain) = ("https://quay.io", "http://quay.io");
    for (variables, url, expected) in [
        (&[][..], secure, None),
        (&[("HTTPS_PROXY", "http://p:1")], secure, Some("http://p:1 (HTTPS_PROXY)")),
        (&[("HTTPS_PROXY", "http://p:1")], plain, None),
        (&[("HTTP_PROXY", "http://p:1")], secure, None),
        (&[("HTTP_PROXY", "http://p:1")], plain, Some("http://p:1 (HTTP_PROXY)")),
        (&[("https_proxy", "http://p:1")], secure, Some("http://p:1 (https_proxy)")),
        (&[("https_proxy", "http://p:1"), ("HTTPS_PROXY", "http://q:1")], secure, Some("http://q:1 (HTTPS_PROXY)")),
        (&[("https_proxy", "http://p:1"), ("HTTPS_PROXY", " ")], secure, Some("http://p:1 (https_proxy)")),
        (&[("ALL_PROXY", "http://p:1")], secure, Some("http://p:1 (ALL_PROXY)")),
        (&[("all_proxy", "http://p:1")], plain, Some("http://p:1 (all_proxy)")),
        (&[("ALL_PROXY", "http://p:1"), ("https_proxy", "http://q:1")], secure, Some("http://q:1 (https_proxy)")),
        (&[("HTTPS_PROXY", "http://p:1"), ("no_proxy", "quay.io")], secure, None),
        (
            &[("HTTPS_PROXY", "http://p:1"), ("NO_PROXY", "a.b"), ("no_proxy", "*")],
            secure,
            Some("http://p:1 (HTTPS_PROXY)"),
        ),
    ] {
        assert_eq!(of(&proxies(variables), url).as_deref(), expected, "{variables:?} {url}");
    }
}

#[test]
fn exceptions_are_those_of_go() {
    for (exceptions, direct, proxied) in [
        ("", &[][..], &["https://quay.io", "https://10.0.0.1"][..]),
        ("*", &["https://quay.io", "https://10.0.0.1:8443", "https://[2001:db8::1]"], &[]),
        ("a.b,*", &["https://quay.io"], &[]),
        (
            "quay.io",
            &["https://quay.io", "https://QUAY.IO:8443", "https://cdn.quay.io", "https://quay.io."],
            &["https://notquay.io"],
        ),
        (".quay.io", &["https://cdn.quay.io", "https://a.b.quay.io"], &["https://quay.io", "https://notquay.io"]),
        ("*.quay.io", &["https://cdn.quay.io"], &["https://quay.io", "https://notquay.io"]),
        (" Quay.IO , ghcr.io ", &["https://quay.io", "https://ghcr.io"], &["https://gcr.io"]),
        ("quay.io ghcr.io", &["https://quay.io", "https://ghcr.io"], &["https://gcr.io"]),
        (
            "quay.io:8443",
            &["https://quay.io:8443", "https://cdn.quay.io:8443"],
            &["https://quay.io", "https://quay.io:443"],
        ),
        ("quay.io:443", &["https://quay.io", "https://quay.io:443"], &["https://quay.io:8443"]),
        ("quay.io:https", &[], &["https://quay.io"]),
        (":443", &[], &["https://quay.io"]),
        (
            "10.0.0.1",
            &["https://10.0.0.1", "https://10.0.0.1:6443", "https://[::ffff:10.0.0.1]"],
            &["https://10.0.0.10"],
        ),
        ("10.0.0.1:6443", &["https://10.0.0.1:6443"], &["https://10.0.0.1", "https://10.0.0.2:6443"]),
        ("10.0.0.0/8", &["https://10.1.2.3", "https://10.0.0.1:6443"], &["https://11.0.0.1", "https://10.example"]),
        ("2001:db8::1", &["https://[2001:db8::1]:6443"], &["https://[2001:db8::2]"]),
        ("[2001:db8::1]", &["https://[2001:db8::1]:6443"], &["https://[2001:db8::2]"]),
        ("[2001:db8::1]:6443", &["https://[2001:db8::1]:6443"], &["https://[2001:db8::1]"]),
        ("2001:db8::/32", &["https://[2001:db8:1::1]"], &["https://[2001:db9::1]"]),
        (
            ".svc,.cluster.local,10.96.0.0/12",
            &["https://kubernetes.default.svc", "https://10.96.0.1"],
            &["https://quay.io"],
        ),
        (",,. ,*.,[]", &[], &["https://quay.io"]),
    ] {
        let proxies = proxies(&[("HTTPS_PROXY", "http://p:1"), ("NO_PROXY", exceptions)]);
        for url in direct {
            assert_eq!(of(&proxies, url), None, "{exceptions}: {url}");
        }
        for url in proxied {
            assert!(of(&proxies, url).is_some(), "{exceptions}: {url}");
        }
    }
}

#[test]
fn this_machine_is_never_asked_through_a_proxy() {
    let proxies = proxies(&[("ALL_PROXY", "http://p:1")]);
    for url in [
        "http://localhost:5000",
        "https://LOCALHOST",
        "https://localhost.",
        "https://127.0.0.1:6443",
        "http://127.9.9.9",
        "https://[::1]",
        "https://[::ffff:127.0.0.1]",
    ] {
        assert_eq!(of(&proxies, url), None, "{url}");
    }
    for url in ["https://localhost.example", "https://128.0.0.1", "https://10.0.0.1"] {
        assert!(of(&proxies, url).is_some(), "{url}");
    }
}

#[test]
fn urls_of_proxies() {
    let secret = "http://ann:s%40cret@p:1/";
    for (text, shown, url) in [
        ("http://p:3128", "http://p:3128", "http://p:3128/"),
        ("p:3128", "http://p:3128", "http://p:3128/"),
        ("p", "http://p:80", "http://p:80/"),
        (" http://p:1/path ", "http://p:1", "http://p:1/"),
        ("HTTP://p", "http://p:80", "http://p:80/"),
        ("https://p", "https://p:443", "https://p:443/"),
        ("socks5://p", "socks5h://p:1080", "socks5h://p:1080/"),
        ("socks5h://ann:s3cret@p:1081", "socks5h://p:1081", "socks5h://ann:s3cret@p:1081/"),
        ("http://[2001:db8::1]:3128", "http://[2001:db8::1]:3128", "http://[2001:db8::1]:3128/"),
        ("http://ann:s%40cret@p:1", "http://p:1", secret),
        ("ann:s%40cret@p:1", "http://p:1", secret),
        ("http://ann@p:1", "http://p:1", "http://ann@p:1/"),
    ] {
        let proxy = Proxy::parse(text, "HTTPS_PROXY").unwrap();
        assert_eq!((proxy.to_string().as_str(), proxy.secret_url().as_str()), (shown, url), "{text}");
        // What a client gets is the same proxy.
        assert_eq!(Proxy::parse(&proxy.secret_url(), "x").unwrap().secret_url(), proxy.secret_url());
    }
    let proxy = Proxy::parse(secret, "HTTPS_PROXY").unwrap();
    // `ann:s@cret`.
    assert_eq!(proxy.basic_authorization().unwrap(), "Basic YW5uOnNAY3JldA==");
    let proxy = Proxy::parse("socks5://ann:s%40cret@p", "HTTPS_PROXY").unwrap();
    assert_eq!(proxy.socks_credentials(), Some(("ann", "s@cret")));
}

#[test]
fn a_setting_that_is_not_a_proxy_is_an_error_where_it_is_needed_and_shows_no_password() {
    for text in [
        "http://",
        "http://ann:s3cret@",
        "http://:3128",
        "http://ann:s3cret@p:port",
        "http://ann:s3c ret@p",
        "socks4://ann:s3cret@p",
        "ftp://p",
        "s3cret://p",
    ] {
        let proxies = proxies(&[("HTTPS_PROXY", text), ("NO_PROXY", "quay.io")]);
        let error = proxies.select("https", "ghcr.io", None).unwrap_err().to_string();
        assert!(error.starts_with("HTTPS_PROXY "), "{text}: {error}");
        assert!(!error.contains("s3c"), "{text}: {error}");
        assert!(!format!("{proxies:?}").contains("s3c"), "{proxies:?}");
        assert_eq!(of(&proxies, "https://quay.io"), None);
        assert_eq!(of(&proxies, "http://ghcr.io"), None);
    }
}

proptest! {
    /// Whatever a setting holds, no text of it shows the password.
    #[test]
    fn texts_have_no_password(text in "[ -~]{0,20}", password in "[A-Z]{12}") {
        let url = format!("http://ann:{text}{password}@proxy.lan:3128");
        let proxies = proxies(&[("ALL_PROXY", &url)]);
        let shown = format!("{proxies:?} {:?} {}", proxies.select("https", "quay.io", None), match proxies.select("https", "quay.io", None) {
            Ok(proxy) => proxy.map(ToString::to_string).unwrap_or_default(),
            Err(error) => error.to_string(),
        });
        prop_assert!(!shown.to_uppercase().contains(&password), "{}", shown);
    }

    /// No value of `NO_PROXY` ends the process, and none proxies this machine.
    #[test]
    fn any_exceptions_can_be_read(text in "[ -~]{0,40}", host in "[a-z.:\\[\\]0-9]{0,12}", port: Option<u16>) {
        let proxies = proxies(&[("ALL_PROXY", "p"), ("NO_PROXY", &text)]);
        let _ = proxies.select("https", &host, port);
        prop_assert!(proxies.select("https", "127.0.0.1", port).unwrap().is_none());
    }
}
