//! What this machine sets for registries: mirrors, certificates, credentials and proxies.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    sync::{Arc, Mutex},
};

use chandler_devregistry::{Authentication, Options, Registry};
use tempfile::TempDir;

use crate::support::{Outcome, command, root};

const LIGHTHOUSE: &str = "tests/fixtures/plain/lighthouse";

fn registry(runtime: &tokio::runtime::Runtime, options: Options) -> Registry {
    runtime.block_on(async {
        let registry = Registry::start(options).await.unwrap();
        registry
            .push_bundle_directory("shop/lighthouse", "v1", &root().join(LIGHTHOUSE), &BTreeMap::new())
            .await
            .unwrap();
        registry
    })
}

/// A user with a home directory and nothing else in the environment but these variables.
pub(crate) struct User {
    pub(crate) home: TempDir,
    variables: Vec<(&'static str, String)>,
}

impl User {
    pub(crate) fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap(), variables: Vec::new() }
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.home.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
    }

    fn render(&self, image: &str) -> Outcome {
        self.run(&["render", image, "--name", "lighthouse"])
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Outcome {
        // A cache of its own: content in the cache needs no registry.
        let cache = self.home.path().join("cache");
        let mut command = command(&cache);
        command.args(arguments).env_clear().env("CHANDLER_CACHE_DIRECTORY", &cache);
        command.env("HOME", self.home.path()).env("PATH", self.home.path().join("bin:/usr/bin:/bin"));
        let output = command.envs(self.variables.iter().cloned()).output().unwrap();
        Outcome {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

#[test]
fn mirrors_and_certificates_are_those_of_the_user() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mirror = registry(&runtime, Options { tls: true, ..Options::default() });
    let user = User::new();
    let text = format!(
        "[[registry]]\nlocation = \"source.invalid\"\nblocked = true\n[[registry.mirror]]\nlocation = \"{}\"\n",
        mirror.host()
    );
    user.write(".config/containers/registries.conf", &text);
    let image = "source.invalid/shop/lighthouse:v1";
    let untrusted = user.render(image);
    assert_eq!(untrusted.code, Some(1), "{}", untrusted.stderr);
    let certificate = format!(".config/containers/certs.d/{}/ca.crt", mirror.host());
    user.write(&certificate, mirror.certificate_authority().unwrap());
    assert!(user.render(image).data().contains("lighthouse"));
    user.write(
        ".config/containers/registries.conf.d/10.conf",
        "[[registry]]\nlocation = \"source.invalid\"\nblocked = true\n",
    );
    let blocked = user.render(image);
    assert!(blocked.stderr.contains("images of source.invalid are blocked"), "{}", blocked.stderr);
    assert!(blocked.stderr.contains("hint: see registries.conf"), "{}", blocked.stderr);
    user.write(
        ".config/containers/registries.conf.d/20.conf",
        "[[registry]]\nlocation = \"source.invalid\"\nblocked = maybe\n",
    );
    let mistyped = user.render(image);
    assert!(mistyped.stderr.contains("20.conf:3: "), "{}", mistyped.stderr);
}

#[test]
fn credentials_come_from_the_files_and_helpers_of_podman_and_docker() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let authentication = Authentication::Basic { username: "ann".to_owned(), password: "s3cret".to_owned() };
    let locked = registry(&runtime, Options { authentication, ..Options::default() });
    let host = locked.host();
    let image = format!("{host}/shop/lighthouse:v1");
    // `ann:s3cret`.
    let entry = format!(r#"{{"auths": {{"{host}": {{"auth": "YW5uOnMzY3JldA=="}}}}}}"#);
    let helper = format!(
        "#!/bin/sh\ntest \"$1\" = get || exit 1\nread -r host\ntest \"$host\" = {host} || exit 1\n\
         echo '{{\"ServerURL\":\"'\"$host\"'\",\"Username\":\"ann\",\"Secret\":\"s3cret\"}}'\n"
    );
    let helpers = format!(r#"{{"credHelpers": {{"{host}": "test"}}}}"#);
    for (path, text, variable, code) in [
        (".docker/config.json", "{}", None, 1),
        (".docker/config.json", &entry, None, 0),
        (".docker/config.json", &helpers, None, 0),
        (".docker/config.json", r#"{"credsStore": "test"}"#, None, 0),
        (".docker/config.json", r#"{"credsStore": "absent"}"#, None, 1),
        (".config/containers/auth.json", &entry, None, 0),
        ("run/containers/auth.json", &entry, None, 1),
        ("run/containers/auth.json", &entry, Some(("XDG_RUNTIME_DIR", "run")), 0),
        ("docker/config.json", &entry, Some(("DOCKER_CONFIG", "docker")), 0),
        ("auth.json", &entry, Some(("REGISTRY_AUTH_FILE", "auth.json")), 0),
    ] {
        let mut user = User::new();
        user.write("bin/docker-credential-test", &helper);
        user.write(path, text);
        let absolute = |path: &str| user.home.path().join(path).display().to_string();
        user.variables = variable.iter().map(|(name, path)| (*name, absolute(path))).collect();
        // Credentials are sent without TLS only where the user says so.
        let unlisted = user.render(&image);
        assert_eq!(unlisted.code, Some(1), "{path} {text} {variable:?}: {}", unlisted.stderr);
        let outcome = user.run(&["render", &image, "--name", "lighthouse", "--plain-http-registry", &host]);
        assert_eq!(outcome.code, Some(code), "{path} {text} {variable:?}: {}", outcome.stderr);
        assert!(!outcome.stderr.contains("s3cret"), "{}", outcome.stderr);
    }
    let user = User::new();
    user.write(".docker/config.json", &helpers);
    let outcome = user.render(&image);
    assert!(outcome.stderr.contains("docker-credential-test is not installed"), "{}", outcome.stderr);
}

/// A proxy that refuses, and the first lines of the requests that it got.
fn proxy() -> (String, Arc<Mutex<Vec<String>>>) {
    let (listener, asked) = (TcpListener::bind("127.0.0.1:0").unwrap(), Arc::<Mutex<Vec<String>>>::default());
    let (address, notes) = (listener.local_addr().unwrap(), Arc::clone(&asked));
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(stream);
            let (mut first, mut line) = (String::new(), String::new());
            let _ = reader.read_line(&mut first);
            notes.lock().unwrap().push(first.trim().to_owned());
            while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
                line.clear();
            }
            let _ =
                reader.get_mut().write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    (format!("http://{address}"), asked)
}

#[test]
fn registries_are_asked_through_the_proxy_of_the_environment() {
    let image = "source.invalid/shop/lighthouse:v1";
    for (exceptions, expected) in [
        ("", vec!["CONNECT source.invalid:443 HTTP/1.1"]),
        ("other.invalid", vec!["CONNECT source.invalid:443 HTTP/1.1"]),
        ("source.invalid", vec![]),
        (".invalid", vec![]),
        ("*", vec![]),
    ] {
        let (address, asked) = proxy();
        let mut user = User::new();
        user.variables = vec![("HTTPS_PROXY", address), ("NO_PROXY", exceptions.to_owned())];
        let outcome = user.render(image);
        assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
        let mut asked = asked.lock().unwrap().clone();
        asked.dedup();
        assert_eq!(asked, expected, "NO_PROXY={exceptions}: {}", outcome.stderr);
    }
    // A registry on this machine is asked without the proxy.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let open = registry(&runtime, Options::default());
    let (address, asked) = proxy();
    let mut user = User::new();
    user.variables = vec![("HTTPS_PROXY", address.clone()), ("HTTP_PROXY", address)];
    user.render(&format!("{}/shop/lighthouse:v1", open.host())).data();
    assert_eq!(*asked.lock().unwrap(), [""; 0]);
}
