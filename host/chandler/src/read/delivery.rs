//! How a bundle reaches a cluster: an image by its reference, an archive by its URL, files of this machine in ConfigMaps. Checks the bundle on the way.

use std::{env, path::PathBuf, sync::Arc};

use chandler_api::{BundleSource, ProvisionerClass, UploadSource, ValuesReference};
use chandler_core::{Content, Release};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, api::ListParams, core::PartialObjectMeta};
use serde_json::{Map, Value};

use super::{
    cache,
    classes::ClusterClasses,
    deployed,
    missing_kinds::{self, MissingKind},
    named::NamedBundle,
    origin::Origin,
    packaging::{self, Packed, PackingError, User},
    provisioner,
    registry_settings::RegistryOptions,
    rendering::{self, BundleOptions, OpenedBundle},
    source, values,
};
use crate::{CommandError, view::invocation};

/// A bundle and the BundleDeployment that it is for.
#[derive(Clone, Debug)]
pub struct Delivery<'a> {
    /// The bundle.
    pub bundle: &'a NamedBundle,
    /// The name of the BundleDeployment.
    pub name: &'a str,
    /// The namespace to install into.
    pub namespace: &'a str,
    /// The provisioner class; none to detect it.
    pub class: Option<&'a str>,
    /// The configuration.
    pub config: &'a Map<String, Value>,
    /// References to values below it.
    pub values_from: &'a [ValuesReference],
}

/// How the files of a bundle reach the cluster.
#[derive(Clone, Debug, Default)]
pub struct DeliveryOptions {
    /// Whether files of this machine are uploaded to the content service, instead of packed into ConfigMaps.
    pub upload: bool,
    /// The Secret that the controller fetches the bundle with.
    pub pull_secret: Option<String>,
    /// The namespace of the controller, for the ConfigMaps.
    pub system_namespace: String,
    /// The directory of the cache; `None` for the default one.
    pub cache_directory: Option<PathBuf>,
    /// How registries are reached.
    pub registry: RegistryOptions,
}

/// What the spec says about the bundle, and what must exist before.
#[derive(Clone)]
pub struct Delivered {
    /// `spec.source`.
    pub source: BundleSource,
    /// `spec.provisionerClassName`; empty where the controller detects it.
    pub class: String,
    /// ConfigMaps with the files, if they are not in a registry.
    pub config_maps: Vec<ConfigMap>,
    /// The files, if they are to be uploaded.
    pub upload: Option<Arc<dyn Content>>,
    /// The release, if the bundle was rendered here.
    pub release: Option<Release>,
    /// Why it was not, although its files are here.
    pub note: Option<String>,
    /// The kinds that the release needs and the cluster does not serve.
    pub missing: Vec<MissingKind>,
}

impl Delivered {
    /// Nothing is written for a bundle.
    pub fn nothing() -> Self {
        Self {
            source: BundleSource::default(),
            class: String::new(),
            config_maps: Vec::new(),
            upload: None,
            release: None,
            note: None,
            missing: Vec::new(),
        }
    }
}

