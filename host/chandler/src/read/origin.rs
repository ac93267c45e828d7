//! What the argument for a bundle or a catalog names.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use chandler_api::{Authorization, BundleSource, GitSource, HttpSource, ImageSource, LocalObjectReference};
use chandler_content::{ArchiveUrl, ArchiveUrlError, ImageReference, RepositoryUrlError, shown_url};
use chandler_core::{Digest, dns_name};
use chandler_source::{Git, Http, InvalidSource, SourceKind as _};

use crate::{
    CommandError,
    view::{invocation::quoted, text::one_line},
};

/// Where a bundle is.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// A directory on this machine.
    Directory(PathBuf),
    /// An archive on this machine.
    Archive(PathBuf),
    /// An image in a registry.
    Image(Box<ImageReference>),
    /// An archive on an HTTP server, and its digest if it is known.
    Http(Box<ArchiveUrl>, Option<Digest>),
    /// A directory of a git repository.
    Git(Box<Git>),
    /// A chart in a Helm repository.
    Chart(Box<Http>),
}

impl Origin {
    /// Parses the argument: a path that exists, else a URL or an image reference.
    pub fn parse(text: &str) -> Result<Self, CommandError> {
        let path = Path::new(text);
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => return Ok(Self::Directory(path.to_owned())),
            Ok(_) => return Ok(Self::Archive(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(CommandError::failed(format!("failed to open {}", shown(text)))
                    .because(&error)
                    .hint(format!("check the permissions: `ls -ld {}`", quoted(text))));
            }
            // The text cannot be a path, for example because it is too long.
            Err(_) => {}
        }
        if let Some(url) = text.strip_prefix("git+") {
            return git(url).map(|git| Self::Git(Box::new(git)));
        }
        if let Some(url) = text.strip_prefix("helm+") {
            return chart(url).map(|chart| Self::Chart(Box::new(chart)));
        }
        if let Some((scheme, rest)) = text.split_once("://") {
            return Self::parse_url(text, scheme, rest);
        }
        let missing = || CommandError::usage(format!("{}: no such file or directory", shown(text)));
        if !is_like_an_image(text) {
            return Err(missing().hint("write an image with its registry and tag: `quay.io/example/bundle:v1`"));
        }
        match text.parse() {
            Ok(image) => Ok(Self::Image(Box::new(image))),
            Err(error) => {
                let text = shown(text);
                Err(CommandError::usage(format!("{text} is neither a file nor a directory, and no valid image either"))
                    .because(&error)
                    .hint(image_hint(&text)))
            }
        }
    }

    /// The archive at a URL, which is never taken for a path.
    pub fn archive(url: &str) -> Result<Self, CommandError> {
        let (scheme, rest) = url.split_once("://").unwrap_or((url, ""));
        Self::parse_url(url, scheme, rest)
    }

    /// Parses a URL: of an archive, with its digest as a fragment `#sha256=…`.
    fn parse_url(text: &str, scheme: &str, rest: &str) -> Result<Self, CommandError> {
        let last = rest.rsplit('/').next().unwrap_or_default();
        if !matches!(scheme, "http" | "https") || rest.contains('/') && last.contains([':', '@']) {
            let shown = shown(text);
            let image = shown.split_once("://").map_or(shown.as_str(), |(_, image)| image).trim_end_matches('/');
            return Err(CommandError::usage(format!(
                "{shown} is a URL, not a directory, an archive or an image"
            ))
            .hint(format!(
                "write an image without `{}://`: `{}`; archives have URLs such as https://example.com/bundle.tgz, and repositories \
                 such as git+https://example.com/bundles.git?branch=main",
                one_line(scheme),
                quoted(image)
            )));
        }
        if rest.contains("?chart=") || last == "index.yaml" {
            let url = shown(text.split(['?', '#']).next().unwrap_or_default());
            let url = url.trim_end_matches("/index.yaml");
            return Err(CommandError::usage(format!("{} is not the URL of an archive", shown(text)))
                .hint(format!("write a chart in a Helm repository as 'helm+{url}?chart=NAME&version=VERSION'")));
        }
        let (url, fragment) = text.split_once('#').map_or((text, None), |(url, fragment)| (url, Some(fragment)));
        let digest = fragment.map(|fragment| {
            let hex = fragment.strip_prefix("sha256=").unwrap_or_default();
            format!("sha256:{hex}").parse::<Digest>().map_err(|_| {
                CommandError::usage(format!("{} has a fragment that is not a digest", shown(url))).hint(
                    "write the digest as `#sha256=` and 64 hexadecimal digits in lower case, as `sha256sum` prints it",
                )
            })
        });
        let url = url.parse().map_err(|error| match error {
            // The text may have a password.
            ArchiveUrlError::Credentials => CommandError::usage("the URL of the bundle has a user name or a password")
                .hint("download the archive with `curl --netrc -O URL`, and use the file"),
            error => CommandError::usage(format!("{} is not the URL of an archive", shown(url))).because(&error),
        })?;
        Ok(Self::Http(Box::new(url), digest.transpose()?))
    }

