//! Creates the namespace to install into.

use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};

use crate::CommandError;

/// The field manager of created namespaces.
const FIELD_MANAGER: &str = "chandler-install";
/// The label with the Pod Security level that a namespace enforces.
const ENFORCE: &str = "pod-security.kubernetes.io/enforce";

/// A level of the Pod Security Standards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum PodSecurity {
    /// No restriction
    Privileged,
    /// Known privilege escalations are refused
    Baseline,
    /// Hardened Pods only
    Restricted,
}

impl PodSecurity {
    /// The value of the label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }
}

/// The namespace to create.
pub fn namespace(name: &str, pod_security: Option<PodSecurity>) -> Namespace {
    let labels = pod_security.map(|level| [(ENFORCE.to_owned(), level.as_str().to_owned())].into());
    Namespace {
        metadata: ObjectMeta { name: Some(name.to_owned()), labels, ..ObjectMeta::default() },
        ..Namespace::default()
    }
}

/// Creates the namespace unless it exists. Returns whether it was created.
pub async fn create(client: &Client, namespace: &Namespace) -> Result<bool, CommandError> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let parameters = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    match namespaces.create(&parameters, namespace).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(false),
        Err(error) => {
            let name = namespace.metadata.name.as_deref().unwrap_or_default();
            Err(CommandError::failed(format!("failed to create namespace {name}")).because(&error))
        }
    }
}
