//! The settings of registries, and the endpoints of an image. Pure.

use crate::{
    name::normalized,
    scope::{Location, Scope},
};

/// The most mirrors of one source: each that does not answer delays a pull.
pub const MIRRORS: usize = 32;

/// The settings of all registries. The default has none: every image is pulled from where its reference says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registries {
    /// At most one for each scope.
    pub(crate) tables: Vec<Table>,
}

/// The settings for the images of one scope: a table `[[registry]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) scope: Scope,
    /// Where the images are instead; `None` if they are where their names say.
    pub(crate) location: Option<Location>,
    pub(crate) insecure: bool,
    pub(crate) blocked: bool,
    pub(crate) mirrors: Vec<Mirror>,
}

/// A mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mirror {
    pub(crate) location: Location,
    pub(crate) insecure: bool,
    pub(crate) pull: Pull,
}

/// The images that are pulled from a mirror.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pull {
    #[default]
    All,
    DigestOnly,
    TagOnly,
}

/// The tag or digest of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version<'a> {
    /// A tag.
    Tag(&'a str),
    /// A digest, with its algorithm.
    Digest(&'a str),
}

/// Where an image can be pulled from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The reference of the image there.
    pub reference: String,
    /// Whether TLS with any certificate, or no TLS, is allowed.
    pub insecure: bool,
    /// Whether it is a mirror, and not where the images of the source are.
    pub is_mirror: bool,
}

/// An image must not be pulled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("images of {scope} are blocked by the settings for registries (`blocked`, or `NeverContactSource`)")]
pub struct Blocked {
    /// The prefix that blocks it.
    pub scope: String,
}

impl Registries {
    /// The endpoints of an image, in the order in which they are asked: the mirrors, then where its name or a `location` says. The
    /// image is named by `host[:port]/repository`, with `docker.io` for Docker Hub.
    ///
    /// Of a source that is blocked and has mirrors only the mirrors are asked, and never a mirror that is itself blocked.
    ///
    /// # Errors
    /// No endpoint may be asked.
    pub fn endpoints(&self, repository: &str, version: Version<'_>) -> Result<Vec<Endpoint>, Blocked> {
        let name = normalized(repository);
        let version_text = version.to_string();
        let own = |insecure| Endpoint { reference: format!("{repository}{version_text}"), insecure, is_mirror: false };
        let Some((table, rest)) = self.find(&name, &version_text) else { return Ok(vec![own(false)]) };
        let mut endpoints: Vec<Endpoint> = Vec::new();
        for mirror in table.mirrors.iter().filter(|mirror| mirror.pull.covers(version)) {
            let target = format!("{}{rest}", mirror.location.as_str());
            if self.blocked(&target, &version_text).is_none() {
                let reference = format!("{target}{version_text}");
                endpoints.push(Endpoint { reference, insecure: mirror.insecure, is_mirror: true });
            }
        }
        let blocked = if table.blocked {
            Some(table)
        } else {
            let target = table.location.as_ref().map(|location| format!("{}{rest}", location.as_str()));
            let blocked = target.as_ref().and_then(|target| self.blocked(target, &version_text));
            let primary = match target {
                // The spelling of a name that leads to itself stays.
                Some(target) if target != name => {
                    let reference = format!("{target}{version_text}");
                    Endpoint { reference, insecure: table.insecure, is_mirror: false }
                }
                _ => own(table.insecure),
            };
            if blocked.is_none() {
                endpoints.push(primary);
            }
            blocked
        };
        match blocked {
            Some(table) if endpoints.is_empty() => Err(Blocked { scope: table.scope.text() }),
            _ => Ok(endpoints),
        }
    }

    /// The prefix that blocks a host (`host` or `host:port`) as a whole. One with a path does not: it is about images that are named so.
    pub fn blocked_host(&self, host: &str) -> Option<String> {
        self.blocked(&normalized(host), "").map(|table| table.scope.text())
    }

    /// Why an image must not be pushed, since its own registry is blocked: mirrors and locations are for pulls.
    ///
    /// # Errors
    /// A table blocks the image.
    pub fn may_push(&self, repository: &str, version: Version<'_>) -> Result<(), Blocked> {
        match self.blocked(&normalized(repository), &version.to_string()) {
            Some(table) => Err(Blocked { scope: table.scope.text() }),
            None => Ok(()),
        }
    }

