//! `chandler content`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use chandler_core::{Content as _, Entry};

use crate::{
    CommandError,
    arguments::{
        connection::Connection, content_service::ContentClientArguments, system_namespace::SystemNamespaceArguments,
        target::DEPLOYMENTS,
    },
    read::{cache, cluster, content_service::ContentService, source},
    view::{
        output,
        table::{self, Column, Fit},
        terminal::Terminal,
        text::count,
    },
    write::files,
};

/// Read the unpacked content of a BundleDeployment
///
/// Lists the files that the controller unpacked, or writes them with --output. They come from the content service of the controller
/// (`chandler controller --content-address`), which needs a token of the API server and permission to get the path.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  A table of the files on standard output, without --output.

Exit codes: 0 success, 1 failed, 2 wrong usage

Examples:
  chandler content harbour
  The files, in a new directory:
    chandler content harbour -o harbour
  The archive:
    chandler content harbour -o harbour.tgz
  Through a port of this machine, with the token of a ServiceAccount:
    kubectl -n chandler-system port-forward service/chandler-content 8443:443 &
    kubectl create token reader > token
    chandler content harbour --content-url https://localhost:8443 --token-file token")]
pub struct Content {
    /// Name of the BundleDeployment
    #[arg(value_name = "NAME", value_parser = DEPLOYMENTS.name())]
    pub name: String,

    /// Directory for the files; or, with a name that ends in .tgz, file for the archive. It must not exist, or be empty
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,

    /// Directory for unpacked bundles [default: $XDG_CACHE_HOME/chandler, else ~/.cache/chandler]
    #[arg(long, value_name = "DIR")]
    pub cache_directory: Option<PathBuf>,

    /// Where the controller is.
    #[command(flatten)]
    pub system: SystemNamespaceArguments,

    /// How the command reaches the content service.
    #[command(flatten)]
    pub service: ContentClientArguments,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl Content {
    /// Lists or writes the files.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let namespace = &self.system.system_namespace;
        let client = cluster::client(&self.connection.options()).await?;
        let service =
            ContentService::find(&client, &self.connection.options(), namespace, &self.service.options()).await?;
        let archive = service.get(&self.name).await?;
        match &self.output {
            Some(path) if path.extension().is_some_and(|extension| extension == "tgz") => {
                copy(archive.path(), path)?;
                terminal.line(format!("wrote {}", path.display()));
                return Ok(());
            }
            _ => {}
        }
        let store = source::store(&cache::directory(self.cache_directory.as_deref())?).await?;
        let tree = store.import_archive(archive.path()).await.map_err(|error| {
            CommandError::failed(format!("failed to unpack the content of {}", self.name)).because(&error)
        })?;
        match &self.output {
            Some(path) => {
                files::unpack(&tree, path)?;
                terminal.line(format!("wrote {} into {}", count(tree.len(), "file"), path.display()));
                Ok(())
            }
            None => output::show(&list(&tree, Terminal::output().columns())),
        }
    }
}

/// Copies a file to one that does not exist.
fn copy(from: &Path, to: &Path) -> Result<(), CommandError> {
    let copied = fs::File::create_new(to).and_then(|mut to| io::copy(&mut fs::File::open(from)?, &mut to));
    copied.map(drop).map_err(|error| CommandError::failed(format!("failed to write {}", to.display())).because(&error))
}

const COLUMNS: [Column<Entry>; 2] = [
    Column::new("SIZE", Fit::Full, |entry| entry.size.to_string()),
    Column::new("PATH", Fit::Full, |entry| entry.path.clone()),
];

fn list(tree: &chandler_content::Tree, width: Option<usize>) -> String {
    table::text(&COLUMNS, &files::entries(tree), width) + &format!("\ndigest {}\n", tree.digest())
}
