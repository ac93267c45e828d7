//! Content that clients upload for a BundleDeployment.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use chandler_content::{FailureClass, Store, Upload};
use chandler_core::{Content as _, Digest};
use chandler_turns::Requester;
use futures::StreamExt as _;
use http::StatusCode;
use tokio::time::timeout;

use crate::{
    places::{Caller, Place, Places},
    refusal::Refusal,
    server::{Holdings, Target, UploadAccount},
};

/// How many uploads are received at once. Each takes at most the limit for downloads on the disk.
const UPLOADS: usize = 8;
/// How long a client may take for the next part, and for all of them.
const PART_TIMEOUT: Duration = Duration::from_secs(30);
const TIMEOUT: Duration = Duration::from_mins(10);

/// What failed, for the log.
const UNSTORED: &str = "an upload cannot be stored";

/// What is uploaded for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The UID of the BundleDeployment.
    uid: String,
    /// The digest that its spec names.
    digest: Option<String>,
    /// The account that its spec names.
    pub(crate) account: Option<UploadAccount>,
    /// The account whose share of the cache the content takes.
    requester: Requester,
}

/// Receives uploads.
pub(crate) struct Uploads {
    store: Store,
    holdings: Arc<dyn Holdings>,
    places: Places,
}

impl Uploads {
    pub(crate) fn new(store: Store, holdings: Arc<dyn Holdings>) -> Self {
        Self { store, holdings, places: Places::new(UPLOADS) }
    }

    /// Receives the content of a BundleDeployment: 201 if it is new, 204 if it is there already. The caller was checked for `checked`.
    pub(crate) async fn receive(
        &self,
        caller: &Caller,
        name: &str,
        checked: &Wanted,
        body: Body,
    ) -> Result<Response, Refusal> {
        let place = self.places.take(caller)?;
        let received = tokio::select! {
            received = timeout(TIMEOUT, self.unpacked(&place, &checked.requester, body)) => received,
            () = place.gives_way() => return Err(Refusal::Slow("the upload is slow, and others wait")),
        };
        let content = received.map_err(|_| Refusal::Slow("the upload took longer than ten minutes"))??;
        let wanted = self.wanted(name)?;
        if wanted.uid != checked.uid || wanted.account != checked.account {
            let changed = "the BundleDeployment or its account was replaced during the upload: upload again";
            return Err(Refusal::Conflict(changed.to_owned()));
        }
        let is_new = self.remember(name, wanted, content.clone()).await?;
        if !is_new {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        self.holdings.uploaded(name);
        Ok((StatusCode::CREATED, format!("{content}\n")).into_response())
    }

    /// What the BundleDeployment of this name wants, if that is an upload.
    pub(crate) fn wanted(&self, name: &str) -> Result<Wanted, Refusal> {
        let shown = chandler_core::text::printable(name);
        match self.holdings.target(name) {
            Target::Upload { uid, digest, account, requester } => Ok(Wanted { uid, digest, account, requester }),
            Target::Other(kind) => Err(Refusal::Conflict(format!(
                "bundle source type is {:?}; expected \"upload\"",
                chandler_core::text::printable(&kind)
            ))),
            Target::Absent => Err(Refusal::Absent(format!("there is no BundleDeployment {shown}: create it first"))),
        }
    }

    /// Writes the body to a file, and unpacks that into the store.
    async fn unpacked(&self, place: &Place, requester: &Requester, body: Body) -> Result<Digest, Refusal> {
        let store = self.store.on_behalf_of(requester.clone());
        let most = store.limits().download_bytes;
        let begun = store.clone();
        let created = tokio::task::spawn_blocking(move || begun.temporary_file()).await;
        let mut file = created
            .map_err(|error| Refusal::failed(UNSTORED, &error))?
            .map_err(|error| Refusal::unwritten(UNSTORED, error))?;
        let (mut parts, mut size) = (body.into_data_stream(), 0_u64);
        place.begin();
        while let Some(part) =
            timeout(PART_TIMEOUT, parts.next()).await.map_err(|_| Refusal::Slow("nothing was sent for 30 seconds"))?
        {
            let part = part.map_err(|_| Refusal::Malformed("the upload was interrupted".to_owned()))?;
            size = size.saturating_add(part.len() as u64);
            place.moved(part.len());
            if size > most {
                return Err(Refusal::TooLarge(most));
            }
            file.append(&part).await.map_err(|error| Refusal::unwritten(UNSTORED, error))?;
        }
        place.end();
        match store.import_archive(file.path()).await {
            Ok(tree) => {
                self.holdings.stored(tree.digest(), tree.total_bytes());
                Ok(tree.digest().clone())
            }
            Err(error) if error.class() == FailureClass::Permanent => Err(Refusal::Unusable(error.to_string())),
            Err(error) => Err(Refusal::unwritten(UNSTORED, error)),
        }
    }

    /// Records the upload. False if the same content was uploaded before. Where the spec names no digest, what was uploaded first stays.
    async fn remember(&self, name: &str, wanted: Wanted, content: Digest) -> Result<bool, Refusal> {
        let (store, name) = (self.store.clone(), name.to_owned());
        let Wanted { uid, digest, account: _, requester: _ } = wanted;
        let is_pinned = digest.is_some();
        let wanted = digest.and_then(|digest| digest.parse::<Digest>().ok());
        let recorded = tokio::task::spawn_blocking(move || {
            let before = store.upload(&name)?.filter(|before| before.uid == uid);
            let mut upload = before.unwrap_or(Upload { name, uid, contents: Vec::new() });
            if upload.contents.contains(&content) {
                return Ok(Some(false));
            }
            if !upload.contents.is_empty() && !is_pinned {
                return Ok(None);
            }
            upload.add(content, wanted.as_ref());
            store.remember_upload(&upload)?;
            Ok::<_, chandler_content::StoreError>(Some(true))
        });
        match recorded.await {
            Ok(Ok(Some(is_new))) => Ok(is_new),
            Ok(Ok(None)) => Err(Refusal::Conflict(
                "other content was uploaded before, and spec.source.upload.digest does not say which one is wanted"
                    .to_owned(),
            )),
            Ok(Err(error)) => Err(Refusal::unwritten(UNSTORED, error)),
            Err(error) => Err(Refusal::failed(UNSTORED, &error)),
        }
    }
}
