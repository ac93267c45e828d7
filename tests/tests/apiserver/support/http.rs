//! Plain HTTP requests as some user, and their responses.

use std::{fmt::Write as _, time::Duration};

use http::{HeaderMap, Method, Request, header};
use http_body_util::BodyExt as _;
use kube::Client;
use serde_json::Value;

use super::events::Events;

pub(crate) const JSON: &str = "application/json";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

/// How long to wait for conditions. Generous: only failing cases take that long.
pub(crate) const PATIENCE: Duration = Duration::from_mins(4);

/// Sends requests as some user.
#[derive(Clone)]
pub(crate) struct Http {
    client: Client,
    headers: HeaderMap,
}

impl Http {
    pub(crate) fn new(config: &kube::Config) -> Self {
        let mut config = config.clone();
        // Cases test 429 and 504, so the client must not retry them.
        config.default_retry = false;
        Self { client: Client::try_from(config).expect("a client"), headers: HeaderMap::new() }
    }

    /// This client with a further header in every request.
    pub(crate) fn with(&self, name: &'static str, value: &str) -> Self {
        let mut headers = self.headers.clone();
        headers.append(name, value.parse().expect("a header value"));
        Self { client: self.client.clone(), headers }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, JSON, Vec::new()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, JSON, body.to_string().into_bytes()).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::PUT, path, JSON, body.to_string().into_bytes()).await
    }

    pub(crate) async fn patch(&self, path: &str, content_type: &str, body: &Value) -> Answer {
        self.send(Method::PATCH, path, content_type, body.to_string().into_bytes()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, JSON, Vec::new()).await
    }

    /// Deletes with `DeleteOptions`.
    pub(crate) async fn delete_with(&self, path: &str, options: &Value) -> Answer {
        self.send(Method::DELETE, path, JSON, options.to_string().into_bytes()).await
    }

    /// Sends a request. It is sent again while the response says that the storage is not ready yet.
    pub(crate) async fn send(&self, method: Method, path: &str, content_type: &str, body: Vec<u8>) -> Answer {
        let mut tick = tokio::time::interval(Duration::from_millis(50));
        loop {
            tick.tick().await;
            let answer = self.send_once(&method, path, content_type, body.clone()).await;
            if !answer.is_warming_up() {
                return answer;
            }
        }
    }

    /// Sends a body that is rejected before it is read. The server may close the connection before the client has sent it, so this
    /// retries.
    pub(crate) async fn post_too_much(&self, path: &str, body: &Value) -> Answer {
        for _ in 0..20 {
            let sent = self.try_send(&Method::POST, path, JSON, body.to_string().into_bytes()).await;
            if let Ok(answer) = sent {
                return answer;
            }
        }
        panic!("POST {path}: the connection was closed every time");
    }

    async fn send_once(&self, method: &Method, path: &str, content_type: &str, body: Vec<u8>) -> Answer {
        let sent = self.try_send(method, path, content_type, body).await;
        sent.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    async fn try_send(
        &self,
        method: &Method,
        path: &str,
        content_type: &str,
        body: Vec<u8>,
    ) -> Result<Answer, kube::Error> {
        let mut request = Request::builder().method(method).uri(encode(path));
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(kube::client::Body::from(body)).expect("a request");
        let response = self.client.send(request).await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.into_body().collect().await.expect("a whole body").to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Ok(Answer {
            request: format!("{method} {path}"),
            status,
            headers,
            text: String::from_utf8_lossy(&bytes).into(),
            body,
        })
    }

    /// Opens a watch. The path contains its parameters except `watch`.
    pub(crate) async fn watch(&self, path: &str) -> Events {
        let separator = if path.contains('?') { '&' } else { '?' };
        let mut request = Request::get(encode(&format!("{path}{separator}watch=true")));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Vec::new()).expect("a request");
        let stream = self.client.request_stream(request).await;
        Events::new(stream.unwrap_or_else(|error| panic!("watch {path}: {error}")))
    }

    /// Polls until the response satisfies the condition.
    pub(crate) async fn until(&self, path: &str, what: &str, condition: impl Fn(&Answer) -> bool) -> Answer {
        let mut tick = tokio::time::interval(Duration::from_millis(20));
        let mut last = None;
        let asking = async {
            loop {
                tick.tick().await;
                let answer = self.get(path).await;
                if condition(&answer) {
                    return answer;
                }
                last = Some(answer);
            }
        };
        let waited = tokio::time::timeout(PATIENCE, asking).await;
        waited.unwrap_or_else(|_| {
            panic!("{path} never became {what}; last: {:?}", last.map(|answer| (answer.status, answer.text)))
        })
    }

    pub(crate) async fn until_gone(&self, path: &str) {
        self.until(path, "absent", |answer| answer.status == 404).await;
    }
}