    /// Whether any registry has settings.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// The table for an image, and what follows its scope in the name of the repository.
    pub(crate) fn find<'a>(&self, name: &'a str, version: &str) -> Option<(&Table, &'a str)> {
        let matching = self.tables.iter().filter_map(|table| Some((table, table.scope.rest(name, version)?)));
        matching.max_by_key(|(table, _)| table.scope.specificity())
    }

    /// The table that blocks an image.
    fn blocked(&self, name: &str, version: &str) -> Option<&Table> {
        self.find(name, version).map(|(table, _)| table).filter(|table| table.blocked)
    }

    /// Adds a table, in place of the one with this scope.
    pub(crate) fn set(&mut self, table: Table) {
        match self.tables.iter_mut().find(|known| known.scope == table.scope) {
            Some(known) => *known = table,
            None => self.tables.push(table),
        }
    }
}

impl Pull {
    fn covers(self, version: Version<'_>) -> bool {
        match self {
            Self::All => true,
            Self::DigestOnly => matches!(version, Version::Digest(_)),
            Self::TagOnly => matches!(version, Version::Tag(_)),
        }
    }
}

impl std::fmt::Display for Version<'_> {
    /// With the separator.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tag(tag) => write!(f, ":{tag}"),
            Self::Digest(digest) => write!(f, "@{digest}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn registries(text: &str) -> Registries {
        let mut registries = Registries::default();
        registries.add_file("registries.conf".as_ref(), text).unwrap();
        registries
    }

    /// The references, with `!` after those that are insecure, or why there are none.
    fn asked(text: &str, image: &str) -> String {
        let (repository, version) = match image.split_once('@') {
            Some((repository, _)) => (repository, Version::Digest(DIGEST)),
            None => image.rsplit_once(':').map(|(name, tag)| (name, Version::Tag(tag))).unwrap(),
        };
        match registries(text).endpoints(repository, version) {
            Ok(endpoints) => {
                let texts = endpoints.iter().map(|endpoint| {
                    let reference = endpoint.reference.replace(DIGEST, "digest");
                    format!("{reference}{}", if endpoint.insecure { "!" } else { "" })
                });
                texts.collect::<Vec<_>>().join(" ")
            }
            Err(error) => format!("blocked by {}", error.scope),
        }
    }

    /// The example of containers-registries.conf(5).
    const MANUAL: &str = r#"
unqualified-search-registries = ["example.com"]

[[registry]]
prefix = "example.com/foo"
insecure = false
blocked = false
location = "internal-registry-for-example.com/bar"

[[registry.mirror]]
location = "example-mirror-0.local/mirror-for-foo"

[[registry.mirror]]
location = "example-mirror-1.local/mirrors/foo"
insecure = true

[[registry]]
location = "registry.com"

[[registry.mirror]]
location = "mirror.registry.com"
pull-from-mirror = "digest-only"

