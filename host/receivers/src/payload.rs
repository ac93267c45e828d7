//! What a request says, by the type of its sender.
//!
//! Only the fields that name an event or a repository are read, and all are optional but the event: senders of many versions are in use. Events
//! that read or delete content are ignored, whatever the Receiver asks for: a poll is a read, which some registries report again.

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_api::ReceiverType;
use http::HeaderMap;
use serde::Deserialize;

use crate::Repository;

/// The most repositories that are compared. A request that names more concerns all sources of the Receiver.
pub const MOST_REPOSITORIES: usize = 64;

/// What an authentic request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// An event that wakes nothing.
    Nothing,
    /// Something that it does not name, or too much to name.
    Anything,
    /// These repositories.
    Repositories(BTreeSet<Repository>),
}

impl Named {
    /// Whether the request concerns a source with this repository; `None` if the repository of the source has no name.
    pub fn concerns(&self, repository: Option<&Repository>) -> bool {
        match self {
            Self::Nothing => false,
            Self::Anything => true,
            Self::Repositories(named) => repository.is_some_and(|repository| named.contains(repository)),
        }
    }

    fn of(repositories: impl IntoIterator<Item = Option<Repository>>) -> Self {
        let mut named = BTreeSet::new();
        for repository in repositories.into_iter().flatten() {
            named.insert(repository);
            // One repository may be mentioned any number of times.
            if named.len() > MOST_REPOSITORIES {
                return Self::Anything;
            }
        }
        if named.is_empty() { Self::Anything } else { Self::Repositories(named) }
    }
}

/// A body that is not what the type of the Receiver sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body is not the JSON that the sender's type of Receiver has")]
pub struct Malformed;

