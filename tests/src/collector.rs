//! A collector of traces on loopback, which keeps what it receives.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{AnyValue, any_value::Value},
};
use parking_lot::Mutex;
use prost::Message as _;

/// A collector, on a thread that ends with the process.
pub struct Collector {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Received {
    /// The request line and the headers.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

/// An exported span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedSpan {
    /// The ID of the trace, in hexadecimal digits.
    pub trace: String,
    /// The ID of the span, in hexadecimal digits.
    pub id: String,
    /// The ID of the parent; empty for a root.
    pub parent: String,
    /// The name.
    pub name: String,
    /// The attributes as `key=value`.
    pub attributes: Vec<String>,
}

impl Collector {
    /// Starts a collector.
    #[expect(clippy::new_without_default, reason = "it starts a thread")]
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let address = listener.local_addr().expect("an address");
        let received = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&received);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if let Some(request) = answer(stream) {
                    kept.lock().push(request);
                }
            }
        });
        Self { address, received }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far.
    pub fn received(&self) -> Vec<Received> {
        self.received.lock().clone()
    }

    /// The spans so far.
    pub fn spans(&self) -> Vec<ExportedSpan> {
        self.received().iter().flat_map(|request| spans(&request.body)).collect()
    }
}

/// Reads a request with a body of known length, and accepts it.
fn answer(stream: TcpStream) -> Option<Received> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length =
        head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:").map(str::to_owned));
    let mut body = vec![0; length?.trim().parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    let accepted =
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";
    reader.get_mut().write_all(accepted.as_bytes()).ok()?;
    Some(Received { head, body })
}

fn spans(body: &[u8]) -> Vec<ExportedSpan> {
    let request = ExportTraceServiceRequest::decode(body).expect("a request of OTLP");
    let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
    let spans = scopes.flat_map(|scope| scope.spans);
    let exported = spans.map(|span| {
        assert!(span.events.is_empty() && span.status.is_none_or(|status| status.message.is_empty()), "{}", span.name);
        ExportedSpan {
            trace: hex::encode(&span.trace_id),
            id: hex::encode(&span.span_id),
            parent: hex::encode(&span.parent_span_id),
            name: span.name,
            attributes: span.attributes.iter().map(|it| format!("{}={}", it.key, text(it.value.as_ref()))).collect(),
        }
    });
    exported.collect()
}

fn text(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(is_true)) => is_true.to_string(),
        other => format!("{other:?}"),
    }
}
