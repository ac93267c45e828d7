//! What `render` and `lint` have in common: a bundle, a provisioner for it, and what it is asked.

use std::{path::PathBuf, sync::Arc};

use chandler_core::{Diagnostic, Release, Request, Target};
use chandler_engine::{CallError, Limits};

use crate::{
    CommandError, cache,
    configuration::Configuration,
    diagnostics::Sources,
    naming,
    provision::{self, Chosen},
    source::{self, Bundle, Origin, RegistryOptions},
    values,
};

/// Which bundle is rendered, and how.
#[derive(Debug, clap::Args)]
pub struct Rendering {
    /// A directory, an archive (.tar, .tar.gz, .tgz) or the reference of an image
    #[arg(value_name = "BUNDLE")]
    pub bundle: String,

    /// A built-in class or the file of a component [default: the first class that recognises the bundle]
    #[arg(long, value_name = "CLASS|FILE.wasm")]
    pub provisioner: Option<String>,

    /// The namespace to install into [default: NAME-system]
    #[arg(long, value_name = "NAMESPACE", value_parser = values::dns_label)]
    pub namespace: Option<String>,

    /// The name of the BundleDeployment [default: made from BUNDLE]
    #[arg(long, value_name = "NAME", value_parser = values::deployment_name)]
    pub name: Option<String>,

    /// The configuration, YAML or JSON; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// The version of Kubernetes to render for, such as `1.36` [default: none, as without a cluster]
    #[arg(long, value_name = "VERSION", value_parser = values::kubernetes_version)]
    pub kubernetes_version: Option<String>,

    /// How the registry of an image is spoken to.
    #[command(flatten, next_help_heading = "Images")]
    pub registry: RegistryOptions,

    /// Where unpacked bundles and compiled components are kept
    /// [default: $XDG_CACHE_HOME/chandler, else ~/.cache/chandler]
    #[arg(long, value_name = "DIR", env = "CHANDLER_CACHE_DIRECTORY", hide_env_values = true)]
    pub cache_directory: Option<PathBuf>,
}

/// A bundle that is ready to be rendered.
pub struct Opened {
    /// The provisioner.
    pub chosen: Chosen,
    /// What it is asked.
    pub request: Request,
    bundle: Bundle,
    configuration: Option<Configuration>,
}

impl Rendering {
    /// Opens the bundle and finds its provisioner.
    pub async fn open(&self) -> Result<Opened, CommandError> {
        let origin = Origin::parse(&self.bundle)?;
        let configuration = self.config.as_deref().map(Configuration::read).transpose()?;
        let cache = cache::directory(self.cache_directory.as_deref())?;
        let provisioners = provision::provisioners(&cache)?;
        let bundle = source::open(&origin, &cache, &self.registry).await?;
        let chosen = match &self.provisioner {
            Some(name) => provision::named(&provisioners, name).await?,
            None => provision::detected(&provisioners, &bundle.content).await?,
        };
        Ok(Opened { request: self.request(configuration.as_ref()), chosen, bundle, configuration })
    }

    fn request(&self, configuration: Option<&Configuration>) -> Request {
        let name = self.name.clone().unwrap_or_else(|| naming::deployment(&self.bundle));
        let namespace = self.namespace.clone().unwrap_or_else(|| naming::namespace(&name));
        Request {
            config: configuration.map(|configuration| configuration.value.clone()).unwrap_or_default(),
            target: Target {
                name,
                namespace,
                kubernetes_version: self.kubernetes_version.clone().unwrap_or_default(),
                api_kinds: Vec::new(),
            },
        }
    }
}

impl Opened {
    /// Renders it.
    pub async fn provision(&self) -> Result<Release, CallError> {
        let content = Arc::clone(&self.bundle.content);
        self.chosen.provisioner.provision(&self.request, content, &Limits::default()).await
    }

    /// Renders it; a failure with its findings, as they are shown.
    pub async fn release(&self) -> Result<Release, CommandError> {
        let release = self.provision().await;
        release.map_err(|error| provision::call_failed(&self.chosen.name, &error, &self.sources()))
    }

    /// Where the text behind findings comes from.
    pub fn sources(&self) -> Sources<'_> {
        Sources {
            content: Some(self.bundle.content.as_ref()),
            directory: self.bundle.directory.as_ref(),
            configuration: self.configuration.as_ref().map(Configuration::named),
        }
    }

    /// What is odd about the text of the configuration.
    pub fn oddities(&self) -> impl Iterator<Item = &Diagnostic> {
        self.configuration.iter().flat_map(|configuration| &configuration.warnings)
    }
}