/// Reads a request. `events` are the only events that count; none means all.
///
/// # Errors
/// The body is not what this type sends.
pub fn read(kind: ReceiverType, headers: &HeaderMap, body: &[u8], events: &[String]) -> Result<Named, Malformed> {
    let counts = |event: &str| events.is_empty() || events.iter().any(|wanted| wanted == event);
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    match kind {
        ReceiverType::GenericHmac | ReceiverType::Oidc => Ok(generic(body)),
        ReceiverType::GooglePubsub => {
            let Push { message } = parse(body)?;
            Ok(pubsub(message, events))
        }
        ReceiverType::Github => match header("x-github-event") {
            Some("ping") => Ok(Named::Nothing),
            Some(event) if counts(event) => parse(body).map(github),
            _ => Ok(Named::Nothing),
        },
        ReceiverType::Gitea | ReceiverType::Forgejo => {
            let event = header("x-forgejo-event").filter(|_| kind == ReceiverType::Forgejo);
            match event.or_else(|| header("x-gitea-event")) {
                Some(event) if counts(event) => parse(body).map(gitea),
                _ => Ok(Named::Nothing),
            }
        }
        ReceiverType::Gitlab => {
            let payload: Gitlab = parse(body)?;
            let kind = payload.object_kind.as_deref().or(payload.event_name.as_deref());
            let named = [header("x-gitlab-event"), kind];
            let any = named.into_iter().flatten().any(counts);
            Ok(if any { gitlab(payload) } else { Named::Nothing })
        }
        ReceiverType::Dockerhub => parse(body).map(dockerhub),
        ReceiverType::Quay => parse(body).map(quay),
        ReceiverType::Harbor => {
            let payload: Harbor = parse(body)?;
            let is_counted = adds(&payload.kind) && counts(&payload.kind);
            Ok(if is_counted { harbor(payload) } else { Named::Nothing })
        }
        ReceiverType::Distribution => {
            let Distribution { events } = parse(body)?;
            let events: Vec<_> = events.into_iter().filter(|it| adds(&it.action) && counts(&it.action)).collect();
            if events.is_empty() {
                return Ok(Named::Nothing);
            }
            Ok(Named::of(events.iter().map(|event| Repository::of_path(event.target.repository.as_deref()?))))
        }
    }
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Malformed> {
    serde_json::from_slice(body).map_err(|_| Malformed)
}

/// Whether an event of a registry may add content.
fn adds(event: &str) -> bool {
    let event = event.to_ascii_lowercase();
    !["pull", "delete", "mount"].iter().any(|word| event.starts_with(word))
}

fn generic(body: &[u8]) -> Named {
    #[derive(Deserialize)]
    struct Generic {
        repository: Option<String>,
        image: Option<String>,
    }
    let Ok(Generic { repository, image }) = parse(body) else { return Named::Anything };
    Named::of([repository, image].map(|text| Repository::of_text(&text?)))
}

/// Where git servers name a repository.
#[derive(Default, Deserialize)]
#[serde(default)]
struct GitRepository {
    clone_url: Option<String>,
    ssh_url: Option<String>,
    full_name: Option<String>,
}

impl GitRepository {
    fn named(self) -> [Option<Repository>; 3] {
        let url = |url: Option<String>| Repository::of_url(&url?);
        [url(self.clone_url), url(self.ssh_url), self.full_name.and_then(|path| Repository::of_path(&path))]
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Github {
    repository: Option<GitRepository>,
    /// Of the events `package` and `registry_package`.
    package: Option<Package>,
    registry_package: Option<Package>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Package {
    package_version: Option<PackageVersion>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PackageVersion {
    package_url: Option<String>,
}

fn github(payload: Github) -> Named {
    let packages = [payload.package, payload.registry_package];
    let images = packages.map(|package| package?.package_version?.package_url);
    if images.iter().any(Option::is_some) {
        return Named::of(images.map(|image| Repository::of_image(&image?)));
    }
    Named::of(payload.repository.unwrap_or_default().named())
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Gitea {
    repository: Option<GitRepository>,
}

fn gitea(payload: Gitea) -> Named {
    Named::of(payload.repository.unwrap_or_default().named())
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Gitlab {
    object_kind: Option<String>,
    event_name: Option<String>,
    project: Option<Project>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Project {
    git_http_url: Option<String>,
    git_ssh_url: Option<String>,
    path_with_namespace: Option<String>,
}

fn gitlab(payload: Gitlab) -> Named {
    let project = payload.project.unwrap_or_default();
    let url = |url: Option<String>| Repository::of_url(&url?);
    Named::of([
        url(project.git_http_url),
        url(project.git_ssh_url),
        project.path_with_namespace.and_then(|path| Repository::of_path(&path)),
    ])
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Dockerhub {
    repository: Option<HubRepository>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HubRepository {
    repo_name: Option<String>,
}

fn dockerhub(payload: Dockerhub) -> Named {
    Named::of([payload.repository.and_then(|repository| Repository::of_image(&repository.repo_name?))])
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Quay {
    docker_url: Option<String>,
}

fn quay(payload: Quay) -> Named {
    Named::of([payload.docker_url.and_then(|url| Repository::of_image(&url))])
}

#[derive(Deserialize)]
struct Harbor {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    event_data: HarborData,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HarborData {
    repository: Option<HarborRepository>,
    resources: Vec<HarborResource>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HarborRepository {
    repo_full_name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HarborResource {
    resource_url: Option<String>,
}

fn harbor(payload: Harbor) -> Named {
    let HarborData { repository, resources } = payload.event_data;
    let repository = repository.and_then(|repository| Repository::of_path(&repository.repo_full_name?));
    let resources = resources.into_iter().map(|resource| Repository::of_image(&resource.resource_url?));
    Named::of([repository].into_iter().chain(resources))
}

#[derive(Deserialize)]
struct Distribution {
    events: Vec<DistributionEvent>,
}

#[derive(Deserialize)]
struct DistributionEvent {
    action: String,
    #[serde(default)]
    target: Target,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Target {
    repository: Option<String>,
}

/// What a push subscription of Pub/Sub sends.
#[derive(Deserialize)]
struct Push {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    data: Option<String>,
}

/// The data of a notification of Artifact Registry: images with a digest and with a tag. A topic of users may name a repository or an image.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ArtifactRegistry {
    action: Option<String>,
    digest: Option<String>,
    tag: Option<String>,
    image: Option<String>,
    repository: Option<String>,
}

fn pubsub(message: Message, events: &[String]) -> Named {
    let data = message.data.and_then(|data| STANDARD.decode(data).ok());
    let read = data.and_then(|data| parse(&data).ok());
    let ArtifactRegistry { action, digest, tag, image, repository } = read.unwrap_or_default();
    let is_counted = match action.as_deref() {
        Some(action) => adds(action) && (events.is_empty() || events.iter().any(|event| event == action)),
        None => events.is_empty(),
    };
    if !is_counted {
        return Named::Nothing;
    }
    Named::of([digest, tag, image, repository].map(|text| Repository::of_text(&text?)))
}

#[cfg(test)]
mod tests;
