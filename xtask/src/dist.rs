//! `cargo xtask dist`: the binary and the image that run in a cluster, and what they consist of.

mod binary;
mod chart;
#[cfg(test)]
mod container;
mod crates;
mod cross;
mod digest;
mod files;
mod image;
mod join;
mod json;
mod krew;
mod materials;
mod precompiled;
mod provenance;
mod release;
#[cfg(test)]
mod reproducible;
mod time;
pub(crate) mod unpacked;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context as _;

use self::{
    binary::Target,
    crates::Crates,
    image::{About, Image},
    materials::Subject,
    provenance::Sources,
    time::BuildTime,
};
use crate::command::{self, Rustc};

/// What selects the crates of that binary. Without the default feature `dev` it links neither the embedded control plane nor the
/// embedded registry.
const CLUSTER: [&str; 6] = ["--locked", "--package", "chandler", "--no-default-features", "--features", "jemalloc"];

/// Build the image that runs in a cluster.
#[derive(clap::Args)]
pub(crate) struct Dist {
    /// The target, such as aarch64-unknown-linux-gnu, which rustup must have installed, with a compiler for C (on Debian:
    /// gcc-aarch64-linux-gnu). Without it, the one of this machine
    #[arg(long)]
    target: Option<String>,

    /// Instead of building the binary: one that is linked statically. Only the image is made of it
    #[arg(long, value_name = "FILE", conflicts_with = "target")]
    binary: Option<PathBuf>,

    /// Instead of building: an image layout of another build. Repeat it for each architecture; the result is one image for all of them
    #[arg(long, value_name = "DIR", conflicts_with_all = ["target", "binary"])]
    join: Vec<PathBuf>,

    /// The directory for the image and its documents. Without it, target/cluster
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl Dist {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let cluster = command::target_directory().join("cluster");
        let output = self.output.unwrap_or_else(|| cluster.clone());
        fs::create_dir_all(&output).with_context(|| format!("failed to create {}", output.display()))?;
        if !self.join.is_empty() {
            written(&join::joined(&self.join, BuildTime::from_environment()?)?, &output)?;
            return krew::join(&self.join, &output);
        }
        let sources = Sources::of_checkout()?;
        if let Some(binary) = &self.binary {
            // Nothing is known about where it comes from.
            return packed(binary, None, &output).map(drop);
        }
        if sources.is_modified {
            eprintln!(
                "warning: the checkout has changes that no commit has, or is not a git repository: the image names no commit"
            );
        }
        let rustc = command::rustc_version()?;
        let target = Target::new(self.target, &rustc)?;
        // A target directory of its own: the full command is not replaced by this one.
        let built = binary::build(&target, &rustc.host, &cluster)?;
        let crates = Crates::of_cluster(&target.triple)?;
        let binary = output.join("chandler");
        binary::add_crates(&built, &binary, &materials::auditable(&crates)?)?;
        let image = packed(&binary, sources.revision(), &output)?;
        if target.triple == rustc.host {
            let chart = output.join(chart::NAME);
            let packed = chart::package(&binary, BuildTime::from_environment()?)?;
            fs::write(&chart, packed).with_context(|| format!("failed to write {}", chart.display()))?;
            eprintln!("{}", chart.display());
        } else {
            eprintln!("no chart, which is for all architectures: a build for this machine makes it");
        }
        documents(&output, &crates, &image, &target, &rustc, &sources)
    }
}

/// Makes the image of a binary.
fn packed(binary: &Path, revision: Option<&str>, output: &Path) -> anyhow::Result<Image> {
    let bytes = fs::read(binary).with_context(|| format!("failed to read {}", binary.display()))?;
    let architecture =
        binary::check(&bytes).with_context(|| format!("{} cannot run in the image", binary.display()))?;
    let about = About {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        revision: revision.map(str::to_owned),
        architecture: architecture.to_owned(),
        time: BuildTime::from_environment()?,
    };
    eprintln!("{} ({architecture}, {} KiB)", binary.display(), bytes.len() / 1024);
    // Components are the same for every architecture.
    let runs_here = architecture == krew::architecture(&command::rustc_version()?.host);
    let program = if runs_here { Command::new(fs::canonicalize(binary)?) } else { command::program("chandler")? };
    let release = release::files(program, &bytes)?;
    let image = Image::of_release(bytes, release, about)?;
    written(&image, output)?;
    Ok(image)
}

fn written(image: &Image, output: &Path) -> anyhow::Result<()> {
    let (layout, archive) = image.write(output)?;
    eprintln!("{} and {} ({} KiB)", layout.display(), archive.display(), image.bytes() / 1024);
    eprintln!("image {}", image.digest());
    Ok(())
}

