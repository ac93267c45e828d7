//! Renders the spec of an existing BundleDeployment, as the controller does.

use std::{path::Path, sync::Arc};

use chandler_api::BundleDeployment;
use chandler_builtin::Provisioners;
use chandler_core::{Content, Release};
use chandler_decisions::account;
use chandler_permissions::AccountPolicy;
use chandler_source::{Grantee, Resolutions, Source, Sources, SystemNamespace, Wanted};
use kube::{Client, ResourceExt as _};

use super::{
    cache,
    classes::ClusterClasses,
    cluster_facts, configuration,
    origin::Origin,
    provisioner::{self, ChosenProvisioner},
    rendering::{self, BundleOptions, OpenedBundle},
    source::{self, Bundle},
    values,
};
use crate::{
    CommandError,
    view::{relocation, summary},
};

/// Opens the bundle of a BundleDeployment. Options override its spec. `files` is a bundle with the same content. Without it, an image
/// or a URL is fetched, and ConfigMaps, and the Secret of a URL, are read with the rights of the user.
pub async fn open(
    client: &Client,
    system_namespace: &str,
    options: &BundleOptions,
    deployment: &BundleDeployment,
    files: Option<&str>,
) -> Result<OpenedBundle, CommandError> {
    let given = files.map_or(Given::Spec { system_namespace }, Given::Files);
    open_given(given, client, options, deployment).await
}

/// Like [`open`], with content that is here already.
pub async fn open_content(
    client: &Client,
    options: &BundleOptions,
    deployment: &BundleDeployment,
    content: Arc<dyn Content>,
) -> Result<OpenedBundle, CommandError> {
    open_given(Given::Content(content), client, options, deployment).await
}

/// Where the bundle is.
enum Given<'a> {
    /// Where the spec says.
    Spec { system_namespace: &'a str },
    /// At an origin that a user named.
    Files(&'a str),
    /// Here already.
    Content(Arc<dyn Content>),
}

async fn open_given(
    given: Given<'_>,
    client: &Client,
    options: &BundleOptions,
    deployment: &BundleDeployment,
) -> Result<OpenedBundle, CommandError> {
    let cache = cache::directory(options.cache_directory.as_deref())?;
    let provisioners = provisioner::provisioners(&cache)?;
    let place = Place { provisioners: &provisioners, cache: &cache };
    let provisioner = options.provisioner.clone().or_else(|| summary::class(deployment).map(str::to_owned));
    let options = BundleOptions { provisioner, ..options.clone() };
    let bundle = match given {
        Given::Spec { system_namespace } => bundle(client, system_namespace, &options, deployment, place).await?,
        Given::Files(files) => source::open(&Origin::parse(files)?, &cache, &options.registry).await?,
        Given::Content(content) => Bundle { content, directory: None },
    };
    opened(client, &options, deployment, bundle, place).await
}

/// What several bundles share.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The built-in provisioners, and the engine that runs all.
    pub provisioners: &'a Provisioners,
    /// The cache.
    pub cache: &'a Path,
}

/// Like [`open`], for one of many BundleDeployments: nothing is loaded for each of them. Without a provisioner in the options, the class is
/// detected, whatever the status says.
pub async fn open_in(
    client: &Client,
    system_namespace: &str,
    options: &BundleOptions,
    deployment: &BundleDeployment,
    place: Place<'_>,
) -> Result<OpenedBundle, CommandError> {
    let bundle = bundle(client, system_namespace, options, deployment, place).await?;
    opened(client, options, deployment, bundle, place).await
}

