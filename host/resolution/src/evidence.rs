//! Which bundle of a catalog a BundleDeployment has.
//!
//! The name that a bundle gives itself is not evidence: any user who may write BundleDeployments can install a bundle of any name and
//! version. The image is evidence: a catalog vouches for the images that it lists.

use chandler_api::{BundleSource, Outcome, Revision};
use chandler_resolver::{Catalogs, Installed, Source, version::VersionRelease};
use oci_spec::distribution::Reference;

/// The image of a bundle that a BundleDeployment has installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledImage {
    /// The reference by digest.
    reference: Reference,
    digest: String,
    /// The version, which the bundle states.
    version: Option<VersionRelease>,
    /// Whether the registry was authenticated as the administrator says, and not as the author of the BundleDeployment does.
    is_authentic: bool,
}

/// A bundle of a catalog, as far as evidence needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name of the bundle.
    pub name: String,
    /// Its version.
    pub version: VersionRelease,
    /// Its image: by digest or by tag.
    pub image: String,
}

impl InstalledImage {
    /// The image of the last revision that became complete and healthy. `history` comes from the record of the BundleDeployment, `spec` is
    /// its source now.
    pub fn succeeded(history: &[Revision], spec: &BundleSource) -> Option<Self> {
        Self::of(history.iter().rfind(|revision| revision.outcome == Outcome::Succeeded)?, spec)
    }

    /// The image of a revision; `None` if it has another source.
    pub fn of(revision: &Revision, spec: &BundleSource) -> Option<Self> {
        let image = revision.source.image.as_ref()?;
        let reference: Reference = image.reference.parse().ok()?;
        let own_authority = spec.image.as_ref().is_some_and(|image| image.certificate_data.is_some());
        Some(Self {
            digest: reference.digest()?.to_owned(),
            reference,
            version: revision.version.as_deref().and_then(|version| VersionRelease::parse(version, None).ok()),
            is_authentic: !image.insecure_skip_tls_verify && !own_authority,
        })
    }

    /// Whether this is the image that a catalog or a decision names.
    ///
    /// A digest is compared with the one that was installed, wherever it came from: it names the content. A tag may have moved since, so that
    /// the same tag proves nothing. Instead, the installed image has to come from the same repository and to state the same version: the
    /// owner of the repository decides what the tag is, too. Then the registry must have been authenticated.
    pub fn is(&self, image: &str, version: Option<&VersionRelease>) -> bool {
        let Ok(named) = image.parse::<Reference>() else { return false };
        if let Some(digest) = named.digest() {
            return digest == self.digest;
        }
        let place = |of: &Reference| (of.resolve_registry().to_owned(), of.repository().to_owned());
        let is_version = |(named, stated): (&VersionRelease, &VersionRelease)| {
            // A catalog may give the release apart from the version.
            named == stated || named.release().is_some() && named.version() == stated.version()
        };
        self.is_authentic
            && place(&named) == place(&self.reference)
            && version.zip(self.version.as_ref()).is_some_and(is_version)
    }
}

/// The bundles of a package that a catalog has, if it has any with a version.
///
/// # Errors
/// The catalog cannot be read.
pub fn entries(
    catalogs: &impl Catalogs,
    catalog: &str,
    package: &str,
) -> Result<Vec<Entry>, chandler_resolver::CatalogError> {
    let Some(package) = catalogs.package(catalog, package)? else { return Ok(Vec::new()) };
    let entry = |bundle: &std::sync::Arc<chandler_resolver::Bundle>| {
        let (name, image) = (bundle.name.clone(), bundle.image.clone());
        Some(Entry { name, image, version: bundle.version.clone()? }).filter(|entry| !entry.image.is_empty())
    };
    Ok(package.bundles.values().filter_map(entry).collect())
}

/// The bundle of a package that has this image, in the first of these catalogs that lists it, by descending priority.
pub fn proven<'a>(
    image: &InstalledImage,
    package: &str,
    sources: &[Source],
    entries: impl Fn(&Source) -> &'a [Entry],
) -> Option<Installed> {
    let mut sources: Vec<&Source> = sources.iter().filter(|source| !source.unavailable).collect();
    sources.sort_by(|one, other| (other.priority, &one.name).cmp(&(one.priority, &other.name)));
    sources.into_iter().find_map(|source| {
        let of = |entry: &&Entry| image.is(&entry.image, Some(&entry.version));
        // Several bundles may have one image: the bundle with the stated version is chosen.
        let states = |entry: &&Entry| image.version.as_ref() == Some(&entry.version);
        let listed = entries(source);
        let entry = listed.iter().filter(of).find(states).or_else(|| listed.iter().find(of))?;
        Some(Installed {
            package: package.to_owned(),
            name: entry.name.clone(),
            version: entry.version.version().to_string(),
            release: entry.version.release().map(str::to_owned),
            catalog: Some(source.name.clone()),
            image: entry.image.clone(),
            ..Installed::default()
        })
    })
}

