use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chandler_api::ReceiverOidc;
use chandler_receivers::{Keys, Repository, bucket::PER_MINUTE};
use futures::{FutureExt, future::BoxFuture};
use http::{Request, header::AUTHORIZATION};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::*;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const PUSH: &str = r#"{"events":[{"action":"push","target":{"repository":"team/shop"}}]}"#;

/// One Receiver, and what was asked of it.
struct Fixed {
    hook: Arc<Hook>,
    woken: Mutex<Vec<Named>>,
    outcomes: Mutex<Vec<&'static str>>,
}

impl Fixed {
    fn new(kind: ReceiverType, suspended: bool) -> Arc<Self> {
        Self::of(Hook::new("pushes".to_owned(), kind, token(), Vec::new(), suspended))
    }

    fn of(hook: Hook) -> Arc<Self> {
        Arc::new(Self { hook: Arc::new(hook), woken: Mutex::default(), outcomes: Mutex::default() })
    }
}

fn token() -> Token {
    Token::new(TOKEN.as_bytes()).unwrap()
}

impl Hooks for Fixed {
    fn find(&self, path: &str) -> Option<Arc<Hook>> {
        (path == self.hook.token.path(&self.hook.name)).then(|| Arc::clone(&self.hook))
    }

    fn wake(&self, _: &Hook, named: &Named) -> usize {
        self.woken.lock().push(named.clone());
        1
    }

    fn answered(&self, outcome: &'static str) {
        self.outcomes.lock().push(outcome);
    }
}

async fn send(hooks: &Arc<Fixed>, request: Request<Body>) -> (StatusCode, Option<String>) {
    let hooks: Arc<dyn Hooks> = Arc::<Fixed>::clone(hooks);
    let response = router(hooks).oneshot(request).await.unwrap();
    let retry = response.headers().get(RETRY_AFTER).map(|value| value.to_str().unwrap().to_owned());
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), 1).await.unwrap();
    assert!(body.is_empty(), "{status} has no body");
    (status, retry)
}

fn request(token_sent: &str, body: impl Into<Body>) -> Request<Body> {
    let path = token().path("pushes");
    Request::post(path).header(AUTHORIZATION, format!("Bearer {token_sent}")).body(body.into()).unwrap()
}

#[tokio::test]
async fn a_request_is_answered_by_what_it_is_and_without_a_body() {
    let hooks = Fixed::new(ReceiverType::Distribution, false);
    let other = TOKEN.replace('0', "1");
    let elsewhere = Request::post("/hooks/0").header(AUTHORIZATION, TOKEN).body(Body::from(PUSH)).unwrap();
    let get = Request::get(token().path("pushes")).header(AUTHORIZATION, TOKEN).body(Body::empty()).unwrap();
    let pull = PUSH.replace("push", "pull");
    for (request, expected, outcome) in [
        (request(TOKEN, PUSH), StatusCode::ACCEPTED, "accepted"),
        (request(&other, PUSH), StatusCode::UNAUTHORIZED, "unauthenticated"),
        (request(&other, "{"), StatusCode::UNAUTHORIZED, "unauthenticated"),
        (request(TOKEN, "{"), StatusCode::BAD_REQUEST, "malformed"),
        (request(TOKEN, pull), StatusCode::OK, "ignored"),
        (request(TOKEN, vec![b' '; BODY_BYTES + 1]), StatusCode::PAYLOAD_TOO_LARGE, "too-large"),
        (elsewhere, StatusCode::NOT_FOUND, "unknown"),
        (get, StatusCode::NOT_FOUND, "unknown"),
    ] {
        assert_eq!(send(&hooks, request).await, (expected, None), "{outcome}");
        assert_eq!(hooks.outcomes.lock().pop(), Some(outcome));
    }
    let shop = Repository::of_path("team/shop").unwrap();
    assert_eq!(*hooks.woken.lock(), [Named::Repositories([shop].into())], "only one woke something");
}

