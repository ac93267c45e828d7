//! Finds releases of Helm in a cluster, and reads them. Labels select Secrets, and their names say what they have: of the rest, only the newest revision of a
//! release is read.

use std::collections::BTreeMap;

use chandler_content::{FailureClass, FileSet, Store, Tree};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, ResourceExt as _, api::ListParams};

use super::cluster::pages;
use crate::{
    CommandError,
    migrate::{
        ForeignObject,
        helm::{self, HelmRelease, ReleaseError, RevisionName},
    },
    view::text::one_line,
};

/// The most revisions of one release: the BundleDeployment lists them while it is migrated.
const REVISIONS: usize = 500;

/// A release, by the names of its Secrets.
#[derive(Clone, Debug)]
pub struct FoundRelease {
    /// The namespace.
    pub namespace: String,
    /// The newest revision.
    pub newest: RevisionName,
    /// The Secrets of all revisions, the oldest first.
    pub secrets: Vec<ForeignObject>,
}

impl FoundRelease {
    /// The name.
    pub fn name(&self) -> &str {
        &self.newest.release
    }

    /// Whether a user means this release by `NAME` or `NAMESPACE/NAME`.
    pub fn is_named(&self, by: &str) -> bool {
        is_named(by, &self.namespace, self.name())
    }
}

/// Whether a user means a release by `NAME` or `NAMESPACE/NAME`.
pub fn is_named(by: &str, namespace: &str, name: &str) -> bool {
    by.split_once('/').map_or(by == name, |(of, wanted)| of == namespace && wanted == name)
}

/// The releases that these arguments name, `NAME` or `NAMESPACE/NAME`, or all.
///
/// # Errors
/// The Secrets cannot be listed.
pub async fn find(client: &Client, named: &[String]) -> Result<Vec<FoundRelease>, CommandError> {
    let failed = |error: kube::Error| {
        CommandError::failed("failed to list the Secrets of Helm")
            .because(&error)
            .hint("name the release with its namespace, NAMESPACE/NAME: then only the Secrets there are read")
    };
    let mut secrets = Vec::new();
    match named {
        [] => secrets.extend(list(&Api::all(client.clone()), None).await.map_err(failed)?),
        named => {
            for by in named {
                let (api, name) = match by.split_once('/') {
                    Some((namespace, name)) => (Api::namespaced(client.clone(), namespace), name),
                    None => (Api::all(client.clone()), by.as_str()),
                };
                secrets.extend(list(&api, Some(name)).await.map_err(failed)?);
            }
        }
    }
    let mut releases: BTreeMap<(String, String), BTreeMap<u64, ForeignObject>> = BTreeMap::new();
    for (revision, secret) in secrets {
        let namespace = secret.namespace.clone().unwrap_or_default();
        releases.entry((namespace, revision.release)).or_default().insert(revision.revision, secret);
    }
    let found = releases.into_iter().filter_map(|((namespace, release), revisions)| {
        let revision = *revisions.last_key_value()?.0;
        let found = FoundRelease {
            namespace,
            newest: RevisionName { release, revision },
            secrets: revisions.into_values().collect(),
        };
        (named.is_empty() || named.iter().any(|by| found.is_named(by))).then_some(found)
    });
    Ok(found.collect())
}

/// The Secrets of Helm, of one release or of all, without their values.
async fn list(api: &Api<Secret>, name: Option<&str>) -> kube::Result<Vec<(RevisionName, ForeignObject)>> {
    let name = name.map(|name| format!(",name={name}")).unwrap_or_default();
    let selected = ListParams::default().labels(&format!("owner=helm{name}"));
    let all = pages(selected, async |page: &ListParams| api.list_metadata(page).await).await?;
    let named = all.into_iter().filter_map(|secret| {
        let revision = RevisionName::of_secret(&secret.name_any())?;
        let object = ForeignObject {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            namespace: secret.namespace(),
            name: secret.name_any(),
            uid: secret.uid()?,
        };
        Some((revision, object))
    });
    Ok(named.collect())
}

/// Reads the newest revision of a release, and checks that it is the one that its Secret names, and deployed.
///
/// # Errors
/// The Secret cannot be read; the inner error is about the release in it.
pub async fn read(client: &Client, found: &FoundRelease) -> Result<Result<HelmRelease, ReleaseError>, CommandError> {
    if found.secrets.len() > REVISIONS {
        return Err(CommandError::refused(format!(
            "the release {}/{} has more than {REVISIONS} revisions; nothing was changed",
            found.namespace,
            found.name()
        ))
        .hint("delete the Secrets of old revisions; `--history-max` of Helm limits their number"));
    }
    let Some(newest) = found.secrets.last() else { return Ok(Err(malformed("it has no Secret"))) };
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &found.namespace);
    let secret = secrets.get(&newest.name).await;
    let secret = secret.map_err(|error| {
        CommandError::failed(format!("failed to read Secret {}/{}", found.namespace, newest.name)).because(&error)
    })?;
    if secret.type_.as_deref() != Some(helm::SECRET_TYPE) || secret.uid().as_deref() != Some(&newest.uid) {
        return Ok(Err(malformed(&format!("its Secret does not have the type {}", helm::SECRET_TYPE))));
    }
    let value = secret.data.as_ref().and_then(|data| data.get(helm::KEY));
    let Some(value) = value else { return Ok(Err(malformed("its Secret has no key `release`"))) };
    let checked = helm::decode(&value.0).and_then(|release| {
        release.check(&found.namespace, &found.newest)?;
        Ok(release)
    });
    Ok(checked)
}

fn malformed(what: &str) -> ReleaseError {
    ReleaseError::Malformed(what.to_owned())
}

/// The chart of a release as the files of a bundle, in the store.
///
/// # Errors
/// The release lacks a part of its chart, or the files exceed the limits of a bundle; the inner error is about the release.
pub async fn chart(release: &HelmRelease, store: &Store) -> Result<Result<Tree, ReleaseError>, CommandError> {
    let files = match release.files() {
        Ok(files) => files,
        Err(error) => return Ok(Err(error)),
    };
    let mut sets: BTreeMap<String, BTreeMap<String, Vec<u8>>> = BTreeMap::new();
    for (path, bytes) in files {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", &path));
        sets.entry(directory.to_owned()).or_default().insert(name.to_owned(), bytes);
    }
    let source = "the release".to_owned();
    let sets = sets.into_iter().map(|(directory, files)| FileSet { source: source.clone(), directory, files });
    match store.import_files(sets.collect()).await {
        Ok(tree) => Ok(Ok(tree)),
        Err(error) if error.class() == FailureClass::Permanent => {
            Ok(Err(ReleaseError::Chart(format!("cannot be unpacked: {}", one_line(&error.to_string())))))
        }
        Err(error) => Err(CommandError::failed("failed to unpack the chart of a release").because(&error)),
    }
}