#[cfg(test)]
mod tests {
    use chandler_api::ImageSource;

    use super::*;

    const ONE: &str = "sha256:1111111111111111111111111111111111111111111111111111111111111111";
    const OTHER: &str = "sha256:2222222222222222222222222222222222222222222222222222222222222222";

    fn source(reference: &str) -> ImageSource {
        ImageSource { reference: reference.to_owned(), ..ImageSource::default() }
    }

    fn installed(image: ImageSource, version: &str, spec: ImageSource) -> Option<InstalledImage> {
        let version = Some(version.to_owned()).filter(|version| !version.is_empty());
        let revision = Revision { source: BundleSource::image(image), version, ..Revision::default() };
        InstalledImage::of(&revision, &BundleSource::image(spec))
    }

    fn version(text: &str) -> VersionRelease {
        VersionRelease::parse(text, None).unwrap()
    }

    #[test]
    fn a_digest_names_the_content() {
        let image = installed(source(&format!("quay.io/a/base@{ONE}")), "1.0.0", ImageSource::default()).unwrap();
        assert!(image.is(&format!("quay.io/a/base@{ONE}"), Some(&version("1.0.0"))));
        assert!(image.is(&format!("mirror.example/base:v1@{ONE}"), None), "a copy");
        assert!(!image.is(&format!("quay.io/a/base@{OTHER}"), Some(&version("1.0.0"))));
        assert!(!image.is("", None) && !image.is("quay.io/A", None));
        assert!(installed(source("quay.io/a/base:v1"), "1.0.0", ImageSource::default()).is_none(), "it is not pinned");
        let git = Revision { source: BundleSource::git(chandler_api::GitSource::default()), ..Revision::default() };
        assert!(InstalledImage::of(&git, &git.source).is_none());
    }

    #[test]
    fn a_tag_needs_its_repository_and_version() {
        let pinned = || source(&format!("quay.io/a/base@{ONE}"));
        let is = |image: ImageSource, stated: &str, spec: ImageSource, named: &str, of: &str| {
            installed(image, stated, spec).unwrap().is(named, Some(&version(of)))
        };
        let plain = ImageSource::default;
        assert!(is(pinned(), "1.0.0", plain(), "quay.io/a/base:v1", "1.0.0"));
        assert!(!is(pinned(), "0.9.0", plain(), "quay.io/a/base:v1", "1.0.0"), "an older image of the repository");
        assert!(!is(pinned(), "", plain(), "quay.io/a/base:v1", "1.0.0"));
        assert!(!is(pinned(), "1.0.0", plain(), "quay.io/b/base:v1", "1.0.0"));
        assert!(!is(pinned(), "1.0.0", plain(), "quay.example/a/base:v1", "1.0.0"));
        let insecure = ImageSource { insecure_skip_tls_verify: true, ..pinned() };
        assert!(!is(insecure, "1.0.0", plain(), "quay.io/a/base:v1", "1.0.0"), "it may come from another server");
        let own = ImageSource { certificate_data: Some("PEM".to_owned()), ..plain() };
        assert!(!is(pinned(), "1.0.0", own, "quay.io/a/base:v1", "1.0.0"), "the author vouches for the registry");
        let docker = source(&format!("docker.io/library/base@{ONE}"));
        assert!(is(docker, "1.0.0", plain(), "base:v1", "1.0.0"), "the same repository, written in another way");
    }

    #[test]
    fn the_catalog_of_the_highest_priority_that_lists_the_image_has_the_bundle() {
        let image = installed(source(&format!("quay.io/a/base@{ONE}")), "1.0.0", ImageSource::default()).unwrap();
        let entry = |name: &str, digest: &str, of: &str| Entry {
            name: name.to_owned(),
            version: version(of),
            image: format!("quay.io/a/base@{digest}"),
        };
        let source = |name: &str, priority: i32| Source { name: name.to_owned(), priority, ..Source::default() };
        let lists = [
            ("low", vec![entry("base.low", ONE, "1.0.0")]),
            ("high", vec![entry("base.again", ONE, "1.0.1"), entry("base.high", ONE, "1.0.0")]),
            ("without", vec![entry("base.x", OTHER, "1.0.0")]),
        ];
        let of = |source: &Source| lists.iter().find(|it| it.0 == source.name).map(|it| &it.1[..]).unwrap_or_default();
        let sources = [source("low", 0), source("without", 9), source("high", 1)];
        let found = proven(&image, "base", &sources, of).unwrap();
        assert_eq!((found.name.as_str(), found.version.as_str()), ("base.high", "1.0.0"), "the version that it states");
        assert_eq!((found.package.as_str(), found.catalog.as_deref()), ("base", Some("high")));
        assert!(proven(&image, "base", &sources[1..2], of).is_none());
    }
}
