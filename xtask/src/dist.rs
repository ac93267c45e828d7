//! `cargo xtask dist`: the binary that runs in a cluster.

use std::fs;

use anyhow::Context as _;

use crate::{command, guests};

/// What selects the crates of that binary. Without the default feature `dev` it links neither the embedded control plane nor the
/// embedded registry.
const CLUSTER: [&str; 6] = ["--locked", "--package", "chandler", "--no-default-features", "--features", "jemalloc"];

/// Build the binary that runs in a cluster.
#[derive(clap::Args)]
pub(crate) struct Dist {}

impl Dist {
    pub(crate) fn run() -> anyhow::Result<()> {
        guests::build_built_in()?;
        // A target directory of its own: the full command is not replaced by this one.
        let target = command::target_directory().join("cluster");
        let mut build = command::cargo(["build", "--quiet", "--profile", "dist"]);
        command::run(build.args(CLUSTER).arg("--target-dir").arg(&target))?;
        let binary = target.join("dist").join("chandler");
        let size = fs::metadata(&binary).with_context(|| format!("failed to read {}", binary.display()))?.len();
        eprintln!("built {} ({} KiB)", binary.display(), size / 1024);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
