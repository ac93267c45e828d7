//! Repositories, comparable between senders and sources.

use chandler_core::image_name::ImageName;

/// Docker Hub, whose host is the same for all clients.
const DOCKER_HUB: &str = "docker.io";
/// The longest text that is read, in bytes.
const LONGEST: usize = 2048;

/// A repository of images or a git repository.
///
/// Two are the same if their paths are. Hosts are compared only with Docker Hub's: a server does not know by which name its clients reach it
/// (a Service of the cluster, a mirror, a tunnel), and a poll too many does no harm. Paths have lower-case letters, as git servers compare
/// them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Repository {
    is_docker_hub: bool,
    path: String,
}

impl Repository {
    /// The repository of an image such as `quay.io/example/bundle:v1`; `None` if the text is not a reference.
    pub fn of_image(text: &str) -> Option<Self> {
        let name = ImageName::parse(text.trim()).ok()?;
        Some(Self { is_docker_hub: name.registry == DOCKER_HUB, path: name.repository.to_ascii_lowercase() })
    }

    /// The repository of a URL such as `https://git.example.com/team/bundle.git`, `ssh://git@…` or `git@git.example.com:team/bundle.git`;
    /// `None` if it has no path.
    pub fn of_url(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.len() > LONGEST {
            return None;
        }
        let (authority, path) = match text.split_once("://") {
            Some((_, rest)) => rest.split_once('/')?,
            // What SSH calls HOST:PATH.
            None => text.split_once(':')?,
        };
        let path = path.split(['?', '#']).next()?.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let is_valid = !authority.is_empty() && !path.is_empty();
        is_valid.then(|| Self { is_docker_hub: false, path: path.to_ascii_lowercase() })
    }

    /// The repository of a text that is a URL or an image.
    pub fn of_text(text: &str) -> Option<Self> {
        if text.contains("://") { Self::of_url(text) } else { Self::of_image(text).or_else(|| Self::of_url(text)) }
    }

    /// The repository of this path on a server without a known name.
    pub fn of_path(path: &str) -> Option<Self> {
        let path = path.trim_matches('/');
        let is_valid = !path.is_empty() && path.len() <= LONGEST;
        is_valid.then(|| Self { is_docker_hub: false, path: path.to_ascii_lowercase() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_of_one_repository_are_the_same() {
        let shop = Repository::of_path("team/shop");
        for text in [
            "registry.example.com/team/shop:v1",
            "registry.example.com:5000/team/shop",
            "https://git.example.com/team/shop.git",
            "http://user@git.example.com:3000/Team/Shop/?x=1#y",
            "ssh://git@git.example.com:22/team/shop.git",
            "git@git.example.com:team/shop.git",
        ] {
            assert_eq!(Repository::of_text(text), shop, "{text}");
        }
        let hub = Repository::of_image("nginx:1").unwrap();
        assert_eq!(Some(hub.clone()), Repository::of_image("docker.io/library/nginx"));
        assert_ne!(Some(hub), Repository::of_image("registry.example.com/library/nginx"));
        for text in ["", "https://", "https://host", "https://host/", "git@host:", "https:///x", "A B"] {
            assert_eq!(Repository::of_text(text), None, "{text}");
        }
    }
}
