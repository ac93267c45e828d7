//! The ProvisionerClasses of the cluster: their components, pulled with the user's credentials and run on this machine.

use chandler_api::{
    BundleDeployment, Component, ConditionType, Outcome, ProvisionerClass, ProvisionerInUse, Reason, Revision,
    find_condition,
};
use chandler_builtin::Provisioners;
use chandler_content::{ImageReference, ResolvedImage};
use chandler_core::Digest;
use chandler_engine::{EngineOptions, Provisioner};
use kube::{Api, Client};

use super::{
    cluster::{self, ConnectionOptions},
    provisioner::{self, ChosenProvisioner},
    registry_settings::RegistryOptions,
    source,
};
use crate::{
    CommandError,
    view::{invocation::quoted, revisions, summary, text::one_line},
};

/// Where classes that are not built in come from.
#[derive(Clone, Copy)]
pub enum ClusterClasses<'a> {
    /// A cluster that the command is connected to.
    Of(&'a Client),
    /// A cluster that the command connects to only for them.
    At(&'a ConnectionOptions),
}

impl ClusterClasses<'_> {
    /// The class of this name.
    ///
    /// # Errors
    /// The cluster cannot be reached, has no such class, or the class has no component.
    pub async fn get(&self, name: &str) -> Result<ProvisionerClass, CommandError> {
        let client = match self {
            Self::Of(client) => (*client).clone(),
            Self::At(connection) => match cluster::client(connection).await {
                Ok(client) => client,
                Err(error) if connection.kubeconfig.is_some() || std::env::var_os("KUBECONFIG").is_some() => {
                    return Err(
                        error.hint(format!("the cluster may have the class {name:?}; {}", provisioner::classes()))
                    );
                }
                Err(_) => {
                    return Err(CommandError::usage(format!(
                        "no provisioner class {name:?} is built in, and no cluster to look for it"
                    ))
                    .hint("a ProvisionerClass needs its cluster: --kubeconfig FILE, or $KUBECONFIG")
                    .hint(provisioner::classes()));
                }
            },
        };
        read(&client, name).await
    }
}

/// Reads a class.
pub async fn read(client: &Client, name: &str) -> Result<ProvisionerClass, CommandError> {
    let classes: Api<ProvisionerClass> = Api::all(client.clone());
    let failed = |error: kube::Error| {
        CommandError::failed(format!("failed to read ProvisionerClass {name}"))
            .because(&error)
            .hint("`kubectl auth can-i get provisionerclasses.chandler.dev` shows whether you may")
    };
    classes.get_opt(name).await.map_err(failed)?.ok_or_else(|| {
        CommandError::usage(format!("no provisioner class {name:?}"))
            .hint(format!("`kubectl get provisionerclasses` lists the cluster's classes; {}", provisioner::classes()))
    })
}

/// Loads the component that a class has now.
pub async fn load(
    class: &ProvisionerClass,
    provisioners: &Provisioners,
    cache: &std::path::Path,
    registry: &RegistryOptions,
) -> Result<ChosenProvisioner, CommandError> {
    let name = class.metadata.name.clone().unwrap_or_default();
    let component = component(class, &name)?;
    let failed =
        |what: &str| CommandError::failed(format!("failed to {what} the component of ProvisionerClass {name}"));
    let reference: ImageReference = component.image.parse().map_err(|error| failed("find").because(&error))?;
    let digest = reference.digest().cloned().ok_or_else(|| failed("find").hint("its status names no digest"))?;
    let access = source::access(&reference, registry).await?;
    let images = source::images(source::store(cache).await?, registry)?;
    let image = ResolvedImage::new(reference, digest);
    let wasm = images.fetch_component(&image, &access, EngineOptions::default().component_bytes).await;
    let wasm = wasm.map_err(|error| {
        failed("pull").because(&error).hint(
            "it is pulled with your credentials (`docker login`, --registry-config), and not with the pull secret of the class; \
             --provisioner FILE.wasm takes a file",
        )
    })?;
    if Digest::of(&wasm).as_str() != component.digest {
        return Err(failed("verify").hint("its artifact has another component than the status of the class says"));
    }
    let loaded = provisioners.engine().load(&wasm).await.map_err(|error| failed("load").because(&error))?;
    let config = class.spec.config.clone().unwrap_or_default();
    Ok(ChosenProvisioner { name, format: None, provisioner: loaded, defaults: config, is_builtin: false })
}

