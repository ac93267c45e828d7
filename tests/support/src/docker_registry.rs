//! The registry of the CNCF, as Debian packages it, on loopback: TLS with an authority of its own, and one user.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    net::{IpAddr, Ipv4Addr},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};
use tempfile::TempDir;

/// The user.
pub const USERNAME: &str = "harbour";
/// Its password.
pub const PASSWORD: &str = "harbour-test";
/// Both in the file that Apache's htpasswd writes, with bcrypt: the registry takes no other form.
const HTPASSWD: &str = "harbour:$2y$05$abcdefghijklmnopqrstuuZnVqnsUgpIOlG2qxf6GgIUNKefwSxLO\n";

/// A registry that runs until this is dropped.
pub struct DockerRegistry {
    /// Its address, as in `127.0.0.1:5000`.
    pub host: String,
    /// The certificate of its authority, as PEM.
    pub authority: String,
    process: Child,
    _directory: TempDir,
}

impl DockerRegistry {
    /// Starts the registry on a free port.
    ///
    /// # Panics
    /// The program cannot be run, or does not listen.
    pub fn start(program: &Path) -> Self {
        Self::with(program, certificates())
    }

    /// Starts the registry with a certificate as `openssl req -x509` makes it: self-signed, and one of an authority (CA:TRUE).
    ///
    /// # Panics
    /// The program cannot be run, or does not listen.
    pub fn start_self_signed(program: &Path) -> Self {
        let (certificate, key) = self_signed();
        Self::with(program, (certificate.clone(), certificate, key))
    }

    /// Starts the registry with the certificate of an authority, and the certificate and the key of the server.
    fn with(program: &Path, (authority, certificate, key): (String, String, String)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for (name, text) in [("tls.crt", certificate.as_str()), ("tls.key", &key), ("htpasswd", HTPASSWD)] {
            fs::write(path(name), text).unwrap();
        }
        let configuration = format!(
            "version: 0.1\nlog: {{level: info, formatter: text}}\nstorage: {{filesystem: {{rootdirectory: {storage}}}}}\n\
             http:\n  addr: 127.0.0.1:0\n  secret: test\n  tls: {{certificate: {certificate}, key: {key}}}\n\
             auth: {{htpasswd: {{realm: test, path: {users}}}}}\n",
            storage = path("storage").display(),
            certificate = path("tls.crt").display(),
            key = path("tls.key").display(),
            users = path("htpasswd").display(),
        );
        fs::write(path("config.yaml"), configuration).unwrap();
        let mut command = Command::new(program);
        command.arg("serve").arg(path("config.yaml")).stdout(Stdio::null()).stderr(Stdio::piped());
        // Its settings can also come from variables.
        command.env_clear().env("PATH", env::var_os("PATH").unwrap_or_default());
        let mut process = command.spawn().unwrap();
        let mut log = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut seen = String::new();
        let host = log.by_ref().map_while(Result::ok).find_map(|line| {
            seen += &line;
            seen.push('\n');
            let (_, address) = line.split_once("listening on ")?;
            Some(address.split([',', '"']).next()?.trim().to_owned())
        });
        // A full pipe would stop the registry.
        thread::spawn(move || log.for_each(drop));
        assert!(host.is_some(), "the registry does not listen: {seen}");
        Self { host: host.unwrap(), authority, process, _directory: directory }
    }
}

impl Drop for DockerRegistry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A certificate of an authority that is one of a server on loopback as well, and its key.
fn self_signed() -> (String, String) {
    let mut certificate = CertificateParams::default();
    certificate.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    certificate.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    let key = KeyPair::generate().unwrap();
    (certificate.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

/// The certificate of an authority, and the certificate and the key of a server on loopback.
fn certificates() -> (String, String, String) {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(DnType::CommonName, "authority of a test");
    let authority_key = KeyPair::generate().unwrap();
    let authority_certificate = authority.self_signed(&authority_key).unwrap();
    let mut server = CertificateParams::default();
    server.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    let key = KeyPair::generate().unwrap();
    let server = server.signed_by(&key, &Issuer::from_params(&authority, &authority_key)).unwrap();
    (authority_certificate.pem(), server.pem(), key.serialize_pem())
}
