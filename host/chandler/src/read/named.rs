//! A bundle that is to be installed, and who named it.

use chandler_api::BundleSource;
use chandler_content::ImageReference;

use super::origin::{self, Origin};
use crate::{CommandError, view::text::one_line};

/// Where a bundle is, and how that was written.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedBundle {
    text: String,
    origin: Origin,
}

impl NamedBundle {
    /// A bundle that the user names: a path, a URL or an image.
    pub fn of_user(text: &str) -> Result<Self, CommandError> {
        Ok(Self { text: text.to_owned(), origin: Origin::parse(text)? })
    }

    /// Where it is.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The source from which the controller fetches it; none for what is on this machine.
    pub fn source(&self, secret: Option<&str>) -> Option<BundleSource> {
        self.origin.source(&self.text, secret)
    }

    /// The text, for messages.
    pub fn shown(&self) -> String {
        origin::shown(&self.text)
    }
}

impl From<ListedImage> for NamedBundle {
    fn from(image: ListedImage) -> Self {
        Self { text: image.text, origin: Origin::Image(Box::new(image.reference)) }
    }
}

/// The image of a bundle, as a catalog lists it.
///
/// A catalog says which image is installed, and nothing else: its text is never taken for a path of this machine or for a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedImage {
    text: String,
    reference: ImageReference,
}

impl ListedImage {
    /// The image of a bundle of a catalog.
    pub fn of_catalog(bundle: &str, text: &str) -> Result<Self, CommandError> {
        let reference = text.parse().map_err(|error| {
            let message = format!("the catalog names no image for bundle {}", one_line(bundle));
            CommandError::failed(message)
                .because(&error)
                .hint("the catalog has to be repaired: `chandler catalog lint CATALOG` prints everything that is wrong")
        })?;
        Ok(Self { text: text.to_owned(), reference })
    }

    /// The text of the catalog.
    pub fn text(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_catalog_says_is_never_a_path_or_a_url() {
        let image = ListedImage::of_catalog("a.v1", "quay.io/example/a:v1").unwrap();
        let bundle = NamedBundle::from(image);
        assert!(matches!(bundle.origin(), Origin::Image(_)));
        assert_eq!(bundle.source(None).unwrap().image.unwrap().reference, "quay.io/example/a:v1");
        // `src` is a directory here, and also the name of an image of Docker Hub.
        assert!(matches!(NamedBundle::of_user("src").unwrap().origin(), Origin::Directory(_)));
        let image = ListedImage::of_catalog("a.v1", "src").unwrap();
        assert!(matches!(NamedBundle::from(image).origin(), Origin::Image(_)));
        for text in [
            "./src",
            "/etc",
            "Cargo.toml/",
            "https://example.com/a.tgz",
            "git+https://e.com/a.git?branch=b",
            "a\nerror: b",
        ] {
            let error = ListedImage::of_catalog("a.v1", text).unwrap_err().to_string();
            assert_eq!(error.lines().count(), 3, "{error}");
        }
        let error = ListedImage::of_catalog("a.v1", "u:s3cret@quay.io/a:v1").unwrap_err().to_string();
        assert!(!error.contains("s3cret") && error.contains("has no user name and no password"), "{error}");
    }
}
