//! Reads a kubeconfig, and says which cluster it leads to.

use std::{
    env,
    error::Error as _,
    fmt,
    path::{Path, PathBuf},
};

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
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.server.trim_end_matches('/'))?;
        match &self.context {
            Some((context, file)) => write!(f, " (context {context:?} in {file})"),
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
    let read = || match path {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let config = if path.is_some() || context.is_some() {
        let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
        match read() {
            Ok(kubeconfig) => Config::from_custom_kubeconfig(kubeconfig, &options).await,
            Err(error) => Err(error),
        }
        .map_err(|error| failed(&error, path, read().ok().as_ref()))?
    } else {
        Config::infer().await.map_err(|error| match error.source().and_then(|source| source.downcast_ref()) {
            Some(cause) => failed(cause, None, read().ok().as_ref()),
            None => CommandError::failed("failed to read the kubeconfig").because(&error).hint(NO_KUBECONFIG),
        })?
    };
    let current = context.map(str::to_owned).or_else(|| read().ok()?.current_context);
    let place =
        Place { server: config.cluster_url.to_string(), context: current.map(|context| (context, shown(path))) };
    Ok((config, place))
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

/// The files of the environment.
fn inferred() -> Vec<PathBuf> {
    match env::var_os("KUBECONFIG").filter(|value| !value.is_empty()) {
        Some(value) => env::split_paths(&value).filter(|path| !path.as_os_str().is_empty()).collect(),
        None => env::home_dir().map(|home| home.join(".kube/config")).into_iter().collect(),
    }
}

fn shown(path: Option<&Path>) -> String {
    let files = path.map_or_else(inferred, |path| vec![path.to_owned()]);
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