#[tokio::test]
async fn a_length_that_is_announced_is_refused_before_the_body_is_read() {
    let hooks = Fixed::new(ReceiverType::Distribution, false);
    let mut request = request(TOKEN, endless());
    request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(BODY_BYTES as u64 + 1));
    assert_eq!(send(&hooks, request).await.0, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn a_suspended_receiver_refuses_everything() {
    let hooks = Fixed::new(ReceiverType::Distribution, true);
    assert_eq!(send(&hooks, request(TOKEN, PUSH)).await.0, StatusCode::FORBIDDEN);
    assert!(hooks.woken.lock().is_empty());
}

#[tokio::test]
async fn a_receiver_wakes_so_often_in_a_minute_and_forgeries_do_not_count() {
    let hooks = Fixed::new(ReceiverType::Distribution, false);
    for _ in 0..PER_MINUTE {
        let forged = send(&hooks, request("another token of thirty-two bytes", PUSH)).await;
        assert_eq!(forged.0, StatusCode::UNAUTHORIZED);
    }
    let mut limited = None;
    for _ in 0..=2 * PER_MINUTE {
        let answer = send(&hooks, request(TOKEN, PUSH)).await;
        if answer.0 == StatusCode::TOO_MANY_REQUESTS {
            limited = answer.1;
            break;
        }
        assert_eq!(answer.0, StatusCode::ACCEPTED);
    }
    assert_eq!(limited.as_deref(), Some("1"));
    assert!(hooks.woken.lock().len() >= PER_MINUTE as usize);
}

/// A body that is not sent.
fn endless() -> Body {
    Body::from_stream(futures::stream::pending::<Result<Vec<u8>, std::io::Error>>())
}

#[tokio::test]
async fn requests_that_do_not_end_give_way() {
    let hooks = Fixed::new(ReceiverType::Distribution, false);
    let router = router(Arc::<Fixed>::clone(&hooks) as Arc<dyn Hooks>);
    let mut endless: Vec<_> =
        (0..REQUESTS_OF_ONE).map(|_| Box::pin(router.clone().oneshot(request("x", endless())))).collect();
    for request in &mut endless {
        assert!(request.now_or_never().is_none());
    }
    let answer = router.clone().oneshot(request(TOKEN, PUSH)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::ACCEPTED);
    // The first one gave way.
    let mut ended = endless.iter_mut().filter_map(FutureExt::now_or_never);
    let busy = ended.next().unwrap().unwrap();
    assert_eq!((busy.status(), &busy.headers()[RETRY_AFTER]), (StatusCode::SERVICE_UNAVAILABLE, &HeaderValue::from(1)));
    assert!(ended.next().is_none());
}

#[tokio::test]
async fn forgeries_have_few_lines_in_the_log() {
    let hooks = Fixed::new(ReceiverType::Distribution, false);
    let (lines, _guard) = crate::logged::Lines::collect();
    let forgeries = 10 * PER_MINUTE as usize;
    for _ in 0..forgeries {
        send(&hooks, request("another token of thirty-two bytes", PUSH)).await;
    }
    let number = lines.get().len();
    assert!((PER_MINUTE as usize..=2 * PER_MINUTE as usize).contains(&number), "{number}");
    // The next line names the rest.
    hooks.hook.limits.log.lock().bucket = Bucket::default();
    send(&hooks, request("another token of thirty-two bytes", PUSH)).await;
    let left_out = format!("left_out={}", forgeries - number);
    assert!(lines.get()[number].contains(&left_out), "{left_out} {}", lines.get()[number]);
    assert!(!lines.get().concat().contains("/hooks/"), "no path");
}

/// An issuer without an answer, which counts how often its keys were fetched.
#[derive(Clone, Default)]
struct NoAnswer(Arc<Mutex<usize>>);

impl KeySource for NoAnswer {
    fn fetch(&self) -> BoxFuture<'static, Option<Keys>> {
        *self.0.lock() += 1;
        Box::pin(std::future::ready(None))
    }
}

#[tokio::test]
async fn an_identity_token_is_judged_before_the_body_and_causes_one_fetch() {
    const ISSUER: &str = "https://issuer.example.com";
    let oidc = ReceiverOidc {
        issuer: Some(ISSUER.to_owned()),
        audience: Some("pushes".to_owned()),
        subjects: vec!["robot".to_owned()],
        ..ReceiverOidc::default()
    };
    let expected = Expected::new("pushes", ReceiverType::Oidc, Some(&oidc)).unwrap().unwrap();
    let source = NoAnswer::default();
    let hook = Hook::new("pushes".to_owned(), ReceiverType::Oidc, token(), Vec::new(), false);
    let hooks = Fixed::of(hook.with_identity(expected, Arc::new(IssuerKeys::new(source.clone()))));
    let token_of = |issuer: &str, audience: &str, key: &str, expires: i64| {
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let claims = json!({"iss": issuer, "aud": audience, "sub": "robot", "exp": expires});
        format!("{}.{}.{}", part(json!({"alg": "ES256", "kid": key})), part(claims), part(json!(1)))
    };
    let now = Timestamp::now().as_second();
    for wrong in [
        TOKEN.to_owned(),
        token_of("https://other.example.com", "pushes", "a", now + 600),
        token_of(ISSUER, "others", "a", now + 600),
        token_of(ISSUER, "pushes", "a", now - 600),
    ] {
        assert_eq!(send(&hooks, request(&wrong, endless())).await.0, StatusCode::UNAUTHORIZED, "{wrong}");
    }
    assert_eq!(*source.0.lock(), 0, "wrong claims cause no fetch");
    for key in 0..20 {
        let unsigned = token_of(ISSUER, "pushes", &key.to_string(), now + 600);
        let (status, retry) = send(&hooks, request(&unsigned, endless())).await;
        assert_eq!((status, retry.as_deref()), (StatusCode::SERVICE_UNAVAILABLE, Some("60")));
        assert_eq!(hooks.outcomes.lock().pop(), Some("no-keys"));
    }
    assert_eq!(*source.0.lock(), 1, "whatever keys tokens name");
    assert!(hooks.woken.lock().is_empty());
}
