//! Options that a user may also write before the command, as in `chandler --context prod list`.

use std::path::PathBuf;

use super::values;

/// Options that belong to the command. [`line::ordered`](crate::command::line::ordered) moves them behind it before clap reads the
/// line, so that each command has one set of options; here they are only for the help and for completion.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct BeforeCommand {
    /// Kubeconfig file, for a command that contacts a cluster
    #[arg(long, value_name = "FILE", help_heading = BEFORE)]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig
    #[arg(long, value_name = "CONTEXT", help_heading = BEFORE)]
    pub context: Option<String>,

    /// Namespace, for a command that takes one
    #[arg(short, long, value_name = "NAMESPACE", value_parser = values::dns_label, help_heading = BEFORE)]
    pub namespace: Option<String>,
}

/// The heading of these options in the help.
const BEFORE: &str = "Options of commands, before or after the command";