    /// The source from which the controller fetches it, with the credentials in this Secret; none for what is on this machine. `text` is
    /// the argument, as the user wrote it.
    pub fn source(&self, text: &str, secret: Option<&str>) -> Option<BundleSource> {
        let auth = secret.map(|name| Authorization {
            secret: Some(LocalObjectReference { name: name.to_owned() }),
            ..Authorization::default()
        });
        match self {
            Self::Directory(_) | Self::Archive(_) => None,
            Self::Image(_) => {
                let (reference, pull_secret) = (text.to_owned(), secret.map(str::to_owned));
                Some(BundleSource::image(ImageSource { reference, pull_secret, ..ImageSource::default() }))
            }
            Self::Http(url, digest) => {
                let sha256 = digest.as_ref().map(|digest| digest.hex().to_owned());
                let url = url.text().to_owned();
                Some(BundleSource::http(HttpSource { url, sha256, auth, ..HttpSource::default() }))
            }
            Self::Git(git) => {
                let mut source = git.to_source();
                if let Some(git) = &mut source.git {
                    git.auth = auth;
                }
                Some(source)
            }
            Self::Chart(chart) => {
                let mut source = chart.to_source();
                if let Some(repository) = &mut source.http {
                    repository.auth = auth;
                }
                Some(source)
            }
        }
    }

    /// Whether it is on a server.
    pub fn is_remote(&self) -> bool {
        !matches!(self, Self::Directory(_) | Self::Archive(_))
    }
}

/// The text for a bundle or a catalog, as messages show it: one line, and a URL or an image without user name, password and query.
pub fn shown(text: &str) -> String {
    let is_path = text.starts_with(['/', '.']) || Path::new(text).exists();
    if is_path { one_line(text) } else { one_line(&shown_url(text)) }
}

/// Sets fields by the parameters of a URL. The hint says which parameters there are.
fn set_parameters<const N: usize>(
    what: &str,
    query: &str,
    mut fields: [(&str, &mut Option<String>); N],
    hint: &str,
) -> Result<(), CommandError> {
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        let Some((_, field)) = fields.iter_mut().find(|(name, _)| *name == key) else {
            return Err(
                CommandError::usage(format!("the URL of the {what} has an unknown parameter {key:?}")).hint(hint)
            );
        };
        if field.replace(value.into_owned()).is_some() {
            return Err(CommandError::usage(format!("the URL of the {what} has {key} twice")));
        }
    }
    Ok(())
}

/// Parses `https://HOST/PATH?branch=NAME&directory=PATH`: the URL of a repository, with a revision and a directory.
fn git(text: &str) -> Result<Git, CommandError> {
    let (url, query) = text.split_once('?').unwrap_or((text, ""));
    let mut source = GitSource { repository: url.to_owned(), ..GitSource::default() };
    let reference = &mut source.reference;
    let fields = [
        ("branch", &mut reference.branch),
        ("tag", &mut reference.tag),
        ("semver", &mut reference.semver),
        ("commit", &mut reference.commit),
        ("directory", &mut source.directory),
    ];
    set_parameters("repository", query, fields, "the parameters are branch, tag, semver or commit, and directory")?;
    let is_ssh = url.starts_with("ssh:") || !url.contains("://");
    Git::parse(&source).map_err(|error| {
        let (message, hint) = match &error {
            // The text may have a password.
            InvalidSource::Repository(RepositoryUrlError::Url(ArchiveUrlError::Credentials)) => {
                let message = "the URL of the repository has a user name or a password".to_owned();
                return CommandError::usage(message).hint("clone the repository, and use the directory");
            }
            _ if is_ssh => ("is not fetched by this command", "clone the repository, and use the directory"),
            InvalidSource::GitRef => {
                ("needs a revision", "add one of ?branch=NAME, ?tag=NAME, ?semver=RANGE and ?commit=DIGITS")
            }
            _ => ("is not a repository that can be fetched", "write git+https://HOST/PATH?branch=NAME&directory=PATH"),
        };
        CommandError::usage(format!("git+{} {message}", shown(url))).because(&error).hint(hint)
    })
}

