//! A client of the content service, as a user of the cluster.

use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, Config, client::Body, config::AuthInfo};
use serde_json::{Value, json};

use crate::{World, wait};

/// A user of the content service.
#[derive(Clone)]
pub struct ContentClient {
    client: Client,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The header.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of a header; empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().expect("a text")).unwrap_or_default()
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("a text")
    }
}

/// A new token of a ServiceAccount.
pub async fn token(world: &World, namespace: &str, account: &str) -> String {
    token_with(&world.client, namespace, account).await
}

/// A new token of a ServiceAccount, with the client of an administrator.
pub(crate) async fn token_with(client: &Client, namespace: &str, account: &str) -> String {
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let request = Request::post(path).header("content-type", "application/json");
    let request = request.body(body.to_string().into_bytes()).expect("a request");
    let answer: Value = client.request(request).await.expect("a token");
    answer.pointer("/status/token").and_then(Value::as_str).expect("a token").to_owned()
}

/// The ConfigMap that announces the service, once it holds.
pub async fn announced(world: &World, what: &str, holds: impl Fn(&ConfigMap) -> bool) -> ConfigMap {
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.system_namespace);
    wait::until(&maps, "chandler-content", what, |map: Option<&ConfigMap>| map.is_some_and(&holds))
        .await
        .expect("it exists")
}

impl ContentClient {
    /// A client that trusts what the ConfigMap says, with this token.
    pub fn new(announced: &ConfigMap, token: Option<String>) -> Self {
        let data = announced.data.as_ref().expect("data");
        Self::at(&data["url"], &data["ca.crt"], token)
    }

    /// A client of the service at this URL, whose certificate this authority signed.
    pub fn at(url: &str, authority: &str, token: Option<String>) -> Self {
        let mut config = Config::new(url.parse().expect("a URL"));
        config.root_cert = Some(certificates(authority));
        config.auth_info = AuthInfo { token: token.map(Into::into), ..AuthInfo::default() };
        Self { client: Client::try_from(config).expect("a client") }
    }

    /// Sends a request.
    ///
    /// # Errors
    /// The server cannot be reached, or is not trusted.
    pub async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> Result<Answer, kube::Error> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.answer(request.body(Body::empty()).expect("a request")).await
    }

    /// Posts a body.
    pub async fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut request = Request::post(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_vec())).expect("a request");
        self.answer(request).await.expect("an answer")
    }

    /// Puts a body.
    pub async fn put(&self, path: &str, body: &[u8]) -> Answer {
        let request = Request::put(path).body(Body::from(body.to_vec())).expect("a request");
        self.answer(request).await.expect("an answer")
    }

    async fn answer(&self, request: Request<Body>) -> Result<Answer, kube::Error> {
        let response = self.client.send(request).await?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.expect("a whole body").to_bytes().to_vec();
        Ok(Answer { status: parts.status, headers: parts.headers, body })
    }

    /// Gets a path.
    pub async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.send(Method::GET, path, headers).await.expect("an answer")
    }
}

/// The certificates in PEM.
fn certificates(text: &str) -> Vec<Vec<u8>> {
    use rustls::pki_types::{CertificateDer, pem::PemObject as _};
    CertificateDer::pem_slice_iter(text.as_bytes()).map(|it| it.expect("a certificate").to_vec()).collect()
}
