//! The layout is what the specification says, and depends on nothing but its files.

use flate2::read::GzDecoder;

use super::*;

fn about() -> About {
    About::of_test("amd64")
}

/// A layout as tools read it.
struct Layout(PathBuf);

impl Layout {
    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.0.join(name)).unwrap()).unwrap()
    }

    /// The blob of a descriptor, which has the size and the digest that it says.
    fn blob(&self, descriptor: &Value) -> Vec<u8> {
        let digest = descriptor["digest"].as_str().unwrap();
        let bytes = fs::read(self.0.join(BLOBS).join(digest.strip_prefix("sha256:").unwrap())).unwrap();
        assert_eq!(descriptor["size"], bytes.len(), "{descriptor}");
        assert_eq!(sha256(&bytes), digest, "{descriptor}");
        bytes
    }
}

/// All files below a directory by path, with their bytes.
pub(in crate::dist) fn tree(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut directories = vec![directory.to_path_buf()];
    while let Some(next) = directories.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                let name = path.strip_prefix(directory).unwrap().to_path_buf();
                files.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    files
}

#[test]
fn an_image_made_twice_in_two_directories_has_the_same_bytes() {
    let made = || {
        let directory = tempfile::tempdir().unwrap();
        let image = Image::of_binary(b"a small binary".to_vec(), about()).unwrap();
        image.write(directory.path()).unwrap();
        tree(directory.path())
    };
    let (first, second) = (made(), made());
    assert!(first == second, "{:?} {:?}", first.keys(), second.keys());
    // The index, the layout file, the archive and four blobs: two layers, the configuration and the manifest.
    assert_eq!(first.len(), 7, "{:?}", first.keys());
    let other = Image::of_binary(b"another binary".to_vec(), about()).unwrap();
    assert_ne!(other.digest(), Image::of_binary(b"a small binary".to_vec(), about()).unwrap().digest());
}

#[test]
fn the_layout_is_what_the_specification_says() {
    let directory = tempfile::tempdir().unwrap();
    let image = Image::of_binary(b"a small binary".to_vec(), about()).unwrap();
    let (path, _) = image.write(directory.path()).unwrap();
    let layout = Layout(path);
    assert_eq!(layout.json("oci-layout"), json!({"imageLayoutVersion": "1.0.0"}));
    let index = layout.json("index.json");
    assert_eq!((&index["schemaVersion"], &index["mediaType"]), (&json!(2), &json!(INDEX)));
    let [descriptor] = index["manifests"].as_array().unwrap().as_slice() else { panic!("{index}") };
    assert_eq!(descriptor["digest"], image.digest());
    assert_eq!(descriptor["platform"], json!({"architecture": "amd64", "os": "linux"}));
    let annotations = json!({
        "org.opencontainers.image.ref.name": "v0.1.0",
        "org.opencontainers.image.title": "chandler",
        "org.opencontainers.image.version": "0.1.0",
    });
    assert_eq!(descriptor["annotations"], annotations);

    let manifest: Value = serde_json::from_slice(&layout.blob(descriptor)).unwrap();
    let config: Value = serde_json::from_slice(&layout.blob(&manifest["config"])).unwrap();
    assert_eq!((&config["architecture"], &config["os"]), (&json!("amd64"), &json!("linux")));
    assert_eq!(config["created"], "1970-01-02T00:00:00Z");
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["config"]["Entrypoint"], json!(["/usr/local/bin/chandler"]));
    let labels = config["config"]["Labels"].as_object().unwrap();
    for (name, value) in
        [("version", "0.1.0"), ("revision", "c0ffee"), ("licenses", "Apache-2.0"), ("title", "chandler")]
    {
        assert_eq!(labels[&format!("org.opencontainers.image.{name}")], value);
    }
    let layers = manifest["layers"].as_array().unwrap();
    let unpacked: Vec<String> = layers.iter().map(|layer| sha256(&unpacked(&layout.blob(layer)))).collect();
    assert_eq!(config["rootfs"], json!({"type": "layers", "diff_ids": unpacked}));
    // The header of gzip: no name, no time, best compression, no system.
    for layer in layers {
        assert_eq!(&layout.blob(layer)[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255]);
    }
}

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut archive = Vec::new();
    std::io::Read::read_to_end(&mut GzDecoder::new(bytes), &mut archive).unwrap();
    archive
}

#[test]
fn the_image_contains_the_binary_certificates_and_what_the_controller_writes_to() {
    let image = Image::of_binary(b"a small binary".to_vec(), about()).unwrap();
    let manifest: Value = serde_json::from_slice(&image.blobs[image.digest()]).unwrap();
    let mut lines = Vec::new();
    for layer in manifest["layers"].as_array().unwrap() {
        let archive = unpacked(&image.blobs[layer["digest"].as_str().unwrap()]);
        for entry in tar::Archive::new(archive.as_slice()).entries().unwrap() {
            let entry = entry.unwrap();
            let header = entry.header();
            assert_eq!(header.mtime().unwrap(), 86_400);
            let path = entry.path().unwrap().display().to_string();
            lines.push(format!("{:04o} {} {path}", header.mode().unwrap(), header.uid().unwrap()));
        }
    }
    let expected = [
        "0755 0 etc/",
        "0644 0 etc/group",
        "0644 0 etc/nsswitch.conf",
        "0644 0 etc/passwd",
        "0755 0 etc/ssl/",
        "0755 0 etc/ssl/certs/",
        "0644 0 etc/ssl/certs/ca-certificates.crt",
        "1777 0 tmp/",
        "0755 0 var/",
        "0755 0 var/cache/",
        "0750 65532 var/cache/chandler/",
        "0755 0 usr/",
        "0755 0 usr/local/",
        "0755 0 usr/local/bin/",
        "0755 0 usr/local/bin/chandler",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn only_a_layout_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let image = Image::of_binary(b"a small binary".to_vec(), about()).unwrap();
    fs::create_dir(directory.path().join("image")).unwrap();
    fs::write(directory.path().join("image/notes.txt"), "mine").unwrap();
    let error = image.write(directory.path()).unwrap_err().to_string();
    assert!(error.contains("is not an OCI image layout: remove it"), "{error}");
    assert!(directory.path().join("image/notes.txt").is_file());

    fs::remove_file(directory.path().join("image/notes.txt")).unwrap();
    fs::remove_dir(directory.path().join("image")).unwrap();
    Image::of_binary(b"an earlier binary".to_vec(), about()).unwrap().write(directory.path()).unwrap();
    let earlier = tree(directory.path());
    image.write(directory.path()).unwrap();
    assert_eq!(tree(directory.path()).len(), earlier.len(), "the blobs of the earlier image are gone");
}
