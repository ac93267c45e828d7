//! Where unpacked bundles and compiled components are kept.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use crate::CommandError;

/// The cache directory: what the user says, else `$XDG_CACHE_HOME/chandler`, else `~/.cache/chandler`.
pub fn directory(chosen: Option<&Path>) -> Result<PathBuf, CommandError> {
    choose(chosen, env::var_os("XDG_CACHE_HOME"), env::home_dir()).ok_or_else(|| {
        CommandError::usage("there is no home directory to keep a cache in").hint("name one with --cache-directory")
    })
}

/// The part of the cache directory for compiled components. The controller names it likewise, so they share it.
pub fn code(directory: &Path) -> PathBuf {
    directory.join("code")
}

/// The part of the cache directory for the content of bundles.
pub fn content(directory: &Path) -> PathBuf {
    directory.join("content")
}

fn choose(chosen: Option<&Path>, xdg: Option<OsString>, home: Option<PathBuf>) -> Option<PathBuf> {
    if let Some(chosen) = chosen {
        return Some(chosen.to_owned());
    }
    // The XDG base directory specification says that relative paths are to be ignored.
    let xdg = xdg.map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = xdg.or_else(|| home.filter(|home| home.is_absolute()).map(|home| home.join(".cache")));
    cache.map(|cache| cache.join("chandler"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_then_xdg_then_home() {
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(choose(Some(Path::new("here")), Some("/xdg".into()), path("/home/a")), path("here"));
        assert_eq!(choose(None, Some("/xdg".into()), path("/home/a")), path("/xdg/chandler"));
        assert_eq!(choose(None, Some("relative".into()), path("/home/a")), path("/home/a/.cache/chandler"));
        assert_eq!(choose(None, None, path("/home/a")), path("/home/a/.cache/chandler"));
        assert_eq!(choose(None, None, None), None);
    }
}
