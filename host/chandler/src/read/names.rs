//! Names in the cluster and in the kubeconfig, for the completion of a command line. A failure gives no names: a shell waits for the
//! answer, and has no place for an error.

use std::{fmt::Debug, path::PathBuf, time::Duration};

use chandler_api::{BundleDeployment, ProvisionerClass, Resolution};
use chandler_core::{dns_name, text::is_deceptive};
use k8s_openapi::{ClusterResourceScope, api::core::v1::Namespace};
use kube::{Api, Client, Resource, api::ListParams, core::PartialObjectMeta};
use serde::de::DeserializeOwned;

use super::cluster::{self, ConnectionOptions};

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

/// The names, in no particular order: those that are the same in every shell and on every terminal. A server or a kubeconfig may hold
/// others, and a shell would put them on the command line as they are.
pub fn names(named: Named, connection: &ConnectionOptions) -> Vec<String> {
    let mut found = unchecked(named, connection);
    found.retain(|name| if named == Named::Contexts { is_plain(name) } else { is_name(name) });
    found
}

/// Whether a server could have accepted it as a name: a DNS-1123 subdomain, as `NAME` or `resolution/NAME`.
fn is_name(text: &str) -> bool {
    dns_name::is_subdomain(text.strip_prefix("resolution/").unwrap_or(text))
}

/// Whether shells and terminals read nothing into a text: letters, digits and the characters between them in names that tools give to contexts,
/// such as `admin@kubernetes` and `arn:aws:eks:eu-west-1:1:cluster/a`.
fn is_plain(text: &str) -> bool {
    let plain = |c: char| !is_deceptive(c) && (c.is_alphanumeric() || "-_./:@+".contains(c));
    !text.is_empty() && !text.starts_with('-') && text.chars().all(plain)
}

fn unchecked(named: Named, connection: &ConnectionOptions) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_or_a_terminal_would_read_into_a_name_is_no_candidate() {
        for text in ["a", "a-1", "a.b", "resolution/a"] {
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
        assert_eq!(names(Named::Contexts, &connection), ["kind-a"]);
    }
}
