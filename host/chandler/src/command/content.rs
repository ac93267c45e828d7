//! `chandler content`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use chandler_core::{Content as _, Entry};
use kube::Client;
use serde::Serialize;

use crate::{
    CommandError,
    arguments::{
        connection::Connection, content_service::ContentClientArguments, format::DataFormat,
        system_namespace::SystemNamespaceArguments, target::DEPLOYMENTS,
    },
    read::{cache, cluster, content_service::ContentService, source},
    view::{
        error::FailureKind,
        output,
        table::{self, Column, Fit},
        terminal::Terminal,
        text::count,
    },
    write::files,
};

/// Read the unpacked content of a BundleDeployment
///
/// Lists the files that the controller unpacked, or writes them with --to. They come from the content service of the controller
/// (`chandler controller --content-address`), which needs a token of the API server and permission to get the path.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  Without --to, a list of the files on standard output; with -o json and yaml also the digest of the
  tree.

Exit codes: 0 success, 1 failed, 2 wrong usage, 7 not found, 8 refused

Examples:
  chandler content harbour
  The files, in a new directory:
    chandler content harbour --to harbour
  The archive:
    chandler content harbour --to harbour.tgz
  Through a port of this machine, with the token of a ServiceAccount:
    kubectl -n chandler-system port-forward service/chandler-content 8443:443 &
    kubectl create token reader > token
    chandler content harbour --content-url https://localhost:8443 --token-file token")]
pub struct Content {
    /// Name of the BundleDeployment
    #[arg(value_name = "NAME", value_parser = DEPLOYMENTS.name())]
    pub name: String,

    /// Directory for the files; or, with a name that ends in .tgz, file for the archive. It must not exist, or be empty
    #[arg(long, value_name = "PATH")]
    pub to: Option<PathBuf>,

    /// Output format of the list
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = DataFormat::Text, conflicts_with = "to")]
    pub output: DataFormat,

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
        let archive = match service.get(&self.name).await {
            Ok(archive) => archive,
            Err(error) => return Err(Box::pin(self.missing(&client)).await.unwrap_or(error)),
        };
        match &self.to {
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
        let Some(path) = &self.to else {
            let listed = Listed::of(&tree);
            let text = || list(&tree, Terminal::output().columns());
            return output::print(&output::data(&listed, self.output, text)?);
        };
        files::unpack(&tree, path)?;
        terminal.line(format!("wrote {} into {}", count(tree.len(), "file"), path.display()));
        Ok(())
    }
}

impl Content {
    /// The error if the BundleDeployment does not exist, which the content service does not distinguish from one without content.
    async fn missing(&self, client: &Client) -> Option<CommandError> {
        cluster::deployment(client, &self.name).await.err().filter(|error| error.kind() == FailureKind::NotFound)
    }
}

/// Copies a file to one that does not exist.
fn copy(from: &Path, to: &Path) -> Result<(), CommandError> {
    let copied = fs::File::create_new(to).and_then(|mut to| io::copy(&mut fs::File::open(from)?, &mut to));
    copied.map(drop).map_err(|error| CommandError::failed(format!("failed to write {}", to.display())).because(&error))
}

/// The list of files, as data.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    digest: String,
    files: Vec<ListedFile>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedFile {
    path: String,
    size: u64,
}

impl Listed {
    fn of(tree: &chandler_content::Tree) -> Self {
        let files = files::entries(tree).into_iter().map(|entry| ListedFile { path: entry.path, size: entry.size });
        Self { digest: tree.digest().to_string(), files: files.collect() }
    }
}

const COLUMNS: [Column<Entry>; 2] = [
    Column::new("SIZE", Fit::Full, |entry| entry.size.to_string()),
    Column::new("PATH", Fit::Full, |entry| entry.path.clone()),
];

fn list(tree: &chandler_content::Tree, width: Option<usize>) -> String {
    table::text(&COLUMNS, &files::entries(tree), width) + &format!("\ndigest {}\n", tree.digest())
}
