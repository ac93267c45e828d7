//! How a command connects to the cluster.

use std::path::PathBuf;

use crate::read::cluster::ConnectionOptions;

/// The kubeconfig and its context.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Connection {
    /// Kubeconfig file [default: $KUBECONFIG, else ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "CONTEXT")]
    pub context: Option<String>,
}

impl Connection {
    /// The options.
    pub fn options(&self) -> ConnectionOptions {
        ConnectionOptions { kubeconfig: self.kubeconfig.clone(), context: self.context.clone() }
    }
}
