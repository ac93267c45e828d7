//! Opens a bundle with its provisioner and configuration, and renders it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use chandler_builtin::Provisioners;
use chandler_core::{Content, Diagnostic, Release, Request, Severity, Target};
use chandler_engine::{CallError, Limits};
use chandler_values::{Redactor, Values};
use serde_json::{Map, Value};

use super::{
    cache,
    classes::{self, ClusterClasses},
    configuration::{self, Configuration, ConfigurationOptions},
    naming,
    origin::Origin,
    provisioner::{self, ChosenProvisioner},
    registry_settings::RegistryOptions,
    source::{self, Bundle},
};
use crate::{CommandError, view::diagnostics::Sources};

/// Which bundle is rendered, and how.
#[derive(Clone, Debug, Default)]
pub struct BundleOptions {
    /// A directory, an archive, a URL or an image reference.
    pub bundle: String,
    /// A class or a component file; `None` to detect the class.
    pub provisioner: Option<String>,
    /// The namespace to install into; `None` for the default of the name.
    pub namespace: Option<String>,
    /// The name of the BundleDeployment; `None` to derive it from the bundle.
    pub name: Option<String>,
    /// The configuration.
    pub configuration: ConfigurationOptions,
    /// The Kubernetes version to render for.
    pub kubernetes_version: Option<String>,
    /// How registries are reached.
    pub registry: RegistryOptions,
    /// The directory of the cache; `None` for the default one.
    pub cache_directory: Option<PathBuf>,
}

impl BundleOptions {
    /// For the bundle of a BundleDeployment, whose spec decides everything else.
    pub fn of_deployment(registry: RegistryOptions, cache_directory: Option<PathBuf>) -> Self {
        Self { registry, cache_directory, ..Self::default() }
    }
}

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
pub async fn open(options: &BundleOptions, classes: ClusterClasses<'_>) -> Result<OpenedBundle, CommandError> {
    open_at(&Origin::parse(&options.bundle)?, options, classes).await
}

/// Opens the bundle at a place that is known already; `options.bundle` is not used.
pub async fn open_at(
    origin: &Origin,
    options: &BundleOptions,
    classes: ClusterClasses<'_>,
) -> Result<OpenedBundle, CommandError> {
    let configuration = configuration::given(&options.configuration)?;
    let cache = cache::directory(options.cache_directory.as_deref())?;
    let provisioners = provisioner::provisioners(&cache)?;
    let bundle = source::open(origin, &cache, &options.registry).await?;
    with_bundle(options, bundle, configuration, (&provisioners, &cache), classes).await
}

/// Chooses the provisioner of a bundle that is open already; `options.bundle` is not used. `shared` has the provisioners, which several
/// bundles may share, and the cache.
pub async fn opened(
    options: &BundleOptions,
    bundle: Bundle,
    shared: (&Provisioners, &Path),
    classes: ClusterClasses<'_>,
) -> Result<OpenedBundle, CommandError> {
    let configuration = configuration::given(&options.configuration)?;
    with_bundle(options, bundle, configuration, shared, classes).await
}

async fn with_bundle(
    options: &BundleOptions,
    bundle: Bundle,
    configuration: Option<Configuration>,
    (provisioners, cache): (&Provisioners, &Path),
    classes: ClusterClasses<'_>,
) -> Result<OpenedBundle, CommandError> {
    let chosen = match &options.provisioner {
        Some(name) if provisioner::is_custom(name) => {
            classes::load(&classes.get(name).await?, provisioners, cache, &options.registry).await?
        }
        Some(name) => provisioner::named(provisioners, name).await?,
        None => provisioner::detected(provisioners, &bundle.content).await?,
    };
    Ok(of_chosen(options, bundle, configuration, chosen))
}

/// A bundle that is open already, with a provisioner that is loaded already.
pub fn opened_with(
    options: &BundleOptions,
    bundle: Bundle,
    chosen: ChosenProvisioner,
) -> Result<OpenedBundle, CommandError> {
    Ok(of_chosen(options, bundle, configuration::given(&options.configuration)?, chosen))
}

fn of_chosen(
    options: &BundleOptions,
    bundle: Bundle,
    configuration: Option<Configuration>,
    chosen: ChosenProvisioner,
) -> OpenedBundle {
    let mut request = request(options, configuration.as_ref());
    request.config = over(&chosen.defaults, request.config);
    OpenedBundle { request, chosen, bundle, configuration, redactor: Redactor::default() }
}

/// The defaults of a class with a configuration over them, member by member, as the controller merges them.
fn over(defaults: &Map<String, Value>, config: Map<String, Value>) -> Map<String, Value> {
    let mut all = defaults.clone();
    all.extend(config);
    all
}

/// The name of the BundleDeployment that a bundle is rendered for.
pub fn name(options: &BundleOptions) -> String {
    options.name.clone().unwrap_or_else(|| naming::deployment(&options.bundle))
}

fn request(options: &BundleOptions, configuration: Option<&Configuration>) -> Request {
    let name = name(options);
    let namespace = options.namespace.clone().unwrap_or_else(|| naming::namespace(&name));
    Request {
        config: configuration.map(|configuration| configuration.value.clone()).unwrap_or_default(),
        target: Target {
            name,
            namespace,
            kubernetes_version: options.kubernetes_version.clone().unwrap_or_default(),
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

    /// Asks a provisioner that the user named for the format of the bundle, as a controller with it in a class would, and returns what keeps
    /// the controller from choosing it. Not asked: built-in provisioners, and those that declare no formats.
    ///
    /// # Errors
    /// The call failed.
    pub async fn recognise(&mut self) -> Result<Option<Diagnostic>, CommandError> {
        let ChosenProvisioner { name, format, provisioner, is_builtin, .. } = &self.chosen;
        let formats = &provisioner.facts().formats;
        if *is_builtin || format.is_some() || formats.is_empty() {
            return Ok(None);
        }
        let found = provisioner.detect(Arc::clone(&self.bundle.content), &Limits::default()).await;
        let found = found.map_err(|error| provisioner::call_failed(name, &error, &self.sources()))?;
        let (code, problem) = match found {
            Some(format) if formats.contains(&format) => {
                self.chosen.format = Some(format);
                return Ok(None);
            }
            Some(format) => ("UndeclaredFormat", format!("detects the format {format:?}, which it does not declare")),
            None => ("NotDetected", format!("does not detect the bundle, although it declares {}", formats.join(", "))),
        };
        let mut finding = Diagnostic::new(Severity::Warning, code, format!("provisioner {name} {problem}"));
        finding.help = Some("BundleDeployments must name its class, spec.provisionerClassName".to_owned());
        Ok(Some(finding))
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

    /// The configuration of the options.
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
