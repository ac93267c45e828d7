//! Rendering what a BundleDeployment asks for, as the controller does.

use chandler_api::BundleDeployment;
use chandler_core::Release;
use chandler_source::Source;
use kube::{Client, Discovery, ResourceExt as _};

use crate::{
    CommandError,
    rendering::{Opened, Rendering},
};

/// Opens what the spec of a BundleDeployment asks for, where the options do not say otherwise; `files` is a bundle with its
/// content, needed where that is not an image.
pub async fn open(
    options: &Rendering,
    deployment: &BundleDeployment,
    files: Option<&str>,
) -> Result<Opened, CommandError> {
    let (name, spec) = (deployment.name_any(), &deployment.spec);
    let source = Source::parse(&spec.source).ok();
    let bundle = files.or_else(|| source.as_ref().and_then(Source::location)).ok_or_else(|| {
        CommandError::failed(format!("the content of {name} is not an image, so it cannot be had here"))
            .hint("use its files: `chandler diff ./FILES --name NAME`, `chandler adopt NAME --bundle ./FILES`")
    })?;
    let class = options.provisioner.clone().unwrap_or_else(|| spec.provisioner_class_name.clone());
    let rendering = Rendering {
        bundle: bundle.to_owned(),
        provisioner: Some(class),
        namespace: Some(spec.install_namespace.clone()),
        name: Some(name),
        config: options.config.clone(),
        kubernetes_version: options.kubernetes_version.clone(),
        registry: options.registry.clone(),
        cache_directory: options.cache_directory.clone(),
    };
    let mut opened = rendering.open().await?;
    as_it_is(options, deployment, &mut opened);
    Ok(opened)
}

/// Takes over what a BundleDeployment that exists says, where the options do not say otherwise.
pub fn as_it_is(options: &Rendering, deployment: &BundleDeployment, opened: &mut Opened) {
    if options.namespace.is_none() {
        opened.request.target.namespace.clone_from(&deployment.spec.install_namespace);
    }
    if options.config.is_none() {
        opened.request.config = deployment.spec.config.clone().unwrap_or_default();
    }
}

/// Renders it for the cluster as it is.
pub async fn release(client: &Client, opened: &mut Opened) -> Result<Release, CommandError> {
    let failed = |error: kube::Error| CommandError::failed("failed to ask the cluster what it serves").because(&error);
    let target = &mut opened.request.target;
    if target.kubernetes_version.is_empty() {
        target.kubernetes_version = client.apiserver_version().await.map_err(failed)?.git_version;
    }
    let discovery = Discovery::new(client.clone()).run_aggregated().await.map_err(failed)?;
    target.api_kinds = chandler_controller::kinds(&discovery);
    opened.release().await
}
