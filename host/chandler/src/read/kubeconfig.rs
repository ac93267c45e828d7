//! Reads a kubeconfig, and says which cluster it leads to.

use std::{
    env, fmt, io,
    path::{Path, PathBuf},
};

use chandler_client::ConfigurationError;
use chandler_proxies::{Proxies, Proxy, ProxyError};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError, LoadDataError},
};

use super::file::{self, TrustedError};
use crate::{CommandError, view::api_error::without_code};

/// The hint for a command that has no usable kubeconfig.
const NO_KUBECONFIG: &str = if cfg!(feature = "dev") {
    "set --kubeconfig or $KUBECONFIG; `chandler dev --keep` creates a cluster and a kubeconfig"
} else {
    "set --kubeconfig or $KUBECONFIG"
};
/// The largest kubeconfig that is read, in bytes.
const KUBECONFIG: u64 = 16 << 20;

/// A cluster, as messages name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    server: String,
    /// The context and the file that lead there; `None` in a Pod.
    context: Option<(String, String)>,
    /// The proxy to it, without credentials.
    proxy: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.server.trim_end_matches('/'))?;
        if let Some((context, file)) = &self.context {
            write!(f, " (context {context:?} in {file})")?;
        }
        match &self.proxy {
            Some(proxy) => write!(f, " through the proxy {proxy}"),
            None => Ok(()),
        }
    }
}

/// The configuration of this kubeconfig, else of the environment, and the cluster that it leads to. Without a context, the current one
/// of the kubeconfig.
pub async fn load(path: Option<&Path>, context: Option<&str>) -> Result<(Config, Place), CommandError> {
    for path in path.map_or_else(inferred, |path| vec![path.to_owned()]) {
        trust(&path)?;
    }
    let read = || self::read(path);
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let loaded = match read() {
        Ok(kubeconfig) => chandler_client::configuration(kubeconfig, &options, &Proxies::from_environment()).await,
        Err(error) => Err(error.into()),
    };
    let config = match loaded {
        Ok(config) => config,
        Err(ConfigurationError::Proxy(error)) => return Err(no_proxy(&error)),
        // In a Pod, which reaches its API server without the proxy of its environment: that one is for hosts outside of the cluster.
        Err(ConfigurationError::Kubeconfig(error)) => match Config::incluster() {
            Ok(config) if path.is_none() && context.is_none() => config,
            _ => return Err(failed(&error, path, read().ok().as_ref())),
        },
    };
    let current = context.map(str::to_owned).or_else(|| read().ok()?.current_context);
    let place = Place {
        server: config.cluster_url.to_string(),
        context: current.map(|context| (context, shown(path))),
        proxy: config.proxy_url.as_ref().and_then(|url| Some(Proxy::parse(&url.to_string(), "").ok()?.to_string())),
    };
    Ok((config, place))
}

fn no_proxy(error: &ProxyError) -> CommandError {
    CommandError::failed("failed to choose the proxy for the cluster").because(error).hint(
        "correct it; NO_PROXY names hosts, domains and networks that are reached without a proxy, \
         and `kubectl config view --minify` shows proxy-url",
    )
}

/// Sends one request, so that a cluster that cannot be reached, or refuses the credentials, is reported once and by its name.
pub async fn reach(client: &Client, place: &Place) -> Result<(), CommandError> {
    match client.apiserver_version().await {
        Err(kube::Error::Api(status)) if status.code == 404 => {
            Err(CommandError::failed(format!("{place} is not a Kubernetes API server: it has no /version"))
                .hint("check the address of the cluster: `kubectl config view --minify`"))
        }
        // What this user may do, and whether the server is healthy, shows with the request that the command is about.
        Err(kube::Error::Api(status)) if status.code != 401 => Ok(()),
        Err(error) => Err(CommandError::failed(format!("failed to connect to the cluster {place}")).because(&error)),
        Ok(_) => Ok(()),
    }
}

/// Reads this kubeconfig, else the files of the environment as one: the first file that sets a value wins. As in kubectl, a file of
/// `$KUBECONFIG` that does not exist is skipped.
///
/// # Errors
/// None of the files exists, or one of them cannot be read.
pub fn read(path: Option<&Path>) -> Result<Kubeconfig, KubeconfigError> {
    if let Some(path) = path {
        return Kubeconfig::read_from(path);
    }
    merged(&inferred())
}

