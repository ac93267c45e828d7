//! Resolves revisions, and fetches commits.

use std::sync::Arc;

use chandler_core::{Content as _, Digest};
use chandler_git::{CommitId, Revision, Selected};
use chandler_turns::Requester;

use super::{
    RepositoryUrl,
    files::{Files, PACK},
    session::Session,
};
use crate::{
    ContentError, ImageAccess, Tree, blocking,
    image::Inner,
    path::entry_path,
    store::{ImageKey, Place},
};

/// A directory of a repository at one commit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Checkout {
    /// The repository.
    pub url: RepositoryUrl,
    /// The commit.
    pub commit: CommitId,
    /// The directory; the root if it is empty.
    pub directory: String,
}

impl Checkout {
    /// Adds the checkout to an error of its files.
    fn refused(&self, error: ContentError) -> ContentError {
        match error {
            ContentError::Archive(error) => {
                ContentError::Checkout { url: self.url.to_string(), commit: self.commit, error }
            }
            error => error,
        }
    }
}

/// Git repositories on HTTP and SSH servers, cached in a store. A clone shares everything.
///
/// The rules of [`Images`](crate::Images) hold: timeouts, the minimum rate, addresses, redirects, TLS, and that cached content
/// grants no access. Of the credentials, a user name with a password and a token are sent, to the server of the URL only; over SSH,
/// a key proves the user, and the host key of the server is always checked.
#[derive(Clone)]
pub struct Repositories {
    shared: Arc<Inner>,
    requester: Requester,
}

impl Repositories {
    pub(crate) fn new(shared: Arc<Inner>, requester: Requester) -> Self {
        Self { shared, requester }
    }

    /// The commit that a revision is now, for two requests; for none, if it is a commit.
    ///
    /// # Errors
    /// The server is unreachable, refuses access, or has no such revision.
    pub async fn resolve(
        &self,
        url: &RepositoryUrl,
        revision: &Revision,
        access: &ImageAccess,
    ) -> Result<Selected, ContentError> {
        if let Revision::Commit(commit) = revision {
            return Ok(Selected { commit: *commit, tag: None });
        }
        self.in_time(url, async {
            let _permit = self.shared.request_limits.acquire(&self.requester, &url.server()).await;
            Session::begin(url, access, false, &self.shared).await?.select(revision).await
        })
        .await
    }

    /// The files of a checkout. No request is needed if the store has them and the server sent them to these credentials before.
    ///
    /// # Errors
    /// The server is unreachable, refuses access, or does not have the commit; or the files are refused.
    pub async fn fetch(&self, checkout: &Checkout, access: &ImageAccess) -> Result<Tree, ContentError> {
        let url = &checkout.url;
        self.in_time(url, async {
            let key = key(checkout, access)?;
            let _fetch = self.shared.fetches.lock(&key).await;
            let reader = self.shared.store.reader(access.credentials.as_ref());
            if let Some(tree) = self.shared.proven_tree(&key, &reader.clone().into()).await? {
                return Ok(tree);
            }
            let tree = {
                let _permit = self.shared.request_limits.acquire(&self.requester, &url.server()).await;
                self.download(checkout, access).await?
            };
            let (store, tree_of) = (self.shared.store.clone(), tree.digest().clone());
            blocking::run(move || Ok(store.remember_image(&key, &tree_of, reader.into())?)).await?;
            Ok(tree)
        })
        .await
    }

    async fn download(&self, checkout: &Checkout, access: &ImageAccess) -> Result<Tree, ContentError> {
        let refused = |error| checkout.refused(error);
        let mut session = Session::begin(&checkout.url, access, true, &self.shared).await?;
        let store = self.shared.store.on_behalf_of(self.requester.clone());
        let work = blocking::run(move || Ok(store.begin()?)).await?;
        let (path, room) = (work.path().join(PACK), work.room().clone());
        session
            .receive(checkout.commit, checkout.directory.is_empty(), (path.as_path(), &room))
            .await
            .map_err(refused)?;
        let (of, limits) = (checkout.clone(), self.shared.store.limits().clone());
        let files = blocking::run_long(move |cancel| Files::index(work.cancelled_by(cancel), of, limits));
        let mut files = files.await.map_err(refused)?;
        if !files.missing().is_empty() {
            session
                .receive_files(files.missing(), (files.path_of_missing().as_path(), &room))
                .await
                .map_err(refused)?;
            files = blocking::run_long(move |cancel| files.add_missing(cancel)).await.map_err(refused)?;
        }
        blocking::run_long(move |cancel| files.store(cancel)).await.map_err(refused)
    }

    async fn in_time<T>(
        &self,
        url: &RepositoryUrl,
        work: impl Future<Output = Result<T, ContentError>>,
    ) -> Result<T, ContentError> {
        self.shared.in_time(|| format!("git repository {url}"), work).await
    }
}

/// What identifies the files of a checkout: the commit, the directory, and the place.
fn key(checkout: &Checkout, access: &ImageAccess) -> Result<ImageKey, ContentError> {
    let Checkout { url, commit, directory } = checkout;
    if !directory.is_empty() {
        let limits = crate::Limits::default();
        entry_path(directory.as_bytes(), &limits)
            .map_err(|problem| checkout.refused(problem.at(directory.as_bytes()).into()))?;
    }
    Ok(ImageKey {
        image: Digest::of(format!("git commit {commit}").as_bytes()),
        view: format!("git {directory}"),
        place: Place::of_url(url.parts(), access),
    })
}
