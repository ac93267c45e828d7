//! Renders the spec of an existing BundleDeployment, as the controller does.

use chandler_api::BundleDeployment;
use chandler_core::Release;
use chandler_source::Source;
use kube::{Client, Discovery, ResourceExt as _};

use super::{
    configuration,
    rendering::{self, OpenedBundle},
    values,
};
use crate::{CommandError, arguments::bundle::BundleArguments};

/// Opens the bundle of a BundleDeployment. Arguments override its spec. `files` is a bundle with the same content; it is required
/// if the source is not an image.
pub async fn open(
    client: &Client,
    arguments: &BundleArguments,
    deployment: &BundleDeployment,
    files: Option<&str>,
) -> Result<OpenedBundle, CommandError> {
    let (name, spec) = (deployment.name_any(), &deployment.spec);
    let source = Source::parse(&spec.source).ok();
    let bundle = files.or_else(|| source.as_ref().and_then(Source::location)).ok_or_else(|| {
        CommandError::failed(format!("the source of {name} is not an image, so this command cannot fetch its content"))
            .hint("use its files: `chandler diff ./FILES --name NAME`, `chandler adopt NAME --bundle ./FILES`")
    })?;
    let class = arguments.provisioner.clone().unwrap_or_else(|| spec.provisioner_class_name.clone());
    let arguments_of_spec = BundleArguments {
        bundle: bundle.to_owned(),
        provisioner: Some(class),
        namespace: Some(spec.install_namespace.clone()),
        name: Some(name),
        configuration: arguments.configuration.clone(),
        kubernetes_version: arguments.kubernetes_version.clone(),
        registry: arguments.registry.clone(),
        cache_directory: arguments.cache_directory.clone(),
    };
    let mut opened = rendering::open(&arguments_of_spec).await?;
    default_to_spec(client, arguments, deployment, &mut opened).await?;
    Ok(opened)
}

/// Takes the namespace from the spec unless the arguments set it, and the configuration, over which that of the arguments is merged, as in
/// an upgrade.
pub async fn default_to_spec(
    client: &Client,
    arguments: &BundleArguments,
    deployment: &BundleDeployment,
    opened: &mut OpenedBundle,
) -> Result<(), CommandError> {
    let spec = &deployment.spec;
    if arguments.namespace.is_none() {
        opened.request.target.namespace.clone_from(&spec.install_namespace);
    }
    let base = spec.config.clone().unwrap_or_default();
    let config = configuration::over(&arguments.configuration, opened.configuration(), base)?;
    let values = values::values(client, &spec.install_namespace, &spec.values_from).await?;
    opened.configure(&values, &config);
    Ok(())
}

/// Renders the bundle for the version and the kinds of this cluster.
pub async fn release(client: &Client, opened: &mut OpenedBundle) -> Result<Release, CommandError> {
    let failed =
        |error: kube::Error| CommandError::failed("failed to discover the APIs of the cluster").because(&error);
    let target = &mut opened.request.target;
    if target.kubernetes_version.is_empty() {
        target.kubernetes_version = client.apiserver_version().await.map_err(failed)?.git_version;
    }
    let discovery = Discovery::new(client.clone()).run_aggregated().await.map_err(failed)?;
    target.api_kinds = chandler_controller::kinds(&discovery);
    opened.release().await
}
