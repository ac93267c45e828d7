//! An HTTP server of archives, with entity tags and a password.

use std::{
    collections::HashMap,
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Bytes, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, task::JoinHandle};

/// The path of the archive.
const ARCHIVE: &str = "bundle";

/// How many requests were answered, by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// The archive was sent.
    pub sent: usize,
    /// The archive was not sent again, because it had not changed.
    pub unchanged: usize,
    /// The request had no, or other, credentials.
    pub denied: usize,
    /// There was no archive.
    pub missing: usize,
}

#[derive(Default)]
struct State {
    /// The archives by path, and which version of all it is.
    archives: HashMap<String, (usize, Bytes)>,
    version: usize,
    authorization: Option<String>,
    answers: Answers,
}

/// A server on loopback. It stops when it is dropped.
pub struct ArchiveServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

impl ArchiveServer {
    /// Starts a server without an archive.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let state = Arc::<Mutex<State>>::default();
        let task = tokio::spawn(accept(listener, Arc::clone(&state)));
        Self { address, state, task }
    }

    /// The URL of the archive.
    pub fn url(&self) -> String {
        self.url_of(ARCHIVE)
    }

    /// The URL of a path.
    pub fn url_of(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// Serves this archive from now on.
    pub fn serve(&self, archive: Vec<u8>) {
        self.serve_at(ARCHIVE, archive);
    }

    /// Serves these bytes at a path from now on.
    pub fn serve_at(&self, path: &str, bytes: Vec<u8>) {
        let mut state = self.state.lock().expect("no panic");
        state.version += 1;
        let version = state.version;
        state.archives.insert(path.to_owned(), (version, bytes.into()));
    }

    /// Serves the archive only to this user from now on.
    pub fn require(&self, username: &str, password: &str) {
        let text = STANDARD.encode(format!("{username}:{password}"));
        self.state.lock().expect("no panic").authorization = Some(format!("Basic {text}"));
    }

    /// The answers so far.
    pub fn answers(&self) -> Answers {
        self.state.lock().expect("no panic").answers
    }
}

impl Drop for ArchiveServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, state: Arc<Mutex<State>>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        connections.spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let response = state.lock().expect("no panic").answer(request.uri().path(), request.headers());
                async move { Ok::<_, Infallible>(response) }
            });
            // A client may close the connection at any time.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

impl State {
    fn answer(&mut self, path: &str, headers: &http::HeaderMap) -> Response<Full<Bytes>> {
        let is = |name, value: &str| headers.get(name).is_some_and(|header| header == value);
        let found = self.archives.get(path.trim_start_matches('/'));
        let etag = format!("\"{}\"", found.map_or(0, |(version, _)| *version));
        let (status, body) = match found {
            _ if self.authorization.as_ref().is_some_and(|wanted| !is(header::AUTHORIZATION, wanted)) => {
                self.answers.denied += 1;
                (StatusCode::UNAUTHORIZED, Bytes::new())
            }
            None => {
                self.answers.missing += 1;
                (StatusCode::NOT_FOUND, Bytes::new())
            }
            Some(_) if is(header::IF_NONE_MATCH, &etag) => {
                self.answers.unchanged += 1;
                (StatusCode::NOT_MODIFIED, Bytes::new())
            }
            Some((_, archive)) => {
                self.answers.sent += 1;
                (StatusCode::OK, archive.clone())
            }
        };
        let response = Response::builder().status(status).header(header::ETAG, etag);
        response.body(Full::new(body)).expect("a valid response")
    }
}
