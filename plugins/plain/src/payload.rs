//! Release images of OpenShift: trees with `release-manifests/`.
//!
//! The cluster-version operator reads two directories of its release image (`LoadUpdate` in `pkg/payload/payload.go`): `manifests/`, which
//! comes with its own image and has templates, and `release-manifests/`, into which `oc adm release new` copies the manifests of all
//! components. It refuses an image without `release-manifests/release-metadata` and `release-manifests/image-references`, or whose two files
//! name different versions.

use chandler_sdk::{Content, Diagnostic, Location, documents::read_documents, yaml::Node};

use crate::{
    config::Config,
    references::{self, References},
    versions::semantic,
};

/// The directory with the manifests of all components.
pub(crate) const DIRECTORY: &str = "release-manifests/";
/// The file with the version of the release.
pub(crate) const METADATA: &str = "release-metadata";
/// The kind of that file.
const METADATA_KIND: &str = "cincinnati-metadata-v0";

/// The help about an incomplete release image.
const REPAIR: &str =
    "`oc adm release new` writes release-metadata and image-references; copy release-manifests/ as a whole";

/// Whether the content is a release image.
pub(crate) fn is_payload(content: &dyn Content) -> bool {
    !content.page(DIRECTORY, None, 1).is_empty()
}

/// The error for a release image whose configuration names no cluster. `manifests/` alone is not the release, and `release-manifests/` has several
/// versions of an object for different clusters, so that neither can be installed as it is.
pub(crate) fn not_configured() -> Diagnostic {
    let message =
        format!("the bundle is a release image of OpenShift (it has {DIRECTORY}), which is installed for a cluster");
    let finding = Diagnostic::error("ReleaseNotConfigured", message).at(Location::CONFIG).pointer("/release");
    finding.help("set release in the configuration: {} is a cluster with default settings")
}

/// The warning about an image of the release that nothing can use.
pub(crate) fn release_image_ignored() -> Diagnostic {
    let message =
        format!("releaseImage has no effect: the bundle has no {DIRECTORY}, so {} has no templates", crate::MANIFESTS);
    let finding = Diagnostic::warning("ReleaseImageIgnored", message).at(Location::CONFIG);
    finding.pointer("/release/releaseImage").help("remove it, or install the whole release image")
}

/// The version in `release-metadata`, which `image-references` must name, too.
pub(crate) fn version(content: &dyn Content, references: &References, errors: &mut Vec<Diagnostic>) -> Option<String> {
    let path = format!("{DIRECTORY}{METADATA}");
    let metadata = match metadata(content, &path) {
        Ok(metadata) => Some(metadata),
        Err(finding) => {
            errors.push(finding);
            None
        }
    };
    let Some(stream) = &references.stream else {
        let unreadable = references.unreadable.clone().map(|finding| finding.help(REPAIR));
        let finding = unreadable.unwrap_or_else(|| {
            invalid("the release image has no ImageStream image-references")
                .at(format!("{DIRECTORY}{}", references::FILE))
        });
        errors.push(finding);
        return None;
    };
    let (version, place) = metadata?;
    if stream.name.as_deref() != Some(version.as_str()) {
        let named = stream.name.as_deref().unwrap_or_default();
        let message = format!("the version {version:?} differs from the name of image-references, {named:?}");
        errors.push(Diagnostic { location: Some(place), ..invalid(&message) });
        return None;
    }
    semantic(&version).map(str::to_owned)
}

/// The version, with its location.
#[cfg_attr(
    not(target_arch = "wasm32"),
    expect(clippy::result_large_err, reason = "a finding is made once for a bad file")
)]
fn metadata(content: &dyn Content, path: &str) -> Result<(String, Location), Diagnostic> {
    if !content.exists(path) {
        return Err(invalid("the release image has no file release-metadata").at(path));
    }
    let documents = read_documents(content, path).map_err(|finding| finding.help(REPAIR))?;
    let [root] = documents.as_slice() else {
        return Err(invalid("release-metadata is not one JSON object").at(path));
    };
    let text = |key: &str| root.get(key).and_then(Node::as_str).unwrap_or_default();
    let kind = text("kind");
    if kind != METADATA_KIND {
        let message = format!("release-metadata has the kind {kind:?} instead of {METADATA_KIND:?}");
        return Err(invalid(&message).at(path).within(root, "/kind"));
    }
    let version = text("version");
    if semantic(version).is_none() {
        let message = format!("the version of release-metadata is not a semantic version: {version:?}");
        return Err(invalid(&message).at(path).within(root, "/version"));
    }
    Ok((version.to_owned(), Location::of(path, root.nearest("/version"))))
}

fn invalid(message: &str) -> Diagnostic {
    Diagnostic::error("InvalidReleaseMetadata", message).help(REPAIR)
}

/// Uses the version of the release image. Another one in the configuration is an error: the manifests contain the version of the image already, and
/// their selection would be for another release.
pub(crate) fn adopt_version(config: &mut Config, version: String) -> Option<Diagnostic> {
    match &config.versions.release {
        Some(configured) if *configured != version => {
            let message = format!("releaseVersion is {configured:?}, but the release image is {version:?}");
            let finding = Diagnostic::error("ReleaseVersionConflict", message).at(Location::CONFIG);
            Some(finding.pointer("/releaseVersion").help("remove releaseVersion, or install the image of that release"))
        }
        _ => {
            config.versions.release = Some(version);
            None
        }
    }
}
