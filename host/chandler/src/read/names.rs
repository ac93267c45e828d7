//! Names in the cluster and in the kubeconfig, for the completion of a command line. A failure gives no names: a shell waits for the
//! answer, and has no place for an error.

use std::{
    collections::BTreeSet,
    fmt::Debug,
    path::{Path, PathBuf},
    time::Duration,
};

use chandler_api::{
    Alert, BundleDeployment, Catalog, PlatformOperator, PlatformPolicy, ProvisionerClass, Receiver, ReportingKind,
    Resolution,
};
use chandler_core::{dns_name, text::is_deceptive};
use k8s_openapi::{ClusterResourceScope, api::core::v1::Namespace};
use kube::{Api, Client, Resource, api::ListParams, core::PartialObjectMeta};
use serde::de::DeserializeOwned;

use super::{
    catalogs::FetchOptions,
    cluster::{self, ConnectionOptions},
    cluster_catalogs::ClusterCatalogs,
    kubeconfig,
};
use crate::view::decisions;

/// How long a shell waits at most.
const PATIENCE: Duration = Duration::from_secs(1);
/// The most names.
const MOST: u32 = 500;

/// What a name is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// Objects of these kinds: the first kind as `NAME`, the others as `KIND/NAME`.
    Objects(&'static [ReportingKind]),
    /// Namespaces.
    Namespaces,
    /// ProvisionerClasses, the built-in ones included.
    Classes,
    /// Contexts of the kubeconfig.
    Contexts,
    /// Packages of the Catalogs of the cluster whose indexes are in the cache of this machine.
    Packages,
    /// Revisions of the BundleDeployment, or decisions of the Resolution, that the command line names.
    Revisions,
}

/// Where names are looked up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The cluster.
    pub connection: ConnectionOptions,
    /// The object whose parts are named, and whether it is a Resolution.
    pub of: Option<(String, bool)>,
    /// The directory with the indexes of catalogs; `None` for the default.
    pub cache_directory: Option<PathBuf>,
}

/// The names, in no particular order: those that are the same in every shell and on every terminal. A server or a kubeconfig may hold
/// others, and a shell would put them on the command line as they are.
pub fn names(named: Named, place: &Place) -> Vec<String> {
    let mut found = unchecked(named, place);
    found.retain(|name| if named == Named::Contexts { is_plain(name) } else { is_name(name) });
    found
}

/// Whether a server could have accepted it as a name: a DNS-1123 subdomain, as `NAME` or `KIND/NAME`.
fn is_name(text: &str) -> bool {
    let is_kind = |written: &str| ReportingKind::ALL.iter().any(|kind| prefix(*kind) == written);
    match text.split_once('/') {
        Some((kind, name)) => is_kind(kind) && dns_name::is_subdomain(name),
        None => dns_name::is_subdomain(text),
    }
}

/// A kind before the slash of `KIND/NAME`.
fn prefix(kind: ReportingKind) -> String {
    kind.as_str().to_lowercase()
}

/// Whether shells and terminals read nothing into a text: letters, digits and the characters between them in names that tools give to contexts,
/// such as `admin@kubernetes` and `arn:aws:eks:eu-west-1:1:cluster/a`.
fn is_plain(text: &str) -> bool {
    let plain = |c: char| !is_deceptive(c) && (c.is_alphanumeric() || "-_./:@+".contains(c));
    !text.is_empty() && !text.starts_with('-') && text.chars().all(plain)
}

