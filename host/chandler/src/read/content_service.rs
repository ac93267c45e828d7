//! Downloads from the content service of the controller, and uploads to it.
//!
//! The URL comes from the ConfigMap in the system namespace, never from a status: the token of the user goes there, and more people may
//! write a status.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    path::PathBuf,
    time::{Duration, Instant},
};

use bytes::Bytes;
use chandler_content::Limits;
use chandler_core::text::printable;
use chandler_proxies::Proxies;
use chandler_serve::{AUTHORITY, URL};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, Config, client::Body, config::AuthInfo};
use tempfile::NamedTempFile;

use super::{cluster::ConnectionOptions, file, kubeconfig};
use crate::CommandError;

/// The largest file with a token, in bytes.
const TOKEN_LIMIT: u64 = 16 << 10;
/// The longest text of a refusal that is shown, in bytes.
const REFUSAL_BYTES: usize = 1 << 10;

/// How long the controller may take to see a change, and the pause between attempts.
const SEEN: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(200);

/// How the content service is reached.
#[derive(Clone, Debug, Default)]
pub struct ContentClientOptions {
    /// The name of the ConfigMap with its URL and authority.
    pub content_service: String,
    /// Its URL; `None` for that in the ConfigMap.
    pub content_url: Option<String>,
    /// The file with a token; `None` for the token of the kubeconfig.
    pub token_file: Option<PathBuf>,
}

/// Where the content service is, and the authority by which to trust it, as PEM.
struct Place {
    url: String,
    authority: Option<String>,
}

/// The content service of a cluster, with the token of the user.
pub struct ContentService {
    place: Place,
    client: Client,
}

impl ContentService {
    /// Finds it, and reads the token.
    pub async fn find(
        cluster: &Client,
        connection: &ConnectionOptions,
        system_namespace: &str,
        options: &ContentClientOptions,
    ) -> Result<Self, CommandError> {
        let place = place(cluster, system_namespace, options).await?;
        let client = client(&place, connection, options).await?;
        Ok(Self { place, client })
    }

    /// Downloads the archive of a BundleDeployment's content into a temporary file.
    pub async fn get(&self, name: &str) -> Result<NamedTempFile, CommandError> {
        let response = self.send(Request::get(format!("/bundles/{name}.tgz")).body(Body::empty())).await?;
        if response.status() != StatusCode::OK {
            let hint = match response.status() {
                StatusCode::FORBIDDEN => {
                    "the ClusterRole chandler-bundle-reader (deploy/content.yaml) allows it".to_owned()
                }
                _ => format!("`chandler status {name}` shows whether it is unpacked"),
            };
            return Err(self.refused(response, &format!("does not return the content of {name}")).await.hint(hint));
        }
        save(response.into_body(), &self.place).await
    }

    /// Uploads an archive as the content of a BundleDeployment. False if it was there already.
    ///
    /// The controller may not have seen yet that the BundleDeployment exists, or that its source is an upload.
    pub async fn put(&self, name: &str, mut archive: File) -> Result<bool, CommandError> {
        let mut bytes = Vec::new();
        archive
            .read_to_end(&mut bytes)
            .map_err(|error| CommandError::failed("failed to read the archive to upload").because(&error))?;
        let (bytes, started) = (Bytes::from(bytes), Instant::now());
        loop {
            let body = Body::from(bytes.clone());
            let response = self.send(Request::put(format!("/uploads/{name}.tgz")).body(body)).await?;
            match response.status() {
                StatusCode::CREATED => return Ok(true),
                StatusCode::NO_CONTENT => return Ok(false),
                StatusCode::NOT_FOUND | StatusCode::CONFLICT if started.elapsed() < SEEN => {
                    tokio::time::sleep(PAUSE).await;
                }
                status => {
                    let error = self.refused(response, &format!("does not take the content of {name}")).await;
                    return Err(match status {
                        StatusCode::FORBIDDEN => {
                            error.hint(format!("permission to update bundledeployments {name} allows it"))
                        }
                        _ => error.hint(format!("`chandler upgrade {name} DIR --upload` tries again")),
                    });
                }
            }
        }
    }

    async fn send(&self, request: Result<Request<Body>, http::Error>) -> Result<Response<Body>, CommandError> {
        let failed = || CommandError::failed(format!("failed to reach the content service {}", self.place.url));
        let request = request.map_err(|error| failed().because(&error))?;
        self.client.send(request).await.map_err(|error| {
            let failed = failed().because(&error);
            if self.place.url.rsplit('.').next() != Some("svc") {
                return failed;
            }
            failed.hint(
                "outside of the cluster, run `kubectl -n chandler-system port-forward service/chandler-content 8443:443`, and set \
                 --content-url https://localhost:8443",
            )
        })
    }

    /// The error for an answer that is not the expected one.
    async fn refused(&self, response: Response<Body>, what: &str) -> CommandError {
        let (status, mut body, mut text) = (response.status(), response.into_body(), Vec::new());
        while let Some(Ok(frame)) = body.frame().await {
            text.extend(frame.into_data().unwrap_or_default());
            if text.len() > REFUSAL_BYTES {
                break;
            }
        }
        text.truncate(REFUSAL_BYTES);
        let text = String::from_utf8_lossy(&text);
        let message = format!("the content service {} {what}", self.place.url);
        let error = match status {
            StatusCode::FORBIDDEN => CommandError::refused(message),
            _ => CommandError::failed(message),
        };
        error.cause(format!("it answered {status}: {}", printable(text.trim())))
    }
}