impl Delivery<'_> {
    /// Opens the bundle where its files or its class are needed, and renders it for the cluster, so that an invalid bundle or
    /// configuration is reported with its lines before anything is written.
    ///
    /// An image or a URL of a known class is not fetched: this machine may not reach its server.
    pub async fn prepare(&self, client: &Client, options: &DeliveryOptions) -> Result<Delivered, CommandError> {
        let origin = self.bundle.origin();
        if options.upload && origin.is_remote() {
            return Err(CommandError::usage(format!(
                "--upload is for files of this machine, and {} is on a server",
                self.bundle.shown()
            ))
            .hint("leave it out: the controller fetches the bundle from there"));
        }
        let custom = self.class.filter(|class| chandler_builtin::find(class).is_none());
        let (mut note, mut missing) = (None, Vec::new());
        let unrecognised = self.unrecognised(client, options, origin).await?;
        let (class, content, release) = match (origin, self.class, custom) {
            _ if unrecognised.is_some() => {
                let text =
                    "no built-in class recognises the bundle: the controller asks the other classes of the cluster";
                note = Some(text.to_owned());
                (String::new(), unrecognised, None)
            }
            (origin, Some(class), _) if origin.is_remote() => (class.to_owned(), None, None),
            (_, _, Some(class)) => {
                let cache = cache::directory(options.cache_directory.as_deref())?;
                let bundle = source::open(origin, &cache, &options.registry).await?;
                (class.to_owned(), Some(bundle.content), None)
            }
            _ => {
                let opened =
                    rendering::open_at(origin, &self.bundle_options(options), ClusterClasses::Of(client)).await;
                let mut opened = opened.map_err(|error| not_opened(error, origin))?;
                let release = match values::available(client, self.namespace, self.values_from).await? {
                    Ok(values) => {
                        opened.configure(&values, self.config);
                        match deployed::release(client, &mut opened).await {
                            Ok(release) => {
                                missing = missing_kinds::missing(&release, &opened.request.target.api_kinds);
                                Some(release)
                            }
                            Err(error) => return Err(self.with_command(error, &mut opened).await),
                        }
                    }
                    // It may be created later, as the namespace is.
                    Err(absent) => {
                        note = Some(format!("the bundle was not checked with its values: {absent}"));
                        None
                    }
                };
                (opened.chosen.name.clone(), Some(opened.content().clone()), release)
            }
        };
        let mut delivered = Delivered { class, release, note, missing, ..Delivered::nothing() };
        match (self.bundle.source(options.pull_secret.as_deref()), content) {
            (Some(source), _) => delivered.source = source,
            (None, Some(content)) if options.upload => {
                delivered.source = BundleSource::upload(UploadSource { digest: Some(content.digest().to_string()) });
                delivered.upload = Some(content);
            }
            (None, Some(content)) => {
                let packed =
                    packaging::pack(User::BundleDeployment(self.name), &options.system_namespace, content.as_ref());
                let Packed { config_maps, sources } = packed.map_err(|error| self.not_packed(&error))?;
                delivered.source = BundleSource::config_maps(sources);
                delivered.config_maps = config_maps;
            }
            (None, None) => return Err(CommandError::failed(format!("{} has no content", self.bundle.shown()))),
        }
        Ok(delivered)
    }

    /// The content of a bundle that no built-in class recognises, where the cluster has other classes, one of which may.
    async fn unrecognised(
        &self,
        client: &Client,
        options: &DeliveryOptions,
        origin: &Origin,
    ) -> Result<Option<Arc<dyn Content>>, CommandError> {
        if self.class.is_some() || !has_classes(client).await {
            return Ok(None);
        }
        let cache = cache::directory(options.cache_directory.as_deref())?;
        let bundle = source::open(origin, &cache, &options.registry).await;
        let content = bundle.map_err(|error| not_opened(error, origin))?.content;
        let recognised = provisioner::recognised(&provisioner::provisioners(&cache)?, &content).await?;
        Ok(recognised.is_none().then_some(content))
    }

    /// Adds the whole command that installs an operator which does not watch all namespaces, or which watches only these, if that is what
    /// the configuration lacks.
    async fn with_command(&self, error: CommandError, opened: &mut OpenedBundle) -> CommandError {
        let reports = |code: &str| error.findings().iter().any(|finding| finding.is_about(code, "/watchNamespace"));
        if reports("UnknownField") {
            let command = invocation::again(env::args_os(), &["--set", "watchNamespace=null"]);
            return error.hint(format!("to let the operator watch all namespaces: `{command}`"));
        }
        if !reports("RequiredFieldMissing") {
            return error;
        }
        opened.request.config.insert("watchNamespace".to_owned(), self.namespace.into());
        // An operator may refuse to watch its own namespace.
        let (watched, value) = match opened.provision().await {
            Ok(_) => ("its own namespace", self.namespace),
            Err(_) => ("another namespace", "NAMESPACE"),
        };
        let command = invocation::again(env::args_os(), &["--set", &format!("watchNamespace={value}")]);
        error.hint(format!("to let the operator watch {watched}: `{command}`"))
    }

    fn bundle_options(&self, options: &DeliveryOptions) -> BundleOptions {
        BundleOptions {
            provisioner: self.class.map(str::to_owned),
            namespace: Some(self.namespace.to_owned()),
            name: Some(self.name.to_owned()),
            ..BundleOptions::of_deployment(options.registry.clone(), options.cache_directory.clone())
        }
    }

    fn not_packed(&self, error: &PackingError) -> CommandError {
        let failed =
            CommandError::failed(format!("{} does not fit into ConfigMaps", self.bundle.shown())).because(error);
        match error {
            PackingError::Read(_) => failed,
            _ => failed.hint(format!(
                "--upload sends it to the content service of the controller; or push it as an image, and install that: \
                 `chandler push {} REGISTRY/NAME:TAG`",
                invocation::quoted(&self.bundle.shown())
            )),
        }
    }
}

/// Whether the cluster has ProvisionerClasses. A user who may not list them names the class.
async fn has_classes(client: &Client) -> bool {
    let classes: Api<PartialObjectMeta<ProvisionerClass>> = Api::all(client.clone());
    classes.list_metadata(&ListParams::default().limit(1)).await.is_ok_and(|found| !found.items.is_empty())
}

fn not_opened(error: CommandError, origin: &Origin) -> CommandError {
    if origin.is_remote() {
        error.hint("--class names the provisioner class; then this command does not fetch the bundle")
    } else {
        error
    }
}
