use chandler_client::FenceKeeper;
use kube::{client::Body, core::Status};

use super::*;

fn answer(code: u16, message: &str) -> kube::Error {
    kube::Error::Api(Box::new(Status { code, message: message.to_owned(), ..Status::failure("", "") }))
}

#[test]
fn nothing_that_an_unknown_server_answers_is_shown() {
    for code in [401, 403, 404, 500] {
        let problem = unreachable_with("shop/there", &answer(code, "s3cret"));
        assert_eq!((problem.reason, problem.terminal), (Reason::TargetUnavailable, false));
        assert!(!problem.message.contains("s3cret") && problem.message.contains("shop/there"), "{}", problem.message);
    }
    insta::assert_snapshot!(unreachable_with("shop/there", &answer(401, "")).message, @"spec.kubeConfig: the cluster of the kubeconfig in Secret shop/there refuses the credentials: write a kubeconfig with valid ones into the Secret");
    let near = unreachable_with("shop/there", &kube::Error::Service(Box::new(NearServer)));
    assert_eq!(near.reason, Reason::InvalidKubeConfig);
    let large = unreachable_with("shop/there", &kube::Error::Service(Box::new(AllowanceSpent::Bytes)));
    assert!(large.message.contains("more data than the controller reads"), "{}", large.message);
}

fn targets(most: u16) -> Targets {
    let client = || {
        Client::new(
            tower::service_fn(|_: http::Request<kube::client::Body>| {
                std::future::pending::<Result<http::Response<kube::client::Body>, std::convert::Infallible>>()
            }),
            "default",
        )
    };
    let options = TargetOptions { most, ..TargetOptions::default() };
    Targets::new(client(), None, options, Duration::from_mins(5), |client| {
        Rollout::new(client, chandler_rollout::Options::default())
    })
}

fn key(name: &str) -> Key {
    Key { namespace: "shop".into(), name: name.into(), entry: None, account: None }
}

fn kubeconfig(token: &str) -> Vec<u8> {
    format!(
        "{{clusters: [{{name: a, cluster: {{server: 'https://api.invalid'}}}}], users: [{{name: a, user: {{token: '{token}'}}}}], \
         contexts: [{{name: a, context: {{cluster: a, user: a}}}}], current-context: a}}"
    )
    .into_bytes()
}

#[tokio::test]
async fn as_many_kubeconfigs_are_open_as_the_administrator_allows() {
    chandler_tls::TlsSettings::default().install();
    assert!(targets(0).refusal().is_some_and(|problem| problem.message.contains("--target-clusters")));
    let targets = targets(2);
    assert!(targets.refusal().is_none());
    let all = || HashSet::from(["a", "b", "c", "d"].map(key));
    for name in ["a", "b", "a"] {
        assert!(targets.open(&key(name), &kubeconfig("x"), false, all).is_ok(), "{name}");
    }
    let full = targets.open(&key("c"), &kubeconfig("x"), false, all).err().unwrap();
    assert_eq!(full.reason, Reason::TargetNotAllowed);
    // Rotated credentials take the place of the earlier ones.
    assert!(targets.open(&key("a"), &kubeconfig("rotated"), false, all).is_ok());
    assert_eq!(targets.open.lock().len(), 2);
    // One that is not valid takes no place.
    assert_eq!(targets.open(&key("b"), b"{}", false, all).err().unwrap().reason, Reason::InvalidKubeConfig);
    assert!(targets.open(&key("c"), &kubeconfig("x"), false, all).is_ok());
    // Nor does one that no BundleDeployment names any more, or whose cluster is away.
    assert!(targets.open(&key("d"), &kubeconfig("x"), false, || HashSet::from(["c", "d"].map(key))).is_ok());
    let away = Problem::transient(Reason::TargetUnavailable, "away");
    targets.open.lock().get_mut(&key("c")).unwrap().down = Some((Instant::now() + PAUSE, away));
    assert!(targets.open(&key("a"), &kubeconfig("x"), false, all).is_ok());
    assert!(!targets.open.lock().contains_key(&key("c")));
}

fn of(namespace: &str, name: &str, account: &str) -> Key {
    let account = (Some("accounts".to_owned()), account.to_owned());
    Key { namespace: namespace.into(), name: name.into(), entry: None, account: Some(account) }
}

