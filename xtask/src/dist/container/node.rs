//! What kubelet and a container runtime do with a Pod, for the Deployment of the controller.

use std::{
    fs::{self, File, Permissions},
    net::{IpAddr, Ipv4Addr},
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use serde_json::{Map, Value, json};
use tokio::process::{Child, Command};

use super::{
    api_server::{self, Credentials},
    rootfs::RootFileSystem,
    seccomp,
};
use crate::command;

/// An address of this machine that no other test uses, so that the ports of the Deployment are free.
pub(super) fn address() -> IpAddr {
    let [_, a, b, c] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, 64 | a, b, c.max(1)).into()
}

/// The files that a Pod of the controller needs on its node.
pub(super) struct Node {
    runc: PathBuf,
    rootfs: RootFileSystem,
    /// The configuration of the container, its state and its log.
    directory: tempfile::TempDir,
}

impl Node {
    pub(super) fn new(runc: PathBuf, rootfs: RootFileSystem, credentials: &Credentials, port: u16) -> Self {
        let node = Self { runc, rootfs, directory: tempfile::tempdir().unwrap() };
        // Its files are mounted into the container, whose user may read them.
        fs::set_permissions(node.directory.path(), Permissions::from_mode(0o755)).unwrap();
        let account = node.path("serviceaccount");
        fs::create_dir(&account).unwrap();
        for (name, content) in [
            ("token", credentials.token.as_str()),
            ("ca.crt", &credentials.authority),
            ("namespace", "chandler-system"),
        ] {
            fs::write(account.join(name), content).unwrap();
        }
        fs::write(node.path("resolv.conf"), format!("nameserver {}\noptions ndots:1\n", address())).unwrap();
        fs::write(node.path("hosts"), "127.0.0.1 localhost\n").unwrap();
        fs::write(node.path("config.json"), node.configuration(&pod(), port).to_string()).unwrap();
        node
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// <https://github.com/opencontainers/runtime-spec/blob/v1.0.2/config.md>
    fn configuration(&self, pod: &Value, port: u16) -> Value {
        let container = &pod["containers"][0];
        let security = &container["securityContext"];
        assert_eq!(security["capabilities"], json!({"drop": ["ALL"]}));
        assert_eq!(
            (&security["runAsNonRoot"], &pod["securityContext"]["seccompProfile"]["type"]),
            (&json!(true), &json!("RuntimeDefault"))
        );
        // The group is the one of the user in /etc/passwd, as for containerd; the image has the same user.
        let user = &security["runAsUser"];
        assert_eq!(self.rootfs.config["User"], format!("{user}:{user}"));
        let group = &pod["securityContext"]["fsGroup"];
        let ports = |argument: &Value| argument.as_str().unwrap().replace("0.0.0.0", &address().to_string());
        let entrypoint = self.rootfs.config["Entrypoint"].as_array().unwrap().iter().cloned();
        let arguments = container["args"].as_array().unwrap().iter().map(|argument| ports(argument).into());
        let environment = [
            format!("KUBERNETES_SERVICE_HOST={}", api_server::NAME),
            format!("KUBERNETES_SERVICE_PORT={port}"),
            "HOSTNAME=chandler-0".to_owned(),
        ];
        let environment =
            self.rootfs.config["Env"].as_array().unwrap().iter().cloned().chain(environment.map(Value::from));
        let bind = |name: &str, to: &str| json!({"destination": to, "type": "bind", "source": self.path(name), "options": ["rbind", "ro"]});
        let mut mounts = vec![
            json!({"destination": "/proc", "type": "proc", "source": "proc"}),
            json!({"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=64k"]}),
            bind("serviceaccount", "/var/run/secrets/kubernetes.io/serviceaccount"),
            bind("resolv.conf", "/etc/resolv.conf"),
            bind("hosts", "/etc/hosts"),
        ];
        for mount in container["volumeMounts"].as_array().unwrap() {
            // An emptyDir: a directory of the node, which the group may write to.
            let volume = self.path(mount["name"].as_str().unwrap());
            fs::create_dir(&volume).unwrap();
            chown(&volume, None, group.as_u64().map(|group| u32::try_from(group).unwrap())).unwrap();
            fs::set_permissions(&volume, Permissions::from_mode(0o2777)).unwrap();
            let options = ["rbind", "rw"];
            mounts
                .push(json!({"destination": mount["mountPath"], "type": "bind", "source": volume, "options": options}));
        }
        let memory = container["resources"]["limits"]["memory"].as_str().unwrap();
        assert_eq!(memory, "1Gi");
        json!({
            "ociVersion": "1.0.2",
            "process": {
                "terminal": false,
                "user": {"uid": user, "gid": user, "additionalGids": [group]},
                "args": entrypoint.chain(arguments).collect::<Vec<Value>>(),
                "env": environment.collect::<Vec<Value>>(),
                "cwd": self.rootfs.config["WorkingDir"],
                "capabilities": Map::new(),
                "noNewPrivileges": security["allowPrivilegeEscalation"] == false,
            },
            "root": {"path": self.rootfs.directory.path(), "readonly": security["readOnlyRootFilesystem"]},
            "mounts": mounts,
            "linux": {
                // The network is the one of this machine, which has the API server.
                "namespaces": [{"type": "pid"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}],
                "resources": {"devices": [{"allow": false, "access": "rwm"}], "memory": {"limit": 1 << 30}},
                "cgroupsPath": format!("/{}", id()),
                "seccomp": seccomp::profile(),
                "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/timer_list"],
                "readonlyPaths": ["/proc/sys", "/proc/sysrq-trigger"],
            },
        })
    }

    fn runc(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.runc);
        command.arg("--root").arg(self.path("state")).args(arguments).arg(id());
        command
    }

    /// Starts the container.
    pub(super) fn run(self) -> Container {
        let log = File::create(self.path("log")).unwrap();
        let bundle = self.directory.path().to_str().unwrap().to_owned();
        let mut command = self.runc(&["run", "--bundle", &bundle]);
        let errors = log.try_clone().unwrap();
        let child = command.stdin(Stdio::null()).stdout(log).stderr(errors).spawn().unwrap();
        Container { started: Instant::now(), child, node: self }
    }
}

