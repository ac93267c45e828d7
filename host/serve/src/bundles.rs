//! The content of BundleDeployments, as archives.

use std::io::{self, Read as _, Seek as _, SeekFrom};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use chandler_content::{ArchivedContent, Store};
use chandler_core::Digest;
use headers::{AcceptRanges, ContentLength, ContentRange, ETag, HeaderMapExt as _};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header::CONTENT_TYPE};

use crate::{
    body,
    conditional::{self, Part},
    places::{Caller, Place, Places},
    refusal::Refusal,
};

/// How many archives are written and sent at once. Each takes the space of its content on the disk meanwhile.
const ARCHIVES: usize = 4;

/// What failed, for the log.
const UNWRITTEN: &str = "an archive of a bundle cannot be written";

/// Writes archives.
pub(crate) struct Bundles {
    store: Store,
    places: Places,
}

impl Bundles {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, places: Places::new(ARCHIVES) }
    }

    /// The answer to a request for the content of this digest.
    pub(crate) async fn answer(
        &self,
        caller: &Caller,
        method: &Method,
        headers: &HeaderMap,
        digest: &Digest,
    ) -> Result<Response, Refusal> {
        let tag = tag(digest)?;
        let mut response = if conditional::is_known(headers, &tag) {
            StatusCode::NOT_MODIFIED.into_response()
        } else if method == Method::HEAD {
            described(Body::empty())
        } else {
            self.sent(caller, headers, &tag, digest).await?
        };
        response.headers_mut().typed_insert(tag);
        Ok(response)
    }

    async fn sent(
        &self,
        caller: &Caller,
        headers: &HeaderMap,
        tag: &ETag,
        digest: &Digest,
    ) -> Result<Response, Refusal> {
        let place = self.places.take(caller)?;
        let (file, bytes) = self.archive(digest.clone()).await?;
        let part = conditional::part(headers, tag, bytes)?;
        Ok(partial(file, part, bytes, place))
    }

    async fn archive(&self, digest: Digest) -> Result<(ArchivedContent, u64), Refusal> {
        let store = self.store.clone();
        let written = tokio::task::spawn_blocking(move || {
            let Some(tree) = store.tree(&digest) else { return Ok(None) };
            let file = store.archived(&tree, "").map_err(|error| Refusal::unwritten(UNWRITTEN, error))?;
            let bytes = ArchivedContent::bytes(&file).map_err(|error| Refusal::failed(UNWRITTEN, &error))?;
            Ok(Some((file, bytes)))
        });
        match written.await {
            Ok(Ok(Some(archive))) => Ok(archive),
            Ok(Ok(None)) => Err(Refusal::Absent("its content is no longer in the cache of the controller".to_owned())),
            Ok(Err(refused)) => Err(refused),
            Err(error) => Err(Refusal::failed(UNWRITTEN, &error)),
        }
    }
}

/// The tag of an archive. The compression may differ between versions.
fn tag(digest: &Digest) -> Result<ETag, Refusal> {
    format!("\"{}.{}\"", digest.hex(), env!("CARGO_PKG_VERSION")).parse().map_err(|_| Refusal::Failed)
}

fn described(body: Body) -> Response {
    let mut response = ([(CONTENT_TYPE, HeaderValue::from_static("application/gzip"))], body).into_response();
    response.headers_mut().typed_insert(AcceptRanges::bytes());
    response
}

fn partial(mut file: ArchivedContent, part: Part, bytes: u64, place: Place) -> Response {
    let body = body::written(place, move |sink| {
        file.seek(SeekFrom::Start(part.offset))?;
        io::copy(&mut file.take(part.length), sink).map(drop)
    });
    let mut response = described(body);
    response.headers_mut().typed_insert(ContentLength(part.length));
    if part.is_range {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        let end = part.offset.saturating_add(part.length);
        if let Ok(range) = ContentRange::bytes(part.offset..end, bytes) {
            response.headers_mut().typed_insert(range);
        }
    }
    response
}
