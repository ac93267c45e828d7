//! `chandler plugin list`.

use chandler_api::ProvisionerClass;
use kube::{Api, api::ListParams};

use crate::{
    CommandError,
    arguments::{connection::Connection, format::ListFormat},
    read::cluster,
    view::{
        class_listing::{ClassRow, problems, table, wide},
        output,
        terminal::Terminal,
    },
};

/// List the ProvisionerClasses of the cluster
///
/// Lists the classes with their state, the version of their component, the formats that it detects, and how many BundleDeployments use it.
/// The wide table also has what calls of the component showed: their number and time, and the kinds of the objects. Built-in classes have
/// no object in the cluster; `chandler provisioners` lists them.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  A table on standard output, which fits the terminal; -o json and yaml have every field. STATE is
  the reason of the condition Ready. On standard error, the reason and the message of each class
  that cannot be used.

Exit codes: 0 success, 1 failed, 2 wrong usage

Examples:
  chandler plugin list
  With calls, times and kinds:
    chandler plugin list -o wide")]
pub struct List {
    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = ListFormat::Text)]
    pub output: ListFormat,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl List {
    /// Prints the list.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let client = cluster::client(&self.connection.options()).await?;
        let classes = Api::<ProvisionerClass>::all(client).list(&ListParams::default()).await;
        let classes =
            classes.map_err(|error| CommandError::failed("failed to list ProvisionerClasses").because(&error))?;
        let mut rows: Vec<ClassRow> = classes.items.iter().map(ClassRow::new).collect();
        rows.sort_by(|one, other| one.name.cmp(&other.name));
        if rows.is_empty() && self.output.is_table() {
            terminal.line("no ProvisionerClasses: `chandler provisioners` lists the built-in classes");
            return Ok(());
        }
        let text = || {
            if self.output == ListFormat::Wide {
                wide(&rows, Terminal::output().look())
            } else {
                table(&rows, self.output.frame())
            }
        };
        output::print(&output::data(&rows, self.output.data(), text)?)?;
        if self.output.is_table() {
            for line in problems(&rows) {
                terminal.line(line);
            }
        }
        Ok(())
    }
}
