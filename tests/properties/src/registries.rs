//! Settings for registries: a registries.conf, mirror sets and images.

use chandler_registries::{
    MIRRORS, Registries, Version,
    mirror_sets::{Kind, Spec},
};

use crate::{archive::Archive, memory};

/// A few copies of the text, as a document of TOML and as tables.
const FIXED: usize = 4 << 20;
const PER_BYTE: usize = 1000;

/// The files `registries.conf`, `sets.json` (both kinds in one) and `images`, an image in each line.
pub(crate) fn holds(input: &[u8]) {
    let archive = Archive::read(input);
    let text = |name: &str| {
        let found = archive.files.iter().find(|(path, _)| path.as_str() == name);
        found.map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
    };
    let (conf, images) = (text("registries.conf"), text("images"));
    memory::bounded(input, FIXED, PER_BYTE, || {
        let mut file = Registries::default();
        if let Err(error) = file.add_file("registries.conf".as_ref(), &conf) {
            let lines = conf.lines().count() + 1;
            let message = error.to_string();
            let line = message.split(':').nth(1).and_then(|line| line.parse::<usize>().ok());
            assert!(line.is_some_and(|line| (1..=lines).contains(&line)), "{message}");
            assert!(message.len() < 2000, "{message}");
            assert!(file.is_empty(), "part of a file that is refused counts");
        }
        let spec: Spec = serde_json::from_str(&text("sets.json")).unwrap_or_default();
        let (merged, problems) = file.with_mirror_sets(&[(Kind::Digest, spec.clone()), (Kind::Tag, spec)]);
        assert!(problems.iter().all(|problem| problem.len() < 1000), "{problems:?}");
        for image in images.lines().take(16) {
            for version in [Version::Tag("v1"), Version::Digest("sha256:0")] {
                decided(&file, &merged, image, version);
            }
        }
    });
}

fn decided(file: &Registries, merged: &Registries, image: &str, version: Version<'_>) {
    let (alone, all) = (file.endpoints(image, version), merged.endpoints(image, version));
    assert_eq!(all, merged.endpoints(image, version), "it decides one way");
    for endpoints in [&alone, &all].into_iter().flatten() {
        assert!(!endpoints.is_empty() && endpoints.len() <= MIRRORS + 1, "{endpoints:?}");
        let ending = version.to_string();
        assert!(endpoints.iter().all(|endpoint| endpoint.reference.ends_with(&ending)), "{endpoints:?}");
        let source = endpoints.iter().position(|endpoint| !endpoint.is_mirror);
        assert!(source.is_none_or(|at| at == endpoints.len() - 1), "mirrors come first: {endpoints:?}");
    }
    if let (Err(_), Ok(endpoints)) = (&alone, &all) {
        assert!(endpoints.iter().all(|endpoint| endpoint.is_mirror), "mirror sets unblock nothing: {endpoints:?}");
    }
}
