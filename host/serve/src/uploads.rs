//! Content that clients upload for a BundleDeployment.

use std::{io::Write as _, sync::Arc, time::Duration};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use chandler_content::{ContentError, FailureClass, Store, Upload};
use chandler_core::{Content as _, Digest};
use futures::StreamExt as _;
use http::StatusCode;
use tokio::time::timeout;

use crate::{
    places::{Caller, Place, Places},
    refusal::Refusal,
    server::{Holdings, Target},
};

/// How many uploads are received at once. Each takes at most the limit for downloads on the disk.
const UPLOADS: usize = 8;
/// How long a client may take for the next part, and for all of them.
const PART_TIMEOUT: Duration = Duration::from_secs(30);
const TIMEOUT: Duration = Duration::from_mins(10);

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

    /// Receives the content of a BundleDeployment: 201 if it is new, 204 if it is there already.
    pub(crate) async fn receive(&self, caller: &Caller, name: &str, body: Body) -> Result<Response, Refusal> {
        // Before the body is read, and again when it is.
        self.target(name)?;
        let place = self.places.take(caller)?;
        let received = tokio::select! {
            received = timeout(TIMEOUT, self.unpacked(&place, body)) => received,
            () = place.gives_way() => return Err(Refusal::Slow("the upload is slow, and others wait")),
        };
        let content = received.map_err(|_| Refusal::Slow("the upload took longer than ten minutes"))??;
        let (uid, wanted) = self.target(name)?;
        let is_new = self.remember(name, uid, content.clone(), wanted.is_some()).await?;
        if !is_new {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        self.holdings.uploaded(name);
        Ok((StatusCode::CREATED, format!("{content}\n")).into_response())
    }

    /// The UID of the BundleDeployment, and the digest that its spec asks for.
    fn target(&self, name: &str) -> Result<(String, Option<String>), Refusal> {
        let shown = chandler_core::text::printable(name);
        match self.holdings.target(name) {
            Target::Upload { uid, digest } => Ok((uid, digest)),
            Target::Other(kind) => Err(Refusal::Conflict(format!(
                "bundle source type is {:?}; expected \"upload\"",
                chandler_core::text::printable(&kind)
            ))),
            Target::Absent => Err(Refusal::Absent(format!("there is no BundleDeployment {shown}: create it first"))),
        }
    }

    /// Writes the body to a file, and unpacks that into the store.
    async fn unpacked(&self, place: &Place, body: Body) -> Result<Digest, Refusal> {
        let most = self.store.limits().download_bytes;
        let mut file = self.store.temporary_file().map_err(|error| failed(&error))?;
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
            // A write into the page cache; the thread is not worth a switch.
            file.write_all(&part).map_err(|error| failed(&error))?;
        }
        place.end();
        match self.store.import_archive(file.path()).await {
            Ok(tree) => Ok(tree.digest().clone()),
            Err(error @ ContentError::Store(_)) => Err(failed(&error)),
            Err(error) if error.class() == FailureClass::Permanent => Err(Refusal::Unusable(error.to_string())),
            Err(error) => Err(failed(&error)),
        }
    }

    /// Records the upload. False if the same content was uploaded before. Where the spec names no digest, what was uploaded first stays.
    async fn remember(&self, name: &str, uid: String, content: Digest, is_pinned: bool) -> Result<bool, Refusal> {
        let (store, name) = (self.store.clone(), name.to_owned());
        let recorded = tokio::task::spawn_blocking(move || {
            let before = store.upload(&name)?.filter(|before| before.uid == uid);
            let mut upload = before.unwrap_or(Upload { name, uid, contents: Vec::new() });
            if upload.contents.contains(&content) {
                return Ok(Some(false));
            }
            if !upload.contents.is_empty() && !is_pinned {
                return Ok(None);
            }
            upload.add(content);
            store.remember_upload(&upload)?;
            Ok::<_, chandler_content::StoreError>(Some(true))
        });
        match recorded.await {
            Ok(Ok(Some(is_new))) => Ok(is_new),
            Ok(Ok(None)) => Err(Refusal::Conflict(
                "other content was uploaded before, and spec.source.upload.digest does not say which one is wanted"
                    .to_owned(),
            )),
            Ok(Err(error)) => Err(failed(&error)),
            Err(error) => Err(failed(&error)),
        }
    }
}

fn failed(error: &dyn std::error::Error) -> Refusal {
    tracing::warn!(%error, "an upload cannot be stored");
    Refusal::Failed
}
