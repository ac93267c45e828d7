//! Images of bundles and catalogs, and pushing them to a registry.

use std::{collections::BTreeMap, error::Error, fs::File, io::Read as _, sync::Arc, time::Duration};

use bytes::Bytes;
use chandler_content::{Credentials, ImageReference, Store};
use chandler_core::{Content, Digest};
use chandler_proxies::Proxies;
use chandler_registries::certificates::HostCertificates;
use flate2::read::GzDecoder;
use http::HeaderValue;
use oci_client::{
    Client, Reference, RegistryOperation,
    client::{Certificate, CertificateEncoding, ClientConfig, ClientProtocol},
    errors::{OciDistributionError, OciErrorCode},
    secrets::RegistryAuth,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    CommandError,
    read::{
        image_layout::{ImageLayout, Manifest},
        registry_settings::{self, RegistryOptions},
        source,
    },
};

/// Media types of the OCI image specification.
pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// How long a registry may be silent.
const SILENCE: Duration = Duration::from_mins(1);
/// A `NO_PROXY` for a client that parses addresses before it looks for `*`.
const EVERY_SERVER: &str = "*,0.0.0.0/0,::/0";
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);

/// An image with one layer.
pub struct Image {
    manifest: Vec<u8>,
    config: Vec<u8>,
    layer: Bytes,
}

impl Image {
    /// An image of these files, below a directory of the image. The same files and labels make the same image: it has no time. Blocks on
    /// the disk.
    ///
    /// # Errors
    /// The disk is full or fails.
    pub fn pack(
        store: &Store,
        files: &dyn Content,
        below: &str,
        labels: BTreeMap<String, String>,
    ) -> Result<Self, CommandError> {
        let failed = |error: &(dyn Error + 'static)| CommandError::failed("failed to make the image").because(error);
        let mut layer = Vec::new();
        let mut archive = store.archived(files, below).map_err(|error| failed(&error))?;
        archive.read_to_end(&mut layer).map_err(|error| failed(&error))?;
        let unpacked = unpacked_digest(archive.into_file()).map_err(|error| failed(&error))?;
        // Kubernetes objects run on every platform, but tools expect one.
        let config = json!({
            "architecture": "amd64",
            "os": "linux",
            "config": {"Labels": labels},
            "rootfs": {"type": "layers", "diff_ids": [unpacked]},
        });
        let config = config.to_string().into_bytes();
        let described = |media_type: &str, bytes: &[u8]| json!({"mediaType": media_type, "digest": Digest::of(bytes), "size": bytes.len()});
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": described(CONFIG, &config),
            "layers": [described(LAYER, &layer)],
        });
        Ok(Self::new(&manifest, config, layer.into()))
    }

    /// The image with this manifest, which describes the configuration and the layer.
    pub(super) fn new(manifest: &Value, config: Vec<u8>, layer: Bytes) -> Self {
        Self { manifest: manifest.to_string().into_bytes(), config, layer }
    }

    /// The digest of the manifest.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.manifest)
    }

    /// The size of the layer.
    pub fn layer_bytes(&self) -> u64 {
        self.layer.len() as u64
    }
}

/// The digest of an archive without its compression, which the configuration of an image has.
fn unpacked_digest(mut archive: File) -> std::io::Result<Digest> {
    use std::io::Seek as _;
    archive.rewind()?;
    let (mut hash, mut unpacked) = (Sha256::new(), GzDecoder::new(archive));
    let mut buffer = vec![0; 256 << 10];
    loop {
        match unpacked.read(&mut buffer)? {
            0 => return Ok(Digest::from_hash(hash.finalize().into())),
            read => hash.update(buffer.get(..read).unwrap_or_default()),
        }
    }
}

/// What can be pushed.
pub trait Pushed {
    /// The digests of what the manifests describe: configurations and layers.
    fn blobs(&self) -> Vec<Digest>;

    /// One of them.
    ///
    /// # Errors
    /// It cannot be read.
    fn blob(&self, digest: &Digest) -> Result<Bytes, CommandError>;

