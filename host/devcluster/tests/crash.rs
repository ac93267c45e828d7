//! A server is killed during writes, again and again: all acknowledged writes exist after the restart.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test that cannot continue fails")]

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
    process::{Child, ChildStdout, Command, ExitCode, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use chandler_devcluster::{DevCluster, Options};
use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// The argument that makes this program the server.
const SERVE: &str = "--serve";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const END: &str = "---\n";
const WRITERS: usize = 8;
/// Far longer than any operation takes.
const PATIENCE: Duration = Duration::from_mins(4);

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(SERVE) {
        serve(&arguments.next().unwrap());
        return ExitCode::SUCCESS;
    }
    let trials = vec![Trial::test("what_was_acknowledged_survives_being_killed", killed_amid_writes)];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

#[tokio::main]
async fn serve(data: &str) {
    let options = Options { data: Some(data.into()), workloads: false, ..Options::default() };
    let cluster = DevCluster::start(options).await.unwrap();
    let mut stdout = std::io::stdout();
    stdout.write_all(format!("{}{END}", cluster.kubeconfig()).as_bytes()).unwrap();
    stdout.flush().unwrap();
    // Ends with its parent, if nothing kills it before.
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await.unwrap().unwrap();
}

struct Server {
    child: Child,
    kubeconfig: String,
    _stdout: BufReader<ChildStdout>,
}

impl Server {
    fn start(data: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(SERVE).arg(data).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut kubeconfig = String::new();
        while !kubeconfig.ends_with(END) {
            assert!(stdout.read_line(&mut kubeconfig).unwrap() > 0, "the server did not start");
        }
        kubeconfig.truncate(kubeconfig.len() - END.len());
        Self { child, kubeconfig, _stdout: stdout }
    }

    async fn client(&self) -> kube::Client {
        let kubeconfig = Kubeconfig::from_yaml(&self.kubeconfig).unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        kube::Client::try_from(config).unwrap()
    }

    fn kill(&mut self) {
        // SIGKILL.
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The knowledge of one writer.
#[derive(Default)]
struct Ledger {
    /// The last acknowledged state of each object; `None` if it was deleted.
    acknowledged: BTreeMap<String, Option<Value>>,
    /// The object whose write was not acknowledged: it may or may not have happened.
    open: Option<String>,
    revision: u64,
}

/// Creates, changes and deletes objects until the server no longer responds.
async fn write(client: kube::Client, round: usize, writer: usize, acknowledged: Arc<AtomicUsize>) -> Ledger {
    let mut ledger = Ledger::default();
    for number in 0.. {
        let name = format!("round-{round}-writer-{writer}-{}", number / 3);
        let path = format!("{CONFIG_MAPS}/{name}");
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"step": "0"}});
        let request = match number % 3 {
            0 => Request::post(CONFIG_MAPS).header("content-type", "application/json").body(object.to_string()),
            1 => Request::patch(&path)
                .header("content-type", "application/merge-patch+json")
                .body(json!({"data": {"step": number.to_string()}}).to_string()),
            _ if number % 2 == 0 => Request::delete(&path).body(String::new()),
            _ => continue,
        };
        let request = request.unwrap().map(String::into_bytes);
        ledger.open = Some(name.clone());
        let Ok(answer) = client.request::<Value>(request).await else { return ledger };
        ledger.open = None;
        acknowledged.fetch_add(1, Ordering::Relaxed);
        let is_status = answer["kind"] == "Status";
        if let Some(revision) = answer["metadata"]["resourceVersion"].as_str() {
            ledger.revision = ledger.revision.max(revision.parse().unwrap());
        }
        ledger.acknowledged.insert(name, (!is_status).then_some(answer));
    }
    ledger
}

fn killed_amid_writes() -> Result<(), Failed> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async { tokio::time::timeout(PATIENCE, rounds()).await })?;
    Ok(())
}

async fn rounds() {
    let data = tempfile::tempdir().unwrap();
    let mut kubeconfig: Option<String> = None;
    let mut known: BTreeMap<String, Option<Value>> = BTreeMap::new();
    let mut revision = 0;
    for (round, enough) in [1, 40, 150, 400].into_iter().enumerate() {
        let mut server = Server::start(data.path());
        assert_eq!(kubeconfig.get_or_insert_with(|| server.kubeconfig.clone()), &server.kubeconfig, "it keeps working");
        let client = server.client().await;
        check(&client, &known, revision).await;

        let acknowledged = Arc::new(AtomicUsize::new(0));
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            writers.spawn(write(client.clone(), round, writer, Arc::clone(&acknowledged)));
        }
        while acknowledged.load(Ordering::Relaxed) < enough {
            tokio::task::yield_now().await;
        }
        server.kill();
        for ledger in writers.join_all().await {
            revision = revision.max(ledger.revision);
            known.extend(ledger.acknowledged);
            known.retain(|name, _| Some(name) != ledger.open.as_ref());
        }
        assert!(known.len() >= enough / 3);
    }
    let server = Server::start(data.path());
    check(&server.client().await, &known, revision).await;
}

/// Every acknowledged object exists, byte for byte, and new writes get new revisions.
async fn check(client: &kube::Client, known: &BTreeMap<String, Option<Value>>, revision: u64) {
    let list = Request::get(CONFIG_MAPS).body(Vec::new()).unwrap();
    let list: Value = client.request(list).await.unwrap();
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
    let found: BTreeMap<String, &Value> =
        list["items"].as_array().unwrap().iter().map(|object| (name(object), object)).collect();
    for (name, expected) in known {
        let Some(expected) = expected else {
            assert!(!found.contains_key(name), "{name} was deleted");
            continue;
        };
        let found = found.get(name).unwrap_or_else(|| panic!("{name} was acknowledged and is lost"));
        assert_eq!((&found["metadata"], &found["data"]), (&expected["metadata"], &expected["data"]));
    }
    let present: u64 = list["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    assert!(present >= revision, "{present} is less than {revision}, which was acknowledged");
}