/// The name of the container.
fn id() -> String {
    format!("chandler-test-{}", std::process::id())
}

/// The Pod of the Deployment.
fn pod() -> Value {
    let text = fs::read_to_string(command::root().join("deploy/controller.yaml")).unwrap();
    let deployment: Value = serde_saphyr::from_str(&text).unwrap();
    deployment.pointer("/spec/template/spec").unwrap().clone()
}

/// A running container, which is killed when it is dropped.
pub(super) struct Container {
    node: Node,
    child: Child,
    started: Instant,
}

impl Container {
    fn log(&self) -> String {
        fs::read_to_string(self.node.path("log")).unwrap_or_default()
    }

    /// Waits until the readiness probe of the Deployment succeeds, and returns how long that took.
    pub(super) async fn ready(&mut self, patience: Duration) -> Duration {
        let mut tick = tokio::time::interval(Duration::from_millis(20));
        let ready = tokio::time::timeout(patience, async {
            loop {
                tick.tick().await;
                if let Some(status) = self.child.try_wait().unwrap() {
                    panic!("the container ended with {status}: {}", self.log());
                }
                if probe("/readyz").await.is_some_and(|head| head.starts_with("HTTP/1.1 200")) {
                    return self.started.elapsed();
                }
            }
        });
        let ready = ready.await;
        ready.unwrap_or_else(|_| panic!("the controller is not ready after {patience:?}: {}", self.log()))
    }

    /// What the kernel says about the process.
    pub(super) fn status(&self) -> String {
        let state = self.node.runc(&["state"]).into_std().output().unwrap();
        let state: Value = serde_json::from_slice(&state.stdout).unwrap();
        fs::read_to_string(Path::new("/proc").join(state["pid"].to_string()).join("status")).unwrap()
    }

    /// Ends the container as kubelet does, and returns its log.
    pub(super) async fn stop(mut self, patience: Duration) -> String {
        let mut kill = self.node.runc(&["kill"]);
        assert!(kill.arg("TERM").status().await.unwrap().success());
        let ended = tokio::time::timeout(patience, self.child.wait()).await;
        let status = ended.unwrap_or_else(|_| panic!("it does not end: {}", self.log())).unwrap();
        assert!(status.success(), "{status}: {}", self.log());
        self.log()
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // It still runs if the test failed.
        let _ = self.node.runc(&["delete", "--force"]).into_std().output();
    }
}

/// The beginning of what a path of the probe address answers.
async fn probe(path: &str) -> Option<String> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect((address(), 8081)).await.ok()?;
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n").as_bytes())
        .await
        .ok()?;
    let mut head = String::new();
    stream.read_to_string(&mut head).await.ok()?;
    Some(head)
}