/// The kubeconfig of these files.
fn merged(files: &[PathBuf]) -> Result<Kubeconfig, KubeconfigError> {
    let (mut merged, mut missing) = (None, None);
    for file in files {
        match Kubeconfig::read_from(file) {
            Ok(next) => merged = Some(merged.unwrap_or_else(Kubeconfig::default).merge(next)?),
            Err(KubeconfigError::ReadConfig(error, _)) if error.kind() == io::ErrorKind::NotFound => {
                missing = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    match (merged, missing) {
        (Some(merged), _) => Ok(merged),
        (None, Some(missing)) => Err(KubeconfigError::ReadConfig(missing, listed(files).into())),
        (None, None) => Err(KubeconfigError::FindPath),
    }
}

/// The files of the environment.
fn inferred() -> Vec<PathBuf> {
    match env::var_os("KUBECONFIG").filter(|value| !value.is_empty()) {
        Some(value) => env::split_paths(&value).filter(|path| !path.as_os_str().is_empty()).collect(),
        None => env::home_dir().map(|home| home.join(".kube/config")).into_iter().collect(),
    }
}

fn shown(path: Option<&Path>) -> String {
    listed(&path.map_or_else(inferred, |path| vec![path.to_owned()]))
}

fn listed(files: &[PathBuf]) -> String {
    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(":")
}

/// Refuses a kubeconfig that other users can write, because a kubeconfig names commands that the client runs.
fn trust(path: &Path) -> Result<(), CommandError> {
    match file::read_trusted(path, KUBECONFIG) {
        // kube reports a missing or unreadable file.
        Ok(_) | Err(TrustedError::Io { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The error for a kubeconfig that leads to no cluster. `kubeconfig` is what could be read of it.
fn failed(error: &KubeconfigError, path: Option<&Path>, kubeconfig: Option<&Kubeconfig>) -> CommandError {
    let file = shown(path);
    let names = kubeconfig.map(|it| it.contexts.iter().map(|context| context.name.as_str()).collect::<Vec<_>>());
    let contexts = match names.as_deref() {
        None | Some([]) => "it has no context; `kubectl config set-context` adds one".to_owned(),
        Some(names) => format!("its contexts are {}; `kubectl config use-context NAME` chooses one", names.join(", ")),
    };
    match error {
        KubeconfigError::ReadConfig(source, path) => {
            CommandError::failed(format!("failed to read the kubeconfig {}", path.display()))
                .because(source)
                .hint(NO_KUBECONFIG)
        }
        KubeconfigError::CurrentContextNotSet => {
            CommandError::failed(format!("the kubeconfig {file} has no current context")).hint(contexts)
        }
        KubeconfigError::LoadContext(name) => {
            CommandError::usage(format!("the kubeconfig {file} has no context {name:?}")).hint(contexts)
        }
        KubeconfigError::LoadClusterOfContext(name) => {
            CommandError::failed(format!("the kubeconfig {file} has no cluster {name:?}, which its context names"))
                .hint("`kubectl config get-clusters` lists its clusters")
        }
        KubeconfigError::Parse(error) => CommandError::failed(format!("the kubeconfig {file} is not valid"))
            .because(error.as_ref())
            .hint("`kubectl config view` shows what it should look like"),
        KubeconfigError::LoadCertificateAuthority(source) => not_loaded(&file, "certificate authority", source),
        KubeconfigError::LoadClientCertificate(source) => not_loaded(&file, "client certificate", source),
        KubeconfigError::LoadClientKey(source) => not_loaded(&file, "client key", source),
        error => CommandError::failed(format!("the kubeconfig {file} is not valid"))
            .because(error)
            .hint("`kubectl config view --minify` shows the cluster and the user of its context"),
    }
}

fn not_loaded(kubeconfig: &str, what: &str, error: &LoadDataError) -> CommandError {
    let failed = match error {
        LoadDataError::ReadFile(source, path) => CommandError::failed(format!(
            "failed to read {}, the {what} in the kubeconfig {kubeconfig}: {}",
            path.display(),
            without_code(&source.to_string())
        )),
        error => CommandError::failed(format!("the {what} in the kubeconfig {kubeconfig} is not valid")).because(error),
    };
    failed.hint("`kubectl config view --minify` shows the files that the context needs")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn missing_files_of_a_list_are_skipped_unless_all_are() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        let write = |name: &str, context: &str| {
            let context = serde_json::json!({
                "apiVersion": "v1", "kind": "Config", "current-context": context,
                "contexts": [{"name": context, "context": {"cluster": "c", "user": "u"}}],
            });
            fs::write(place(name), context.to_string()).unwrap();
        };
        write("one", "first");
        write("two", "second");
        let found = merged(&["absent", "two", "gone", "one"].map(place)).unwrap();
        let contexts: Vec<&str> = found.contexts.iter().map(|context| context.name.as_str()).collect();
        assert_eq!((contexts, found.current_context.as_deref()), (vec!["second", "first"], Some("second")));

        let error = merged(&["absent", "gone"].map(place)).unwrap_err();
        let message = failed(&error, None, None).to_string();
        let named = message.matches(&directory.path().display().to_string()).count();
        assert!(named == 2 && message.contains("No such file"), "{message}");

        fs::write(place("broken"), "{").unwrap();
        assert!(merged(&["one", "broken"].map(place)).is_err(), "only a missing file is skipped");
    }
}