/// Parses `https://HOST/PATH?chart=NAME&version=RANGE`: the URL of a Helm repository, with a chart and a version.
fn chart(text: &str) -> Result<Http, CommandError> {
    const FORM: &str = "write 'helm+https://HOST/PATH?chart=NAME&version=VERSION'";
    let (url, query) = text.split_once('?').unwrap_or((text, ""));
    if url.starts_with("oci:") {
        return Err(CommandError::usage(format!("helm+{} is not the URL of a Helm repository", shown(url)))
            .hint("write a chart in a registry as an image: `registry.example.com/charts/web:1.2.3`"));
    }
    let mut source = HttpSource { url: url.to_owned(), ..HttpSource::default() };
    // A plus in a version stays a plus.
    let query = query.replace('+', "%2B");
    let fields = [("chart", &mut source.chart), ("version", &mut source.version), ("sha256", &mut source.sha256)];
    let hint = "the parameters are chart, version and sha256; a repository whose URL has others is named in a manifest (spec.source.http.url)";
    set_parameters("Helm repository", &query, fields, hint)?;
    if source.chart.is_none() {
        return Err(CommandError::usage(format!("helm+{} does not name a chart", shown(url))).hint(FORM));
    }
    Http::parse(&source).map_err(|error| {
        if matches!(error, InvalidSource::Url(ArchiveUrlError::Credentials)) {
            // The text may have a password.
            return CommandError::usage("the URL of the Helm repository has a user name or a password")
                .hint("download the chart with `helm pull`, and use the file");
        }
        let failed = CommandError::usage(format!("helm+{} is not a chart that can be fetched", shown(url)));
        failed.because(&error).hint(FORM)
    })
}

/// The most likely error in an image that cannot be parsed.
fn image_hint(text: &str) -> &'static str {
    match text.split_once('@') {
        Some((_, digest)) if digest.len() != "sha256:".len() + 64 => "a digest is `sha256:` and 64 hexadecimal digits",
        _ if text.contains(|c: char| c.is_ascii_uppercase()) => "write the repository in lower case",
        _ => "write an image with its registry and tag: `quay.io/example/bundle:v1`",
    }
}

/// Whether a text that is not a path looks like an image reference: it has a registry, a tag or a digest. Container tools would look
/// for anything else on Docker Hub, but a mistyped path is more likely.
fn is_like_an_image(text: &str) -> bool {
    let (registry, path) = text.split_once('/').unwrap_or(("", text));
    let path_only = text.starts_with(['/', '.']);
    !path_only && (registry.contains(['.', ':']) || registry == "localhost" || path.contains([':', '@']))
}

/// Whether the text is a bundle. The name of a BundleDeployment has no slash, colon or dot.
pub fn is_bundle(text: &str) -> bool {
    text.contains(['/', ':', '.', std::path::MAIN_SEPARATOR])
}

