//! The server in its own process.

use std::{path::Path, process::Stdio};

use chandler_devcluster::{DevCluster, Options};
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, Command},
};

use crate::Error;

/// The argument that makes this program the server.
pub(crate) const ROLE: &str = "serve";
/// The line after the kubeconfig on the server's output.
const END: &[u8] = b"---\n";

/// Serves until standard input ends.
pub(crate) async fn serve(data: Option<String>) -> Result<(), Error> {
    let options = Options { workloads: false, data: data.map(Into::into), ..Options::default() };
    let cluster = DevCluster::start(options).await?;
    let mut stdout = tokio::io::stdout();
    stdout.write_all(cluster.kubeconfig().as_bytes()).await?;
    stdout.write_all(END).await?;
    stdout.flush().await?;
    tokio::io::stdin().read_to_end(&mut Vec::new()).await?;
    cluster.stop().await;
    Ok(())
}

/// A server that was started.
pub(crate) struct Server {
    child: Child,
    kubeconfig: Kubeconfig,
}

impl Server {
    pub(crate) async fn start(data: Option<&Path>) -> Result<Self, Error> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(ROLE).args(data).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let mut stdout = child.stdout.take().ok_or("the server has no output")?;
        let mut text = Vec::new();
        while !text.ends_with(END) {
            if stdout.read_buf(&mut text).await? == 0 {
                return Err("the server did not start".into());
            }
        }
        let text = String::from_utf8(text)?;
        let kubeconfig = Kubeconfig::from_yaml(text.trim_end_matches("---\n"))?;
        Ok(Self { child, kubeconfig })
    }

    pub(crate) async fn client(&self) -> Result<kube::Client, Error> {
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(self.kubeconfig.clone(), &options).await?;
        Ok(kube::Client::try_from(config)?)
    }

    /// Resident memory in MB: now and at most.
    pub(crate) fn memory(&self) -> Result<(f64, f64), Error> {
        let id = self.child.id().ok_or("the server has ended")?;
        let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().trim_end_matches(" kB").parse::<f64>().ok().map(|kilobytes| kilobytes / 1024.0)
        };
        field("VmRSS:").zip(field("VmHWM:")).ok_or_else(|| "the system does not report it".into())
    }

    pub(crate) async fn stop(mut self) -> Result<(), Error> {
        drop(self.child.stdin.take());
        self.child.wait().await?;
        Ok(())
    }
}
