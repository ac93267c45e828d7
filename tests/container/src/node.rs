//! What kubelet and a container runtime do with a Pod, for the Deployment of the controller.

use std::{
    collections::BTreeMap,
    fs::{self, File, Permissions},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use serde_json::{Map, Value, json};
use tokio::process::{Child, Command};

use crate::{Image, seccomp};

/// The flag of `deploy/controller.yaml` with the address of the probes.
const PROBES: &str = "--probe-address=";

/// An address of this machine that no other container of a test uses, so that the ports of the Deployment are free.
pub fn address() -> IpAddr {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let [_, a, b, c] = std::process::id().to_be_bytes();
    // The first container of a process has an address between 127.64 and 127.127, and later ones between 127.128 and 127.255.
    let second = match COUNT.fetch_add(1, Ordering::Relaxed).to_be_bytes() {
        [_, _, _, 0] => 64 | (a & 63),
        [.., count] => 128 | count,
    };
    Ipv4Addr::new(127, second, b, c.max(1)).into()
}

/// Where a Pod finds the API server.
#[derive(Clone, Debug)]
pub struct ApiServer {
    /// `KUBERNETES_SERVICE_HOST`: a name or an address in the certificate of the server.
    pub host: String,
    /// `KUBERNETES_SERVICE_PORT`.
    pub port: u16,
    /// The address of the host in `/etc/hosts`. `None` for a host that the name server knows, or that is an address.
    pub address: Option<IpAddr>,
    /// The certificate authority, as PEM.
    pub authority: String,
    /// The token of the ServiceAccount.
    pub token: String,
}

/// A Pod of the controller.
pub struct Plan<'a> {
    /// The program.
    pub runc: PathBuf,
    /// The image of the container.
    pub image: &'a Image,
    /// `spec.template.spec` of the Deployment.
    pub pod: &'a Value,
    /// The arguments of the container. `0.0.0.0` in them becomes [`address`](Self::address), since all Pods share the addresses of this machine.
    pub arguments: Vec<String>,
    /// The namespace of the Pod.
    pub namespace: &'a str,
    /// The address of the Pod, and of its name server.
    pub address: IpAddr,
    /// What the Pod gets to reach the API server.
    pub api_server: &'a ApiServer,
    /// Directories that volumes have already, by the name of the volume. Other volumes are empty.
    pub volumes: BTreeMap<String, PathBuf>,
    /// Further directories, by their paths in the container, which it may write to.
    pub mounts: BTreeMap<String, PathBuf>,
}

/// The files that a Pod of the controller needs on its node.
pub struct Node {
    runc: PathBuf,
    id: String,
    /// Where the container answers probes.
    probes: SocketAddr,
    /// The configuration of the container, its state and its log.
    directory: tempfile::TempDir,
}

