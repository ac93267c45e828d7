//! Paths of this machine, which a build must not depend on: two builds in two directories give the same bytes.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

use crate::command;

/// What paths of the machine are replaced by, in this order: of several that fit, the compiler takes the last one.
pub(crate) struct Remap(Vec<(PathBuf, String)>);

impl Remap {
    /// The paths of the workspace, of cargo's registry and of the standard library.
    pub(crate) fn of_machine() -> anyhow::Result<Self> {
        let home = cargo_home()?;
        let mut pairs = vec![(command::root(), "/chandler".to_owned()), (home.clone(), "/cargo".to_owned())];
        // The directory of a registry has a hash of its address in its name, and a mirror has another address.
        let sources = home.join("registry").join("src");
        let mut registries = match fs::read_dir(&sources) {
            Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<PathBuf>>>(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
        .with_context(|| format!("failed to read {}", sources.display()))?;
        registries.sort();
        pairs.extend(registries.into_iter().map(|registry| (registry, "/cargo/registry".to_owned())));
        // With the component rust-src, the compiler knows the standard library by its path on this machine.
        let library = command::rustc_output(&["--print", "sysroot"])?;
        let library = PathBuf::from(library).join("lib/rustlib/src/rust");
        let commit = command::rustc_version()?.commit;
        pairs.push((library, format!("/rustc/{commit}")));
        pairs.push((command::target_directory(), "/target".to_owned()));
        Ok(Self(pairs))
    }

    /// The arguments of the compiler.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let argument = |(from, to): &(PathBuf, String)| format!("--remap-path-prefix={}={to}", from.display());
        self.0.iter().map(argument).collect()
    }

    /// The first path of this machine that these bytes contain.
    pub(crate) fn left_in(&self, bytes: &[u8]) -> Option<&Path> {
        // One name, such as `/src`, is also part of paths that do not depend on the machine.
        let mut paths = self.0.iter().map(|(path, _)| path.as_path()).filter(|path| path.components().count() > 2);
        paths.find(|path| {
            // With a separator: `/work/main` is also the beginning of other words.
            let mut pattern = path.as_os_str().as_encoded_bytes().to_vec();
            pattern.push(b'/');
            memchr::memmem::find(bytes, &pattern).is_some()
        })
    }
}

/// Where cargo keeps the sources of dependencies.
fn cargo_home() -> anyhow::Result<PathBuf> {
    if let Some(home) = env::var_os("CARGO_HOME") {
        return Ok(PathBuf::from(home));
    }
    let home = env::home_dir().context("the home directory is not known; set CARGO_HOME")?;
    Ok(home.join(".cargo"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_of_the_machine_is_replaced_and_found_if_it_is_not() {
        let remap = Remap::of_machine().unwrap();
        let arguments = remap.arguments();
        let root = format!("--remap-path-prefix={}=/chandler", command::root().display());
        assert_eq!(arguments.first(), Some(&root), "{arguments:?}");
        // A path below another one comes after it.
        assert!(arguments.last().unwrap().ends_with("=/target"), "{arguments:?}");
        let inside = format!("panicked at {}/host/chandler/src/main.rs", command::root().display());
        assert_eq!(remap.left_in(inside.as_bytes()), Some(command::root().as_path()));
        assert_eq!(remap.left_in(b"panicked at /chandler/host/chandler/src/main.rs"), None);
        let short = Remap(vec![(PathBuf::from("/src"), "/chandler".to_owned())]);
        assert_eq!(short.left_in(b"panicked at /cargo/registry/log-0.4.1/src/lib.rs"), None);
    }
}
