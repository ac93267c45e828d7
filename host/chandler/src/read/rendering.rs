//! Opens a bundle with its provisioner and configuration, and renders it.

use std::{path::Path, sync::Arc};

use chandler_builtin::Provisioners;
use chandler_core::{Content, Diagnostic, Release, Request, Target};
use chandler_engine::{CallError, Limits};
use chandler_values::{Redactor, Values};
use serde_json::{Map, Value};

use super::{
    cache,
    classes::{self, ClusterClasses},
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

/// Opens the bundle and chooses its provisioner. `classes` has those that are not built in.
pub async fn open(arguments: &BundleArguments, classes: ClusterClasses<'_>) -> Result<OpenedBundle, CommandError> {
    open_at(&Origin::parse(&arguments.bundle)?, arguments, classes).await
}

/// Opens the bundle at a place that is known already; `arguments.bundle` is not used.
pub async fn open_at(
    origin: &Origin,
    arguments: &BundleArguments,
    classes: ClusterClasses<'_>,
) -> Result<OpenedBundle, CommandError> {
    let configuration = configuration::given(&arguments.configuration)?;
    let cache = cache::directory(arguments.cache_directory.as_deref())?;
    let provisioners = provisioner::provisioners(&cache)?;
    let bundle = source::open(origin, &cache, &arguments.registry).await?;
    with_bundle(arguments, bundle, configuration, (&provisioners, &cache), classes).await
}

/// Chooses the provisioner of a bundle that is open already; `arguments.bundle` is not used.
pub async fn opened(
    arguments: &BundleArguments,
    bundle: Bundle,
    classes: ClusterClasses<'_>,
) -> Result<OpenedBundle, CommandError> {
    let configuration = configuration::given(&arguments.configuration)?;
    let cache = cache::directory(arguments.cache_directory.as_deref())?;
    with_bundle(arguments, bundle, configuration, (&provisioner::provisioners(&cache)?, &cache), classes).await
}

async fn with_bundle(
    arguments: &BundleArguments,
    bundle: Bundle,
    configuration: Option<Configuration>,
    (provisioners, cache): (&Provisioners, &Path),
    classes: ClusterClasses<'_>,
) -> Result<OpenedBundle, CommandError> {
    let chosen = match &arguments.provisioner {
        Some(name) if provisioner::is_custom(name) => {
            classes::load(&classes.get(name).await?, provisioners, cache, &arguments.registry).await?
        }
        Some(name) => provisioner::named(provisioners, name).await?,
        None => provisioner::detected(provisioners, &bundle.content).await?,
    };
    let mut request = request(arguments, configuration.as_ref());
    request.config = over(&chosen.defaults, request.config);
    Ok(OpenedBundle { request, chosen, bundle, configuration, redactor: Redactor::default() })
}

/// The defaults of a class with a configuration over them, member by member, as the controller merges them.
fn over(defaults: &Map<String, Value>, config: Map<String, Value>) -> Map<String, Value> {
    let mut all = defaults.clone();
    all.extend(config);
    all
}

/// The name of the BundleDeployment that a bundle is rendered for.
pub fn name(arguments: &BundleArguments) -> String {
    arguments.name.clone().unwrap_or_else(|| naming::deployment(&arguments.bundle))
}

fn request(arguments: &BundleArguments, configuration: Option<&Configuration>) -> Request {
    let name = name(arguments);
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
        self.request.config = over(&self.chosen.defaults, values.below(Some(config)));
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
