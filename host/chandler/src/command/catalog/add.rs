//! `chandler catalog add`.

use std::{path::Path, time::Duration};

use chandler_api::{BundleSource, Catalog, CatalogSpec, catalog::SHORTEST_POLL_INTERVAL};
use chandler_core::{Content, Diagnostic, Severity};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;

use crate::{
    CommandError,
    arguments::{catalogs::Fetching, connection::Connection, system_namespace::SystemNamespaceArguments, values},
    read::{
        cache, catalogs, cluster,
        origin::{self, Origin},
        packaging::{self, User},
        reported,
    },
    view::{
        error::FailureKind,
        invocation::quoted,
        manifest,
        output::{self, Format},
        terminal::Terminal,
        text::count,
    },
    write::{catalog, content, deployment::Effect},
};

/// The most errors that a message quotes.
const QUOTED: usize = 5;

/// Add a catalog to the cluster
///
/// Creates a Catalog for an image or a URL, which the controller fetches and polls, or for a directory or an archive of this machine, whose
/// files reach the cluster in ConfigMaps in the controller's namespace. Files of this machine with errors are refused before anything is
/// created. Then follows the Catalog until its index is in use. If the controller refuses it, for example because the image does not exist,
/// the Catalog is deleted again.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  What was created and the result on standard error; with --dry-run, the objects on standard
  output, and nothing is created.

Exit codes: 0 the catalog is ready, or created with --wait=false; 1 failed; 2 wrong usage; 3 not ready
  before the timeout; 8 refused

Required permissions: `create` on catalogs.chandler.dev; for files of this machine, `create` and `patch`
on configmaps in the controller's namespace.

Examples:
  chandler catalog add operatorhub quay.io/operatorhubio/catalog:latest
  One that is preferred, from a private registry:
    chandler catalog add ours registry.example.com/catalog:v1 --priority 10 --pull-secret registry
  A manifest for Git:
    chandler catalog add ours registry.example.com/catalog:v1 --dry-run > catalog.yaml")]
pub struct Add {
    /// Name of the Catalog
    #[arg(value_name = "NAME", value_parser = values::dns_label)]
    pub name: String,

    /// An image with the label of catalogs, the URL of an archive or a git repository, a directory, or an archive
    #[arg(value_name = "CATALOG")]
    pub catalog: String,

    /// Which catalog is preferred where several offer the same version: the one with the highest number
    #[arg(long, value_name = "NUMBER", default_value_t = 0, allow_negative_numbers = true)]
    pub priority: i32,

    /// Interval at which a tag or URL is resolved again, at least 1s [default: the controller's]
    #[arg(long, value_name = "DURATION", value_parser = poll_interval)]
    pub poll_interval: Option<String>,

    /// Secret in the controller's namespace that the controller fetches an image or URL with
    #[arg(long, value_name = "NAME")]
    pub pull_secret: Option<String>,

    /// Label of the Catalog. Repeatable
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = values::label)]
    pub labels: Vec<(String, String)>,

    /// Print the objects that would be created, and create nothing. `kubectl apply --server-side -f -` accepts them
    #[arg(long)]
    pub dry_run: bool,

    /// Output format of --dry-run
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Yaml, requires = "dry_run")]
    pub output: Format,

    /// Wait until the catalog is ready or was refused. `--wait=false` returns at once
    #[arg(long, value_name = "BOOL", default_value_t = true, default_missing_value = "true", num_args = 0..=1,
          require_equals = true, action = clap::ArgAction::Set)]
    pub wait: bool,

    /// Timeout of --wait
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = values::duration)]
    pub timeout: Duration,

    /// How a directory or an archive is read.
    #[command(flatten)]
    pub fetching: Fetching,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,

    /// Where ConfigMaps are created.
    #[command(flatten)]
    pub system_namespace: SystemNamespaceArguments,
}

