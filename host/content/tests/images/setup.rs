//! A registry, the images of it and a directory for the cache.

use chandler_content::{ContentError, ImageAccess, ImageOptions, ImageReference, Images, Limits, ResolvedImage, Tree};
use chandler_devregistry::{Image, Layer, Options, Registry};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::common::{Tar, store};

pub(crate) struct Setup {
    pub(crate) registry: Registry,
    pub(crate) images: Images,
    pub(crate) access: ImageAccess,
    pub(crate) directory: TempDir,
}

pub(crate) async fn setup(options: Options) -> Setup {
    setup_with(options, Limits { entries: 100, ..Limits::default() }).await
}

/// A setup with other limits.
pub(crate) async fn setup_with(options: Options, limits: Limits) -> Setup {
    let registry = Registry::start(options).await.unwrap();
    let (directory, store) = store(limits);
    let plain_http_registries = if registry.certificate_authority().is_none() { vec![registry.host()] } else { vec![] };
    let images = Images::new(store, ImageOptions { plain_http_registries, ..ImageOptions::default() });
    let certificate_authority = registry.certificate_authority().map(|pem| pem.as_bytes().to_vec());
    let access = ImageAccess { certificate_authority, ..ImageAccess::default() };
    Setup { registry, images, access, directory }
}

impl Setup {
    pub(crate) fn reference(&self, name: &str) -> ImageReference {
        format!("{}/{name}", self.registry.host()).parse().unwrap()
    }

    pub(crate) async fn resolve(&self, name: &str) -> Result<ResolvedImage, ContentError> {
        self.images.resolve(&self.reference(name), &self.access).await
    }

    pub(crate) async fn fetch(&self, name: &str) -> Result<Tree, ContentError> {
        self.images.fetch(&self.resolve(name).await?, &self.access).await
    }

    /// Puts an image of these layers there, and fetches it.
    pub(crate) async fn fetch_layers(&self, layers: Vec<Vec<u8>>) -> Result<Tree, ContentError> {
        let layers = layers.into_iter().map(Layer::tar_gzip).collect();
        self.registry.push_image("x", "v1", Image::of_layers(layers)).unwrap();
        self.fetch("x:v1").await
    }

    /// The error without what differs between runs, or with the version of the compressor.
    pub(crate) fn message(&self, error: &ContentError) -> String {
        let text = error.to_string().replace(&self.registry.host(), "registry");
        let is_digest = |word: &str| matches!(word.len(), 12 | 64) && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let words = text.split_inclusive(|character: char| !character.is_ascii_alphanumeric());
        words
            .map(|word| {
                let bare = word.trim_end_matches(|character: char| !character.is_ascii_alphanumeric());
                if is_digest(bare) { word.replace(bare, "…") } else { word.to_owned() }
            })
            .collect()
    }
}

/// The body of what a registry answers.
pub(crate) async fn get(registry: &Registry, path: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(registry.address()).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", registry.host());
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    answer.split_off(end + 4)
}

pub(crate) fn owned(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

pub(crate) fn layer() -> Vec<u8> {
    Tar::new().directory("manifests").file("manifests/a.yaml", "a").plain()
}
