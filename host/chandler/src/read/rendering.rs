//! Opens a bundle with its provisioner and configuration, and renders it.

use std::sync::Arc;

use chandler_builtin::Provisioners;
use chandler_core::{Content, Diagnostic, Release, Request, Target};
use chandler_engine::{CallError, Limits};
use chandler_values::{Redactor, Values};
use serde_json::{Map, Value};

use super::{
    cache,
    configuration::{self, Configuration},
    origin::Origin,
    provisioner::{self, ChosenProvisioner},
    source::{self, Bundle},
};
use crate::{
    CommandError,
    arguments::{bundle::BundleArguments, naming},
    view::diagnostics::Sources,
};

/// A bundle that is ready to be rendered.
pub struct OpenedBundle {
    /// The provisioner that renders it.
    pub chosen: ChosenProvisioner,
    /// The request to the provisioner.
    pub request: Request,
    bundle: Bundle,
    configuration: Option<Configuration>,
    redactor: Redactor,
}

/// Opens the bundle and chooses its provisioner.
pub async fn open(arguments: &BundleArguments) -> Result<OpenedBundle, CommandError> {
    let origin = Origin::parse(&arguments.bundle)?;
    let configuration = configuration::given(&arguments.configuration)?;
    let cache = cache::directory(arguments.cache_directory.as_deref())?;
    let provisioners = provisioner::provisioners(&cache)?;
    let bundle = source::open(&origin, &cache, &arguments.registry).await?;
    with_bundle(arguments, bundle, configuration, &provisioners).await
}

/// Chooses the provisioner of a bundle that is open already; `arguments.bundle` is not used.
pub async fn opened(arguments: &BundleArguments, bundle: Bundle) -> Result<OpenedBundle, CommandError> {
    let configuration = configuration::given(&arguments.configuration)?;
    let provisioners = provisioner::provisioners(&cache::directory(arguments.cache_directory.as_deref())?)?;
    with_bundle(arguments, bundle, configuration, &provisioners).await
}

async fn with_bundle(
    arguments: &BundleArguments,
    bundle: Bundle,
    configuration: Option<Configuration>,
    provisioners: &Provisioners,
) -> Result<OpenedBundle, CommandError> {
    let chosen = match &arguments.provisioner {
        Some(name) => provisioner::named(provisioners, name).await?,
        None => provisioner::detected(provisioners, &bundle.content).await?,
    };
    Ok(OpenedBundle {
        request: request(arguments, configuration.as_ref()),
        chosen,
        bundle,
        configuration,
        redactor: Redactor::default(),
    })
}

fn request(arguments: &BundleArguments, configuration: Option<&Configuration>) -> Request {
    let name = arguments.name.clone().unwrap_or_else(|| naming::deployment(&arguments.bundle));
    let namespace = arguments.namespace.clone().unwrap_or_else(|| naming::namespace(&name));
    Request {
        config: configuration.map(|configuration| configuration.value.clone()).unwrap_or_default(),
        target: Target {
            name,
            namespace,
            kubernetes_version: arguments.kubernetes_version.clone().unwrap_or_default(),
            api_kinds: Vec::new(),
        },
    }
}

impl OpenedBundle {
    /// Renders the bundle.
    pub async fn provision(&self) -> Result<Release, CallError> {
        let content = Arc::clone(&self.bundle.content);
        self.chosen.provisioner.provision(&self.request, content, &Limits::default()).await
    }

    /// Renders the bundle. An error carries the findings of the provisioner.
    pub async fn release(&self) -> Result<Release, CommandError> {
        let release = self.provision().await;
        release.map_err(|error| {
            provisioner::call_failed_hiding(&self.chosen.name, &error, &self.sources(), &self.redactor)
        })
    }

    /// Sets the configuration: the values, with `config` over them.
    pub fn configure(&mut self, values: &Values, config: &Map<String, Value>) {
        self.request.config = values.below(Some(config));
        self.redactor = values.redactor().clone();
    }

    /// What hides the values of Secrets that are part of the configuration.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The configuration of the arguments.
    pub fn configuration(&self) -> Option<&Configuration> {
        self.configuration.as_ref()
    }

    /// The files of the bundle.
    pub fn content(&self) -> &Arc<dyn Content> {
        &self.bundle.content
    }

    /// The texts that findings refer to.
    pub fn sources(&self) -> Sources<'_> {
        Sources {
            content: Some(self.bundle.content.as_ref()),
            directory: self.bundle.directory.as_ref(),
            configuration: self.configuration.as_ref().map(Configuration::named).filter(|named| !named.text.is_empty()),
        }
    }

    /// Warnings about the text of the configuration.
    pub fn configuration_warnings(&self) -> impl Iterator<Item = &Diagnostic> {
        self.configuration.iter().flat_map(|configuration| &configuration.warnings)
    }
}