/// Whether the text may be a package of a catalog: `PACKAGE` or `PACKAGE@RANGE`. The name of a package is a DNS label; what follows the `@`
/// of an image has a colon.
pub fn is_package(text: &str) -> bool {
    let (name, range) = text.split_once('@').unwrap_or((text, ""));
    dns_name::is_label(name) && !range.contains([':', '/'])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::view::error::FailureKind;

    #[test]
    fn a_chart_is_named_by_its_repository() {
        let source = |text: &str| {
            let origin = Origin::parse(&format!("helm+https://charts.example.com/stable{text}"))
                .map_err(|error| error.to_string())?;
            Ok(serde_json::to_value(origin.source(text, Some("key")).unwrap()).unwrap()["http"].clone())
        };
        let secret = json!({"secret": {"name": "key"}});
        let url = "https://charts.example.com/stable";
        for (text, expected) in [
            ("?chart=web", json!({"url": url, "chart": "web", "auth": secret})),
            (
                "?chart=web&version=1.2.3+b.1",
                json!({"url": url, "chart": "web", "version": "1.2.3+b.1", "auth": secret}),
            ),
            ("?version=>=1.2 <2&chart=web", json!({"url": url, "chart": "web", "version": ">=1.2 <2", "auth": secret})),
            ("?chart=web&version=%5E1", json!({"url": url, "chart": "web", "version": "^1", "auth": secret})),
        ] {
            assert_eq!(source(text), Ok::<_, String>(expected), "{text}");
        }
        let errors =
            ["", "?version=1", "?chart=web&versoin=1", "?chart=web&chart=b", "?chart=a/b", "/index.yaml?chart=web"]
                .map(|text| source(text).unwrap_err());
        let others = [
            "helm+oci://ghcr.io/x/web:1",
            "helm+https://user:s3cret@example.com?chart=web",
            "https://charts.example.com?chart=web",
            "https://charts.example.com/stable/index.yaml",
        ];
        let others = others.map(|text| Origin::parse(text).unwrap_err().to_string());
        insta::assert_snapshot!([&errors[..], &others[..]].concat().join("\n"));
    }

    #[test]
    fn a_path_that_exists_comes_first_and_any_other_text_must_look_like_an_image() {
        assert_eq!(Origin::parse("src").unwrap(), Origin::Directory("src".into()));
        assert_eq!(Origin::parse("Cargo.toml").unwrap(), Origin::Archive("Cargo.toml".into()));
        for image in [
            "quay.io/example/bundle:v1",
            "localhost/bundle",
            "registry:5000/bundle",
            "busybox:1",
            "example/bundle@sha256:",
        ] {
            assert!(is_like_an_image(image), "{image}");
        }
        assert!(matches!(Origin::parse("quay.io/example/bundle:v1").unwrap(), Origin::Image(_)));
        let archive = "https://example.com/harbour.tgz";
        let digest = "0".repeat(64);
        let parsed = Origin::parse(&format!("{archive}#sha256={digest}")).unwrap();
        assert_eq!(parsed, Origin::Http(Box::new(archive.parse().unwrap()), format!("sha256:{digest}").parse().ok()));
        assert!(matches!(Origin::parse("http://localhost:8080/harbour.zip?x=1").unwrap(), Origin::Http(_, None)));
        for text in [
            "https://quay.io/example/bundle:v1",
            "oci://quay.io/example/bundle",
            "ftp://example.com/a.tgz",
            "https://user:s3cret@example.com/a.tgz",
            "https://user:s3cret@example.com/a:v1",
            "https://user:s3cret@example.com/a.tgz#md5=0",
            "https://user:s3cret@example.com:x/a.tgz",
            "oci://user:s3cret@example.com/a:v1",
            "docker://user:s3cret@example.com/a:v1",
            "ftp://user:s3cret@example.com/a.tgz",
            "ftp://example.com/a.tgz?token=s3cret",
            "user:s3cret@example.com/a:v1",
            "user:s3cret@example.com/A",
            "git+file://user:s3cret@example.com/a.git?branch=a",
            "git+ssh://user:s3cret@example.com/a.git?branch=a",
            "git+user:s3cret@example.com:a.git?branch=a",
            "https://example.com/a.tgz#sha256=0",
            "https://example.com/a.tgz#md5=0",
            "git+https://example.com/a.git",
            "git+https://example.com/a.git?branch=a&tag=b",
            "git+https://example.com/a.git?branch=a&branch=b",
            "git+https://example.com/a.git?ref=a",
            "git+https://example.com/a.git?branch=a&directory=../b",
            "git+https://user:s3cret@example.com/a.git?branch=a",
            "git+ssh://git@example.com/a.git?branch=a",
            "git+ext::sh -c id?branch=a",
            "git+git@example.com:a.git?branch=a",
            "git+",
        ] {
            let error = Origin::parse(text).unwrap_err();
            assert_eq!(error.kind(), FailureKind::Usage, "{text}");
            assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
        }
        for text in ["./not-there", "/not/there", "not-there", "a/b:c:d", "not/there", "X.io/../y", &"x/".repeat(5000)]
        {
            assert_eq!(Origin::parse(text).unwrap_err().kind(), FailureKind::Usage, "{text}");
        }
    }

    #[test]
    fn a_repository_has_a_revision_and_a_directory() {
        let text = "git+https://example.com/team/bundles.git?semver=%3E%3D1.2,%20%3C2&directory=bundles/harbour";
        let origin = Origin::parse(text).unwrap();
        let expected = json!({
            "type": "git",
            "git": {
                "repository": "https://example.com/team/bundles.git", "directory": "bundles/harbour",
                "ref": {"semver": ">=1.2, <2"}, "auth": {"secret": {"name": "token"}},
            },
        });
        assert_eq!(serde_json::to_value(origin.source(text, Some("token")).unwrap()).unwrap(), expected);
        assert!(origin.is_remote());
        assert_eq!(Origin::parse("src").unwrap().source("src", None), None);
    }

    #[test]
    fn a_package_has_a_range_and_an_image_has_a_colon() {
        for (text, package) in [
            ("prometheus", true),
            ("prometheus@0.56.0", true),
            ("shop@>=3, <4", true),
            ("./prometheus", false),
            ("prometheus.tgz", false),
            ("busybox:1", false),
            ("busybox@sha256:0123", false),
            ("quay.io/x/y", false),
            ("@1", false),
        ] {
            assert_eq!(is_package(text), package, "{text}");
        }
    }

    #[test]
    fn a_path_or_an_image_is_a_bundle_and_a_name_is_not() {
        for (text, bundle) in [("./my-operator", true), (".", true), ("quay.io/x/y:v1", true), ("my-operator", false)] {
            assert_eq!(is_bundle(text), bundle, "{text}");
        }
    }
}
