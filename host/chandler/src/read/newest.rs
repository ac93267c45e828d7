//! The newest version of what a BundleDeployment installs, where the user names none.

use chandler_api::BundleDeployment;
use chandler_catalog::IndexCatalogs;
use chandler_rollout::Preview;
use kube::{Client, ResourceExt as _};

use super::{
    catalogs::{self, CatalogOptions},
    cluster_catalogs::ClusterCatalogs,
    deployed, explained,
    named::NamedBundle,
    package, preview,
    rendering::BundleOptions,
};
use crate::{
    CommandError,
    view::{difference, newest, terminal::Terminal},
};

/// The package of a BundleDeployment, and the catalogs that list its image.
///
/// # Errors
/// Another object or a rollback decides about its version, its source is not an image, or no catalog lists the image.
pub async fn package(
    client: &Client,
    deployment: &BundleDeployment,
    options: &CatalogOptions,
    terminal: &Terminal,
) -> Result<(String, IndexCatalogs), CommandError> {
    let decider = explained::decider(client, deployment).await?;
    if let Some(refusal) = newest::refusal(deployment, decider.as_ref()) {
        return Err(refusal);
    }
    let cluster = ClusterCatalogs::of(options).with_client(client).for_use_with(terminal);
    let catalogs = catalogs::selected(options, &cluster).await.map_err(|error| {
        let name = deployment.name_any();
        error.hint(format!(
            "or name what to change: `chandler upgrade {name} BUNDLE`, `chandler upgrade {name} --set KEY=VALUE`"
        ))
    })?;
    match package::proven(deployment, &catalogs) {
        Some(installed) => Ok((installed.package, catalogs)),
        None => Err(newest::unlisted(deployment)),
    }
}

/// What the rollout of another bundle would change. Values of Secrets are hidden.
pub async fn preview(
    client: &Client,
    deployment: &BundleDeployment,
    bundle: &NamedBundle,
    options: &BundleOptions,
) -> Result<Preview, CommandError> {
    let (name, namespace) = (deployment.name_any(), &deployment.spec.install_namespace);
    let options = BundleOptions { name: Some(name.clone()), ..options.clone() };
    let mut opened = deployed::open_other(client, bundle.origin(), &options, Some(deployment)).await?;
    let release = deployed::release(client, &mut opened).await?;
    let mut preview = preview::rollout(client.clone(), Some(deployment), (&name, namespace), &release).await?;
    difference::hide(&mut preview, opened.redactor());
    Ok(preview)
}