/// Loads the component that rendered a release, by the digest of its artifact.
///
/// # Errors
/// The history does not name its artifact, or it cannot be pulled or loaded.
pub async fn load_earlier(
    installed: &ProvisionerInUse,
    provisioners: &Provisioners,
    cache: &std::path::Path,
    registry: &RegistryOptions,
) -> Result<Provisioner, CommandError> {
    let shown = one_line(&installed.digest);
    let failed =
        |what: &str| CommandError::failed(format!("failed to {what} the component {shown} of the installed release"));
    let image =
        installed.image.as_deref().ok_or_else(|| failed("find").hint("its history does not name its artifact"))?;
    let reference: ImageReference = image.parse().map_err(|error| failed("find").because(&error))?;
    let digest = reference.digest().cloned().ok_or_else(|| failed("find").hint("its artifact has no digest"))?;
    let access = source::access(&reference, registry).await?;
    let images = source::images(source::store(cache).await?, registry)?;
    let resolved = ResolvedImage::new(reference, digest);
    let wasm = images.fetch_component(&resolved, &access, EngineOptions::default().component_bytes).await;
    let wasm = wasm.map_err(|error| failed("pull").because(&error))?;
    if Digest::of(&wasm).as_str() != installed.digest {
        return Err(failed("verify").hint("its artifact has another component than the history says"));
    }
    provisioners.engine().load(&wasm).await.map_err(|error| failed("load").because(&error))
}

fn component<'a>(class: &'a ProvisionerClass, name: &str) -> Result<&'a Component, CommandError> {
    let status = class.status.as_ref();
    status.and_then(|status| status.component.as_ref()).ok_or_else(|| {
        let ready = status.and_then(|status| find_condition(&status.conditions, ConditionType::Ready));
        let why =
            ready.map_or_else(|| "the controller has not loaded it yet".to_owned(), |ready| one_line(&ready.message));
        CommandError::failed(format!("ProvisionerClass {name} has no component: {why}"))
            .hint(format!("`chandler status provisionerclass/{}` shows its conditions, and what helps", quoted(name)))
    })
}

/// The component of a class that is ready.
///
/// # Errors
/// The class is not ready, or its newest component is not.
pub fn ready_component(class: &ProvisionerClass) -> Result<String, CommandError> {
    let name = class.metadata.name.clone().unwrap_or_default();
    let conditions = class.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let ready = find_condition(conditions, ConditionType::Ready);
    match ready.filter(|ready| ready.reason != Reason::ProvisionerReady.as_str()) {
        Some(ready) => Err(CommandError::failed(format!("ProvisionerClass {name}: {}", one_line(&ready.message)))
            .hint(format!(
                "`chandler status provisionerclass/{}` shows its conditions, and what helps",
                quoted(&name)
            ))),
        None => component(class, &name).map(|Component { version, digest, .. }| {
            one_line(&[version.as_deref().unwrap_or_default(), digest].join(" ")).trim().to_owned()
        }),
    }
}

/// A note for users before a rollback to a revision: whether its class still has the revision's component.
///
/// # Errors
/// Its component cannot be found any more, so that the rollback would be refused.
pub async fn rollback_note(
    client: &Client,
    deployment: &BundleDeployment,
    revision: &Revision,
) -> Result<Option<String>, CommandError> {
    let (history, provisioner) = (revisions::history(deployment), &revision.provisioner);
    let succeeded = history.iter().rfind(|other| other.outcome == Outcome::Succeeded);
    let kept = history.last().into_iter().chain(succeeded).any(|other| other.release_digest == revision.release_digest);
    if kept || !provisioner::is_custom(&provisioner.class) {
        return Ok(None);
    }
    let classes: Api<ProvisionerClass> = Api::all(client.clone());
    let class = match classes.get_opt(&provisioner.class).await {
        Ok(class) => class,
        // The controller checks, and refuses before it changes anything.
        Err(error) => {
            tracing::debug!(%error, "the class of the revision cannot be read");
            return Ok(None);
        }
    };
    lost_component(class.as_ref(), revision)
}

