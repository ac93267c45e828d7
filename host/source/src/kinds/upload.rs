//! Content that was uploaded to the content service.

use chandler_api::{BundleSource, UploadSource};
use chandler_content::{Tree, shown_url};
use chandler_core::Digest;

use crate::{Environment, Grantee, InvalidSource, SourceError, SourceKind};

/// Uploaded content, with its digest parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct Upload {
    digest: Option<Digest>,
}

/// Uploaded content of one digest.
#[derive(Clone, Debug, PartialEq)]
pub struct PinnedUpload(Digest);

/// Content is not there. An upload helps.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UploadError {
    /// Nothing was uploaded yet. Nothing has failed: the BundleDeployment has to exist before its files can be uploaded.
    #[error(
        "its files have not been uploaded yet: `chandler upgrade {name} DIR --upload`, or PUT /uploads/{name}.tgz at the content service"
    )]
    Pending {
        /// The name of the BundleDeployment.
        name: String,
    },
    /// The cache lost files that were uploaded and installed before.
    #[error(
        "the cache of the controller lost the files that were uploaded for it: `chandler upgrade {name} DIR --upload` uploads them again"
    )]
    Lost {
        /// The name of the BundleDeployment.
        name: String,
    },
    /// Other content was uploaded, or the cache lost this content.
    #[error("content {wanted} was not uploaded for it, or the cache lost it: `chandler upgrade {name} DIR --upload`")]
    Gone {
        /// The name of the BundleDeployment.
        name: String,
        /// The digest.
        wanted: Digest,
    },
}

impl SourceKind for Upload {
    const TYPE: &'static str = BundleSource::UPLOAD;
    type Spec = UploadSource;
    type Pin = PinnedUpload;
    type Access = ();

    fn parse(spec: &UploadSource) -> Result<Self, InvalidSource> {
        let digest = spec.digest.as_ref().map(|digest| digest.parse());
        Ok(Self { digest: digest.transpose().map_err(|_| InvalidSource::UploadDigest)? })
    }

    fn describe(spec: &UploadSource) -> String {
        match &spec.digest {
            Some(digest) => format!("upload {}", shown_url(digest)),
            None => "upload".to_owned(),
        }
    }

    /// Content that was uploaded without a digest in the spec stays: the content service refuses other content.
    fn can_move(&self) -> bool {
        false
    }

    async fn access(&self, _: Environment<'_>) -> Result<(), SourceError> {
        Ok(())
    }

    async fn resolve(&self, (): &(), environment: Environment<'_>) -> Result<PinnedUpload, SourceError> {
        let Grantee::BundleDeployment(name) = environment.grantee else { return Err(InvalidSource::Upload.into()) };
        let mut uploaded = uploaded(name, environment).await?;
        let name = name.to_owned();
        match &self.digest {
            None => uploaded.pop().map(PinnedUpload).ok_or_else(|| UploadError::Pending { name }.into()),
            Some(wanted) if uploaded.contains(wanted) => Ok(PinnedUpload(wanted.clone())),
            Some(_) if uploaded.is_empty() => Err(UploadError::Pending { name }.into()),
            Some(wanted) => Err(UploadError::Gone { name, wanted: wanted.clone() }.into()),
        }
    }

    async fn fetch(pin: PinnedUpload, (): &(), environment: Environment<'_>) -> Result<Tree, SourceError> {
        let (store, wanted) = (environment.images.store().clone(), pin.0);
        let digest = wanted.clone();
        let tree = tokio::task::spawn_blocking(move || store.tree(&digest)).await.ok().flatten();
        let name = environment.grantee.name().to_owned();
        tree.ok_or_else(|| UploadError::Gone { name, wanted }.into())
    }

    fn to_api(pin: &PinnedUpload) -> BundleSource {
        BundleSource::upload(UploadSource { digest: Some(pin.0.to_string()) })
    }
}

/// What was uploaded for a BundleDeployment, the latest last.
async fn uploaded(name: &str, environment: Environment<'_>) -> Result<Vec<Digest>, SourceError> {
    let (store, name) = (environment.images.store().clone(), name.to_owned());
    let upload = tokio::task::spawn_blocking(move || store.upload(&name)).await;
    let upload = upload.unwrap_or(Ok(None)).map_err(chandler_content::ContentError::from)?;
    Ok(upload.map(|upload| upload.contents).unwrap_or_default())
}