[[registry.mirror]]
location = "tags.registry.com"
pull-from-mirror = "tag-only"
"#;

    #[test]
    fn the_examples_of_the_manual() {
        for (image, expected) in [
            (
                "example.com/foo/image:latest",
                "example-mirror-0.local/mirror-for-foo/image:latest example-mirror-1.local/mirrors/foo/image:latest! \
                 internal-registry-for-example.com/bar/image:latest",
            ),
            ("example.com/food/image:latest", "example.com/food/image:latest"),
            ("registry.com/image:v1", "tags.registry.com/image:v1 registry.com/image:v1"),
            ("registry.com/image@digest", "mirror.registry.com/image@digest registry.com/image@digest"),
            ("quay.io/a:v1", "quay.io/a:v1"),
        ] {
            assert_eq!(asked(MANUAL, image), expected, "{image}");
        }
    }

    #[test]
    fn the_longest_prefix_decides() {
        let text = r#"
[[registry]]
prefix = "*.example.com"
insecure = true
[[registry]]
prefix = "*.b.example.com"
blocked = true
[[registry]]
prefix = "a.example.com"
[[registry]]
prefix = "a.example.com/x"
location = "one.local"
[[registry]]
prefix = "a.example.com/x/y"
location = "two.local/z"
[[registry]]
prefix = "a.example.com/x/y:v1"
location = "three.local/w"
"#;
        for (image, expected) in [
            ("c.example.com:5000/x:v1", "c.example.com:5000/x:v1!"),
            ("c.b.example.com/x:v1", "blocked by *.b.example.com"),
            ("a.example.com/z:v1", "a.example.com/z:v1"),
            ("a.example.com/x/z:v1", "one.local/z:v1"),
            ("a.example.com/x/y:v2", "two.local/z:v2"),
            ("a.example.com/x/y:v1", "three.local/w:v1"),
            ("a.example.com/x/y/v:v1", "two.local/z/v:v1"),
            ("A.Example.com:443/x/z:v1", "one.local/z:v1"),
            ("A.Example.com:443/z:v1", "A.Example.com:443/z:v1"),
        ] {
            assert_eq!(asked(text, image), expected, "{image}");
        }
    }

    #[test]
    fn what_is_blocked_is_not_asked() {
        let text = r#"
[[registry]]
location = "quay.io"
blocked = true
[[registry]]
location = "index.docker.io/a"
blocked = true
[[registry]]
location = "localhost"
blocked = true
[[registry]]
location = "quay.io/mirrored"
blocked = true
[[registry.mirror]]
location = "mirror.local"
[[registry]]
prefix = "moved.io"
location = "quay.io/moved"
[[registry]]
location = "other.io"
[[registry.mirror]]
location = "quay.io/other"
[[registry]]
location = "tags.io"
blocked = true
mirror-by-digest-only = true
[[registry.mirror]]
location = "mirror.local"
"#;
        for (image, expected) in [
            ("quay.io/a:v1", "blocked by quay.io"),
            ("QUAY.io:443/a@digest", "blocked by quay.io"),
            ("INDEX.docker.io/a/b:v1", "blocked by docker.io/a"),
            ("Docker.io:443/a/b:v1", "blocked by docker.io/a"),
            ("LOCALHOST:80/a:v1", "blocked by localhost"),
            ("localhost:443/a:v1", "blocked by localhost"),
            ("localhost:5000/a:v1", "localhost:5000/a:v1"),
            ("quay.io/mirrored/a:v1", "mirror.local/a:v1"),
            ("moved.io/a:v1", "blocked by quay.io"),
            ("other.io/a:v1", "other.io/a:v1"),
            ("tags.io/a:v1", "blocked by tags.io"),
            ("tags.io/a@digest", "mirror.local/a@digest"),
        ] {
            assert_eq!(asked(text, image), expected, "{image}");
        }
    }

    #[test]
    fn a_host_is_blocked_as_a_whole_or_not() {
        let text = r#"
[[registry]]
location = "quay.io"
blocked = true
[[registry]]
location = "quay.io/open"
[[registry]]
location = "ghcr.io/team"
blocked = true
[[registry]]
location = "ghcr.io/app:v1"
blocked = true
[[registry]]
prefix = "*.example.com"
blocked = true
[[registry]]
location = "open.example.com"
"#;
        let registries = registries(text);
        for (host, expected) in [
            ("quay.io", Some("quay.io")),
            ("QUAY.io:443", Some("quay.io")),
            ("quay.io:5000", None),
            ("cdn.quay.io", None),
            ("ghcr.io", None),
            ("a.b.example.com:5000", Some("*.example.com")),
            ("open.example.com", None),
            ("open.example.com:5000", Some("*.example.com")),
            ("example.com", None),
        ] {
            assert_eq!(registries.blocked_host(host).as_deref(), expected, "{host}");
        }
    }

    proptest! {
        /// A decision is an order of the configured places: never another host, never another version, and nothing that is blocked.
        #[test]
        fn only_configured_places_are_asked(
            host in "(a|b|c|x\\.a)\\.io(:443|:80)?", path in "[xy](/[xy]){0,2}", blocked in any::<[bool; 3]>(), tag in "[a-z]{1,3}"
        ) {
            let text = format!(
                "[[registry]]\nlocation = \"a.io\"\nblocked = {}\n[[registry.mirror]]\nlocation = \"b.io/x\"\n\
                 [[registry]]\nlocation = \"b.io\"\nblocked = {}\n[[registry]]\nprefix = \"*.a.io\"\nblocked = {}\n",
                blocked[0], blocked[1], blocked[2],
            );
            let registries = registries(&text);
            let name = format!("{host}/{path}");
            let plain = normalized(&name);
            let endpoints = registries.endpoints(&name, Version::Tag(&tag)).unwrap_or_default();
            for endpoint in &endpoints {
                let (place, version) = endpoint.reference.rsplit_once(':').unwrap();
                prop_assert_eq!(version, &tag);
                prop_assert!(place == name || place == format!("b.io/x/{path}"), "{}", place);
                let blocking = registries.blocked(&normalized(place), &Version::Tag(&tag).to_string());
                prop_assert!(blocking.is_none());
            }
            let is_blocked = (plain.starts_with("a.io/") && blocked[0] && blocked[1])
                || (plain.starts_with("b.io/") && blocked[1])
                || (plain.starts_with("x.a.io") && blocked[2]);
            prop_assert_eq!(endpoints.is_empty(), is_blocked);
        }
    }
}
