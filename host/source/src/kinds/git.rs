//! A directory of a git repository.

use chandler_api::{BundleSource, GitRef, GitSource};
use chandler_content::{Checkout, ContentError, ImageAccess, Images, RepositoryUrl, Tree, shown_url};
use chandler_git::{CommitId, GitError, Revision};

use crate::{Environment, InvalidSource, SourceError, SourceKind, authorization};

/// A directory of a repository, with the URL and the revision parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct Git {
    spec: GitSource,
    url: RepositoryUrl,
    revision: Revision,
    directory: String,
}

/// A directory of a repository at one commit, and how to reach its server.
#[derive(Clone, Debug, PartialEq)]
pub struct PinnedGit {
    spec: GitSource,
    checkout: Checkout,
}

impl Git {
    /// The source, as it was parsed.
    pub fn to_source(&self) -> BundleSource {
        BundleSource::git(self.spec.clone())
    }

    /// The files that the directory has now, without credentials.
    ///
    /// # Errors
    /// As [`Repositories::resolve`](chandler_content::Repositories::resolve) and
    /// [`Repositories::fetch`](chandler_content::Repositories::fetch).
    pub async fn files(&self, images: &Images) -> Result<Tree, ContentError> {
        let (repositories, access) = (images.repositories(), ImageAccess::default());
        let selected = repositories.resolve(&self.url, &self.revision, &access).await?;
        repositories.fetch(&self.pin(selected.commit).checkout, &access).await
    }

    fn pin(&self, commit: CommitId) -> PinnedGit {
        let (url, directory) = (self.url.clone(), self.directory.clone());
        PinnedGit { spec: self.spec.clone(), checkout: Checkout { url, commit, directory } }
    }
}

/// The revision that a reference names, as git and as people do.
fn revision(reference: &GitRef) -> Result<Revision, InvalidSource> {
    let fields = [&reference.branch, &reference.tag, &reference.semver, &reference.commit];
    if fields.iter().filter(|field| field.is_some()).count() != 1 {
        return Err(InvalidSource::GitRef);
    }
    let name = |field: &'static str, name: &str| {
        // A space or a line end would be another argument of the request.
        let is_usable =
            !name.is_empty() && name.len() <= 255 && !name.chars().any(|c| c.is_whitespace() || c.is_control());
        if is_usable { Ok(name.to_owned()) } else { Err(InvalidSource::GitName { field }) }
    };
    let invalid = |field: &'static str| move |error: GitError| InvalidSource::GitRevision { field, error };
    match reference {
        GitRef { branch: Some(branch), .. } => name("branch", branch).map(Revision::Branch),
        GitRef { tag: Some(tag), .. } => name("tag", tag).map(Revision::Tag),
        GitRef { semver: Some(range), .. } => Revision::range(range).map_err(invalid("semver")),
        GitRef { commit, .. } => {
            commit.as_deref().unwrap_or_default().parse().map(Revision::Commit).map_err(invalid("commit"))
        }
    }
}

/// A directory without `.` and empty parts.
fn directory(text: &str) -> Result<String, InvalidSource> {
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if text.starts_with('/') || parts.contains(&"..") {
        return Err(InvalidSource::GitDirectory);
    }
    Ok(parts.join("/"))
}

/// Settings that a repository over SSH cannot do without, and that it does not have.
fn check_ssh(spec: &GitSource) -> Result<(), InvalidSource> {
    let invalid = |field, problem| Err(InvalidSource::GitSsh { field, problem });
    if spec.auth.as_ref().is_some_and(|auth| auth.insecure_skip_verify) {
        return invalid("auth.insecureSkipVerify", "host keys are always checked over SSH");
    }
    if spec.certificate_data.is_some() {
        return invalid(
            "certificateData",
            "a server has no certificate over SSH; ssh-knownhosts of the Secret has its host key",
        );
    }
    if spec.auth.as_ref().is_none_or(|auth| auth.secret.is_none()) {
        return invalid(
            "auth.secret",
            "must be set over SSH: a Secret with the keys ssh-privatekey and ssh-knownhosts",
        );
    }
    Ok(())
}

impl SourceKind for Git {
    const TYPE: &'static str = BundleSource::GIT;
    type Spec = GitSource;
    type Pin = PinnedGit;
    type Access = ImageAccess;

    fn parse(spec: &GitSource) -> Result<Self, InvalidSource> {
        let url: RepositoryUrl = spec.repository.parse()?;
        if url.is_ssh() {
            check_ssh(spec)?;
        }
        Ok(Self {
            url,
            revision: revision(&spec.reference)?,
            directory: directory(spec.directory.as_deref().unwrap_or_default())?,
            spec: spec.clone(),
        })
    }

    fn describe(spec: &GitSource) -> String {
        let GitRef { branch, tag, semver, commit } = &spec.reference;
        let reference = [commit, tag, semver, branch].into_iter().flatten().next().map_or("", String::as_str);
        format!("git {} {reference}", shown_url(&spec.repository))
    }

    fn can_move(&self) -> bool {
        !matches!(self.revision, Revision::Commit(_))
    }

    async fn access(&self, environment: Environment<'_>) -> Result<ImageAccess, SourceError> {
        let (auth, certificates) = (self.spec.auth.as_ref(), self.spec.certificate_data.as_ref());
        authorization::access(environment, auth, &self.url.server(), certificates).await
    }

    async fn resolve(&self, access: &ImageAccess, environment: Environment<'_>) -> Result<PinnedGit, SourceError> {
        // Boxed, since every caller's future would hold these large ones.
        let repositories = environment.images.repositories();
        let selected = Box::pin(repositories.resolve(&self.url, &self.revision, access)).await?;
        Ok(self.pin(selected.commit))
    }

    async fn fetch(pin: PinnedGit, access: &ImageAccess, environment: Environment<'_>) -> Result<Tree, SourceError> {
        let repositories = environment.images.repositories();
        Ok(Box::pin(repositories.fetch(&pin.checkout, access)).await?)
    }

    fn to_api(pin: &PinnedGit) -> BundleSource {
        let reference = GitRef { commit: Some(pin.checkout.commit.to_string()), ..GitRef::default() };
        BundleSource::git(GitSource { reference, ..pin.spec.clone() })
    }

    /// A commit of another repository or directory says nothing about this one.
    fn recorded_pin(&self, recorded: &Self) -> Option<PinnedGit> {
        let Revision::Commit(commit) = recorded.revision else { return None };
        let is_same = self.url == recorded.url && self.directory == recorded.directory;
        is_same.then(|| self.pin(commit))
    }

    fn remove_certificates(spec: &mut GitSource) {
        spec.certificate_data = None;
    }

    fn with_certificates_of(mut self, current: &Self) -> Self {
        self.spec.certificate_data.clone_from(&current.spec.certificate_data);
        self
    }
}
