//! A real control plane: `etcd` and `kube-apiserver` from the directory that `KUBEBUILDER_ASSETS` names.
//!
//! If the directory contains `kube-controller-manager`, its controllers for garbage collection, namespaces and accounts run, too.
//! Nothing else of a cluster runs: no workload becomes available by itself.

use std::{
    fs::{self, File},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, bail};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use kube::config::{KubeConfigOptions, Kubeconfig};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use tempfile::TempDir;

/// The controllers of the controller manager that need nothing but the API.
const CONTROLLERS: &str = "garbage-collector-controller,namespace-controller,serviceaccount-controller,\
                           root-ca-certificate-publisher-controller,clusterrole-aggregation-controller,\
                           validatingadmissionpolicy-status-controller";

/// How long the processes may take until the API server is ready.
const START: Duration = Duration::from_secs(90);

/// The running processes. They are killed when this is dropped.
pub struct Envtest {
    config: kube::Config,
    kubeconfig: String,
    processes: Vec<(&'static str, Process)>,
    directory: TempDir,
}

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Envtest {
    /// Starts the processes and waits until the API server is ready.
    pub async fn start(assets: &Path) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let path = |name: &str| directory.path().join(name).display().to_string();
        let credentials = write_credentials(directory.path())?;
        let [client_port, peer_port, api_port] = free_ports()?;

        let clients = format!("http://127.0.0.1:{client_port}");
        let peers = format!("http://127.0.0.1:{peer_port}");
        let etcd = spawn(
            Command::new(assets.join("etcd")).args([
                &format!("--data-dir={}", path("etcd")),
                &format!("--listen-client-urls={clients}"),
                &format!("--advertise-client-urls={clients}"),
                &format!("--listen-peer-urls={peers}"),
                "--unsafe-no-fsync",
            ]),
            &directory.path().join("etcd.log"),
        )?;
        let server = spawn(
            Command::new(assets.join("kube-apiserver")).args([
                &format!("--etcd-servers={clients}"),
                "--bind-address=127.0.0.1",
                "--advertise-address=127.0.0.1",
                &format!("--secure-port={api_port}"),
                &format!("--tls-cert-file={}", path("server.crt")),
                &format!("--tls-private-key-file={}", path("server.key")),
                &format!("--client-ca-file={}", path("ca.crt")),
                "--service-account-issuer=https://kubernetes.default.svc",
                &format!("--service-account-key-file={}", path("accounts.pub")),
                &format!("--service-account-signing-key-file={}", path("accounts.key")),
                // A benchmark installs a thousand bundles with a Service each.
                "--service-cluster-ip-range=10.0.0.0/16",
                "--authorization-mode=RBAC",
                "--disable-admission-plugins=ServiceAccount",
                "--allow-privileged=true",
            ]),
            &directory.path().join("kube-apiserver.log"),
        )?;

        let kubeconfig = kubeconfig(api_port, &credentials);
        let config =
            kube::Config::from_custom_kubeconfig(Kubeconfig::from_yaml(&kubeconfig)?, &KubeConfigOptions::default())
                .await?;
        let processes = vec![("etcd", etcd), ("kube-apiserver", server)];
        let mut this = Self { config, kubeconfig, processes, directory };
        this.ready().await?;
        this.start_controllers(&assets.join("kube-controller-manager"))?;
        Ok(this)
    }

    /// Whether garbage is collected and deleted namespaces are emptied.
    pub fn has_controllers(&self) -> bool {
        self.processes.iter().any(|(name, _)| *name == "kube-controller-manager")
    }

    /// The process of a binary.
    pub fn process(&self, binary: &str) -> Option<u32> {
        self.processes.iter().find(|(name, _)| *name == binary).map(|(_, process)| process.0.id())
    }

    fn start_controllers(&mut self, binary: &Path) -> anyhow::Result<()> {
        if !binary.exists() {
            return Ok(());
        }
        let path = |name: &str| self.directory.path().join(name).display().to_string();
        fs::write(path("kubeconfig"), &self.kubeconfig)?;
        let manager = spawn(
            Command::new(binary).args([
                &format!("--kubeconfig={}", path("kubeconfig")),
                &format!("--root-ca-file={}", path("ca.crt")),
                &format!("--service-account-private-key-file={}", path("accounts.key")),
                &format!("--controllers={CONTROLLERS}"),
                "--leader-elect=false",
                // Each controller has an account of its own, as in clusters: admission policies do not see an administrator.
                "--use-service-account-credentials=true",
                "--kube-api-qps=1000",
                "--kube-api-burst=2000",
                "--concurrent-namespace-syncs=50",
                "--secure-port=0",
            ]),
            &self.directory.path().join("kube-controller-manager.log"),
        )?;
        self.processes.push(("kube-controller-manager", manager));
        Ok(())
    }