fn unchecked(named: Named, place: &Place) -> Vec<String> {
    let connection = &place.connection;
    if named == Named::Contexts {
        return contexts(connection.kubeconfig.as_deref());
    }
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return Vec::new() };
    let listed = runtime.block_on(async {
        tokio::time::timeout(PATIENCE, async {
            let client = cluster::client(connection).await.ok()?;
            match named {
                Named::Objects(kinds) => Some(objects(client, kinds).await),
                Named::Namespaces => list::<Namespace>(client).await,
                Named::Classes => list::<ProvisionerClass>(client).await,
                Named::Packages => packages(&client, place).await,
                Named::Revisions => revisions(&client, place.of.as_ref()?).await,
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

/// The names of the objects of these kinds. A kind that cannot be listed has none.
async fn objects(client: Client, kinds: &[ReportingKind]) -> Vec<String> {
    let of_kind = async |number: usize, kind: ReportingKind| {
        let client = client.clone();
        let names = match kind {
            ReportingKind::BundleDeployment => list::<BundleDeployment>(client).await,
            ReportingKind::Resolution => list::<Resolution>(client).await,
            ReportingKind::Catalog => list::<Catalog>(client).await,
            ReportingKind::ProvisionerClass => list::<ProvisionerClass>(client).await,
            ReportingKind::PlatformOperator => list::<PlatformOperator>(client).await,
            ReportingKind::PlatformPolicy => list::<PlatformPolicy>(client).await,
            ReportingKind::Receiver => list::<Receiver>(client).await,
            ReportingKind::Alert => list::<Alert>(client).await,
        };
        let shown = |name: String| if number == 0 { name } else { format!("{}/{name}", prefix(kind)) };
        names.unwrap_or_default().into_iter().map(shown).collect::<Vec<String>>()
    };
    let listed = kinds.iter().enumerate().map(|(number, kind)| of_kind(number, *kind));
    futures::future::join_all(listed).await.concat()
}

async fn list<K>(client: Client) -> Option<Vec<String>>
where
    K: Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + Debug + DeserializeOwned,
{
    let objects: Api<PartialObjectMeta<K>> = Api::all(client);
    let list = objects.list_metadata(&ListParams::default().limit(MOST)).await.ok()?;
    Some(list.items.iter().map(kube::ResourceExt::name_any).collect())
}

/// The packages whose catalogs were read before: nothing is fetched for a completion.
async fn packages(client: &Client, place: &Place) -> Option<Vec<String>> {
    let fetching = FetchOptions { cache_directory: place.cache_directory.clone(), ..FetchOptions::default() };
    let cluster = ClusterCatalogs::new(&place.connection, "", &fetching).with_client(client);
    let catalogs = cluster.all_at_hand().await.ok()?;
    let packages = catalogs.indexes().flat_map(|(_, index)| index.packages().filter_map(Result::ok));
    Some(packages.map(|package| package.name).collect::<BTreeSet<String>>().into_iter().collect())
}

async fn revisions(client: &Client, (name, is_resolution): &(String, bool)) -> Option<Vec<String>> {
    let numbers: Vec<i64> = if *is_resolution {
        let resolution = Api::<Resolution>::all(client.clone()).get(name).await.ok()?;
        decisions::history(&resolution).iter().map(|decision| decision.number).collect()
    } else {
        let deployment = Api::<BundleDeployment>::all(client.clone()).get(name).await.ok()?;
        deployment.status.iter().flat_map(|status| &status.history).map(|revision| revision.number).collect()
    };
    Some(numbers.iter().map(ToString::to_string).collect())
}

fn contexts(kubeconfig: Option<&Path>) -> Vec<String> {
    kubeconfig::read(kubeconfig)
        .map(|kubeconfig| kubeconfig.contexts.into_iter().map(|context| context.name).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_or_a_terminal_would_read_into_a_name_is_no_candidate() {
        for text in ["a", "a-1", "a.b", "resolution/a", "catalog/a"] {
            assert!(is_name(text), "{text}");
        }
        for text in ["a", "admin@kubernetes", "arn:aws:eks:eu-west-1:1:cluster/a", "gke_p_europe_a", "kind-büro"] {
            assert!(is_plain(text), "{text}");
        }
        for text in [
            "x;touch pwn",
            "*",
            "$(id)",
            "`id`",
            "a b",
            "a\tb",
            "a\nb",
            "a\u{1b}[2J",
            "a\u{202e}b",
            "a\u{200b}",
            "~",
            "=id",
            "-o",
            "--kubeconfig=x",
            "a'b",
            "a\"b",
            "a\\b",
            "a&b",
            "a|b",
            "a>b",
            "a(b",
            "a{b,c}",
            "a!b",
            "a#b",
            "a?b",
            "[a]",
            "\u{3164}",
            "",
        ] {
            assert!(!is_name(text) && !is_plain(text), "{text:?}");
        }
        assert!(!is_name("other/a") && !is_name("A") && is_plain("A"));
    }

    #[test]
    fn contexts_with_such_names_are_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config");
        let contexts: Vec<_> = ["kind-a", "x;touch pwn", "a\u{202e}b"]
            .map(|name| serde_json::json!({"name": name, "context": {"cluster": "c", "user": "u"}}))
            .into();
        let text = serde_json::json!({"apiVersion": "v1", "kind": "Config", "contexts": contexts});
        std::fs::write(&path, text.to_string()).unwrap();
        let connection = ConnectionOptions { kubeconfig: Some(path), ..ConnectionOptions::default() };
        let place = Place { connection, ..Place::default() };
        assert_eq!(names(Named::Contexts, &place), ["kind-a"]);
    }
}
