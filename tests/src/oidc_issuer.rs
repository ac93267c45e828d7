//! An OpenID Connect issuer on loopback with TLS, and identity tokens that it signs with ES256.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{Request, Response};
use http_body_util::Full;
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use k8s_openapi::jiff::Timestamp;
use parking_lot::Mutex;
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    task::{JoinHandle, JoinSet},
};
use tokio_rustls::TlsAcceptor;

use crate::notification_server;

/// The name of the key.
const KEY: &str = "one";

/// An issuer. It stops when it is dropped.
pub struct OidcIssuer {
    address: SocketAddr,
    authority: String,
    key: EcdsaKeyPair,
    state: Arc<State>,
    task: JoinHandle<()>,
}

/// What the issuer answers, and what it was asked.
struct State {
    description: Value,
    keys: Value,
    fetches: Mutex<usize>,
}

impl OidcIssuer {
    /// An issuer with one key.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let (acceptor, authority) = notification_server::identity("127.0.0.1");
        let (key, url) = (generate(), format!("https://{address}"));
        let state = Arc::new(State {
            description: json!({"issuer": url, "jwks_uri": format!("{url}/keys")}),
            keys: json!({"keys": [jwk(&key, KEY)]}),
            fetches: Mutex::default(),
        });
        let task = tokio::spawn(accept(listener, acceptor, Arc::clone(&state)));
        Self { address, authority, key, state, task }
    }

    /// The issuer, as its tokens name it.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The certificate of the authority that signed the issuer's, in PEM.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// How often its keys were fetched.
    pub fn fetches(&self) -> usize {
        *self.state.fetches.lock()
    }

    /// A token with these claims, which expires in ten minutes. `iss`, `iat` and `exp` are set unless the claims have them.
    pub fn sign(&self, claims: &Value) -> String {
        self.signed(&self.key, KEY, claims)
    }

    /// Like [`sign`](Self::sign), with a key that the issuer does not have, under this name.
    pub fn sign_with_another_key(&self, name: &str, claims: &Value) -> String {
        self.signed(&generate(), name, claims)
    }

    fn signed(&self, key: &EcdsaKeyPair, name: &str, claims: &Value) -> String {
        let now = Timestamp::now().as_second();
        let mut all = json!({"iss": self.url(), "iat": now, "exp": now + 600});
        for (claim, value) in claims.as_object().expect("claims by name") {
            all.as_object_mut().expect("claims by name").insert(claim.clone(), value.clone());
        }
        let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", encoded(&json!({"alg": "ES256", "kid": name})), encoded(&all));
        let signature = key.sign(&SystemRandom::new(), signed.as_bytes()).expect("a signature");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    }
}

impl Drop for OidcIssuer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn generate() -> EcdsaKeyPair {
    let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
    EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).expect("a key")
}

/// The public key, as issuers publish it.
fn jwk(key: &EcdsaKeyPair, name: &str) -> Value {
    let point = key.public_key().as_ref();
    let half =
        |range: std::ops::Range<usize>| URL_SAFE_NO_PAD.encode(point.get(range).expect("a point without compression"));
    let (x, y) = (half(1..33), half(33..65));
    json!({"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": name, "x": x, "y": y})
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, state: Arc<State>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (state, acceptor) = (Arc::clone(&state), acceptor.clone());
        connections.spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let (status, text) = match request.uri().path() {
                    "/.well-known/openid-configuration" => (200, state.description.to_string()),
                    "/keys" => {
                        *state.fetches.lock() += 1;
                        (200, state.keys.to_string())
                    }
                    _ => (404, String::new()),
                };
                let response = Response::builder().status(status).body(Full::new(Bytes::from(text)));
                std::future::ready(Ok::<_, Infallible>(response.expect("a valid response")))
            });
            // A client that does not trust the certificate ends the handshake, and any client may close the connection.
            if let Ok(stream) = acceptor.accept(stream).await {
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            }
        });
        while connections.try_join_next().is_some() {}
    }
}
