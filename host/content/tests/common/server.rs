//! A server that answers as a test likes.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// What a server makes of the head of a request.
type Respond = dyn Fn(&str) -> Vec<u8> + Send + Sync;

/// A server that answers each request as it likes, and remembers it.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    _accepting: JoinSet<()>,
}

/// What the server does after an answer.
#[derive(Clone, Copy)]
pub(crate) enum Then {
    Close,
    /// It sends these bytes again and again.
    Endless(&'static [u8], Duration),
    /// It sends nothing more, and holds the connection.
    Hold,
}

impl Server {
    pub(crate) async fn start(then: Then, respond: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let (remembered, respond): (_, Arc<Respond>) = (Arc::clone(&requests), Arc::new(respond));
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (respond, remembered) = (Arc::clone(&respond), Arc::clone(&remembered));
                connections.spawn(async move {
                    let _ = connection(stream, then, &*respond, &remembered).await;
                });
            }
        });
        Self { address, requests, _accepting: accepting }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn connection(
    stream: TcpStream,
    then: Then,
    respond: &Respond,
    remembered: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let answer = respond(&head);
    remembered.lock().unwrap().push(head);
    stream.write_all(&answer).await?;
    stream.flush().await?;
    match then {
        Then::Close => Ok(()),
        Then::Endless(bytes, pause) => loop {
            stream.write_all(bytes).await?;
            stream.flush().await?;
            tokio::time::sleep(pause).await;
        },
        // Until the other end closes.
        Then::Hold => stream.read_line(&mut String::new()).await.map(drop),
    }
}

pub(crate) fn response(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
    [head.as_bytes(), body].concat()
}
