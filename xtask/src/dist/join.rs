//! Images of several architectures, joined into one: a node pulls the one that it can run.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::{
    digest::sha256,
    image::{BLOBS, INDEX, Image},
    time::BuildTime,
};

/// Joins the images of these layouts, each built on a machine of its architecture.
pub(super) fn joined(layouts: &[PathBuf], time: BuildTime) -> anyhow::Result<Image> {
    let (mut blobs, mut descriptors, mut platforms) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
    for layout in layouts {
        let descriptor =
            read(layout, &mut blobs).with_context(|| format!("failed to read the image in {}", layout.display()))?;
        let platform = descriptor.get("platform").cloned().unwrap_or_default();
        ensure!(
            platforms.insert(platform.to_string()),
            "{} is for {platform}, as another of these images: name one image of each architecture",
            layout.display()
        );
        descriptors.push(descriptor);
    }
    // The order in which they are named must not matter.
    descriptors.sort_by_key(|descriptor| descriptor.get("platform").map(Value::to_string));
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": descriptors});
    Ok(Image::of_blobs(blobs, INDEX, serde_json::to_vec(&index)?, time))
}

/// Adds the blobs of a layout, and returns the descriptor of its only image, without the name that it has in the layout.
fn read(layout: &Path, blobs: &mut BTreeMap<String, Vec<u8>>) -> anyhow::Result<Value> {
    let index: Value = serde_json::from_slice(&fs::read(layout.join("index.json"))?)?;
    let manifests = index.get("manifests").and_then(Value::as_array).map(Vec::as_slice);
    let Some([descriptor]) = manifests else { anyhow::bail!("it has another number of images than one") };
    ensure!(descriptor.get("platform").is_some(), "it is not for one platform: join images of `cargo xtask dist`");
    for entry in fs::read_dir(layout.join(BLOBS))? {
        let entry = entry?;
        let digest = format!("sha256:{}", entry.file_name().to_string_lossy());
        let bytes = fs::read(entry.path())?;
        ensure!(sha256(&bytes) == digest, "the content of {} has another digest", entry.path().display());
        blobs.insert(digest, bytes);
    }
    let member = |name: &str| descriptor.get(name).cloned().with_context(|| format!("index.json has no {name}"));
    let (media_type, digest, size) = (member("mediaType")?, member("digest")?, member("size")?);
    Ok(json!({"mediaType": media_type, "digest": digest, "size": size, "platform": member("platform")?}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::{image::About, time::tests::of_test};

    /// A directory with an image for an architecture, and the digest of its manifest.
    fn written(architecture: &str) -> (tempfile::TempDir, String) {
        let directory = tempfile::tempdir().unwrap();
        let image = Image::of_binary(architecture.into(), About::of_test(architecture)).unwrap();
        image.write(directory.path()).unwrap();
        (directory, image.digest().to_owned())
    }

    #[test]
    fn images_of_two_architectures_become_one_with_both() {
        let ((amd64, first), (arm64, second)) = (written("amd64"), written("arm64"));
        let layouts = [arm64.path().join("image"), amd64.path().join("image")];
        let joined = joined(&layouts, of_test()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let (layout, _) = joined.write(directory.path()).unwrap();
        let index: Value = serde_json::from_slice(&fs::read(layout.join("index.json")).unwrap()).unwrap();
        let [descriptor] = index["manifests"].as_array().unwrap().as_slice() else { panic!("{index}") };
        assert_eq!((&descriptor["mediaType"], &descriptor["digest"]), (&json!(INDEX), &json!(joined.digest())));
        let blob = layout.join(BLOBS).join(joined.digest().trim_start_matches("sha256:"));
        let index: Value = serde_json::from_slice(&fs::read(blob).unwrap()).unwrap();
        let found: Vec<(&Value, &Value)> = index["manifests"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| (&entry["platform"]["architecture"], &entry["digest"]))
            .collect();
        assert_eq!(found, [(&json!("amd64"), &json!(first)), (&json!("arm64"), &json!(second))]);
        // The index, and for each image a manifest, a configuration and a binary. Both have the same certificates.
        assert_eq!(fs::read_dir(layout.join(BLOBS)).unwrap().count(), 1 + 2 * 3 + 1);
        let reversed = super::joined(&[layouts[1].clone(), layouts[0].clone()], of_test()).unwrap();
        assert_eq!(reversed.digest(), joined.digest());
    }

    #[test]
    fn an_architecture_is_joined_once_and_only_undamaged() {
        let (amd64, _) = written("amd64");
        let layout = amd64.path().join("image");
        let error = joined(&[layout.clone(), layout.clone()], of_test()).err().unwrap().to_string();
        assert!(error.contains("name one image of each architecture"), "{error}");
        let blob = fs::read_dir(layout.join(BLOBS)).unwrap().next().unwrap().unwrap().path();
        fs::write(blob, "damaged").unwrap();
        let error = format!("{:#}", joined(&[layout], of_test()).err().unwrap());
        assert!(error.contains("has another digest"), "{error}");
        let error = format!("{:#}", joined(&[PathBuf::from("absent")], of_test()).err().unwrap());
        assert!(error.contains("failed to read the image in absent"), "{error}");
    }
}