impl Node {
    /// Writes the files.
    pub fn new(plan: &Plan<'_>) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let id = format!("chandler-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let directory = tempfile::tempdir().expect("a temporary directory");
        let probes = plan.arguments.iter().find_map(|argument| argument.strip_prefix(PROBES));
        let probes = probes.map(|probes| probes.replace("0.0.0.0", &plan.address.to_string()));
        let probes = probes.expect("the Deployment has probes").parse().expect("an address");
        let node = Self { runc: plan.runc.clone(), id, probes, directory };
        // Its files are mounted into the container, whose user may read them.
        set_mode(node.directory.path(), 0o755);
        let account = node.path("serviceaccount");
        fs::create_dir(&account).expect("a directory");
        let ApiServer { host, address, authority, token, .. } = plan.api_server;
        for (name, content) in [("token", token.as_str()), ("ca.crt", authority), ("namespace", plan.namespace)] {
            write(&account.join(name), content);
        }
        let hosts = address.map(|address| format!("{address} {host}\n")).unwrap_or_default();
        write(&node.path("resolv.conf"), &format!("nameserver {}\noptions ndots:1\n", plan.address));
        write(&node.path("hosts"), &format!("127.0.0.1 localhost\n{hosts}"));
        write(&node.path("config.json"), &node.configuration(plan).to_string());
        node
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// <https://github.com/opencontainers/runtime-spec/blob/v1.0.2/config.md>
    fn configuration(&self, plan: &Plan<'_>) -> Value {
        let container = &plan.pod["containers"][0];
        let security = &container["securityContext"];
        assert_eq!(security["capabilities"], json!({"drop": ["ALL"]}));
        assert_eq!(
            (&security["runAsNonRoot"], &plan.pod["securityContext"]["seccompProfile"]["type"]),
            (&json!(true), &json!("RuntimeDefault"))
        );
        let image = &plan.image.config;
        // The group is the one of the user in /etc/passwd, as for containerd; the image has the same user.
        let user = &security["runAsUser"];
        assert_eq!(image["User"], format!("{user}:{user}"));
        let group = &plan.pod["securityContext"]["fsGroup"];
        let own = plan.address.to_string();
        let arguments = plan.arguments.iter().map(|argument| Value::from(argument.replace("0.0.0.0", &own)));
        let bind = |name: &str, to: &str| json!({"destination": to, "type": "bind", "source": self.path(name), "options": ["rbind", "ro"]});
        let mut mounts = vec![
            json!({"destination": "/proc", "type": "proc", "source": "proc"}),
            json!({"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=64k"]}),
            bind("serviceaccount", "/var/run/secrets/kubernetes.io/serviceaccount"),
            bind("resolv.conf", "/etc/resolv.conf"),
            bind("hosts", "/etc/hosts"),
        ];
        let mut writable = |to: &Value, from: &Path| {
            mounts.push(json!({"destination": to, "type": "bind", "source": from, "options": ["rbind", "rw"]}));
        };
        for mount in list(&container["volumeMounts"]) {
            // An emptyDir: a directory of the node, which the group may write to.
            let name = text(&mount["name"]);
            let volume = plan.volumes.get(name).cloned().unwrap_or_else(|| {
                let empty = self.path(name);
                fs::create_dir(&empty).expect("a directory");
                empty
            });
            let group = group.as_u64().and_then(|group| u32::try_from(group).ok());
            chown(&volume, None, group).expect("only root can give a directory away");
            set_mode(&volume, 0o2777);
            writable(&mount["mountPath"], &volume);
        }
        for (to, from) in &plan.mounts {
            writable(&json!(to), from);
        }
        assert_eq!(container["resources"]["limits"]["memory"], "1Gi");
        json!({
            "ociVersion": "1.0.2",
            "process": {
                "terminal": false,
                "user": {"uid": user, "gid": user, "additionalGids": [group]},
                "args": list(&image["Entrypoint"]).iter().cloned().chain(arguments).collect::<Vec<Value>>(),
                "env": environment(container, plan),
                "cwd": image["WorkingDir"],
                "capabilities": Map::new(),
                "noNewPrivileges": security["allowPrivilegeEscalation"] == false,
            },
            "root": {"path": plan.image.root, "readonly": security["readOnlyRootFilesystem"]},
            "mounts": mounts,
            "linux": {
                // The network is the one of this machine, which has the API server.
                "namespaces": [{"type": "pid"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}],
                "resources": {"devices": [{"allow": false, "access": "rwm"}], "memory": {"limit": 1 << 30}},
                "cgroupsPath": format!("/{}", self.id),
                "seccomp": seccomp::profile(),
                "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/timer_list"],
                "readonlyPaths": ["/proc/sys", "/proc/sysrq-trigger"],
            },
        })
    }

    fn runc(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.runc);
        command.arg("--root").arg(self.path("state")).args(arguments).arg(&self.id);
        command
    }

    /// Starts the container.
    pub fn run(&self) -> Container<'_> {
        let log = File::options().create(true).append(true).open(self.path("log")).expect("a file for the log");
        let bundle = self.directory.path().to_str().expect("temporary directories have names in UTF-8");
        let mut command = self.runc(&["run", "--bundle", bundle]);
        let errors = log.try_clone().expect("a file for the log");
        let child = command.stdin(Stdio::null()).stdout(log).stderr(errors).spawn().expect("runc starts");
        Container { started: Instant::now(), child, node: self }
    }

    /// What all containers of this Pod wrote.
    pub fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }
}