    /// A kubeconfig with the administrator's key, as YAML.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// A client configuration with the administrator's key.
    pub fn config(&self) -> &kube::Config {
        &self.config
    }

    async fn ready(&mut self) -> anyhow::Result<()> {
        let client = kube::Client::try_from(self.config.clone())?;
        let deadline = tokio::time::Instant::now() + START;
        let mut tick = tokio::time::interval(Duration::from_millis(200));
        loop {
            tick.tick().await;
            for (name, Process(child)) in &mut self.processes {
                if let Some(status) = child.try_wait()? {
                    let log = fs::read_to_string(self.directory.path().join(format!("{name}.log")))?;
                    bail!("{name} exited with {status}:\n{log}");
                }
            }
            let ready = client.request_text(http::Request::get("/readyz").body(Vec::new())?).await;
            match ready {
                Ok(text) if text.trim() == "ok" => return Ok(()),
                _ if tokio::time::Instant::now() < deadline => {}
                Ok(text) => bail!("kube-apiserver is not ready: {text}"),
                Err(error) => return Err(error).context("kube-apiserver does not answer"),
            }
        }
    }
}

struct Credentials {
    authority: String,
    certificate: String,
    key: String,
}

/// Creates a CA, and certificates of it for the server and for an administrator (`system:masters`).
fn write_credentials(directory: &Path) -> anyhow::Result<Credentials> {
    let authority_key = KeyPair::generate()?;
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    authority.distinguished_name.push(DnType::CommonName, "envtest");
    let authority_certificate = authority.self_signed(&authority_key)?;
    let issuer = Issuer::new(authority, authority_key);

    let server_key = KeyPair::generate()?;
    let mut server = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()])?;
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let server = server.signed_by(&server_key, &issuer)?;

    let client_key = KeyPair::generate()?;
    let mut client = CertificateParams::new(Vec::new())?;
    client.distinguished_name.push(DnType::CommonName, "admin");
    client.distinguished_name.push(DnType::OrganizationName, "system:masters");
    client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let client = client.signed_by(&client_key, &issuer)?;

    let accounts = KeyPair::generate()?;
    for (name, text) in [
        ("ca.crt", authority_certificate.pem()),
        ("server.crt", server.pem()),
        ("server.key", server_key.serialize_pem()),
        ("accounts.key", accounts.serialize_pem()),
        ("accounts.pub", accounts.public_key_pem()),
    ] {
        fs::write(directory.join(name), text)?;
    }
    Ok(Credentials {
        authority: STANDARD.encode(authority_certificate.pem()),
        certificate: STANDARD.encode(client.pem()),
        key: STANDARD.encode(client_key.serialize_pem()),
    })
}

fn kubeconfig(port: u16, credentials: &Credentials) -> String {
    let Credentials { authority, certificate, key } = credentials;
    format!(
        r"apiVersion: v1
kind: Config
clusters:
- name: envtest
  cluster: {{server: 'https://127.0.0.1:{port}', certificate-authority-data: {authority}}}
users:
- name: admin
  user: {{client-certificate-data: {certificate}, client-key-data: {key}}}
contexts:
- name: envtest
  context: {{cluster: envtest, user: admin}}
current-context: envtest
"
    )
}

fn spawn(command: &mut Command, log: &Path) -> anyhow::Result<Process> {
    let log = File::create(log)?;
    let child = command
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("failed to start {}", command.get_program().display()))?;
    Ok(Process(child))
}

/// Three ports that were free a moment ago. They are bound at the same time, so they differ.
fn free_ports() -> anyhow::Result<[u16; 3]> {
    let listeners =
        [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
    let [a, b, c] = &listeners;
    Ok([a.local_addr()?.port(), b.local_addr()?.port(), c.local_addr()?.port()])
}
