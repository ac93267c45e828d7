//! Serves a development cluster until interrupted, for use with kubectl.
//!
//! ```console
//! $ cargo run -p chandler-devcluster --example serve -- /tmp/devcluster.kubeconfig &
//! $ kubectl --kubeconfig /tmp/devcluster.kubeconfig get namespaces
//! ```

#![expect(clippy::print_stdout, reason = "a command line program")]

use chandler_devcluster::{DevCluster, Options};

type Error = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).ok_or("usage: serve <path of the kubeconfig to write>")?;
    let cluster = DevCluster::start(Options::default()).await?;
    write_secret(&path, &cluster.kubeconfig())?;
    println!("{} is served, {path} says how to reach it", cluster.url());
    tokio::signal::ctrl_c().await?;
    cluster.stop().await;
    Ok(())
}

/// Writes a file that only its owner can read.
fn write_secret(path: &str, text: &str) -> Result<(), Error> {
    use std::{io::Write as _, os::unix::fs::OpenOptionsExt as _};
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // One that was there keeps its mode.
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    file.write_all(text.as_bytes())?;
    Ok(())
}