impl Add {
    /// Creates the Catalog, and follows it.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let (source, config_maps) = self.source().await?;
        let spec = CatalogSpec {
            source,
            poll_interval: self.poll_interval.clone(),
            priority: self.priority,
            ..CatalogSpec::default()
        };
        let mut wanted = Catalog::new(&self.name, spec);
        wanted.labels_mut().extend(self.labels.iter().cloned());
        if self.dry_run {
            return print(&config_maps, &wanted, self.output);
        }
        let client = cluster::client(&self.connection.options()).await?;
        // The API server checks the object before anything is created for it.
        catalog::create(&client, &wanted, Effect::Check).await?;
        let written = content::create(&client, &config_maps).await?;
        let created = match catalog::create(&client, &wanted, Effect::Store).await {
            Ok(created) => created,
            Err(error) => return Err(content::discard(&client, &written, error).await),
        };
        let owned = content::own(&client, &created, &config_maps).await;
        owned.map_err(|error| catalog::left(error, &self.name))?;
        let files = match config_maps.len() {
            0 => String::new(),
            number => format!(", files in {}", count(number, "ConfigMap")),
        };
        terminal.line(format!("created Catalog {}{files}", self.name));
        if !self.wait {
            terminal.line(format!("`chandler status catalog/{}` shows its state", self.name));
            return Ok(());
        }
        let namespace = self.system_namespace.system_namespace.as_str();
        match reported::until_ready::<Catalog>(&client, &self.name, namespace, terminal, self.timeout).await {
            Err(error) if error.kind() == FailureKind::Failed => Err(catalog::discard(&client, &created, error).await),
            // The controller may still fetch it.
            Err(error) => Err(catalog::left(error, &self.name)),
            Ok(()) => Ok(()),
        }
    }

    /// Refuses files that the controller would refuse.
    fn check(&self, content: &dyn Content, cache: &Path) -> Result<(), CommandError> {
        let findings = catalogs::findings(&self.catalog, content, cache)?;
        let errors: Vec<&Diagnostic> = findings.iter().filter(|finding| finding.severity == Severity::Error).collect();
        if errors.is_empty() {
            return Ok(());
        }
        let shown = origin::shown(&self.catalog);
        let refused =
            CommandError::failed(format!("{shown} has {}: nothing was created", count(errors.len(), "error")));
        let refused = errors.iter().take(QUOTED).fold(refused, |refused, error| refused.cause(without_help(error)));
        Err(refused.hint(format!("`chandler catalog lint {}` prints all errors and warnings", quoted(&shown))))
    }

    /// The source, and the ConfigMaps with the files of this machine.
    async fn source(&self) -> Result<(BundleSource, Vec<ConfigMap>), CommandError> {
        let origin = Origin::parse(&self.catalog)?;
        if let Some(source) = origin.source(&self.catalog, self.pull_secret.as_deref()) {
            return Ok((source, vec![]));
        }
        if self.pull_secret.is_some() {
            return Err(CommandError::usage("--pull-secret does not go with files of this machine")
                .hint("it is for images, archives and repositories on servers, which the controller fetches"));
        }
        let cache = cache::directory(self.fetching.cache_directory.as_deref())?;
        let opened = catalogs::content(&self.catalog, &cache, &self.fetching.options()).await?;
        if !self.dry_run {
            self.check(&*opened.content, &cache)?;
        }
        let namespace = &self.system_namespace.system_namespace;
        let packed = packaging::pack(User::Catalog(&self.name), namespace, &*opened.content);
        let packed = packed.map_err(|error| {
            CommandError::failed(format!("{} does not fit into ConfigMaps", origin::shown(&self.catalog)))
                .because(&error)
                .hint(format!(
                    "push it as an image, and add that: `chandler push --catalog {} REGISTRY/NAME:TAG`",
                    quoted(&self.catalog)
                ))
        })?;
        Ok((BundleSource::config_maps(packed.sources), packed.config_maps))
    }
}

/// An error in a line. `chandler catalog lint` prints the help.
fn without_help(error: &Diagnostic) -> String {
    Diagnostic { help: None, ..error.clone() }.to_string()
}

fn print(config_maps: &[ConfigMap], catalog: &Catalog, format: Format) -> Result<(), CommandError> {
    let failed = |error: serde_json::Error| CommandError::failed("failed to write the objects").because(&error);
    let mut objects = config_maps.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let mut catalog = serde_json::to_value(catalog).map_err(failed)?;
    if let Some(members) = catalog.as_object_mut() {
        members.remove("status");
    }
    objects.push(manifest::manifest(catalog));
    output::print(&output::write(&objects, format)?)
}

/// An interval of polls, as the API takes it.
fn poll_interval(text: &str) -> Result<String, String> {
    if values::duration(text)? < SHORTEST_POLL_INTERVAL {
        return Err("the shortest interval is 1s".to_owned());
    }
    // The API takes no number without a unit.
    Ok(if text.bytes().all(|byte| byte.is_ascii_digit()) { format!("{text}s") } else { text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_a_second_or_more() {
        assert_eq!(poll_interval("1h30m"), Ok("1h30m".to_owned()));
        assert_eq!(poll_interval("90"), Ok("90s".to_owned()));
        assert!(poll_interval("10ms").is_err() && poll_interval("x").is_err());
    }
}
