//! Reads what other installers have installed, and translates it.

use kube::Client;
use serde_json::Value;

use super::{
    catalogs::FetchOptions,
    cluster::ConnectionOptions,
    cluster_catalogs::{CatalogKind, ClusterCatalogs},
    foreign::{ForeignKind, list},
    named::ListedImage,
};
use crate::{
    CommandError,
    migrate::{CatalogImage, Migration, olm, olm_v1, rukpak},
};

/// Another installer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Installer {
    /// OLM v0: Subscriptions
    Olm,
    /// OLM v1: ClusterExtensions
    Olmv1,
    /// rukpak: BundleDeployments of the API version v1alpha1
    Rukpak,
    /// The cluster-version operator: a component of an OpenShift release payload, by the directory of its manifests
    Cvo,
}

impl Installer {
    /// What it installs from.
    pub fn kind(self) -> ForeignKind {
        match self {
            Self::Olm => coreos("v1alpha1", "Subscription"),
            Self::Olmv1 => ForeignKind { group: "olm.operatorframework.io", version: "v1", kind: "ClusterExtension" },
            Self::Cvo => ForeignKind { group: "config.openshift.io", version: "v1", kind: "ClusterVersion" },
            Self::Rukpak => ForeignKind { group: "core.rukpak.io", version: "v1alpha1", kind: "BundleDeployment" },
        }
    }
}

const fn coreos(version: &'static str, kind: &'static str) -> ForeignKind {
    ForeignKind { group: "operators.coreos.com", version, kind }
}

/// What was found.
#[derive(Debug, Default)]
pub struct Installations {
    /// The translations.
    pub migrations: Vec<Migration>,
    /// Notes about objects that are not migrated.
    pub notes: Vec<String>,
}

/// Reads and translates what an installer has installed. None if the cluster does not serve its kind.
pub async fn read(client: &Client, installer: Installer) -> Result<Option<Installations>, CommandError> {
    let Some(requests) = list(client, installer.kind(), None).await? else { return Ok(None) };
    let (migrations, notes) = match installer {
        Installer::Olm => olm::migrations(&olm::Objects {
            subscriptions: requests,
            csvs: all(client, coreos("v1alpha1", "ClusterServiceVersion")).await?,
            operator_groups: all(client, coreos("v1", "OperatorGroup")).await?,
            install_plans: all(client, coreos("v1alpha1", "InstallPlan")).await?,
        }),
        Installer::Olmv1 => {
            let sets = all(client, ForeignKind { kind: "ClusterObjectSet", ..installer.kind() }).await?;
            (olm_v1::migrations(&requests, &sets), Vec::new())
        }
        Installer::Rukpak => rukpak::migrations(&rukpak::Objects {
            deployments: requests,
            bundles: all(client, ForeignKind { kind: "Bundle", ..installer.kind() }).await?,
            workloads: list(
                client,
                ForeignKind { group: "apps", version: "v1", kind: "Deployment" },
                Some("core.rukpak.io/owner-kind=BundleDeployment"),
            )
            .await?
            .unwrap_or_default(),
        }),
        // The objects of a component do not say which component they belong to: its manifests do.
        Installer::Cvo => (Vec::new(), Vec::new()),
    };
    Ok(Some(Installations { migrations, notes }))
}

async fn all(client: &Client, kind: ForeignKind) -> Result<Vec<Value>, CommandError> {
    Ok(list(client, kind, None).await?.unwrap_or_default())
}

/// Looks for the image of a bundle in the catalogs of the installer.
pub async fn image(
    client: &Client,
    (connection, system_namespace): (&ConnectionOptions, &str),
    fetching: &FetchOptions,
    wanted: &CatalogImage,
) -> Result<Option<String>, CommandError> {
    let kinds = [CatalogKind::Olm(wanted.kind.clone())];
    let catalogs = ClusterCatalogs::new(connection, system_namespace, fetching).from(&kinds).with_client(client);
    let opened = match &wanted.catalog {
        Some(name) => vec![catalogs.open(name).await?],
        None => catalogs.open_all().await?,
    };
    for (source, index) in opened {
        let package = index.package(&wanted.package).map_err(|error| {
            CommandError::failed(format!("failed to read package {} of catalog {}", wanted.package, source.name))
                .because(&error)
        })?;
        let bundles = package.map(|package| package.bundles).unwrap_or_default();
        let found = bundles.into_iter().map(|located| located.value).find(|bundle| bundle.name == wanted.bundle);
        if let Some(bundle) = found.filter(|bundle| !bundle.image.is_empty()) {
            return ListedImage::of_catalog(&bundle.name, &bundle.image).map(|image| Some(image.text().to_owned()));
        }
    }
    Ok(None)
}