    /// The manifests; one comes after all that it names, and the last one is the image.
    fn manifests(&self) -> Vec<Manifest>;
}

impl Pushed for Image {
    fn blobs(&self) -> Vec<Digest> {
        vec![Digest::of(&self.layer), Digest::of(&self.config)]
    }

    fn blob(&self, digest: &Digest) -> Result<Bytes, CommandError> {
        let is_config = *digest == Digest::of(&self.config);
        Ok(if is_config { Bytes::from(self.config.clone()) } else { self.layer.clone() })
    }

    fn manifests(&self) -> Vec<Manifest> {
        vec![Manifest { media_type: MANIFEST.to_owned(), digest: self.digest(), bytes: self.manifest.clone() }]
    }
}

impl Pushed for ImageLayout {
    fn blobs(&self) -> Vec<Digest> {
        self.blobs().map(|(digest, _)| digest.clone()).collect()
    }

    fn blob(&self, digest: &Digest) -> Result<Bytes, CommandError> {
        self.blob(digest).map(Bytes::from)
    }

    fn manifests(&self) -> Vec<Manifest> {
        self.manifests().to_vec()
    }
}

/// Pushes an image with the settings and the credentials of this machine. Returns the digest of its manifest.
pub async fn push(
    image: Arc<dyn Pushed + Send + Sync>,
    to: &ImageReference,
    registry: &RegistryOptions,
) -> Result<Digest, CommandError> {
    registry_settings::of(registry)?.may_push(to).map_err(|error| {
        CommandError::failed(format!("failed to push {to}"))
            .because(&error)
            .hint("push to another registry, or change registries.conf; --registries-conf names another file")
    })?;
    let auth = credentials(to, registry).await?;
    let (client, is_plain) = client(to, registry)?;
    let failed = |error: OciDistributionError| {
        CommandError::failed(format!("failed to push {to}")).cause(text(&error)).hint(hint(&error, to, is_plain))
    };
    let reference: Reference = to.to_string().parse().map_err(|error: oci_client::ParseError| {
        CommandError::usage(format!("{to} is not an image that can be pushed")).because(&error)
    })?;
    client.auth(&reference, &auth, RegistryOperation::Push).await.map_err(failed)?;
    for digest in image.blobs() {
        let (image, wanted) = (Arc::clone(&image), digest.clone());
        let blob = tokio::task::spawn_blocking(move || image.blob(&wanted)).await;
        let blob = blob.map_err(|error| CommandError::failed("failed to read the image").because(&error))??;
        client.push_blob(&reference, blob, digest.as_str()).await.map_err(failed)?;
    }
    let mut manifests = image.manifests();
    let last = manifests.pop().ok_or_else(|| CommandError::failed("the image has no manifest"))?;
    for Manifest { media_type, digest, bytes } in manifests {
        // A part of the image has no tag.
        let (host, repository) = (reference.registry().to_owned(), reference.repository().to_owned());
        let part = Reference::with_digest(host, repository, digest.as_str().to_owned());
        client.push_manifest_raw(&part, bytes, header(&media_type)?).await.map_err(failed)?;
    }
    client.push_manifest_raw(&reference, last.bytes, header(&last.media_type)?).await.map_err(failed)?;
    Ok(last.digest)
}

/// The manifest of an image that may exist.
///
/// # Errors
/// The registry does not answer, or refuses access.
pub async fn existing(image: &ImageReference, registry: &RegistryOptions) -> Result<Option<Vec<u8>>, CommandError> {
    let auth = credentials(image, registry).await?;
    let (client, is_plain) = client(image, registry)?;
    let reference: Reference = image.to_string().parse().map_err(|error: oci_client::ParseError| {
        CommandError::usage(format!("{image} is not an image that can be read")).because(&error)
    })?;
    match client.pull_manifest_raw(&reference, &auth, &[MANIFEST]).await {
        Ok((bytes, _)) => Ok(Some(bytes.to_vec())),
        Err(OciDistributionError::ImageManifestNotFoundError(_)) => Ok(None),
        Err(OciDistributionError::RegistryError { envelope, .. })
            if envelope
                .errors
                .iter()
                .any(|error| matches!(error.code, OciErrorCode::ManifestUnknown | OciErrorCode::NotFound)) =>
        {
            Ok(None)
        }
        Err(error) => Err(CommandError::failed(format!("failed to read {image}"))
            .cause(text(&error))
            .hint(hint(&error, image, is_plain))),
    }
}

