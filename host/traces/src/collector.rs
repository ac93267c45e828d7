//! One request to the collector.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use opentelemetry_http::{HttpClient, HttpError, Request, Response, ResponseBodyTooLarge};
use tokio::runtime::Handle;

/// The bytes of an answer that are read. An answer without a problem has a few.
const ANSWER_BYTES: usize = 64 << 10;

/// Sends requests to a collector. Traces that it does not accept are lost, and that is logged once, until it accepts some again.
#[derive(Debug)]
pub(crate) struct Collector {
    client: reqwest::Client,
    /// Where requests run: the thread that exports has no runtime of its own.
    runtime: Handle,
    fails: AtomicBool,
}

impl Collector {
    pub(crate) fn new(client: reqwest::Client, runtime: Handle) -> Self {
        Self { client, runtime, fails: AtomicBool::new(false) }
    }

    fn note(&self, problem: Option<&str>) {
        match problem {
            None if self.fails.swap(false, Ordering::Relaxed) => {
                tracing::info!("the collector of traces answers again");
            }
            Some(problem) if !self.fails.swap(true, Ordering::Relaxed) => {
                tracing::warn!(problem, "the collector does not accept traces; they are lost until it does");
            }
            _ => {}
        }
    }
}

#[async_trait::async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        // They have credentials, which libraries then do not show.
        request.headers_mut().values_mut().for_each(|value| value.set_sensitive(true));
        let sent = self.runtime.spawn(send(self.client.clone(), request));
        let answer = sent.await.map_err(HttpError::from).flatten();
        match &answer {
            Ok(answer) if answer.status().is_success() => self.note(None),
            Ok(answer) => self.note(Some(&format!("it answers {}", answer.status()))),
            Err(error) => self.note(Some(&innermost(&**error))),
        }
        answer
    }
}

async fn send(client: reqwest::Client, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let mut answer = client.execute(request.try_into()?).await?;
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        if body.len() + chunk.len() > ANSWER_BYTES {
            return Err(ResponseBodyTooLarge::new().into());
        }
        body.extend_from_slice(&chunk);
    }
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = answer.status();
    *response.headers_mut() = std::mem::take(answer.headers_mut());
    Ok(response)
}

/// The cause of an error, which does not repeat its URL.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
