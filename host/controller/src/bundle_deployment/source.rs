//! The first arrow: a source becomes a digest and a verified tree.

use chandler_api::{BundleDeployment, BundleSource, ImageSource, Reason, Revision, source::ConfigMapSource};
use chandler_content::{ContentError, FailureClass, FileSet, ImageAccess, ImageReference, ResolvedImage, Tree};
use chandler_core::{Content as _, Digest};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt as _};

use super::{assessment::Unpacked, revisions};
use crate::{
    ceiling::User,
    context::Context,
    images,
    problem::{Problem, api_message, content},
};

/// The content of a BundleDeployment, from the cache where it is there.
pub(crate) async fn unpack(deployment: &BundleDeployment, context: &Context) -> Result<(Tree, Unpacked), Problem> {
    let source = &deployment.spec.source;
    let (tree, resolved_source) = match (&source.image, &source.config_maps) {
        (Some(image), None) if source.kind == BundleSource::IMAGE => unpack_image(deployment, image, context).await?,
        (None, Some(maps)) if source.kind == BundleSource::CONFIG_MAPS => {
            (unpack_config_maps(deployment, maps, context).await?, source.clone())
        }
        _ if matches!(source.kind.as_str(), BundleSource::GIT | BundleSource::HTTP) => {
            let message =
                format!("source type {:?} is not supported by this version: use image or configMaps", source.kind);
            return Err(Problem::terminal(Reason::UnpackFailed, message));
        }
        _ => {
            let message = format!("source type {:?} not supported", source.kind);
            return Err(Problem::terminal(Reason::UnpackFailed, message));
        }
    };
    let content_digest = tree.digest().clone();
    Ok((tree, Unpacked { resolved_source, content_digest }))
}

/// The content of a revision: from the cache, else from where it was.
pub(crate) async fn unpack_again(
    deployment: &BundleDeployment,
    revision: &Revision,
    context: &Context,
) -> Result<Tree, Problem> {
    let digest = revision.content_digest.parse::<Digest>().ok();
    if let Some(tree) = digest.and_then(|digest| context.images.store().tree(&digest)) {
        return Ok(tree);
    }
    let tree = match (&revision.source.image, &revision.source.config_maps) {
        (Some(image), None) => unpack_pinned(deployment, image, context).await?,
        (None, Some(maps)) => unpack_config_maps(deployment, maps, context).await?,
        _ => {
            let message = format!("source type {:?} not supported", revision.source.kind);
            return Err(Problem::terminal(Reason::RevisionUnavailable, message));
        }
    };
    if tree.digest().as_str() == revision.content_digest {
        return Ok(tree);
    }
    let message = format!("its content was {}; its source holds {} now", revision.content_digest, tree.digest());
    Err(Problem::terminal(Reason::RevisionUnavailable, message))
}

/// An image that is named by its digest.
async fn unpack_pinned(
    deployment: &BundleDeployment,
    source: &ImageSource,
    context: &Context,
) -> Result<Tree, Problem> {
    let failed = |error: ContentError| content(Reason::RevisionUnavailable, &error);
    let reference: ImageReference = source.reference.parse().map_err(|error| failed(ContentError::Reference(error)))?;
    let Some(digest) = reference.digest().cloned() else {
        let message = format!("its image {reference} is not named by a digest");
        return Err(Problem::terminal(Reason::RevisionUnavailable, message));
    };
    // A revision keeps no certificates.
    let now = deployment.spec.source.image.as_ref();
    let certificate_data = now.and_then(|now| now.certificate_data.clone());
    let source = ImageSource { certificate_data, ..source.clone() };
    let access = image_access(&deployment.name_any(), &source, &reference, context).await?;
    context.images.fetch(&ResolvedImage::new(reference, digest), &access).await.map_err(failed)
}

async fn unpack_image(
    deployment: &BundleDeployment,
    source: &ImageSource,
    context: &Context,
) -> Result<(Tree, BundleSource), Problem> {
    let failed = |error: ContentError| content(Reason::UnpackFailed, &error);
    let reference: ImageReference = source.reference.parse().map_err(|error| failed(ContentError::Reference(error)))?;
    let access = image_access(&deployment.name_any(), source, &reference, context).await?;
    let resolved = resolve(deployment, source, &reference, &access, context).await.map_err(failed)?;
    let tree = context.images.fetch(&resolved, &access).await.map_err(failed)?;
    let pinned = ImageSource { reference: resolved.pinned().to_string(), ..source.clone() };
    Ok((tree, BundleSource::image(pinned)))
}