fn header(media_type: &str) -> Result<HeaderValue, CommandError> {
    HeaderValue::from_str(media_type)
        .map_err(|error| CommandError::failed(format!("{media_type:?} is not a media type")).because(&error))
}

async fn credentials(image: &ImageReference, registry: &RegistryOptions) -> Result<RegistryAuth, CommandError> {
    match source::access(image, registry).await?.credentials {
        None => Ok(RegistryAuth::Anonymous),
        Some(Credentials::Basic { username, password }) => Ok(RegistryAuth::Basic(username, password)),
        Some(Credentials::RegistryToken(token)) => Ok(RegistryAuth::Bearer(token)),
        Some(Credentials::IdentityToken(_) | Credentials::SshKey(_)) => Err(CommandError::failed(format!(
            "the credentials for {} are an identity token, which this command cannot use",
            image.registry_name()
        ))
        .hint(format!("log in with a password or an access token: `docker login {}`", image.registry_name()))),
    }
}

/// A client, and whether it asks without TLS.
fn client(image: &ImageReference, registry: &RegistryOptions) -> Result<(Client, bool), CommandError> {
    // Fails harmlessly if this process has one.
    rustls::crypto::ring::default_provider().install_default().ok();
    let unusable = |error: &(dyn Error + 'static)| {
        CommandError::failed(format!("failed to read the certificates for {}", image.registry_name())).because(error)
    };
    let certificates = registry_settings::of(registry)?.certificates(image).map_err(|error| unusable(&error))?;
    let is_plain = certificates.is_none() && image.may_be_plain(&registry.plain_http_registries);
    let HostCertificates { authorities, client } = certificates.unwrap_or_default();
    if client.is_some() {
        return Err(CommandError::failed(format!(
            "certs.d has a client certificate for {}, which this command cannot use",
            image.registry_name()
        ))
        .hint(format!("push with another tool: `skopeo copy --all docker://OTHER docker://{image}`")));
    }
    let authorities = pem::parse_many(authorities.unwrap_or_default()).map_err(|error| unusable(&error))?;
    let proxies = Proxies::from_environment();
    let (host, port) = match image.registry().rsplit_once(':') {
        Some((host, port)) if let Ok(port) = port.parse() => (host, Some(port)),
        _ => (image.registry(), None),
    };
    let proxy = proxies.select(if is_plain { "http" } else { "https" }, host, port);
    let proxy = proxy.map_err(|error| CommandError::failed("failed to choose the proxy").because(&error))?;
    let url = proxy.map(chandler_proxies::Proxy::secret_url);
    let client = Client::try_from(ClientConfig {
        // The client also decides by itself, for the token server; without a variable, it would read the environment with other rules.
        no_proxy: Some(if proxy.is_some() { proxies.no_proxy() } else { EVERY_SERVER }.to_owned()),
        http_proxy: url.clone().filter(|_| is_plain),
        https_proxy: Some(url.unwrap_or_else(|| "http://none.invalid".to_owned())),
        protocol: if is_plain { ClientProtocol::Http } else { ClientProtocol::Https },
        extra_root_certificates: authorities.into_iter().map(trusted).collect(),
        read_timeout: Some(SILENCE),
        connect_timeout: Some(CONNECT),
        user_agent: concat!("chandler/", env!("CARGO_PKG_VERSION")),
        ..ClientConfig::default()
    })
    .map_err(|error| CommandError::failed("failed to set up the connection to the registry").because(&error))?;
    Ok((client, is_plain))
}

