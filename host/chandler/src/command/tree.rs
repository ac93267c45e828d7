//! `chandler tree`.

use std::path::PathBuf;

use super::status::StatusFormat;
use crate::{CommandError, live, output, terminal::Terminal, text::one_line, tree};

/// Show the objects of a BundleDeployment and their health as a tree
///
/// The objects that carry the identity of its ApplySet, as they are in the cluster now: those of the cluster first, then
/// namespace by namespace, in the order in which they are applied.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The tree on standard output; what could not be read on standard error.

Exit codes: 0 shown, 1 not readable, 2 wrong usage

Examples:
  chandler tree my-operator
  What is not healthy:
    chandler tree my-operator -o json | jq '.[] | select(.health != \"healthy\")'")]
pub struct Tree {
    /// The name of the BundleDeployment
    #[arg(value_name = "NAME")]
    pub name: String,

    /// The form of the output
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = StatusFormat::Text)]
    pub output: StatusFormat,

    /// The kubeconfig to use [default: $KUBECONFIG, else ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

impl Tree {
    /// Shows it.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let client = live::client(self.kubeconfig.as_deref()).await?;
        let deployment = live::deployment(&client, &self.name).await?;
        let mut members = live::members(&client, &deployment).await;
        if let Some(drift) = deployment.status.as_ref().and_then(|status| status.drift.as_ref()) {
            tree::mark_drift(&mut members.objects, drift);
        }
        match self.output {
            StatusFormat::Json => output::print(&output::json(&members.objects)?)?,
            StatusFormat::Text => {
                let look = Terminal::output();
                let mut text = format!("BundleDeployment {}\n", one_line(&self.name));
                for line in tree::lines(&members.objects, |mark| look.sign(mark)) {
                    text.push_str(&line);
                    text.push('\n');
                }
                output::print(&text)?;
            }
        }
        for problem in &members.unreadable {
            terminal.line(format!("could not be read: {}", one_line(problem)));
        }
        if members.unreadable.is_empty() { Ok(()) } else { Err(CommandError::failed("not everything could be read")) }
    }
}
