//! The HTTP side.

use std::{
    convert::Infallible,
    io::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Bytes, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tempfile::TempDir;
use tokio::{net::TcpListener, task::JoinHandle};

use super::{Repository, repository::command};

#[derive(Default)]
struct State {
    authorization: Option<String>,
    requests: Vec<String>,
}

/// A server on loopback. It stops, and its repositories go away, when it is dropped.
pub struct GitServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
    root: TempDir,
}

impl GitServer {
    /// Starts a server without repositories. If this machine has no git, prints that and returns `None`.
    ///
    /// # Panics
    /// If there is no git and tests may not be skipped.
    pub async fn start() -> Option<Self> {
        let backend = crate::needs::git_http_backend()?;
        let root = tempfile::tempdir().expect("a directory");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let state = Arc::<Mutex<State>>::default();
        let task = tokio::spawn(accept(listener, backend, root.path().to_owned(), Arc::clone(&state)));
        Some(Self { address, state, task, root })
    }

    /// Creates a repository.
    pub fn repository(&self, name: &str) -> Repository {
        Repository::create(&self.root.path().join(name))
    }

    /// The URL of a repository.
    pub fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }

    /// Answers only this user from now on.
    ///
    /// # Panics
    /// Never, unless a request panicked.
    pub fn require(&self, username: &str, password: &str) {
        let text = STANDARD.encode(format!("{username}:{password}"));
        self.state.lock().expect("no panic").authorization = Some(format!("Basic {text}"));
    }

    /// The requests so far: the method and the path.
    ///
    /// # Panics
    /// Never, unless a request panicked.
    pub fn requests(&self) -> Vec<String> {
        self.state.lock().expect("no panic").requests.clone()
    }
}

impl Drop for GitServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, backend: PathBuf, root: PathBuf, state: Arc<Mutex<State>>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (backend, root, state) = (backend.clone(), root.clone(), Arc::clone(&state));
        connections.spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let (backend, root, state) = (backend.clone(), root.clone(), Arc::clone(&state));
                async move { Ok::<_, Infallible>(answer(request, backend, root, &state).await) }
            });
            // A client may close the connection at any time.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn answer(
    request: Request<Incoming>,
    backend: PathBuf,
    root: PathBuf,
    state: &Mutex<State>,
) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let is_allowed = {
        let mut state = state.lock().expect("no panic");
        state.requests.push(format!("{} {}", head.method, head.uri.path()));
        let given = head.headers.get(header::AUTHORIZATION);
        state.authorization.as_ref().is_none_or(|wanted| given.is_some_and(|given| given == wanted))
    };
    let empty = |status| Response::builder().status(status).body(Full::default()).expect("a valid response");
    if !is_allowed {
        return empty(StatusCode::UNAUTHORIZED);
    }
    let Ok(body) = body.collect().await else { return empty(StatusCode::BAD_REQUEST) };
    let body = body.to_bytes();
    tokio::task::spawn_blocking(move || run(&backend, &root, &head, &body)).await.expect("git http-backend runs")
}

/// Runs the backend by the rules of CGI (RFC 3875).
fn run(backend: &Path, root: &Path, head: &http::request::Parts, body: &[u8]) -> Response<Full<Bytes>> {
    let text = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let mut backend = command(backend, root);
    backend.env("GIT_PROJECT_ROOT", root).env("GIT_HTTP_EXPORT_ALL", "1");
    backend.env("REQUEST_METHOD", head.method.as_str()).env("PATH_INFO", head.uri.path());
    backend.env("QUERY_STRING", head.uri.query().unwrap_or_default()).env("CONTENT_TYPE", text("content-type"));
    backend.env("CONTENT_LENGTH", body.len().to_string()).env("GIT_PROTOCOL", text("git-protocol"));
    let mut child = backend.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("git http-backend starts");
    // A request that is refused is not read.
    let _ = child.stdin.take().expect("standard input").write_all(body);
    let output = child.wait_with_output().expect("git http-backend ends").stdout;
    let end = output.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(output.len());
    let (fields, content) = output.split_at(end);
    let mut response = Response::builder();
    for field in String::from_utf8_lossy(fields).lines() {
        let Some((name, value)) = field.split_once(": ") else { continue };
        response = match name {
            "Status" => response.status(value.get(..3).unwrap_or("500")),
            _ => response.header(name, value),
        };
    }
    response.body(Full::new(Bytes::copy_from_slice(content.get(4..).unwrap_or_default()))).expect("a valid response")
}
