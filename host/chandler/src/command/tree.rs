//! `chandler tree`.

use crate::{
    CommandError,
    arguments::{connection::Connection, format::TreeFormat},
    read::{below, cluster},
    view::{
        output, picture,
        terminal::Terminal,
        text::one_line,
        tree::{self, TreeNode},
    },
};

/// Show the objects of a BundleDeployment and their health as a tree
///
/// Shows the current objects in the cluster that belong to the ApplySet of the BundleDeployment: cluster-scoped objects first, then each
/// namespace, in the order in which the kinds are applied. Below each workload are its ReplicaSets (without those that are scaled to
/// zero), Jobs and Pods, and the claims that a Pod waits for.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The tree on standard output; kinds that could not be read on standard error.

Exit codes: 0 success, 1 failed, or a kind could not be read, 2 wrong usage

Examples:
  chandler tree my-operator
  A picture:
    chandler tree my-operator -o svg > my-operator.svg
  List the objects that are not healthy:
    chandler tree my-operator -o json | jq '.[] | select(.health != \"healthy\")'")]
pub struct Tree {
    /// Name of the BundleDeployment
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = TreeFormat::Text)]
    pub output: TreeFormat,

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
        let below = below::read(&client, &mut members).await;
        if let Some(drift) = deployment.status.as_ref().and_then(|status| status.drift.as_ref()) {
            tree::mark_drift(&mut members.objects, drift);
        }
        let nodes = below.nodes(&members.objects);
        output::print(&self.text(&nodes)?)?;
        for problem in &members.unreadable {
            terminal.line(format!("failed to read {}", one_line(problem)));
        }
        if members.unreadable.is_empty() { Ok(()) } else { Err(CommandError::failed("some kinds could not be read")) }
    }

    fn text(&self, nodes: &[TreeNode]) -> Result<String, CommandError> {
        let title = format!("BundleDeployment {}", one_line(&self.name));
        Ok(match self.output {
            TreeFormat::Json => output::json(&nodes)?,
            TreeFormat::Text => {
                let output_terminal = Terminal::output();
                let mut lines = vec![title];
                let columns = output_terminal.columns();
                lines.extend(tree::node_lines(nodes, |health| output_terminal.sign(health), columns));
                lines.join("\n") + "\n"
            }
            TreeFormat::Mermaid => picture::mermaid(&title, &tree::branches(nodes)),
            TreeFormat::Svg => picture::svg(&title, &tree::branches(nodes)),
            TreeFormat::Html => picture::html(&title, &tree::branches(nodes)),
        })
    }
}