/// What is needed to pull an image for the BundleDeployment of this name.
pub(crate) async fn image_access(
    deployment: &str,
    source: &ImageSource,
    reference: &ImageReference,
    context: &Context,
) -> Result<ImageAccess, Problem> {
    let credentials = match &source.pull_secret {
        Some(secret) => images::credentials(context, User::BundleDeployment(deployment), secret, reference)
            .await
            .map_err(|message| Problem::transient(Reason::UnpackFailed, message))?,
        None => None,
    };
    Ok(ImageAccess {
        credentials,
        certificate_authority: source.certificate_data.clone().map(String::into_bytes),
        insecure_skip_tls_verify: source.insecure_skip_tls_verify,
    })
}

/// What digest a reference stands for. A tag is asked for when the source changes, and then once in an interval by `polls`;
/// while its registry is away, the digest that is in use stays in use.
async fn resolve(
    deployment: &BundleDeployment,
    source: &ImageSource,
    reference: &ImageReference,
    access: &ImageAccess,
    context: &Context,
) -> Result<ResolvedImage, ContentError> {
    if let Some(digest) = reference.digest() {
        return Ok(ResolvedImage::new(reference.clone(), digest.clone()));
    }
    let name = deployment.name_any();
    let resolutions = &context.memory.resolutions;
    if revisions::request(deployment).is_none()
        && let Some(resolved) = resolutions.recent(&name, source, context.options.image_poll_interval)
    {
        return Ok(resolved);
    }
    let resolved = match context.images.resolve(reference, access).await {
        Ok(resolved) => resolved,
        Err(error) if error.class() == FailureClass::Transient => {
            let in_use = in_use(deployment, reference).ok_or(error)?;
            tracing::warn!(deployment = %name, image = %reference, "the registry is away; the digest in use stays");
            return Ok(in_use);
        }
        Err(error) => return Err(error),
    };
    resolutions.remember(name, source.clone(), resolved.clone());
    Ok(resolved)
}

/// The digest that the current revision was made from, if it is one of this very specification.
fn in_use(deployment: &BundleDeployment, reference: &ImageReference) -> Option<ResolvedImage> {
    let current = deployment.status.as_ref()?.history.last()?;
    if current.generation != deployment.metadata.generation {
        return None;
    }
    let pinned: ImageReference = current.source.image.as_ref()?.reference.parse().ok()?;
    let same = pinned.registry() == reference.registry() && pinned.repository() == reference.repository();
    let digest = pinned.digest().filter(|_| same)?.clone();
    Some(ResolvedImage::new(reference.clone(), digest))
}

async fn unpack_config_maps(
    deployment: &BundleDeployment,
    maps: &[ConfigMapSource],
    context: &Context,
) -> Result<Tree, Problem> {
    let deployment = deployment.name_any();
    let user = User::BundleDeployment(&deployment);
    let namespace = &context.options.system_namespace;
    let api: Api<ConfigMap> = Api::namespaced(context.client.clone(), namespace);
    let mut sets = Vec::new();
    for source in maps {
        let name = &source.config_map.name;
        let failed = |cause: &str| {
            Problem::transient(Reason::UnpackFailed, format!("get configmap {namespace}/{name}: {cause}"))
        };
        let map = api.get_opt(name).await.map_err(|error| failed(&api_message(&error)))?;
        // Whoever may not use it is not told whether it is there.
        let Some(map) = map.filter(|map| user.may_name(&map.metadata, false)) else {
            let annotation = user.annotation();
            let cause = format!("configmaps {name:?} not found, or its annotation {annotation} does not name {user}");
            return Err(failed(&cause));
        };
        if map.immutable != Some(true) {
            let message = format!("configmap {name:?} is not immutable: set immutable: true on {namespace}/{name}");
            return Err(Problem::transient(Reason::UnpackFailed, message));
        }
        let text = map.data.unwrap_or_default().into_iter().map(|(key, text)| (key, text.into_bytes()));
        let binary = map.binary_data.unwrap_or_default().into_iter().map(|(key, bytes)| (key, bytes.0));
        let directory = source.path.clone().unwrap_or_default();
        sets.push(FileSet { source: name.clone(), directory, files: text.chain(binary).collect() });
    }
    let store = context.images.store();
    store.import_files(sets).await.map_err(|error| content(Reason::UnpackFailed, &error))
}
