//! Traces and logs of the binary: signals change the level, a collector that does not answer changes nothing, and neither has secrets.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, ChildStderr, Command, Stdio},
    sync::mpsc,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_devregistry::{Authentication, Options, Registry};
use chandler_tests::{
    Cluster, World,
    bundles::{self, Bundle, config_map},
    collector::Collector,
    run::LABEL,
};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api,
    api::{ListParams, PostParams},
};
use serde_json::{Value, json};

use crate::support;

/// A controller of a world, as a process.
pub(crate) struct Controller {
    child: Child,
    lines: mpsc::Receiver<String>,
    /// What was read so far.
    log: Vec<String>,
}

impl Controller {
    pub(crate) fn start(world: &World, directory: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let kubeconfig = directory.join("kubeconfig");
        std::fs::write(&kubeconfig, world.kubeconfig().unwrap()).unwrap();
        let selector = format!("{}={}", LABEL, world.run());
        let mut child = support::command(&directory.join("cache"))
            .args(["controller", "--log-format", "json", "--allow-unsigned", "--kubeconfig"])
            .arg(&kubeconfig)
            .args(["--watch-selector", &selector, "--system-namespace", &world.system_namespace])
            .args(arguments)
            .envs(environment.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (send, lines) = mpsc::channel();
        let out = child.stderr.take().unwrap();
        // On a thread, so that the pipe never fills.
        std::thread::spawn(move || read(out, &send));
        Self { child, lines, log: Vec::new() }
    }

    /// Waits until a line has this text, also one that was read before.
    fn has_line(&mut self, text: &str) {
        if !self.log.iter().any(|line| line.contains(text)) {
            self.line(text);
        }
    }

    /// Waits for a line with this text.
    pub(crate) fn line(&mut self, text: &str) -> Value {
        loop {
            let line = self.lines.recv().map_err(|_| format!("no line has {text:?}")).unwrap();
            self.log.push(line.clone());
            if line.contains(text) {
                return serde_json::from_str(&line).unwrap();
            }
        }
    }

    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap().success());
    }

    /// Stops it, and returns all that it wrote.
    pub(crate) fn stop(mut self) -> Vec<String> {
        self.signal("-TERM");
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        self.log.extend(self.lines);
        self.log
    }
}

fn read(out: ChildStderr, send: &mpsc::Sender<String>) {
    for line in BufReader::new(out).lines().map_while(Result::ok) {
        if send.send(line).is_err() {
            return;
        }
    }
}