fn trusted(authority: pem::Pem) -> Certificate {
    Certificate { encoding: CertificateEncoding::Der, data: authority.into_contents() }
}

/// What failed, with its causes.
fn text(error: &OciDistributionError) -> String {
    let mut text = match error {
        OciDistributionError::UnauthorizedError { url } => return format!("the registry denies access to {url}"),
        OciDistributionError::RegistryError { envelope, url } => {
            let first = envelope.errors.first().map(|error| format!(": {}", error.message)).unwrap_or_default();
            return format!("the registry refused {url}{first}");
        }
        OciDistributionError::ServerError { code, url, .. } => return format!("the registry answered {code} at {url}"),
        other => other.to_string(),
    };
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// What helps if the certificate of the registry is refused.
fn certificate_hint(problem: &str, image: &ImageReference) -> Option<String> {
    let host = image.registry();
    // The library that pushes accepts no certificate of an authority as a server's, even if it is in certs.d. The controller does.
    if problem.contains("CaUsedAsEndEntity") {
        return Some(format!(
            "{host} presents the certificate of an authority (CA:TRUE): give it one with CA:FALSE, or push with another tool: \
             `skopeo copy --all docker://OTHER docker://{image}`"
        ));
    }
    problem.contains("certificate").then(|| {
        format!(
            "trust the authority of the registry: put its certificate into ~/.config/containers/certs.d/{host}/ca.crt"
        )
    })
}

/// What helps.
fn hint(error: &OciDistributionError, image: &ImageReference, is_plain: bool) -> String {
    let host = image.registry();
    let scheme = if is_plain { "http" } else { "https" };
    if let Some(hint) = certificate_hint(&text(error), image) {
        return hint;
    }
    match error {
        OciDistributionError::UnauthorizedError { .. }
        | OciDistributionError::AuthenticationFailure(_)
        | OciDistributionError::ServerError { code: 401 | 403, .. }
        | OciDistributionError::RegistryTokenDecodeError(_)
        | OciDistributionError::RegistryError { .. } => format!(
            "check that you may push to {}: `docker login {host}` writes the credentials (--registry-config)",
            image.repository()
        ),
        // A server with TLS answers a request without TLS like this.
        OciDistributionError::ServerError { code: 400, .. } if is_plain => format!(
            "a registry on this machine is asked without TLS: if {host} uses TLS, put the certificate of its authority into \
             ~/.config/containers/certs.d/{host}/ca.crt"
        ),
        OciDistributionError::RequestError(_) if is_plain => {
            format!("check that the registry is up: `curl -i http://{host}/v2/`")
        }
        OciDistributionError::RequestError(_) => format!(
            "check that the registry is up: `curl -i https://{host}/v2/`; --plain-http-registry {host} allows HTTP, and certs.d names authorities"
        ),
        _ => format!("check that {host} is an OCI registry: `curl -i {scheme}://{host}/v2/`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_on_loopback_with_tls_needs_its_certificate() {
        let image: ImageReference = "127.0.0.1:5000/team/bundle:v1".parse().unwrap();
        let answered = |code| OciDistributionError::ServerError { code, url: String::new(), message: String::new() };
        assert!(hint(&answered(400), &image, true).contains("certs.d/127.0.0.1:5000/ca.crt"));
        assert!(hint(&answered(400), &image, false).contains("is an OCI registry"));
    }

    #[test]
    fn a_self_signed_authority_is_not_a_matter_of_trust() {
        let image: ImageReference = "registry.example.com/team/bundle:v1".parse().unwrap();
        let hint = |problem: &str| certificate_hint(problem, &image);
        assert_eq!(hint("connection refused"), None);
        assert!(
            hint("invalid peer certificate: UnknownIssuer").unwrap().contains("certs.d/registry.example.com/ca.crt")
        );
        let authority = hint("invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))").unwrap();
        assert!(
            authority.contains("CA:FALSE") && authority.contains("docker://registry.example.com/team/bundle:v1"),
            "{authority}"
        );
    }
}
