//! `chandler must-gather`.

use std::path::{Path, PathBuf};

use crate::{
    CommandError,
    arguments::{connection::Connection, controller_namespace::ControllerNamespaceArguments},
    read::{cluster, must_gather},
    view::{self, output, terminal::Terminal, text::one_line},
    write::archive,
};

/// Collect what support needs to see of an installation, without secrets, in one file
///
/// Reads the objects of Chandler with their status, their Events, the installation (Deployment, Pods, Leases, CRDs, policies, permissions), the
/// logs and metrics of the controller, and the findings of `chandler doctor`. It reads no Secret and no ConfigMap. Values of configurations,
/// environment variables and foreign annotations, credentials in URLs, tokens and private keys are hidden, and distinct ones in all files. Each
/// file and the sum are limited; index.json in the archive lists the files, and what is missing and why. Nothing is written in the cluster. Read the archive
/// before you pass it on: names of objects, images and hosts are in it.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The path of the archive on standard output, or with --file - the archive; what is missing from
  it on standard error.

Exit codes: 0 written, also if something could not be read; 1 failed, also if the file exists;
  2 wrong usage; 7 the namespace of the controller does not exist

Examples:
  chandler must-gather
  tar --list --file chandler-must-gather.tar.gz
  kubectl exec toolbox -- chandler must-gather --file - > chandler-must-gather.tar.gz")]
pub struct MustGather {
    /// The archive to create, a .tar.gz, or `-` for standard output. An existing file is not overwritten
    #[arg(long, value_name = "FILE", default_value = "chandler-must-gather.tar.gz")]
    pub file: PathBuf,

    /// Where the controller is.
    #[command(flatten)]
    pub controller: ControllerNamespaceArguments,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl MustGather {
    /// Reads, hides and writes.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let client = cluster::client(&self.connection.options()).await?;
        must_gather::check_namespace(&client, &self.controller.system_namespace).await?;
        let gathered = must_gather::gather(&client, &self.controller.system_namespace).await;
        let made = view::must_gather::files(gathered, &self.controller.system_namespace);
        let files = made.files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice()));
        let is_printed = self.file == Path::new("-");
        if is_printed {
            archive::print(files)?;
        } else {
            archive::write(&self.file, files)?;
        }
        for item in &made.left_out {
            terminal.line(one_line(&format!("left out: {}: {}", item.what, item.why)));
        }
        if is_printed { Ok(()) } else { output::print(&format!("{}\n", self.file.display())) }
    }
}
