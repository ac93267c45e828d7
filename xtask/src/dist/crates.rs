//! The crates that the binary consists of, and what else its build runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use anyhow::Context as _;
use serde::Deserialize;

use super::CLUSTER;
use crate::{command, guests};

/// A crate is known by its name and its version: there is one registry (deny.toml).
pub(super) type Id = (String, String);

/// A crate of the binary or of its build.
#[derive(Clone, Debug, Default)]
pub(super) struct Crate {
    /// As SPDX writes it.
    pub(super) license: Option<String>,
    pub(super) repository: Option<String>,
    /// The SHA-256 of the file in the registry; crates of this repository have none.
    pub(super) checksum: Option<String>,
    /// Whether its code is part of the binary. Other crates only take part in the build: macros, build scripts and what they use.
    pub(super) is_linked: bool,
    pub(super) dependencies: BTreeSet<Id>,
}

/// All crates of the binary for a target.
pub(super) struct Crates(pub(super) BTreeMap<Id, Crate>);

/// The command itself.
pub(super) fn root() -> Id {
    ("chandler".to_owned(), env!("CARGO_PKG_VERSION").to_owned())
}

impl Crates {
    /// As cargo resolves them from Cargo.lock. The provisioners count too: the binary contains their components.
    pub(super) fn of_cluster(target: &str) -> anyhow::Result<Self> {
        let mut crates = BTreeMap::new();
        let linked = ["--edges", "normal,no-proc-macro"];
        read(&mut crates, &tree(&CLUSTER, target, &linked)?, true)?;
        for package in guests::built_in_packages()? {
            let guest = ["--locked", "--package", &package];
            let text = tree(&guest, guests::TARGET, &linked)?;
            read(&mut crates, &text, true)?;
            // The command contains it without a dependency that cargo knows.
            let id = text.lines().next().and_then(parse).context("cargo prints no crate")?.id;
            crates.entry(root()).or_default().dependencies.insert(id);
        }
        read(&mut crates, &tree(&CLUSTER, target, &["--edges", "normal,build"])?, false)?;
        let checksums = checksums()?;
        for (id, crate_) in &mut crates {
            crate_.checksum = checksums.get(id).cloned();
        }
        Ok(Self(crates))
    }
}

fn tree(selection: &[&str], target: &str, edges: &[&str]) -> anyhow::Result<String> {
    let format = ["--prefix", "depth", "--format", "\t{p}\t{l}\t{r}"];
    command::output(command::cargo(["tree", "--quiet", "--target", target]).args(edges).args(format).args(selection))
}

/// A line of `cargo tree`.
struct Line {
    depth: usize,
    id: Id,
    license: Option<String>,
    repository: Option<String>,
}

fn parse(line: &str) -> Option<Line> {
    // A crate whose dependencies are printed elsewhere.
    let mut fields = line.trim_end().trim_end_matches(" (*)").split('\t');
    let depth = fields.next()?.parse().ok()?;
    let mut package = fields.next()?.split(' ');
    let id = (package.next()?.to_owned(), package.next()?.strip_prefix('v')?.to_owned());
    let mut present = || fields.next().map(str::to_owned).filter(|field| !field.is_empty());
    // Old crates separate alternatives by a slash.
    let license = present().map(|license| license.replace(" / ", "/").replace('/', " OR "));
    Some(Line { depth, id, license, repository: present() })
}

/// Adds the crates of a tree.
fn read(crates: &mut BTreeMap<Id, Crate>, text: &str, is_linked: bool) -> anyhow::Result<()> {
    // The crates from the root to the last one.
    let mut path: Vec<Id> = Vec::new();
    for line in text.lines() {
        let Line { depth, id, license, repository } =
            parse(line).with_context(|| format!("failed to read the line {line:?} of `cargo tree`"))?;
        let entry = crates.entry(id.clone()).or_default();
        entry.license = license;
        entry.repository = repository;
        entry.is_linked |= is_linked;
        path.truncate(depth);
        if let Some(parent) = path.last() {
            crates.entry(parent.clone()).or_default().dependencies.insert(id.clone());
        }
        path.push(id);
    }
    Ok(())
}

/// The checksums in Cargo.lock.
fn checksums() -> anyhow::Result<BTreeMap<Id, String>> {
    #[derive(Deserialize)]
    struct Lock {
        package: Vec<Package>,
    }
    #[derive(Deserialize)]
    struct Package {
        name: String,
        version: String,
        checksum: Option<String>,
    }
    let path = command::root().join("Cargo.lock");
    let text = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
    let lock: Lock = toml::from_str(&text).with_context(|| format!("failed to read {}", path.display()))?;
    let packages = lock.package.into_iter();
    Ok(packages.filter_map(|package| Some(((package.name, package.version), package.checksum?))).collect())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The crates of a small tree.
    pub(in super::super) fn small() -> Crates {
        let mut crates = BTreeMap::new();
        let root = format!("0\tchandler v{} (/work/host/chandler)\tApache-2.0\thttps://example.com/chandler", root().1);
        let linked = format!("{root}\n1\tlog v0.4.1\tMIT/Apache-2.0\t\n2\tbytes v1.0.0\t\t\n1\tbytes v1.0.0\t\t (*)\n");
        read(&mut crates, &linked, true).unwrap();
        read(&mut crates, &format!("{root}\n1\tmacros v2.0.0 (proc-macro)\tMIT\t\n2\tbytes v1.0.0\t\t"), false)
            .unwrap();
        for (id, crate_) in &mut crates {
            crate_.checksum = (id.0 != "chandler").then(|| "ab".repeat(32));
        }
        Crates(crates)
    }

    fn names(dependencies: &BTreeSet<Id>) -> Vec<&str> {
        dependencies.iter().map(|id| id.0.as_str()).collect()
    }

    #[test]
    fn a_tree_is_read_with_its_edges() {
        let crates = small().0;
        assert_eq!(names(&crates[&root()].dependencies), ["bytes", "log", "macros"]);
        let log = &crates[&("log".to_owned(), "0.4.1".to_owned())];
        assert_eq!((names(&log.dependencies), log.license.as_deref()), (vec!["bytes"], Some("MIT OR Apache-2.0")));
        let of_build: Vec<&str> = crates.iter().filter(|it| !it.1.is_linked).map(|it| it.0.0.as_str()).collect();
        assert_eq!(of_build, ["macros"]);
        assert!(read(&mut BTreeMap::new(), "warning: something\n", true).is_err());
    }

    #[test]
    fn the_binary_consists_of_the_crates_that_it_links_and_of_its_provisioners() {
        let crates = Crates::of_cluster(&command::rustc_version().unwrap().host).unwrap().0;
        let found = |name: &str| crates.iter().find(|(id, _)| id.0 == name).map(|(_, it)| it.is_linked);
        for name in ["chandler", "chandler-controller", "chandler-registry", "wasmtime", "rustls", "tikv-jemalloc-sys"]
        {
            assert_eq!(found(name), Some(true), "{name}");
        }
        // Macros and what compiles C run on the machine that builds; the control plane of `chandler dev` is in another binary.
        for (name, expected) in [("serde_derive", Some(false)), ("cc", Some(false)), ("chandler-devcluster", None)] {
            assert_eq!(found(name), expected, "{name}");
        }
        for (id, crate_) in &crates {
            let is_own = crate_.repository.as_deref() == Some(env!("CARGO_PKG_REPOSITORY"));
            assert_eq!(crate_.checksum.is_none(), is_own, "{id:?}");
            assert!(crate_.license.is_some(), "{id:?}");
        }
    }
}
