//! Every kind of source: the one place that reads the fields of a `BundleSource`.

use std::fmt;

use chandler_api::BundleSource;

use crate::{
    Environment, ImageRules, InvalidSource, NotObtained, Obtained, SourceError, SourceKind, Sources, Wanted,
    kinds::{config_maps::ConfigMaps, git::Git, http::Http, image::Image, upload::Upload},
    resolutions::Resolution,
};

/// Declares [`Source`] and [`Pinned`], with one variant for each kind, and passes calls on to the kind.
macro_rules! kinds {
    (
        $($(#[$doc:meta])* $variant:ident($kind:ty) = $field:ident;)+
    ) => {
        /// The source of a bundle, parsed.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Source { $($(#[$doc])* $variant($kind),)+ }

        /// Exactly the content that a source resolved to.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Pinned { $($(#[$doc])* $variant(<$kind as SourceKind>::Pin),)+ }

        impl Source {
            /// Reads the source of a spec or of a record.
            ///
            /// # Errors
            /// The type is unknown, the field that it names is not set, another one is set, or the field is
            /// invalid.
            pub fn parse(source: &BundleSource) -> Result<Self, InvalidSource> {
                let fields = [
                    $((<$kind as SourceKind>::TYPE, source.$field.is_some()),)+
                ];
                check(&source.kind, &fields)?;
                $(if let Some(spec) = &source.$field {
                    return <$kind as SourceKind>::parse(spec).map(Self::$variant);
                })+
                Err(InvalidSource::UnknownType(source.kind.clone()))
            }

            /// Whether the source may resolve to other content later.
            pub fn can_move(&self) -> bool {
                match self { $(Self::$variant(kind) => kind.can_move(),)+ }
            }

            /// Where the content is, in one word, or `None` if no single name says so.
            pub fn location(&self) -> Option<&str> {
                match self { $(Self::$variant(kind) => kind.location(),)+ }
            }

            /// Whether the content is used only if it is signed.
            pub(crate) fn is_verified(&self, rules: &ImageRules) -> bool {
                match self { $(Self::$variant(kind) => kind.is_verified(rules),)+ }
            }

            /// This recorded source with the certificates and the policy of the current one, which records do not keep.
            pub fn with_certificates_of(self, current: &Self) -> Self {
                match (self, current) {
                    $((Self::$variant(kind), Self::$variant(current)) => Self::$variant(kind.with_certificates_of(current)),)+
                    (recorded, _) => recorded,
                }
            }

            /// The pin that a recorded source names, if this source may still resolve to it.
            pub(crate) fn recorded_pin(&self, recorded: &Self) -> Option<Pinned> {
                match (self, recorded) {
                    $((Self::$variant(kind), Self::$variant(recorded)) => kind.recorded_pin(recorded).map(Pinned::from),)+
                    _ => None,
                }
            }

            pub(crate) async fn obtain(
                &self,
                wanted: &Wanted<'_>,
                environment: Environment<'_>,
            ) -> Result<Obtained, NotObtained> {
                match self { $(Self::$variant(kind) => Sources::obtain_kind(kind, wanted, environment).await,)+ }
            }

            pub(crate) async fn check(
                &self,
                asked: &Resolution,
                environment: Environment<'_>,
            ) -> Result<Option<Pinned>, SourceError> {
                match self { $(Self::$variant(kind) => Sources::check_kind(kind, asked, environment).await,)+ }
            }
        }

        impl Pinned {
            /// The source of the API that names this content.
            pub fn to_api(&self) -> BundleSource {
                match self { $(Self::$variant(pin) => <$kind as SourceKind>::to_api(pin),)+ }
            }
        }

        $(
            impl From<<$kind as SourceKind>::Pin> for Pinned {
                fn from(pin: <$kind as SourceKind>::Pin) -> Self {
                    Self::$variant(pin)
                }
            }

            impl TryFrom<Pinned> for <$kind as SourceKind>::Pin {
                type Error = Pinned;

                fn try_from(pinned: Pinned) -> Result<Self, Pinned> {
                    match pinned {
                        Pinned::$variant(pin) => Ok(pin),
                        other => Err(other),
                    }
                }
            }
        )+

        /// A short text for people, such as `image quay.io/example/harbour:v1`.
        pub fn describe(source: &BundleSource) -> String {
            $(if let Some(spec) = &source.$field {
                return <$kind as SourceKind>::describe(spec);
            })+
            source.kind.clone()
        }

        /// The source without certificates, as it is recorded: certificates are long, and the spec has them.
        pub fn without_certificates(source: &BundleSource) -> BundleSource {
            let mut source = source.clone();
            $(if let Some(spec) = &mut source.$field {
                <$kind as SourceKind>::remove_certificates(spec);
            })+
            source
        }
    };
}

kinds! {
    /// An image in an OCI registry.
    Image(Image) = image;
    /// ConfigMaps of the system namespace.
    ConfigMaps(ConfigMaps) = config_maps;
    /// A directory of a git repository.
    Git(Git) = git;
    /// An archive on an HTTP server, or a chart in a Helm repository.
    Http(Http) = http;
    /// Content that was uploaded to the content service.
    Upload(Upload) = upload;
}

/// Fails unless the field that the type names is set, and no other.
fn check(kind: &str, fields: &[(&'static str, bool)]) -> Result<(), InvalidSource> {
    if fields.iter().all(|(name, _)| *name != kind) {
        return Err(InvalidSource::UnknownType(kind.to_owned()));
    }
    for (name, is_set) in fields {
        match (*name == kind, is_set) {
            (true, false) => return Err(InvalidSource::Missing { field: name }),
            (false, true) => return Err(InvalidSource::Conflicting { kind: kind.to_owned(), field: name }),
            _ => {}
        }
    }
    Ok(())
}

impl fmt::Display for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&describe(&self.to_api()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const DIGEST: &str = "quay.io/a@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn source(value: Value) -> BundleSource {
        serde_json::from_value(value).unwrap()
    }

    fn image(reference: &str) -> Value {
        json!({"type": "image", "image": {"ref": reference}})
    }

    fn git(reference: Value) -> Value {
        json!({"type": "git", "git": {"repository": "https://example.com/a", "ref": reference}})
    }

    #[test]
    fn the_recorded_commit_is_used_for_the_same_directory_only() {
        let pin = |directory: &str, recorded: &str| {
            let of = |directory: &str, reference: Value| {
                let mut value = git(reference);
                value["git"]["directory"] = json!(directory);
                Source::parse(&source(value)).unwrap()
            };
            let commit = of(recorded, json!({"commit": "1".repeat(40)}));
            of(directory, json!({"branch": "main"})).recorded_pin(&commit).map(|pin| pin.to_string())
        };
        assert_eq!(pin("a/b", "./a//b"), Some(format!("git https://example.com/a {}", "1".repeat(40))));
        assert_eq!(pin("a/b", "a"), None);
    }

    #[test]
    fn a_source_has_the_field_that_its_type_names_and_no_other() {
        let map = json!([{"configMap": {"name": "bell"}}]);
        for (value, field, message) in [
            (json!({"type": "ftp"}), "spec.source.type", r#"source type "ftp" not supported"#),
            (json!({"type": ""}), "spec.source.type", r#"source type "" not supported"#),
            (
                json!({"type": "image"}),
                "spec.source.image",
                r#"spec.source.image: must be set for source type "image""#,
            ),
            (
                json!({"type": "image", "configMaps": map}),
                "spec.source.image",
                r#"spec.source.image: must be set for source type "image""#,
            ),
            (
                json!({"type": "image", "image": {"ref": "quay.io/a:v1"}, "configMaps": map}),
                "spec.source.configMaps",
                r#"spec.source.configMaps: must not be set for source type "image""#,
            ),
            (
                json!({"type": "configMaps", "configMaps": map, "http": {"url": "https://example.com/a.tgz"}}),
                "spec.source.http",
                r#"spec.source.http: must not be set for source type "configMaps""#,
            ),
            (
                json!({"type": "http", "http": {"url": "https://user:s3cret@example.com/a.tgz"}}),
                "spec.source.http.url",
                "spec.source.http.url: it has a user name or a password: put them into the Secret of auth.secret",
            ),
            (
                json!({"type": "http", "http": {"url": "https://example.com/a.tgz", "sha256": "E3B0"}}),
                "spec.source.http.sha256",
                "spec.source.http.sha256: it is not 64 hexadecimal digits in lower case",
            ),
            (
                json!({"type": "http", "http": {"url": "oci://example.com/charts", "chart": "web"}}),
                "spec.source.http.url",
                "spec.source.http.url: its scheme is neither https nor http",
            ),
            (
                json!({"type": "http", "http": {"url": "https://example.com/index.yaml", "chart": "web"}}),
                "spec.source.http.url",
                "spec.source.http.url: it must not end with /index.yaml, which is added to it",
            ),
            (
                json!({"type": "http", "http": {"url": "https://example.com", "chart": "web", "version": "^1", "sha256": "0".repeat(64)}}),
                "spec.source.http.version",
                "spec.source.http.version: must be one version, not a range, where chart and sha256 are set",
            ),
            (
                json!({"type": "http", "http": {"url": "https://example.com/a.tgz", "version": "1.2.3"}}),
                "spec.source.http.version",
                "spec.source.http.version: only a chart has a version: set chart as well",
            ),
            (
                json!({"type": "http", "http": {"url": "https://example.com", "chart": "stable/web"}}),
                "spec.source.http.chart",
                "spec.source.http.chart: it is not the name of a chart: at most 250 letters, digits, `-`, `_` and dots",
            ),
            (
                json!({"type": "http", "http": {"url": "https://example.com", "chart": "web", "version": "newest"}}),
                "spec.source.http.version",
                "spec.source.http.version: it is neither a version, such as 1.2.3, nor a range, such as ^1.2 or \">=1.2 <2\"",
            ),
            (
                json!({"type": "http", "http": {"url": "https://example.com", "chart": "web", "sha256": "0".repeat(64)}}),
                "spec.source.http.version",
                "spec.source.http.version: must be one version, not a range, where chart and sha256 are set",
            ),
            (
                json!({"type": "git", "git": {"repository": "git@example.com:-a", "ref": {"tag": "v1"}}}),
                "spec.source.git.repository",
                "spec.source.git.repository: its path is empty, longer than 1024 bytes, begins with -, or has a control character",
            ),
            (
                json!({"type": "git", "git": {"repository": "git@example.com:a.git", "ref": {"tag": "v1"}}}),
                "spec.source.git.auth.secret",
                "spec.source.git.auth.secret: must be set over SSH: a Secret with the keys ssh-privatekey and ssh-knownhosts",
            ),
            (
                json!({"type": "git", "git": {"repository": "ssh://git@example.com/a", "ref": {"tag": "v1"},
                    "auth": {"secret": {"name": "a"}, "insecureSkipVerify": true}}}),
                "spec.source.git.auth.insecureSkipVerify",
                "spec.source.git.auth.insecureSkipVerify: host keys are always checked over SSH",
            ),
            (
                json!({"type": "git", "git": {"repository": "ssh://git@example.com/a", "ref": {"tag": "v1"},
                    "auth": {"secret": {"name": "a"}}, "certificateData": "x"}}),
                "spec.source.git.certificateData",
                "spec.source.git.certificateData: a server has no certificate over SSH; ssh-knownhosts of the Secret has its host key",
            ),
            (
                json!({"type": "git", "git": {"repository": "https://example.com/a", "ref": {"commit": "0123abc"}}}),
                "spec.source.git.ref.commit",
                "spec.source.git.ref.commit: a commit is named by all of its 40 hexadecimal digits",
            ),
            (
                json!({"type": "git", "git": {"repository": "https://example.com/a", "ref": {"semver": "newest"}}}),
                "spec.source.git.ref.semver",
                "spec.source.git.ref.semver: \"newest\" is not a range of versions, such as \">=1.2, <2\"",
            ),
            (
                json!({"type": "git", "git": {"repository": "https://example.com/a", "ref": {"branch": "a\nwant b"}}}),
                "spec.source.git.ref.branch",
                "spec.source.git.ref.branch: it is not the name of a branch or tag",
            ),
            (
                json!({"type": "git", "git": {"repository": "https://example.com/a", "ref": {}}}),
                "spec.source.git.ref",
                "spec.source.git.ref: exactly one of branch, tag, commit, semver must be set",
            ),
            (
                json!({"type": "git", "git": {"repository": "https://example.com/a", "ref": {"tag": "v1"}, "directory": "a/.."}}),
                "spec.source.git.directory",
                "spec.source.git.directory: it leaves the repository",
            ),
        ] {
            let error = Source::parse(&source(value.clone())).unwrap_err();
            assert_eq!((error.field().as_str(), error.to_string().as_str()), (field, message), "{value}");
        }
        let error = Source::parse(&source(image("quay.io/A"))).unwrap_err();
        assert_eq!(error.field(), "spec.source.image.ref");
        assert!(error.to_string().starts_with("error parsing image reference \"quay.io/A\""), "{error}");
    }

    #[test]
    fn only_what_no_digest_names_can_move() {
        for (value, can_move) in [
            (json!({"type": "http", "http": {"url": "https://example.com/a.tgz"}}), true),
            (json!({"type": "http", "http": {"url": "https://example.com/a.tgz", "sha256": "0".repeat(64)}}), false),
            (git(json!({"branch": "main"})), true),
            (json!({"type": "http", "http": {"url": "https://a/b", "chart": "c", "version": "1.2.3"}}), true),
            (
                json!({"type": "http", "http": {"url": "https://a/b", "chart": "c", "version": "1.2.3", "sha256": "0".repeat(64)}}),
                false,
            ),
            (git(json!({"semver": ">=1"})), true),
            (git(json!({"commit": "0".repeat(40)})), false),
            (image("quay.io/a:v1"), true),
            (image("quay.io/a"), true),
            (image(DIGEST), false),
            (json!({"type": "configMaps", "configMaps": [{"configMap": {"name": "bell"}}]}), false),
        ] {
            assert_eq!(Source::parse(&source(value.clone())).unwrap().can_move(), can_move, "{value}");
        }
    }

    #[test]
    fn a_recorded_source_gets_the_current_certificates() {
        let current = json!({"type": "image", "image": {"ref": "quay.io/a:v1", "certificateData": "PEM"}});
        let current = source(current);
        let recorded = without_certificates(&current);
        assert_eq!(recorded, source(image("quay.io/a:v1")));
        let restored = Source::parse(&recorded).unwrap().with_certificates_of(&Source::parse(&current).unwrap());
        assert_eq!(restored, Source::parse(&current).unwrap());
        let maps = json!({"type": "configMaps", "configMaps": [{"configMap": {"name": "bell"}}]});
        let maps = Source::parse(&source(maps)).unwrap();
        assert_eq!(Source::parse(&recorded).unwrap().with_certificates_of(&maps), Source::parse(&recorded).unwrap());
    }

    #[test]
    fn the_recorded_digest_is_used_for_the_same_repository_only() {
        let pin = |now: &str, recorded: &str| {
            let parse = |reference: &str| Source::parse(&source(image(reference))).unwrap();
            parse(now).recorded_pin(&parse(recorded)).map(|pin| pin.to_string())
        };
        assert_eq!(pin("quay.io/a:v2", DIGEST), Some(format!("image {DIGEST}")));
        assert_eq!(pin("quay.io/b:v2", DIGEST), None);
        assert_eq!(pin("ghcr.io/a:v2", DIGEST), None);
        assert_eq!(pin("quay.io/a:v2", "quay.io/a:v1"), None);
    }

    #[test]
    fn the_recorded_digest_of_an_archive_is_used_for_the_same_url_only() {
        let digest = "0".repeat(64);
        let pin = |now: &str, recorded: Value| {
            let parse = |value: Value| Source::parse(&source(json!({"type": "http", "http": value}))).unwrap();
            let pin = parse(json!({"url": now, "certificateData": "PEM"})).recorded_pin(&parse(recorded));
            pin.map(|pin| serde_json::to_value(pin.to_api().http).unwrap())
        };
        let (url, other) = ("https://example.com/a.tgz", "https://example.com/b.tgz");
        let pinned = json!({"url": url, "sha256": digest});
        let expected = json!({"url": url, "sha256": digest, "certificateData": "PEM"});
        assert_eq!(pin(url, pinned.clone()), Some(expected));
        assert_eq!(pin(other, pinned), None);
        assert_eq!(pin(url, json!({"url": url})), None);
    }

    #[test]
    fn sources_are_described_whether_known_or_not() {
        for (value, text) in [
            (image("quay.io/a:v1"), "image quay.io/a:v1"),
            (
                json!({"type": "configMaps", "configMaps": [{"configMap": {"name": "a"}}, {"configMap": {"name": "b"}}]}),
                "ConfigMaps a, b",
            ),
            (
                json!({"type": "git", "git": {"repository": "https://example.com/a", "ref": {"tag": "v1"}}}),
                "git https://example.com/a v1",
            ),
            (
                json!({"type": "http", "http": {"url": "https://example.com/a.tgz"}}),
                "archive https://example.com/a.tgz",
            ),
            (
                json!({"type": "http", "http": {"url": "https://example.com/a.tgz", "sha256": "0".repeat(64)}}),
                "archive https://example.com/a.tgz (sha256:000000000000)",
            ),
            (json!({"type": "ftp"}), "ftp"),
        ] {
            assert_eq!(describe(&source(value)), text);
        }
    }

    /// Replaces each text of a source in turn, at any depth.
    fn each_text(value: &Value, replace: &mut dyn FnMut(&str, &str), at: &str) {
        match value {
            Value::String(text) => replace(at, text),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, item)| each_text(item, replace, &format!("{at}/{index}")));
            }
            Value::Object(members) => {
                members.iter().for_each(|(name, member)| each_text(member, replace, &format!("{at}/{name}")));
            }
            _ => {}
        }
    }

    #[test]
    fn no_message_shows_the_credentials_of_a_source() {
        let auth = json!({"secret": {"name": "a"}});
        let sources = [
            json!({"type": "image", "image": {"ref": "quay.io/a:v1", "pullSecret": "a", "certificateData": "a"}}),
            json!({"type": "git", "git": {"repository": "https://example.com/a", "directory": "a", "ref": {"tag": "v1"}, "auth": auth}}),
            json!({"type": "git", "git": {"repository": "git@example.com:a", "ref": {"branch": "main"}, "auth": auth}}),
            json!({"type": "git", "git": {"repository": "https://example.com/a", "ref": {"semver": "1"}}}),
            json!({"type": "http", "http": {"url": "https://example.com/a", "sha256": "0".repeat(64), "auth": auth}}),
            json!({"type": "configMaps", "configMaps": [{"configMap": {"name": "a"}, "path": "a"}]}),
            json!({"type": "upload", "upload": {"digest": "a"}}),
        ];
        let urls = [
            "https://user:hunter2@example.com/a",
            "https://example.com/a?X-Amz-Signature=hunter2",
            "ssh://git:hunter2@example.com/a",
            "git:hunter2@example.com:a",
            "user:hunter2@quay.io/a:v1",
            "ftp://user:hunter2@example.com/a?token=hunter2",
        ];
        let mut tried = 0;
        for source in &sources {
            let mut places = Vec::new();
            each_text(source, &mut |at, _| places.push(at.to_owned()), "");
            for (at, url) in places.iter().flat_map(|at| urls.map(|url| (at, url))) {
                let mut planted = source.clone();
                *planted.pointer_mut(at).expect("a text") = json!(url);
                let planted = self::source(planted);
                let mut shown = vec![describe(&planted)];
                if let Err(error) = Source::parse(&planted) {
                    shown.extend([error.to_string(), error.field()]);
                }
                // The names of objects of the cluster, of branches and of tags are not URLs; neither is a type that the API server refuses.
                let is_name = at.ends_with("/name") || at.starts_with("/git/ref/") || at == "/type";
                assert!(is_name || !shown.iter().any(|text| text.contains("hunter2")), "{at}: {shown:?}");
                tried += 1;
            }
        }
        assert!(tried > 100, "{tried}");
    }
}