async fn place(client: &Client, namespace: &str, options: &ContentClientOptions) -> Result<Place, CommandError> {
    let name = &options.content_service;
    let announced = Api::<ConfigMap>::namespaced(client.clone(), namespace).get_opt(name).await;
    let announced = announced.map_err(|error| {
        CommandError::failed(format!(
            "failed to read ConfigMap {namespace}/{name}, which says where the content service is"
        ))
        .because(&error)
    })?;
    let mut data = announced.and_then(|map| map.data).unwrap_or_default();
    let url = options.content_url.clone().or_else(|| data.remove(URL));
    let url = url.ok_or_else(|| {
        CommandError::failed(format!("the controller serves no content: there is no ConfigMap {namespace}/{name}"))
            .hint("start the controller with --content-address (deploy/content.yaml), or name the ConfigMap with --system-namespace and --content-service")
    })?;
    // The token goes there.
    let url = base(&url).map_err(|problem| {
        CommandError::failed(format!("the URL in ConfigMap {namespace}/{name} cannot be used")).cause(problem)
    })?;
    Ok(Place { url, authority: data.remove(AUTHORITY) })
}

/// A client with the token of the user, and nothing else of the kubeconfig.
async fn client(
    place: &Place,
    connection: &ConnectionOptions,
    options: &ContentClientOptions,
) -> Result<Client, CommandError> {
    let failed =
        || CommandError::failed(format!("failed to set up the connection to the content service {}", place.url));
    let (config, _) = kubeconfig::load(connection.kubeconfig.as_deref(), connection.context.as_deref()).await?;
    let url: Uri = place.url.parse().map_err(|_| failed().cause("its URL is not valid"))?;
    let proxy = chandler_client::of_environment(&url, &Proxies::from_environment());
    let mut own = Config::new(url);
    own.proxy_url = proxy.map_err(|error| failed().because(&error))?;
    own.auth_info = token(config.auth_info, options)?;
    own.root_cert = match &place.authority {
        Some(authority) => {
            let certificates = pem::parse_many(authority).map_err(|error| failed().because(&error))?;
            Some(certificates.into_iter().map(pem::Pem::into_contents).collect())
        }
        None => None,
    };
    chandler_client::client(own).map_err(|error| failed().because(&error))
}

/// The credentials without the client certificate, which is for the API server.
fn token(auth: AuthInfo, options: &ContentClientOptions) -> Result<AuthInfo, CommandError> {
    if let Some(path) = &options.token_file {
        let text = String::from_utf8(file::read_token(path, TOKEN_LIMIT)?).unwrap_or_default();
        return Ok(AuthInfo { token: Some(text.trim().to_owned().into()), ..AuthInfo::default() });
    }
    let AuthInfo { token, token_file, exec, auth_provider, .. } = auth;
    if token.is_none() && token_file.is_none() && exec.is_none() && auth_provider.is_none() {
        return Err(CommandError::failed("the kubeconfig has no token, which the content service needs").hint(
            "write one to a file, and name it with --token-file: `kubectl create token SERVICEACCOUNT > token`",
        ));
    }
    Ok(AuthInfo { token, token_file, exec, auth_provider, ..AuthInfo::default() })
}

async fn save(mut body: Body, place: &Place) -> Result<NamedTempFile, CommandError> {
    let failed = |error: &(dyn std::error::Error + 'static)| {
        CommandError::failed(format!("the download from {} was interrupted", place.url)).because(error)
    };
    let most = Limits::default().download_bytes;
    let mut file = NamedTempFile::new().map_err(|error| failed(&error))?;
    let mut size = 0_u64;
    while let Some(frame) = body.frame().await {
        let bytes = frame.map_err(|error| failed(&error))?.into_data().unwrap_or_default();
        size = size.saturating_add(bytes.len() as u64);
        if size > most {
            return Err(CommandError::failed(format!("the content is larger than {most} bytes")));
        }
        file.write_all(&bytes).map_err(|error| failed(&error))?;
    }
    Ok(file)
}

/// A URL with a host and nothing after the path, without a slash at its end.
pub fn base(text: &str) -> Result<String, String> {
    let uri: http::Uri = text.parse().map_err(|_| "it is not a URL such as https://localhost:8443".to_owned())?;
    let is_whole = uri.scheme_str() == Some("https") && uri.query().is_none() && !text.contains(['@', '#']);
    if is_whole && uri.host().is_some() {
        Ok(text.trim_end_matches('/').to_owned())
    } else {
        Err("it is not an https URL of a host, such as https://localhost:8443".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_an_https_url_without_credentials() {
        assert_eq!(base("https://localhost:8443/").as_deref(), Ok("https://localhost:8443"));
        assert_eq!(base("https://example.com/content").as_deref(), Ok("https://example.com/content"));
        for refused in
            ["", "localhost:8443", "http://localhost", "https://user@host", "https://host?x", "https://host#x", "/x"]
        {
            assert!(base(refused).is_err(), "{refused}");
        }
    }
}
