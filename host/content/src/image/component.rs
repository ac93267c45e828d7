//! Provisioners, as artifacts of a registry.
//!
//! The layout is the CNCF's Wasm OCI artifact: one manifest, one layer of the media type `application/wasm`.

use chandler_core::{Content, Digest};

use super::{
    ImageAccess, ImageError, Images, ResolvedImage,
    blob::Blob,
    endpoints::{Asked, Endpoint},
    manifest::{Manifest, component_layer, refused},
};
use crate::{ArchiveError, ContentError, LimitExceeded, StoreError, Tree, blocking, store::AddError};

/// The name of the one file of a component's tree.
const FILE: &str = "component.wasm";

/// The digest of the tree of a component in the [`Store`](crate::Store), of its digest and its size in bytes.
pub fn component_tree(component: &Digest, bytes: u64) -> Digest {
    Digest::of_tree([(FILE, bytes, component)])
}

impl Images {
    /// The component of an artifact, of at most `max_bytes`. Requests are made as for [`Images::fetch`].
    ///
    /// # Errors
    /// An index, an image with other layers, or a component that is larger than `max_bytes` is refused.
    pub async fn fetch_component(
        &self,
        image: &ResolvedImage,
        access: &ImageAccess,
        max_bytes: u64,
    ) -> Result<Vec<u8>, ContentError> {
        let reference = image.pinned();
        let make = |endpoint: Endpoint| -> Asked<'_, Tree> { Box::pin(self.download_component(endpoint, max_bytes)) };
        let tree = self.once("component", image, access, &make).await?;
        // It may have been fetched with another limit.
        if tree.total_bytes() > max_bytes {
            return Err(refused(&reference, LimitExceeded::ComponentBytes(max_bytes).into()));
        }
        blocking::run(move || {
            tree.read_all(FILE).map_err(|error| StoreError::at("read", FILE)(std::io::Error::other(error)).into())
        })
        .await
    }

    async fn download_component(&self, endpoint: Endpoint, max_bytes: u64) -> Result<Tree, ContentError> {
        let image = &endpoint.image;
        let client = self.client(&endpoint).await?;
        let Manifest::Image(manifest) = self.manifest(&client, image).await? else {
            return Err(refused(image, ImageError::IndexForComponent));
        };
        let layer = component_layer(&manifest.layers, max_bytes).map_err(|error| refused(image, error))?;
        let mut bytes = Vec::new();
        // The blob is not longer than its descriptor states, which is at most `max_bytes`.
        let mut blob = Blob::request(&client, image, layer).await?;
        while let Some(chunk) = blob.next().await? {
            bytes.extend_from_slice(&chunk);
        }
        let store = self.store().clone();
        blocking::run_long(move |cancel| {
            let mut work = store.begin()?.cancelled_by(cancel);
            let stored = work.add(&mut bytes.as_slice(), max_bytes).map_err(|error| match error {
                AddError::Write(error) => ContentError::from(error),
                AddError::Read(error) => StoreError::at("read", FILE)(error).into(),
                AddError::TooLarge => ArchiveError::from(LimitExceeded::ComponentBytes(max_bytes)).into(),
            })?;
            work.commit([(FILE.to_owned(), stored)].into())
        })
        .await
    }
}