/// The variables of the image, of Kubernetes and of the Deployment.
fn environment(container: &Value, plan: &Plan<'_>) -> Vec<Value> {
    let of_kubernetes = [
        format!("KUBERNETES_SERVICE_HOST={}", plan.api_server.host),
        format!("KUBERNETES_SERVICE_PORT={}", plan.api_server.port),
        "HOSTNAME=chandler-0".to_owned(),
    ];
    let of_deployment = list(&container["env"]).iter().map(|variable| {
        assert_eq!(variable["valueFrom"]["fieldRef"]["fieldPath"], "status.podIP", "{variable}");
        format!("{}={}", text(&variable["name"]), plan.address)
    });
    let own = of_kubernetes.into_iter().chain(of_deployment).map(Value::from);
    list(&plan.image.config["Env"]).iter().cloned().chain(own).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn write(path: &Path, content: &str) {
    fs::write(path, content).unwrap_or_else(|error| panic!("failed to write {}: {error}", path.display()));
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("the mode of an own directory");
}

/// A running container, which is killed when it is dropped.
pub struct Container<'a> {
    node: &'a Node,
    child: Child,
    started: Instant,
}

impl Container<'_> {
    /// Waits until a probe of the Deployment succeeds, such as `/readyz`, and returns how long that took since the start.
    pub async fn answers(&mut self, path: &str, patience: Duration) -> Duration {
        let mut tick = tokio::time::interval(Duration::from_millis(20));
        let answered = tokio::time::timeout(patience, async {
            loop {
                tick.tick().await;
                if let Some(status) = self.child.try_wait().expect("a child process") {
                    panic!("the container ended with {status}: {}", self.node.log());
                }
                let answer = probe(self.node.probes, path).await;
                if answer.is_some_and(|head| head.starts_with("HTTP/1.1 200")) {
                    return self.started.elapsed();
                }
            }
        });
        let answered = answered.await;
        answered.unwrap_or_else(|_| panic!("no answer to {path} after {patience:?}: {}", self.node.log()))
    }

    /// What the kernel says about the process.
    pub fn status(&self) -> String {
        let state = self.node.runc(&["state"]).into_std().output().expect("runc answers");
        let state: Value = serde_json::from_slice(&state.stdout).expect("the state of the container");
        let status = Path::new("/proc").join(state["pid"].to_string()).join("status");
        fs::read_to_string(status).expect("the container runs")
    }

    /// Waits until the container has ended by itself.
    pub async fn ended(&mut self) -> ExitStatus {
        self.child.wait().await.expect("a child process")
    }

    /// Ends the container as kubelet does, and returns the log. It must answer probes: a signal that its program does not expect yet is lost.
    pub async fn stop(mut self, patience: Duration) -> String {
        let mut kill = self.node.runc(&["kill"]);
        let killed = kill.arg("TERM").status().await.expect("runc answers");
        let ended = tokio::time::timeout(patience, self.child.wait()).await;
        let status = ended.unwrap_or_else(|_| panic!("it does not end: {}", self.node.log())).expect("a child process");
        assert!(killed.success() && status.success(), "{status}: {}", self.node.log());
        self.node.log()
    }
}

impl Drop for Container<'_> {
    fn drop(&mut self) {
        // It still runs if the test failed.
        let _ = self.node.runc(&["delete", "--force"]).into_std().output();
    }
}

/// The beginning of what a path of the probe address answers.
async fn probe(address: SocketAddr, path: &str) -> Option<String> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(address).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut head = String::new();
    stream.read_to_string(&mut head).await.ok()?;
    Some(head)
}
