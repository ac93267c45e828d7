//! Names in the cluster and in the kubeconfig, for the completion of a command line. A failure gives no names: a shell waits for the
//! answer, and has no place for an error.

use std::{fmt::Debug, path::PathBuf, time::Duration};

use chandler_api::{BundleDeployment, ProvisionerClass, Resolution};
use k8s_openapi::{ClusterResourceScope, api::core::v1::Namespace};
use kube::{Api, Client, Resource, api::ListParams, core::PartialObjectMeta};
use serde::de::DeserializeOwned;

use super::cluster;
use crate::arguments::connection::Connection;

/// How long a shell waits at most.
const PATIENCE: Duration = Duration::from_secs(1);
/// The most names.
const MOST: u32 = 500;

/// What a name is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// BundleDeployments.
    Deployments,
    /// BundleDeployments and, as `resolution/NAME`, Resolutions.
    Installed,
    /// Namespaces.
    Namespaces,
    /// ProvisionerClasses, the built-in ones included.
    Classes,
    /// Contexts of the kubeconfig.
    Contexts,
}

/// The names, in no particular order.
pub fn names(named: Named, connection: &Connection) -> Vec<String> {
    if named == Named::Contexts {
        return contexts(connection.kubeconfig.clone());
    }
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return Vec::new() };
    let listed = runtime.block_on(async {
        tokio::time::timeout(PATIENCE, async {
            let client = cluster::client(connection).await.ok()?;
            match named {
                Named::Deployments => list::<BundleDeployment>(client).await,
                Named::Installed => {
                    let deployments = list::<BundleDeployment>(client.clone()).await;
                    let resolutions = list::<Resolution>(client).await.unwrap_or_default();
                    let resolutions = resolutions.into_iter().map(|name| format!("resolution/{name}"));
                    Some(deployments.unwrap_or_default().into_iter().chain(resolutions).collect())
                }
                Named::Namespaces => list::<Namespace>(client).await,
                Named::Classes => list::<ProvisionerClass>(client).await,
                Named::Contexts => None,
            }
        })
        .await
        .ok()
        .flatten()
    });
    // A request that was given up may still hold a thread.
    runtime.shutdown_background();
    let mut found = listed.unwrap_or_default();
    if named == Named::Classes {
        found.extend(chandler_builtin::BUILTINS.iter().map(|builtin| builtin.class.to_owned()));
    }
    found
}

async fn list<K>(client: Client) -> Option<Vec<String>>
where
    K: Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + Debug + DeserializeOwned,
{
    let objects: Api<PartialObjectMeta<K>> = Api::all(client);
    let list = objects.list_metadata(&ListParams::default().limit(MOST)).await.ok()?;
    Some(list.items.iter().map(kube::ResourceExt::name_any).collect())
}

fn contexts(kubeconfig: Option<PathBuf>) -> Vec<String> {
    let kubeconfig = match kubeconfig {
        Some(path) => kube::config::Kubeconfig::read_from(path),
        None => kube::config::Kubeconfig::read(),
    };
    kubeconfig
        .map(|kubeconfig| kubeconfig.contexts.into_iter().map(|context| context.name).collect())
        .unwrap_or_default()
}