#[tokio::test]
async fn writes_to_other_clusters_wait_for_the_lease() {
    let (keeper, fence) = FenceKeeper::new(tokio::time::Instant::now());
    let targets = Targets { fence: Some(fence), ..targets(1) };
    let sent = Arc::<Mutex<Vec<http::Method>>>::default();
    let server = {
        let sent = Arc::clone(&sent);
        tower::service_fn(move |request: http::Request<Body>| {
            sent.lock().push(request.method().clone());
            async { Ok::<_, std::convert::Infallible>(http::Response::new(Body::empty())) }
        })
    };
    let allowance = Arc::new(Allowance::new(&targets.answers));
    allowance.renew(ANSWERS, TIME);
    let client = targets.safe(&Client::new(server, "default"), &allowance);
    let respond_to = |method: http::Method| {
        let request = http::Request::builder().method(method).uri("/").body(Body::empty()).unwrap();
        client.send(request)
    };
    assert!(respond_to(http::Method::GET).await.is_ok());
    let mut write = std::pin::pin!(respond_to(http::Method::DELETE));
    for _ in 0..100 {
        assert!(futures::poll!(&mut write).is_pending());
        tokio::task::yield_now().await;
    }
    assert_eq!(*sent.lock(), [http::Method::GET]);
    keeper.open_until(tokio::time::Instant::now() + TIME);
    assert!(write.await.is_ok());
    assert_eq!(*sent.lock(), [http::Method::GET, http::Method::DELETE]);
}

#[tokio::test]
async fn one_tenant_keeps_no_other_one_out() {
    chandler_tls::TlsSettings::default().install();
    let targets = targets(3);
    let opens = |key: &Key, holds| {
        let all: HashSet<Key> = targets.open.lock().keys().cloned().collect();
        targets.open(key, &kubeconfig("x"), holds, || all).is_ok()
    };
    let is_open = |key: &Key| targets.open.lock().contains_key(key);
    // One namespace with many accounts, and one account with many namespaces.
    for greedy in [
        [of("shop", "a", "1"), of("shop", "b", "2"), of("shop", "c", "3"), of("shop", "d", "4")],
        [of("1", "a", "shop"), of("2", "a", "shop"), of("3", "a", "shop"), of("4", "a", "shop")],
    ] {
        targets.open.lock().clear();
        assert!(greedy[..3].iter().all(|key| opens(key, true)));
        assert!(!opens(&greedy[3], true), "it has a share already");
        let other = of("other", "a", "other");
        assert!(opens(&other, false) && is_open(&other));
        assert!(!is_open(&greedy[0]), "the one that was used least recently makes room");
        assert!(!opens(&greedy[0], true) && is_open(&other), "it does not take the place back");
        assert!(opens(&of("third", "a", "third"), false) && is_open(&other));
        assert!(!opens(&of("fourth", "a", "fourth"), false), "each has one place");
    }
}

#[tokio::test]
async fn what_has_objects_comes_first() {
    chandler_tls::TlsSettings::default().install();
    let targets = targets(2);
    let opens = |name: &str, holds| {
        let key = of(name, "a", name);
        let all: HashSet<Key> = targets.open.lock().keys().cloned().chain([key.clone()]).collect();
        targets.open(&key, &kubeconfig("x"), holds, || all).is_ok()
    };
    assert!(opens("one", true) && opens("two", false));
    assert!(!opens("three", false));
    assert!(opens("three", true), "it takes the place of one without objects");
    assert!(!opens("two", false) && !opens("two", true), "all have objects");
}

#[test]
fn only_the_uid_of_the_answer_is_read() {
    let answer = |uid: &str| format!(r#"{{"x":[[0],[0]],"metadata":{{"name":"kube-system","uid":"{uid}"}}}}"#);
    assert_eq!(identity(&answer("0d2c-1")).unwrap(), "0d2c-1");
    for uid in ["", "a b", "a\\nb", &"x".repeat(UID + 1)] {
        assert!(identity(&answer(uid)).is_err(), "{uid}");
    }
    assert!(identity(r#"{"metadata":{}}"#).is_err() && identity("[]").is_err());
}

#[tokio::test]
async fn a_cluster_that_did_not_answer_is_not_asked_for_some_seconds() {
    chandler_tls::TlsSettings::default().install();
    let targets = targets(1);
    let none = HashSet::new;
    assert!(targets.open(&key("a"), &kubeconfig("x"), false, none).is_ok());
    let problem = Problem::transient(Reason::TargetUnavailable, "away");
    let down = |from: Instant| targets.open.lock().get_mut(&key("a")).unwrap().down = Some((from, problem.clone()));
    down(Instant::now() + PAUSE);
    assert_eq!(targets.open(&key("a"), &kubeconfig("x"), false, none).err().as_ref(), Some(&problem));
    assert!(targets.open(&key("a"), &kubeconfig("rotated"), false, none).is_ok(), "other credentials may be accepted");
    down(Instant::now());
    assert!(targets.open(&key("a"), &kubeconfig("rotated"), false, none).is_ok());
}
