//! How a command connects to the cluster.

use std::path::PathBuf;

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
    /// The current context of a kubeconfig, else the cluster of the environment.
    pub fn of(kubeconfig: Option<PathBuf>) -> Self {
        Self { kubeconfig, context: None }
    }
}
