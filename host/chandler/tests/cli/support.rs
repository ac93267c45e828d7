//! Runs the binary as a user does.

use std::{
    ffi::OsStr,
    fs,
    io::{ErrorKind, Write as _},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The exit code.
    pub(crate) code: Option<i32>,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
}

impl Outcome {
    /// Standard output. Panics unless the run succeeded.
    #[track_caller]
    pub(crate) fn data(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self.stdout
    }
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A cache that all tests share.
pub(crate) fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("chandler-cache")
}

/// `chandler` in the root of the workspace, with this cache directory. All tests share the compiled code in it with the end-to-end tests
/// (`empty_cache` in tests/src/world.rs), so that each component is compiled once.
pub(crate) fn command(cache: &Path) -> Command {
    let program = std::env::current_exe().unwrap();
    let (shared, code) = (program.parent().unwrap().join("code-of-tests"), cache.join("code"));
    if fs::symlink_metadata(&code).is_err() {
        fs::create_dir_all(&shared).unwrap();
        fs::create_dir_all(cache).unwrap();
        // Another test may create the link at the same time.
        let linked = symlink(shared, code);
        assert!(linked.is_ok() || linked.is_err_and(|error| error.kind() == ErrorKind::AlreadyExists));
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_chandler"));
    command.current_dir(root()).env("CHANDLER_CACHE_DIRECTORY", cache).env_remove("RUST_LOG");
    // Snapshots have signs that are not ASCII.
    for variable in ["LC_ALL", "LC_CTYPE", "LANG"] {
        command.env_remove(variable);
    }
    command
}

/// Runs `chandler` without the environment variables that it reads.
pub(crate) fn chandler<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>, input: &str) -> Outcome {
    let mut child = command(&cache())
        .args(arguments)
        .env_remove("KUBECONFIG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that does not read its input closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    Outcome {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The documents of YAML text.
pub(crate) fn documents(text: &str) -> Vec<serde_json::Value> {
    let documents = chandler_yaml::parse(text.as_bytes(), &chandler_yaml::Limits::default()).unwrap();
    documents.iter().map(|document| chandler_yaml::from_node(&document.root).unwrap()).collect()
}

/// The files of a directory of the project as a .tar.gz.
pub(crate) fn packed(directory: &str) -> Vec<u8> {
    let tar = std::process::Command::new("tar")
        .args(["--create", "--gzip", "--directory", directory, "."])
        .current_dir(root())
        .output();
    tar.unwrap().stdout
}

/// Serves these bytes to every request, on a thread that ends with the process. Returns the host and the port.
pub(crate) fn web_server(bytes: Vec<u8>) -> String {
    use std::io::{BufRead as _, BufReader, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(stream);
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
                line.clear();
            }
            let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", bytes.len());
            let _ = reader.get_mut().write_all(&[head.as_bytes(), &bytes].concat());
        }
    });
    address.to_string()
}