fn lost_component(class: Option<&ProvisionerClass>, revision: &Revision) -> Result<Option<String>, CommandError> {
    let (number, provisioner) = (revision.number, &revision.provisioner);
    let rendered =
        format!("revision {number} was rendered by class {}, {}", provisioner.class, summary::component(provisioner));
    let refused = |why: &str| CommandError::failed(format!("{rendered}, {why}; nothing was changed"));
    let Some(class) = class else {
        return Err(refused("and that class does not exist any more").hint("create the ProvisionerClass again"));
    };
    let now = class.status.as_ref().and_then(|status| status.component.as_ref());
    if now.is_some_and(|now| now.digest == provisioner.digest) {
        return Ok(None);
    }
    if provisioner.image.is_none() {
        let why = "and the class has another one now; the record does not name the image of the earlier one";
        return Err(refused(why).hint("set spec.image of the ProvisionerClass to the earlier image"));
    }
    let now = now.map_or_else(|| "none".to_owned(), |now| now.digest.clone());
    Ok(Some(format!(
        "{rendered}; the class has {now} now. The controller takes the earlier component from its cache or fetches it by digest; if it can \
         do neither, it reports RevisionUnavailable and changes nothing"
    )))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn class(digest: &str) -> ProvisionerClass {
        let component = json!({"image": "example.com/helm@sha256:1", "digest": digest, "contractVersion": "0.1.0"});
        serde_json::from_value(json!({
            "apiVersion": "chandler.dev/v1alpha1", "kind": "ProvisionerClass", "metadata": {"name": "helm"},
            "spec": {"image": "example.com/helm:v1"}, "status": {"component": component},
        }))
        .unwrap()
    }

    #[test]
    fn a_component_that_cannot_be_found_again_is_reported_before_anything_is_changed() {
        let revision = |image: Option<&str>| -> Revision {
            let mut provisioner = json!({"class": "helm", "name": "sail", "version": "1.0.0", "digest": "sha256:1"});
            if let Some(image) = image {
                provisioner["image"] = json!(image);
            }
            serde_json::from_value(json!({
                "number": 1, "source": {"type": "image"}, "contentDigest": "", "provisioner": provisioner, "installNamespace": "n",
                "configDigest": "", "releaseDigest": "", "outcome": "Succeeded",
            }))
            .unwrap()
        };
        let found = |class: Option<&ProvisionerClass>, image| match lost_component(class, &revision(image)) {
            Ok(None) => String::new(),
            Ok(Some(note)) => note,
            Err(error) => error.to_string(),
        };
        assert_eq!(found(Some(&class("sha256:1")), None), "");
        insta::assert_snapshot!(
            [
                found(Some(&class("sha256:2")), Some("example.com/helm@sha256:1")),
                found(Some(&class("sha256:2")), None),
                found(None, Some("example.com/helm@sha256:1")),
            ]
            .join("\n"),
            @r"
        revision 1 was rendered by class helm, sail 1.0.0 (sha256:1); the class has sha256:2 now. The controller takes the earlier component from its cache or fetches it by digest; if it can do neither, it reports RevisionUnavailable and changes nothing
        error: revision 1 was rendered by class helm, sail 1.0.0 (sha256:1), and the class has another one now; the record does not name the image of the earlier one; nothing was changed
          hint: set spec.image of the ProvisionerClass to the earlier image
        error: revision 1 was rendered by class helm, sail 1.0.0 (sha256:1), and that class does not exist any more; nothing was changed
          hint: create the ProvisionerClass again
        "
        );
    }
}
