//! The real kubectl.

use std::{fs, path::PathBuf, process::Stdio};

use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::Scope;

/// kubectl in the namespace of a case, with its own files and cache.
pub(crate) struct Kubectl {
    directory: TempDir,
    namespace: String,
    has_own_kubeconfig: bool,
}

/// The output of a command.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) error: String,
}

impl Kubectl {
    pub(crate) async fn new(scope: &Scope) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let kubeconfig = scope.server().kubeconfig();
        if let Some(kubeconfig) = &kubeconfig {
            fs::write(directory.path().join("kubeconfig"), kubeconfig).unwrap();
        }
        Self { directory, namespace: scope.namespace().await.to_owned(), has_own_kubeconfig: kubeconfig.is_some() }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        if self.has_own_kubeconfig {
            command.env("KUBECONFIG", self.directory.path().join("kubeconfig"));
        }
        let cache = format!("--cache-dir={}", self.directory.path().join("cache").display());
        // Arguments after `--` belong to another program.
        command.args([cache.as_str(), "--namespace", &self.namespace]).args(arguments);
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    pub(crate) async fn output(&self, arguments: &[&str]) -> Output {
        Self::collect(self.command(arguments)).await
    }

    pub(crate) async fn collect(mut command: Command) -> Output {
        let output = command.output().await.expect("kubectl runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Output { code: output.status.code(), out: text(output.stdout), error: text(output.stderr) }
    }

    /// Runs a command that must succeed. Returns its standard output.
    pub(crate) async fn run(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments).await;
        assert_eq!(output.code, Some(0), "kubectl {}: {output:?}", arguments.join(" "));
        output.out
    }

    /// Like [`Self::run`], without the namespace that newer versions name when they delete.
    pub(crate) async fn delete(&self, arguments: &[&str]) -> String {
        let printed = self.run(&[&["delete"], arguments].concat()).await;
        printed.replace(&format!(" from {} namespace", self.namespace), "")
    }

    /// Runs a command that must fail. Returns its standard error.
    pub(crate) async fn fail(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments).await;
        assert_ne!(output.code, Some(0), "kubectl {} succeeded: {output:?}", arguments.join(" "));
        output.error
    }

    /// Starts a command, so that its output can be read while it runs.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("kubectl runs")
    }

    /// Writes a file for `-f`.
    pub(crate) fn file(&self, name: &str, object: &Value) -> String {
        self.text_file(name, &object.to_string())
    }

    pub(crate) fn text_file(&self, name: &str, text: &str) -> String {
        let path: PathBuf = self.directory.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().expect("UTF-8").to_owned()
    }
}