/// Escapes characters that cases write unescaped in selectors and paths.
fn encode(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else { return path.to_owned() };
    let mut encoded = format!("{path}?");
    let mut in_value = false;
    for character in query.chars() {
        match character {
            '&' => in_value = false,
            '=' if !in_value => in_value = true,
            '=' => {
                encoded.push_str("%3D");
                continue;
            }
            ' ' => {
                encoded.push_str("%20");
                continue;
            }
            '!' | ',' | '(' | ')' | '/' | '"' | '+' => {
                write!(encoded, "%{:02X}", u32::from(character)).unwrap();
                continue;
            }
            _ => {}
        }
        encoded.push(character);
    }
    encoded
}

/// A response of the server.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    request: String,
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    /// Null if the body is not JSON.
    pub(crate) body: Value,
}

impl Answer {
    /// The body of a success.
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert!((200..300).contains(&self.status), "{}: {} {}", self.request, self.status, self.text);
        self.body
    }

    /// The body of a success with this status.
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}: {}", self.request, self.text);
        self.body
    }

    /// The `Status` of a failure. Asserts that every field that clients read is well-formed.
    #[track_caller]
    pub(crate) fn refused(self, code: u16, reason: &str) -> Value {
        let Self { request, status, body, text, .. } = self;
        assert_eq!((status, body["reason"].as_str()), (code, Some(reason)), "{request}: {status} {text}");
        assert_eq!((body["kind"].as_str(), body["apiVersion"].as_str()), (Some("Status"), Some("v1")), "{request}");
        assert_eq!((body["status"].as_str(), body["code"].as_u64()), (Some("Failure"), Some(code.into())), "{request}");
        assert!(body["message"].as_str().is_some_and(|message| !message.is_empty()), "{request}: no message");
        body
    }

    /// A 422 whose causes name this field, and its first such cause.
    #[track_caller]
    pub(crate) fn invalid(self, field: &str) -> Value {
        let request = self.request.clone();
        let status = self.refused(422, "Invalid");
        let causes = status["details"]["causes"].as_array().cloned().unwrap_or_default();
        let found = causes.iter().find(|cause| cause["field"] == field);
        found.unwrap_or_else(|| panic!("{request}: no cause names {field}: {status}")).clone()
    }

    /// The texts of the `Warning` headers (RFC 7234, code 299).
    pub(crate) fn warnings(&self) -> Vec<String> {
        let text = |value: &http::HeaderValue| {
            let value = value.to_str().unwrap_or_default();
            let quoted = value.split_once('"').map_or(value, |(_, quoted)| quoted);
            quoted.strip_suffix('"').unwrap_or(quoted).replace("\\\"", "\"")
        };
        self.headers.get_all("warning").iter().map(text).collect()
    }

    fn is_warming_up(&self) -> bool {
        let about_storage = self.text.contains("storage is (re)initializing") || self.text.contains("not yet ready");
        matches!(self.status, 429 | 503) && (about_storage || self.headers.contains_key("retry-after"))
    }
}
