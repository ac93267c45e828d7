//! The SSH side: sshd, as the user who runs the tests.

use std::{
    fmt::Write as _,
    fs,
    io::{BufRead as _, BufReader},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use super::{Repository, repository::command};

/// A server on loopback with one host key, for one user key. It stops, and its repositories go away, when it is dropped.
pub struct SshServer {
    port: u16,
    user: String,
    sshd: Child,
    host_key: KeyPair,
    user_key: KeyPair,
    root: TempDir,
}

/// A key, made by ssh-keygen.
#[derive(Clone, Debug)]
pub struct KeyPair {
    /// The text of the private key.
    pub private: String,
    /// The type and the key, in one line.
    pub public: String,
}

impl KeyPair {
    /// A new key of a type that ssh-keygen knows, such as `ed25519`, with more of its arguments.
    ///
    /// # Panics
    /// If ssh-keygen fails.
    pub fn generate(kind: &str, arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("key");
        let mut keygen = command("ssh-keygen", directory.path());
        keygen.args(["-q", "-t", kind, "-C", "", "-f"]).arg(&file);
        if !arguments.contains(&"-N") {
            keygen.args(["-N", ""]);
        }
        let made = keygen.args(arguments).status().expect("ssh-keygen starts");
        assert!(made.success(), "ssh-keygen -t {kind} {arguments:?}");
        let read = |file: &Path| fs::read_to_string(file).expect("a key");
        let public = read(&file.with_extension("pub")).trim().to_owned();
        Self { private: read(&file), public }
    }
}

impl KeyPair {
    /// A new Ed25519 key. If this machine has no ssh-keygen, prints that and returns `None`.
    pub fn generate_here() -> Option<Self> {
        crate::needs::sshd()?;
        Some(Self::generate("ed25519", &[]))
    }
}

impl SshServer {
    /// Starts a server without repositories, with keys of these types, and more lines of sshd_config. If this machine has no sshd or
    /// no git, prints that and returns `None`.
    ///
    /// # Panics
    /// If there is none and tests may not be skipped, or it does not start.
    pub fn start(host_key: KeyPair, user_key: KeyPair, settings: &str) -> Option<Self> {
        crate::needs::git_http_backend()?;
        let program = crate::needs::sshd()?;
        let root = tempfile::tempdir().expect("a directory");
        let at = |name: &str| root.path().join(name);
        private(&at("host_key"), &host_key.private);
        private(&at("authorized_keys"), &user_key.public);
        let (port, sshd) = start(&program, root.path(), settings);
        let user = command("id", root.path()).arg("-un").output().expect("id starts").stdout;
        let user = String::from_utf8(user).expect("a name").trim().to_owned();
        fs::create_dir(at("repositories")).expect("a directory");
        Some(Self { port, user, sshd, host_key, user_key, root })
    }

    /// A server as git needs it, with Ed25519 keys.
    pub fn start_for_git() -> Option<Self> {
        Self::start(KeyPair::generate_here()?, KeyPair::generate_here()?, "AcceptEnv GIT_PROTOCOL")
    }

    /// Creates a repository.
    pub fn repository(&self, name: &str) -> Repository {
        Repository::create(&self.path(name))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join("repositories").join(name)
    }

    /// The URL of a repository.
    pub fn url(&self, name: &str) -> String {
        format!("ssh://{}@127.0.0.1:{}{}", self.user, self.port, self.path(name).display())
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The user who runs the tests, the only one of the server.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The key that the server accepts.
    pub fn private_key(&self) -> &str {
        &self.user_key.private
    }

    /// The known_hosts file of a client.
    pub fn known_hosts(&self) -> String {
        format!("[127.0.0.1]:{} {}\n", self.port, self.host_key.public)
    }
}

impl Drop for SshServer {
    fn drop(&mut self) {
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
    }
}

/// Writes a file that only this user may read, as sshd wants it.
fn private(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(path, text).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("a private file");
}

/// Starts sshd on a free port. Another process may take the port first, so it tries again.
fn start(program: &Path, root: &Path, settings: &str) -> (u16, Child) {
    for _ in 0..20 {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        drop(listener);
        let mut config = String::new();
        let keys = format!("HostKey {0}/host_key\nAuthorizedKeysFile {0}/authorized_keys", root.display());
        let rest = "UsePAM no\nPidFile none\nStrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes";
        let path = std::env::var("PATH").unwrap_or_default();
        // bash reads no .bashrc, whose output would come first, where it takes itself for a nested shell.
        let environment = format!("SetEnv PATH={path} SHLVL=5");
        let _ = write!(config, "ListenAddress 127.0.0.1:{port}\n{keys}\n{rest}\n{environment}\n{settings}\n");
        fs::write(root.join("sshd_config"), config).expect("a file");
        let mut sshd = Command::new(program);
        sshd.args(["-D", "-e", "-f"]).arg(root.join("sshd_config")).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut sshd = sshd.spawn().expect("sshd starts");
        let mut log = BufReader::new(sshd.stderr.take().expect("its log"));
        let mut line = String::new();
        while log.read_line(&mut line).expect("text") > 0 {
            if line.contains("Server listening") {
                // It must not wait for a reader of its log.
                std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
                return (port, sshd);
            }
        }
        assert!(line.contains("Address already in use"), "sshd does not start: {line}");
        let _ = sshd.wait();
    }
    panic!("sshd found no free port");
}