async fn world() -> (World, tempfile::TempDir) {
    (World::without_controller(Cluster::acquire().await).await, tempfile::tempdir().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_raise_and_restore_the_level_and_a_dead_collector_changes_nothing() {
    let (world, directory) = world().await;
    // Nothing listens there.
    let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let delay = [("OTEL_BSP_SCHEDULE_DELAY", "50")];
    let mut controller =
        Controller::start(&world, directory.path(), &["--otlp-endpoint", &format!("http://{dead}")], &delay);
    controller.line("the controller runs");
    controller.signal("-USR1");
    let raised = controller.line("the log level is raised by SIGUSR1");
    assert_eq!(raised["level"], "INFO", "{raised}");
    let name = world.name();
    let image = world.push(&Bundle::empty().with("manifests/map.yaml", &config_map("bell", "v1"))).await;
    world.deploy(&name, "core-rukpak-io-plain", &image).await;
    world.ready(&name).await;
    let line = controller.line("\"level\":\"DEBUG\"");
    assert!(line["target"].as_str().unwrap().starts_with("chandler"), "{line}");
    controller.has_line("the collector does not accept traces");
    controller.signal("-USR2");
    controller.line("the log level is restored by SIGUSR2");
    world.delete(&name).await;
    let log = controller.stop();
    let end = log.iter().position(|line| line.contains("restored by SIGUSR2")).unwrap();
    // Each thread may end the line that it was writing when the signal came.
    assert!(log.iter().skip(end + 8).all(|line| !line.contains("\"level\":\"DEBUG\"")), "{log:#?}");
    let failures = log.iter().filter(|line| line.contains("the collector does not accept traces")).count();
    assert_eq!(failures, 1, "{log:#?}");
    assert!(
        log.iter().all(|line| !line.contains("\"target\":\"h2") && !line.contains("\"target\":\"hyper")),
        "{log:#?}"
    );
    world.finish().await;
}

/// A password of a registry, a value of a Secret, a Secret of a bundle, and a header for the collector.
const PLANTED: &[&str] = &["planted-password", "planted-value", "planted-in-bundle", "planted-header"];

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_in_the_log_or_in_traces() {
    let (world, directory) = world().await;
    let collector = Collector::new();
    let kubeconfig = world.kubeconfig().unwrap();
    let key = |line: &str| {
        let line = line.trim();
        let value = ["token: ", "client-key-data: "].iter().find_map(|key| line.strip_prefix(key))?;
        Some(value.trim_matches(['"', '\'']).to_owned())
    };
    let credentials: Vec<String> = kubeconfig.lines().filter_map(key).collect();
    assert!(!credentials.is_empty(), "the kubeconfig has credentials");
    let headers = [("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20planted-header")];
    let authentication = Authentication::Basic { username: "user".to_owned(), password: PLANTED[0].to_owned() };
    let registry = Registry::start(Options { authentication, ..Options::default() }).await.unwrap();
    let (url, plain) = (collector.url(), registry.host());
    let arguments = ["--otlp-endpoint", &url, "--log-level", "trace", "--plain-http-registry", &plain];
    let mut controller = Controller::start(&world, directory.path(), &arguments, &headers);

    let login = STANDARD.encode(format!("user:{}", PLANTED[0]));
    let docker = json!({"auths": {registry.host(): {"auth": login}}}).to_string();
    let variable = format!("deploymentConfig:\n  env:\n  - {{name: HARBOUR_TOKEN, value: {}}}\n", PLANTED[1]);
    for (namespace, name, type_, key, value) in [
        (&world.system_namespace, "pull", "kubernetes.io/dockerconfigjson", ".dockerconfigjson", docker.as_str()),
        (&world.namespace, "values", "Opaque", "values.yaml", variable.as_str()),
    ] {
        let secrets: Api<Secret> = Api::namespaced(world.client.clone(), namespace);
        let data = json!({key: STANDARD.encode(value)});
        let secret = json!({"metadata": {"name": name}, "type": type_, "data": data});
        secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    }
    let text = format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: keys}}\nstringData: {{key: {}}}\n", PLANTED[2]);
    let keys = Bundle::empty().with("manifests/keys.yaml", &text).with("manifests/map.yaml", &config_map("bell", "v1"));
    let harbour = bundles::sample("registry/harbour-operator.v0.1.0");
    for (kind, class, bundle, values) in [
        ("plain", "core-rukpak-io-plain", keys, json!([])),
        ("harbour", "core-rukpak-io-registry", harbour, json!([{"kind": "Secret", "name": "values"}])),
    ] {
        let pushed = registry.push_bundle_directory(kind, "v1", bundle.path(), &BTreeMap::new()).await.unwrap();
        let mut spec = world.spec(class, &format!("{}/{kind}@{}", registry.host(), pushed.digest));
        spec["source"]["image"]["pullSecret"] = json!("pull");
        spec["valuesFrom"] = values;
        let name = format!("{}-{kind}", world.name());
        world.apply(&name, spec).await;
        world.ready(&name).await;
    }
    controller.line("\"trace_id\":");
    let deployments = world.deployments();
    let names: Vec<String> = deployments
        .list(&ListParams::default().labels(&format!("{LABEL}={}", world.run())))
        .await
        .unwrap()
        .items
        .into_iter()
        .filter_map(|deployment| deployment.metadata.name)
        .collect();
    for name in &names {
        world.delete(name).await;
    }
    let log = controller.stop();
    assert_eq!(names.len(), 2);
    // The last spans are exported before the process ends.
    let spans = collector.spans();
    for step in ["reconcile", "provisioner", "prune", "teardown"] {
        assert!(spans.iter().any(|span| span.name == step), "no {step}");
    }
    let received = collector.received();
    assert!(received.iter().all(|request| request.head.contains("Bearer planted-header")));
    assert!(log.iter().any(|line| line.contains("\"level\":\"TRACE\"")), "the log has every level");
    let forms = |secret: &str| [secret.to_owned(), STANDARD.encode(secret)];
    let secrets = PLANTED.iter().copied().chain(credentials.iter().map(String::as_str)).flat_map(forms).chain([login]);
    for secret in secrets {
        assert!(log.iter().all(|line| !line.contains(&secret)), "{:?}", log.iter().find(|line| line.contains(&secret)));
        let is_exported = |body: &[u8]| body.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(received.iter().all(|request| !is_exported(&request.body)), "{secret} is exported");
    }
    world.finish().await;
}

#[test]
fn a_url_of_a_collector_with_a_password_is_refused_and_not_shown() {
    for (arguments, environment) in [
        (vec!["controller", "--otlp-endpoint", "http://ann:planted@collector"], None),
        (vec!["controller"], Some("http://collector?key=planted")),
    ] {
        let mut command = support::command(&support::cache());
        let output = command.args(arguments).envs(environment.map(|url| ("OTEL_EXPORTER_OTLP_ENDPOINT", url))).output();
        let output = output.unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("--otlp-endpoint") && !text.contains("planted"), "{text}");
    }
}
