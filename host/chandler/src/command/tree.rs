//! `chandler tree`.

use crate::{
    CommandError,
    arguments::{connection::Connection, format::OutputFormat},
    read::cluster,
    view::{output, terminal::Terminal, text::one_line, tree},
};

/// Show the objects of a BundleDeployment and their health as a tree
///
/// Shows the current objects in the cluster that belong to the ApplySet of the BundleDeployment: cluster-scoped objects first, then each
/// namespace, in the order in which the kinds are applied.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The tree on standard output; kinds that could not be read on standard error.

Exit codes: 0 success, 1 failed, or a kind could not be read, 2 wrong usage

Examples:
  chandler tree my-operator
  List the objects that are not healthy:
    chandler tree my-operator -o json | jq '.[] | select(.health != \"healthy\")'")]
pub struct Tree {
    /// Name of the BundleDeployment
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Text)]
    pub output: OutputFormat,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl Tree {
    /// Prints the tree.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let client = cluster::client(&self.connection).await?;
        let deployment = cluster::deployment(&client, &self.name).await?;
        let mut members = cluster::members(&client, &deployment).await;
        if let Some(drift) = deployment.status.as_ref().and_then(|status| status.drift.as_ref()) {
            tree::mark_drift(&mut members.objects, drift);
        }
        match self.output {
            OutputFormat::Json => output::print(&output::json(&members.objects)?)?,
            OutputFormat::Text => {
                let output_terminal = Terminal::output();
                let mut text = format!("BundleDeployment {}\n", one_line(&self.name));
                for line in tree::lines(&members.objects, |health| output_terminal.sign(health)) {
                    text.push_str(&line);
                    text.push('\n');
                }
                output::print(&text)?;
            }
        }
        for problem in &members.unreadable {
            terminal.line(format!("failed to read {}", one_line(problem)));
        }
        if members.unreadable.is_empty() { Ok(()) } else { Err(CommandError::failed("some kinds could not be read")) }
    }
}
