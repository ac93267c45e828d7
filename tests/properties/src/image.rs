//! Responses of a hostile registry.
//!
//! An input is an archive of the registry's responses, by path below `/v2/`: the header lines, an empty line and the body, in which
//! `@digest(path)` and `@size(path)` are replaced by the digest and size of another response. The file `image` is the reference, `secret` a
//! pull secret. Bodies of paths that end in `.tar` get valid checksums.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use chandler_content::{ImageAccess, ImageReference, Keyring as _, PullSecrets};
use chandler_core::Digest;
use parking_lot::Mutex;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

use crate::{archive::Archive, archives, tars};

/// A response on the wire.
type Answers = BTreeMap<String, (Vec<String>, Vec<u8>)>;
/// Bodies by path.
type Bodies<'a> = BTreeMap<&'a str, Vec<u8>>;

pub(crate) fn holds(input: &[u8]) {
    let archive = Archive::read(input);
    let text = |name: &str| archive.files.get(name).map(|bytes| String::from_utf8_lossy(bytes).trim().to_owned());
    reference(&text("image").unwrap_or_default(), archive.files.get("secret").map_or(b"{}", Vec::as_slice));
    let server = Server::get();
    server.serve(answers(&archive));
    archives::with_store(|_, images| {
        let image: ImageReference = format!("{}/x:v1", server.address).parse().expect("a reference");
        let access = ImageAccess::default();
        let fetched = archives::runtime().block_on(async {
            let resolved = images.resolve(&image, &access).await?;
            images.fetch(&resolved, &access).await
        });
        match fetched {
            Ok(tree) => archives::assert_tree(&tree),
            Err(error) => archives::assert_message(&error),
        }
    });
}

/// The registry, which speaks no TLS.
pub(crate) fn server() -> String {
    Server::get().address.to_string()
}

/// References and pull secrets: the canonical form of a parsed reference means the same, and no message shows a secret.
fn reference(text: &str, secret: &[u8]) {
    let image: ImageReference = match text.parse() {
        Ok(image) => image,
        Err(error) => return assert!(!error.problem.is_empty() && error.to_string().len() < 4 << 10, "{error}"),
    };
    let again: ImageReference = image.to_string().parse().expect("what is written can be read");
    assert_eq!(again, image);
    assert!(!image.registry().is_empty() && !image.repository().is_empty());
    assert!(image.tag().is_some() != image.digest().is_some(), "{image} has a tag or a digest");
    let credentials = |image: &ImageReference| PullSecrets::new([secret])?.credentials(image);
    let (credentials, same) = (credentials(&image), credentials(&again));
    assert_eq!(credentials, same);
    if let Err(error) = credentials {
        assert!(!error.to_string().is_empty());
    }
}

fn answers(archive: &Archive) -> Answers {
    let body = |path: &str, bytes: &[u8]| {
        let body = split(bytes).1;
        // Without the line break at the end of a file of the archive.
        let body = body.strip_suffix(b"\n").unwrap_or(body);
        if path.strip_suffix(".tar").is_some() { tars::packed(body) } else { body.to_vec() }
    };
    let written: Bodies = archive.files.iter().map(|(path, bytes)| (path.as_str(), body(path, bytes))).collect();
    let fill =
        |others: &Bodies| -> Bodies<'_> { written.iter().map(|(path, body)| (*path, filled(body, others))).collect() };
    // Twice: an index names a manifest that names layers.
    let bodies = fill(&fill(&written));
    let header = |path: &str| {
        let header = String::from_utf8_lossy(split(&archive.files[path]).0).into_owned();
        header.lines().take(20).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut answers = Answers::new();
    for (path, body) in bodies {
        for kind in ["blobs", "manifests"] {
            answers.insert(format!("x/{kind}/{}", Digest::of(&body)), (header(path), body.clone()));
        }
        answers.insert(path.to_owned(), (header(path), body));
    }
    answers
}

/// The header and the body of a response.
fn split(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.windows(2).position(|pair| pair == b"\n\n") {
        Some(at) => (&bytes[..at], &bytes[at + 2..]),
        None => (b"", bytes),
    }
}

/// A body with the digests and sizes of others in it.
fn filled(body: &[u8], bodies: &Bodies) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(body) else { return body.to_vec() };
    if text.len() > 64 << 10 || !text.contains('@') {
        return body.to_vec();
    }
    let fill = |text: String, path: &&str| {
        let body = &bodies[*path];
        text.replace(&format!("@digest({path})"), &Digest::of(body).to_string())
            .replace(&format!("@size({path})"), &body.len().to_string())
    };
    bodies.keys().take(20).fold(text.to_owned(), fill).into_bytes()
}

/// A registry that serves these responses.
struct Server {
    address: SocketAddr,
    answers: Arc<Mutex<Answers>>,
}

impl Server {
    fn get() -> &'static Self {
        static SERVER: OnceLock<Server> = OnceLock::new();
        SERVER.get_or_init(|| {
            let listener = archives::runtime().block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
            let address = listener.local_addr().expect("an address");
            let answers = Arc::<Mutex<Answers>>::default();
            let shared = Arc::clone(&answers);
            archives::runtime().spawn(async move {
                while let Ok((connection, _)) = listener.accept().await {
                    tokio::spawn(serve(connection, Arc::clone(&shared)));
                }
            });
            Self { address, answers }
        })
    }

    fn serve(&self, answers: Answers) {
        *self.answers.lock() = answers;
    }
}

/// Responds to the requests of one connection.
async fn serve(connection: TcpStream, answers: Arc<Mutex<Answers>>) -> Option<()> {
    let mut connection = BufReader::new(connection);
    loop {
        let mut request = String::new();
        loop {
            let from = request.len();
            if connection.read_line(&mut request).await.ok()? == 0 {
                return None;
            }
            if request[from..].trim().is_empty() {
                break;
            }
        }
        let mut words = request.split_whitespace();
        let (method, path) = (words.next()?.to_owned(), words.next()?.trim_start_matches("/v2/").to_owned());
        let answer = answers.lock().get(&path).cloned();
        let (header, body) = answer.unwrap_or_else(|| (vec!["404 Not Found".to_owned()], b"{}".to_vec()));
        let is_status = |line: &&String| line.starts_with(|first: char| first.is_ascii_digit());
        let status = header.first().filter(is_status).map_or("200 OK", String::as_str);
        let mut text = format!("HTTP/1.1 {status}\r\n");
        for line in header.iter().filter(|line| !is_status(line)) {
            text.extend([line.as_str(), "\r\n"]);
        }
        if !header.iter().any(|line| line.to_ascii_lowercase().starts_with("content-length")) {
            text.extend(["Content-Length: ", &body.len().to_string(), "\r\n"]);
        }
        text.push_str("\r\n");
        connection.write_all(text.as_bytes()).await.ok()?;
        if method != "HEAD" {
            connection.write_all(&body).await.ok()?;
        }
        connection.flush().await.ok()?;
    }
}
