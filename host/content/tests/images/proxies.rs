//! Registries and archives behind a proxy.

use chandler_content::{ContentError, ImageAccess, ImageOptions, Images, Limits, ResolvedImage};
use chandler_devregistry::{Image, Layer, Options, Registry};
use chandler_proxies::Proxies;
use chandler_test_support::proxy::Proxy;
use tempfile::TempDir;

use crate::{common::store, images::setup::layer};

fn images(variables: &[(&str, String)], plain: &[&str]) -> (TempDir, Images) {
    let (directory, store) = store(Limits { entries: 100, ..Limits::default() });
    let find = |name: &str| variables.iter().find(|(set, _)| *set == name).map(|(_, value)| value.clone());
    let plain_http_registries = plain.iter().map(|host| (*host).to_owned()).collect();
    let options = ImageOptions { proxies: Proxies::new(find), plain_http_registries, ..ImageOptions::default() };
    (directory, Images::new(store, options))
}

async fn resolve(images: &Images, image: &str) -> Result<ResolvedImage, ContentError> {
    let access = ImageAccess { insecure_skip_tls_verify: !image.contains("plain"), ..ImageAccess::default() };
    images.resolve(&image.parse().unwrap(), &access).await
}

/// The registry itself was reached: it answers only to names of its own address, and says so.
fn assert_answered(resolved: Result<ResolvedImage, ContentError>) {
    let error = resolved.unwrap_err().to_string();
    assert!(error.contains("\"source.invalid\" is not a host name of this server"), "{error}");
}

async fn registry(tls: bool) -> Registry {
    let registry = Registry::start(Options { tls, ..Options::default() }).await.unwrap();
    for name in ["x", "plain"] {
        registry.push_image(name, "v1", Image::of_layers(vec![Layer::tar_gzip(layer())])).unwrap();
    }
    registry
}

#[tokio::test]
async fn a_registry_is_reached_through_a_tunnel() {
    let registry = registry(true).await;
    let proxy = Proxy::start(registry.address(), None).await;
    let address = &proxy.address;
    let (_directory, images) = images(&[("HTTPS_PROXY", format!("http://ann:s%40cret@{address}"))], &[]);
    assert_answered(resolve(&images, "source.invalid/x:v1").await);
    let heads = proxy.heads();
    // `ann:s@cret`.
    let authorization = "authorization: basic yw5uonnay3jlda==";
    assert!(!heads.is_empty());
    for head in heads {
        assert!(head.starts_with("CONNECT source.invalid:443 HTTP/1.1\r\n"), "{head}");
        assert!(head.to_ascii_lowercase().contains(&format!("proxy-{authorization}")), "{head}");
    }
}

#[tokio::test]
async fn a_registry_without_tls_is_asked_through_http_proxy() {
    let registry = registry(false).await;
    let proxy = Proxy::start(registry.address(), None).await;
    let address = &proxy.address;
    let variables =
        [("HTTP_PROXY", format!("http://ann:s3cret@{address}")), ("HTTPS_PROXY", "http://127.0.0.1:1".to_owned())];
    let (_directory, images) = images(&variables, &["source.invalid"]);
    assert_answered(resolve(&images, "source.invalid/plain:v1").await);
    let heads = proxy.heads();
    assert!(!heads.is_empty() && heads.iter().all(|head| head.contains(" http://source.invalid/v2/")), "{heads:?}");
    assert!(heads.iter().all(|head| head.to_ascii_lowercase().contains("proxy-authorization: basic ")), "{heads:?}");
}

#[tokio::test]
async fn what_a_proxy_refuses_is_reported_without_its_address_and_password() {
    let registry = registry(true).await;
    let mut messages = Vec::new();
    for (scheme, refusal) in
        [("http", Some("407 Proxy Authentication Required")), ("http", Some("403 Forbidden")), ("ftp", None)]
    {
        let address = Proxy::start(registry.address(), refusal).await.address;
        let (_directory, images) = images(&[("https_proxy", format!("{scheme}://ann:s3cret@{address}"))], &[]);
        let error = resolve(&images, "source.invalid/x:v1").await.unwrap_err();
        assert_eq!(error.reason(), "NetworkFailed", "{error}");
        let text = format!("{error} {error:?}");
        assert!(!text.contains("s3cret") && !text.contains(&address), "{text}");
        messages.push(error.to_string());
    }
    insta::assert_snapshot!(messages.join("\n"), @"
    image source.invalid/x:v1: source.invalid cannot be reached through the proxy of https_proxy: the proxy requires credentials (407): write them as http://USER:PASSWORD@HOST:PORT, percent-encoded
    image source.invalid/x:v1: source.invalid cannot be reached through the proxy of https_proxy: the proxy refused to connect to this server
    image source.invalid/x:v1: source.invalid is not connected to: https_proxy names a proxy of a kind that is not supported; write http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT
    ");
}

#[tokio::test]
async fn exceptions_are_asked_directly() {
    let registry = registry(true).await;
    let proxy = Proxy::start(registry.address(), None).await;
    let address = &proxy.address;
    for exceptions in ["source.invalid", ".invalid", "source.invalid:443", "*"] {
        let variables = [("ALL_PROXY", format!("http://{address}")), ("no_proxy", exceptions.to_owned())];
        let (_directory, images) = images(&variables, &[]);
        assert_eq!(resolve(&images, "source.invalid/x:v1").await.unwrap_err().reason(), "NameNotResolved");
    }
    let (_directory, images) = images(&[("ALL_PROXY", format!("http://{address}"))], &[]);
    resolve(&images, &format!("{}/x:v1", registry.host())).await.unwrap();
    assert_eq!(proxy.heads(), [""; 0]);
}