/// Like [`open_in`], with a provisioner that is loaded already.
pub async fn open_with(
    client: &Client,
    system_namespace: &str,
    options: &BundleOptions,
    deployment: &BundleDeployment,
    (place, chosen): (Place<'_>, ChosenProvisioner),
) -> Result<OpenedBundle, CommandError> {
    let bundle = bundle(client, system_namespace, options, deployment, place).await?;
    let mut opened = rendering::opened_with(&of_spec(options, deployment), bundle, chosen)?;
    default_to_spec(client, options, deployment, &mut opened).await?;
    Ok(opened)
}

/// The options with the namespace and the name of a BundleDeployment.
fn of_spec(options: &BundleOptions, deployment: &BundleDeployment) -> BundleOptions {
    BundleOptions {
        namespace: Some(deployment.spec.install_namespace.clone()),
        name: Some(deployment.name_any()),
        ..options.clone()
    }
}

async fn opened(
    client: &Client,
    options: &BundleOptions,
    deployment: &BundleDeployment,
    bundle: Bundle,
    place: Place<'_>,
) -> Result<OpenedBundle, CommandError> {
    let options_of_spec = of_spec(options, deployment);
    let shared = (place.provisioners, place.cache);
    let mut opened = rendering::opened(&options_of_spec, bundle, shared, ClusterClasses::Of(client)).await?;
    default_to_spec(client, options, deployment, &mut opened).await?;
    Ok(opened)
}

/// The content that the spec names. An image is never taken for a path of this machine, whatever its reference is.
async fn bundle(
    client: &Client,
    system_namespace: &str,
    options: &BundleOptions,
    deployment: &BundleDeployment,
    place: Place<'_>,
) -> Result<Bundle, CommandError> {
    let name = deployment.name_any();
    let source = Source::parse(&deployment.spec.source)
        .map_err(|error| CommandError::failed(format!("spec.source of {name} is invalid")).because(&error))?;
    let origin = match (&source, source.location()) {
        (Source::Image(image), Some(_)) => Some(Origin::Image(Box::new(image.reference().clone()))),
        (_, Some(location)) => Some(Origin::archive(location)?),
        (_, None) => None,
    };
    if let Some(origin) = origin {
        return source::open(&origin, place.cache, &options.registry).await;
    }
    if matches!(source, Source::Upload(_)) {
        let error = format!(
            "the files of {name} were uploaded to the content service, and this command does not read them there"
        );
        return Err(CommandError::failed(error).hint(format!(
            "name the files on this machine: `chandler diff {name} ./FILES`, `--bundle ./FILES` of other commands; `chandler content {name} --to \
             ./FILES` downloads them"
        )));
    }
    let system = SystemNamespace::new(client.clone(), system_namespace.to_owned(), false);
    let images = source::images(source::store(place.cache).await?, &options.registry)?;
    let account = account::recorded(deployment, &AccountPolicy::OPTIONAL);
    stored(&name, &source, &Sources::new(images, system).with_account(account)).await
}

/// Opens another bundle for a BundleDeployment, if that exists, as an upgrade installs it. A class of the cluster renders it, too; the
/// format of one for a built-in class is detected.
pub async fn open_other(
    client: &Client,
    origin: &Origin,
    options: &BundleOptions,
    existing: Option<&BundleDeployment>,
) -> Result<OpenedBundle, CommandError> {
    let class = existing.and_then(summary::class).filter(|class| provisioner::is_custom(class));
    let provisioner = options.provisioner.clone().or_else(|| class.map(str::to_owned));
    let options = BundleOptions { provisioner, ..options.clone() };
    let mut opened = rendering::open_at(origin, &options, ClusterClasses::Of(client)).await?;
    if let Some(existing) = existing {
        default_to_spec(client, &options, existing, &mut opened).await?;
    }
    Ok(opened)
}

/// The content of a source in the cluster.
async fn stored(name: &str, source: &Source, sources: &Sources) -> Result<Bundle, CommandError> {
    let resolutions = Resolutions::default();
    let grantee = Grantee::BundleDeployment(name);
    let wanted = Wanted { grantee, source, resolutions: &resolutions, interval: None, in_use: None };
    let obtained = sources.obtain(&wanted).await.map_err(|error| {
        CommandError::failed(format!("failed to read the files of {name} in the cluster")).because(&error).hint(
            "--system-namespace names the controller's namespace; or use the files on this machine: `chandler diff NAME ./FILES`, \
             --bundle ./FILES of other commands",
        )
    })?;
    Ok(Bundle { content: Arc::new(obtained.tree), directory: None })
}

/// Refuses a namespace other than the one that a BundleDeployment is installed in.
pub fn check_namespace(deployment: &BundleDeployment, wanted: Option<&str>) -> Result<(), CommandError> {
    let installed = &deployment.spec.install_namespace;
    let Some(other) = wanted.filter(|other| other != installed) else { return Ok(()) };
    Err(relocation::refusal(deployment, other))
}

/// Takes the namespace from the spec, and merges the configuration of the options over the spec's, as in an
/// upgrade.
async fn default_to_spec(
    client: &Client,
    options: &BundleOptions,
    deployment: &BundleDeployment,
    opened: &mut OpenedBundle,
) -> Result<(), CommandError> {
    let spec = &deployment.spec;
    check_namespace(deployment, options.namespace.as_deref())?;
    opened.request.target.namespace.clone_from(&spec.install_namespace);
    let base = spec.config.clone().unwrap_or_default();
    let config = configuration::over(&options.configuration, opened.configuration(), base)?;
    let values = values::values(client, &spec.install_namespace, &spec.values_from).await?;
    opened.configure(&values, &config);
    Ok(())
}

/// Renders the bundle for the version and the kinds of this cluster.
pub async fn release(client: &Client, opened: &mut OpenedBundle) -> Result<Release, CommandError> {
    let target = &mut opened.request.target;
    if target.kubernetes_version.is_empty() {
        target.kubernetes_version = cluster_facts::kubernetes_version(client).await?;
    }
    target.api_kinds = cluster_facts::api_kinds(client).await?;
    opened.release().await
}