/// Writes what says what the image consists of and where it comes from, and the checksums of all files.
fn documents(
    output: &Path,
    crates: &Crates,
    image: &Image,
    target: &Target,
    rustc: &Rustc,
    sources: &Sources,
) -> anyhow::Result<()> {
    let read = |name: &str| {
        let path = output.join(name);
        fs::read(&path).with_context(|| format!("failed to read {}", path.display()))
    };
    let mut files: Vec<(String, Vec<u8>)> =
        vec![("chandler".to_owned(), read("chandler")?), ("image.tar".to_owned(), read("image.tar")?)];
    let architecture = krew::architecture(&target.triple);
    let binary = files.first().map(|(_, bytes)| bytes.clone()).unwrap_or_default();
    let (name, archive) = krew::archive(binary, architecture)?;
    let plugin = krew::manifest(&[krew::Platform::of(architecture, &archive)]);
    files.extend([(name, archive), (krew::MANIFEST.to_owned(), plugin.into_bytes())]);
    let mut products: Vec<provenance::Product> =
        files.iter().map(|(name, bytes)| (name.clone(), digest::hexadecimal(bytes))).collect();
    let hash = products.first().map(|(_, hash)| hash.clone()).unwrap_or_default();
    products.push(("image".to_owned(), image.digest().trim_start_matches("sha256:").to_owned()));
    if target.triple == rustc.host {
        let chart = read(chart::NAME)?;
        products.push((chart::NAME.to_owned(), digest::hexadecimal(&chart)));
        files.push((chart::NAME.to_owned(), chart));
    }
    let glibc = binary::glibc(target, &rustc.host)?;
    let time = BuildTime::from_environment()?;
    let subject = Subject { hash: &hash, rustc: &rustc.version, glibc: glibc.as_deref(), time };
    for (name, document) in [
        ("chandler.cdx.json", materials::cyclonedx(crates, &subject)?),
        ("chandler.spdx.json", materials::spdx(crates, &subject)?),
        ("provenance.json", provenance::statement(&products, &target.triple, rustc, sources)),
    ] {
        files.push((name.to_owned(), json::text(&document)?));
    }
    let sums = digest::sums(files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())));
    files.push(("SHA256SUMS".to_owned(), sums.into_bytes()));
    for (name, bytes) in &files {
        let path = output.join(name);
        fs::write(&path, bytes).with_context(|| format!("failed to write {}", path.display()))?;
    }
    eprintln!("the plugin for kubectl, bills of materials, provenance.json and SHA256SUMS in {}", output.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_have_the_checksums_of_the_files_beside_them() {
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path();
        fs::write(output.join("chandler"), "a small binary").unwrap();
        fs::write(output.join(chart::NAME), "a small chart").unwrap();
        let image = Image::of_binary(b"a small binary".to_vec(), About::of_test("amd64")).unwrap();
        written(&image, output).unwrap();
        let rustc = command::rustc_version().unwrap();
        let target = Target::new(None, &rustc).unwrap();
        let sources = Sources::of_checkout().unwrap();
        documents(output, &crates::tests::small(), &image, &target, &rustc, &sources).unwrap();
        let sums = fs::read_to_string(output.join("SHA256SUMS")).unwrap();
        let names: Vec<&str> = sums.lines().map(|line| line.split_once("  ").unwrap().1).collect();
        let archive = format!("chandler-linux-{}.tar.gz", krew::architecture(&target.triple));
        let documents = ["chandler.cdx.json", "chandler.spdx.json", "provenance.json"];
        assert_eq!(names, [&["chandler", "image.tar", &archive, "krew.yaml", chart::NAME][..], &documents].concat());
        let plugin = fs::read_to_string(output.join("krew.yaml")).unwrap();
        let sum = digest::hexadecimal(&fs::read(output.join(&archive)).unwrap());
        assert!(plugin.contains(&format!("sha256: {sum}\n")), "{plugin}");
        let mut check = Command::new("sha256sum");
        command::run(check.current_dir(output).args(["--check", "--quiet", "SHA256SUMS"])).unwrap();
        let provenance: serde_json::Value =
            serde_json::from_slice(&fs::read(output.join("provenance.json")).unwrap()).unwrap();
        let products = provenance["subject"].as_array().unwrap();
        let image_of = products.iter().find(|product| product["name"] == "image").unwrap();
        assert_eq!(image_of["digest"]["sha256"], image.digest().trim_start_matches("sha256:"));
    }

    /// The crates of this repository that a build of the command links.
    fn linked(arguments: &[&str]) -> Vec<String> {
        let tree = ["tree", "--offline", "--quiet", "--edges", "normal", "--prefix", "none", "--format", "{p}"];
        let text = command::output(command::cargo(tree).args(arguments)).unwrap();
        text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
    }

    #[test]
    fn the_binary_for_a_cluster_links_no_embedded_control_plane() {
        let is_embedded =
            |name: &String| name.starts_with("chandler-devcluster") || name.starts_with("chandler-devregistry");
        let cluster = linked(&CLUSTER);
        assert!(cluster.iter().any(|name| name == "chandler-controller"), "{cluster:?}");
        let embedded: Vec<&String> = cluster.iter().filter(|name| is_embedded(name)).collect();
        assert!(embedded.is_empty(), "{embedded:?}");
        // The full command does, so the check above can fail.
        assert!(linked(&["--locked", "--package", "chandler"]).iter().any(is_embedded));
    }
}
