//! From a kubeconfig to a [`Config`], with the proxy that the cluster or the environment names.

use chandler_proxies::{Proxies, Proxy, ProxyError};
use http::Uri;
use kube::{
    Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};

/// How messages call the proxy of a cluster.
const PROXY_URL: &str = "proxy-url of the cluster in the kubeconfig";
/// Stands for no `proxy-url`: otherwise kube would read the environment, with other rules.
const NONE: &str = "http://proxy-of-the-environment.invalid/";

/// A kubeconfig leads to no cluster.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// The kubeconfig is not valid.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// The proxy of the cluster, or of the environment, is not valid.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
}

/// The configuration of a context. The cluster's `proxy-url` is used for any server; a proxy of the environment is not used for servers on
/// this machine, nor for those in `NO_PROXY`.
pub async fn configuration(
    mut kubeconfig: Kubeconfig,
    options: &KubeConfigOptions,
    proxies: &Proxies,
) -> Result<Config, ConfigurationError> {
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        let own = cluster.proxy_url.take().filter(|url| !url.trim().is_empty());
        cluster.proxy_url = Some(own.unwrap_or_else(|| NONE.to_owned()));
    }
    let mut config = match Config::from_custom_kubeconfig(kubeconfig, options).await {
        Err(KubeconfigError::ParseProxyUrl(_)) => {
            return Err(ProxyError::Url { setting: PROXY_URL.to_owned() }.into());
        }
        read => read?,
    };
    config.proxy_url = match config.proxy_url.take().filter(|url| *url != NONE) {
        Some(own) => Some(as_uri(&Proxy::parse(&own.to_string(), PROXY_URL)?)?),
        None => of_environment(&config.cluster_url, proxies)?,
    };
    Ok(config)
}

/// The environment's proxy for a server, for `Config::proxy_url`.
///
/// # Errors
/// The variable of the proxy is not valid.
pub fn of_environment(server: &Uri, proxies: &Proxies) -> Result<Option<Uri>, ProxyError> {
    let (scheme, host) = (server.scheme_str().unwrap_or("https"), server.host().unwrap_or_default());
    proxies.select(scheme, host, server.port_u16())?.map(as_uri).transpose()
}

fn as_uri(proxy: &Proxy) -> Result<Uri, ProxyError> {
    proxy.secret_url().parse().map_err(|_| ProxyError::Url { setting: proxy.setting().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn proxy(server: &str, own: Option<&str>, environment: &[(&str, &str)]) -> Result<Option<String>, String> {
        let own = own.map(|url| format!(", proxy-url: '{url}'")).unwrap_or_default();
        let text = format!(
            "clusters: [{{name: a, cluster: {{server: '{server}'{own}}}}}]\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
             users: [{{name: a, user: {{}}}}]\ncurrent-context: a\n"
        );
        let proxies =
            Proxies::new(|name| environment.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned()));
        let kubeconfig = Kubeconfig::from_yaml(&text).unwrap();
        let config = configuration(kubeconfig, &KubeConfigOptions::default(), &proxies).await;
        config.map(|config| config.proxy_url.map(|url| url.to_string())).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn the_proxy_of_the_cluster_wins_over_the_environment() {
        let environment = &[("HTTPS_PROXY", "http://e:1"), ("NO_PROXY", "10.0.0.0/8,b.example:6443")][..];
        let (of_environment, own) = (Some("http://e:1/".to_owned()), Some("http://ann:s3cret@c:2/".to_owned()));
        for (server, cluster, expected) in [
            ("https://a.example:6443", None, &of_environment),
            ("https://a.example:6443", Some(""), &of_environment),
            ("https://10.0.0.1:6443", None, &None),
            ("https://b.example:6443", None, &None),
            ("https://b.example", None, &of_environment),
            ("https://127.0.0.1:6443", None, &None),
            ("http://a.example", None, &None),
            ("https://10.0.0.1:6443", Some("http://ann:s3cret@c:2"), &own),
            ("https://127.0.0.1:6443", Some("http://ann:s3cret@c:2"), &own),
            ("https://a.example", Some("socks5://c"), &Some("socks5h://c:1080/".to_owned())),
        ] {
            assert_eq!(proxy(server, cluster, environment).await.as_ref(), Ok(expected), "{server} {cluster:?}");
            assert_eq!(
                proxy(server, cluster, &[]).await.unwrap().is_some(),
                cluster.is_some_and(|url| !url.is_empty())
            );
        }
    }

    #[tokio::test]
    async fn a_proxy_that_is_not_valid_is_named_without_its_value() {
        let invalid = &[("https_proxy", "http://ann:s3cret@")][..];
        for (server, cluster, expected) in [
            ("https://a.example", None, Some("https_proxy is not a valid proxy URL")),
            ("https://127.0.0.1", None, None),
            ("https://a.example", Some("http://c"), None),
            (
                "https://a.example",
                Some("http://ann:s3 cret@c"),
                Some("proxy-url of the cluster in the kubeconfig is not"),
            ),
            (
                "https://a.example",
                Some("socks4://ann:s3cret@c"),
                Some("proxy-url of the cluster in the kubeconfig names"),
            ),
        ] {
            match (proxy(server, cluster, invalid).await, expected) {
                (Err(error), Some(expected)) => {
                    assert!(error.starts_with(expected) && !error.contains("cret"), "{error}");
                }
                (found, expected) => assert!(found.is_ok() && expected.is_none(), "{found:?} {expected:?}"),
            }
        }
    }
}
