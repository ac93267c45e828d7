//! The cache directory for unpacked bundles and compiled components.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use crate::CommandError;

/// The cache directory: the argument, else `$XDG_CACHE_HOME/chandler`, else `~/.cache/chandler`.
pub fn directory(chosen: Option<&Path>) -> Result<PathBuf, CommandError> {
    choose(chosen, env::var_os("XDG_CACHE_HOME"), env::home_dir())
        .ok_or_else(|| CommandError::usage("no home directory for the cache").hint("set --cache-directory"))
}

/// The subdirectory for compiled components. The controller uses the same name, so both share it.
pub fn code(directory: &Path) -> PathBuf {
    directory.join("code")
}

/// The subdirectory for the content of bundles.
pub fn content(directory: &Path) -> PathBuf {
    directory.join("content")
}

/// The subdirectory for the indexes of catalogs.
pub fn catalogs(directory: &Path) -> PathBuf {
    directory.join("catalogs")
}

fn choose(chosen: Option<&Path>, xdg: Option<OsString>, home: Option<PathBuf>) -> Option<PathBuf> {
    if let Some(chosen) = chosen {
        return Some(chosen.to_owned());
    }
    // The XDG base directory specification requires that relative paths are ignored.
    let xdg = xdg.map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = xdg.or_else(|| home.filter(|home| home.is_absolute()).map(|home| home.join(".cache")));
    cache.map(|cache| cache.join("chandler"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_argument_precedes_xdg_which_precedes_home() {
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(choose(Some(Path::new("here")), Some("/xdg".into()), path("/home/a")), path("here"));
        assert_eq!(choose(None, Some("/xdg".into()), path("/home/a")), path("/xdg/chandler"));
        assert_eq!(choose(None, Some("relative".into()), path("/home/a")), path("/home/a/.cache/chandler"));
        assert_eq!(choose(None, None, path("/home/a")), path("/home/a/.cache/chandler"));
        assert_eq!(choose(None, None, None), None);
    }
}
