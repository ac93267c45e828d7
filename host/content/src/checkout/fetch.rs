//! Resolves revisions, and fetches commits.

use std::sync::Arc;

use chandler_core::{Content as _, Digest};
use chandler_git::{CommitId, Revision, Selected};

use super::{
    RepositoryUrl,
    files::{self, Refused},
    session::Session,
};
use crate::{
    ContentError, ImageAccess, Tree, blocking,
    image::Inner,
    path::entry_path,
    store::{ImageKey, Known, Place},
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

/// Git repositories on HTTP servers, cached in a store. A clone shares everything.
///
/// The rules of [`Images`](crate::Images) hold: timeouts, the minimum rate, addresses, redirects, TLS, and that cached content
/// grants no access. Of the credentials, a user name with a password and a token are sent, to the server of the URL only.
#[derive(Clone)]
pub struct Repositories {
    shared: Arc<Inner>,
}

impl Repositories {
    pub(crate) fn new(shared: Arc<Inner>) -> Self {
        Self { shared }
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
            let _room = self.shared.crowd.enter(&url.server()).await;
            Session::begin(url, access, false, &self.shared).await?.select(revision).await
        })
        .await
    }

    /// The files of a checkout. No request is needed if the store has them and the server sent them to these credentials before.
    ///
    /// # Errors
    /// The server is unreachable, refuses access, or does not have the commit; or the files are refused.
    pub async fn fetch(&self, checkout: &Checkout, access: &ImageAccess) -> Result<Tree, ContentError> {
        let Checkout { url, commit, directory } = checkout;
        self.in_time(url, async {
            let key = key(checkout, access)?;
            let turn = self.shared.turn(&key).await;
            let _turn = turn.lock().await;
            let reader = self.shared.store.reader(access.credentials.as_ref());
            let (store, known, asking) = (self.shared.store.clone(), key.clone(), reader.clone());
            let known = blocking::run(move || Ok(store.image(&known, &asking)?)).await?;
            if let Some(Known { tree, proven: true }) = known {
                return Ok(tree);
            }
            let tree = {
                let _room = self.shared.crowd.enter(&url.server()).await;
                self.download(url, *commit, directory, access).await?
            };
            let (store, tree_of) = (self.shared.store.clone(), tree.digest().clone());
            blocking::run(move || Ok(store.remember_image(&key, &tree_of, reader)?)).await?;
            Ok(tree)
        })
        .await
    }

    async fn download(
        &self,
        url: &RepositoryUrl,
        commit: CommitId,
        directory: &str,
        access: &ImageAccess,
    ) -> Result<Tree, ContentError> {
        let session = Session::begin(url, access, true, &self.shared).await?;
        let store = self.shared.store.clone();
        let work = blocking::run(move || Ok(store.begin()?)).await?;
        session.receive(commit, &work).await?;
        let (limits, directory, url) = (self.shared.store.limits().clone(), directory.to_owned(), url.to_string());
        blocking::run_long(move |cancel| {
            let work = work.cancelled_by(cancel);
            files::store(work, commit, &directory, &limits).map_err(|refused| match refused {
                Refused::Git(error) => ContentError::Git { url, error },
                Refused::Archive(error) => ContentError::Checkout { url, commit, error },
                Refused::Other(error) => error,
            })
        })
        .await
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
    let refused = |error| ContentError::Checkout { url: url.to_string(), commit: *commit, error };
    if !directory.is_empty() {
        let limits = crate::Limits::default();
        entry_path(directory.as_bytes(), &limits).map_err(|problem| refused(problem.at(directory.as_bytes())))?;
    }
    Ok(ImageKey {
        image: Digest::of(format!("git commit {commit}").as_bytes()),
        view: format!("git {directory}"),
        place: Place::of_url(url.parts(), access),
    })
}
