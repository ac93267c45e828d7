//! Reads registries.conf, version 2: containers-registries.conf(5), and drop-in files: containers-registries.conf.d(5).

use std::{
    fs, io,
    io::Read as _,
    ops::Range,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use toml::Spanned;

use crate::{
    MIRRORS, Registries, ScopeError,
    scope::{Location, Scope},
    settings::{Mirror, Pull, Table},
};

/// The largest file, in bytes.
pub const FILE_BYTES: u64 = 1 << 20;
/// The most drop-in files.
const DROP_INS: usize = 1000;

/// A file is not used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("{}: {source}", .file.display())]
    Read {
        /// The file or directory.
        file: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// It is too large, or there are too many.
    #[error("{}: {problem}", .file.display())]
    Limit {
        /// The file or directory.
        file: PathBuf,
        /// The limit.
        problem: String,
    },
    /// Its text is refused.
    #[error("{}:{line}: {problem}", .file.display())]
    Text {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    #[serde(default)]
    registry: Vec<Spanned<RegistryTable>>,
    /// Of version 1.
    registries: Option<Spanned<toml::Value>>,
    // About short names and credentials, which have other rules here; about the storage of layers, which are not pulled here.
    #[serde(rename = "unqualified-search-registries")]
    _search: Option<toml::Value>,
    #[serde(rename = "short-name-mode")]
    _short_name_mode: Option<toml::Value>,
    #[serde(rename = "aliases")]
    _aliases: Option<toml::Value>,
    #[serde(rename = "credential-helpers")]
    _credential_helpers: Option<toml::Value>,
    #[serde(rename = "additional-layer-store-auth-helper")]
    _layer_store: Option<toml::Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RegistryTable {
    prefix: Option<Spanned<String>>,
    location: Option<Spanned<String>>,
    #[serde(default)]
    insecure: bool,
    #[serde(default)]
    blocked: bool,
    #[serde(default)]
    mirror_by_digest_only: bool,
    #[serde(default)]
    mirror: Vec<Spanned<MirrorTable>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct MirrorTable {
    location: Option<Spanned<String>>,
    #[serde(default)]
    insecure: bool,
    pull_from_mirror: Option<Spanned<String>>,
}

/// What is wrong, and where in the text.
type Refusal = (Range<usize>, String);

impl Registries {
    /// Reads a registries.conf, and then the files `*.conf` of directories such as `/etc/containers/registries.conf.d`, each directory in
    /// the order of the names. A table replaces one of an earlier file with the same prefix. Blocks on the disk.
    ///
    /// # Errors
    /// A file cannot be read or is refused, or the file does not exist. A directory that does not exist is skipped.
    pub fn read(file: Option<&Path>, drop_ins: &[PathBuf]) -> Result<Self, FileError> {
        let mut registries = Self::default();
        if let Some(file) = file {
            registries.add_file(file, &text(file)?)?;
        }
        for directory in drop_ins {
            for file in drop_in_files(directory)? {
                registries.add_file(&file, &text(&file)?)?;
            }
        }
        Ok(registries)
    }

    /// Adds the tables of a file with this text. A table replaces an earlier one with the same prefix.
    pub fn add_file(&mut self, file: &Path, text: &str) -> Result<(), FileError> {
        let refuse = |(at, problem): Refusal| {
            let line = text.get(..at.start).unwrap_or_default().split('\n').count();
            FileError::Text { file: file.to_owned(), line, problem }
        };
        for table in tables(text).map_err(refuse)? {
            self.set(table);
        }
        Ok(())
    }
}

/// The tables of a file. A prefix occurs once in a file.
fn tables(text: &str) -> Result<Vec<Table>, Refusal> {
    let file: File = toml::from_str(text).map_err(|error| {
        // The parser quotes the text, which may come from a wrong file.
        (error.span().unwrap_or_default(), error.message().chars().take(300).collect())
    })?;
    if let Some(registries) = file.registries {
        let problem = "`registries` is of version 1 of this format, which is not supported; write tables [[registry]] with `location`, \
                       `insecure` and `blocked`";
        return Err((registries.span(), problem.to_owned()));
    }
    let mut tables: Vec<Table> = Vec::new();
    for table in file.registry {
        let at = table.span();
        let table = registry(at.clone(), table.into_inner())?;
        if tables.iter().any(|known| known.scope == table.scope) {
            return Err((at, format!("prefix {:?} occurs twice", table.scope.text())));
        }
        tables.push(table);
    }
    Ok(tables)
}

fn registry(at: Range<usize>, table: RegistryTable) -> Result<Table, Refusal> {
    let location = table.location.as_ref().filter(|text| !text.get_ref().is_empty());
    let prefix = table.prefix.as_ref().filter(|text| !text.get_ref().is_empty());
    let Some(named) = prefix.or(location) else {
        return Err((at, "the table has neither `prefix` nor `location`".to_owned()));
    };
    let scope = Scope::parse(named.get_ref()).map_err(|error| refused(named, error))?;
    let location = match (prefix, location) {
        // The scope, without its tag or digest.
        (None, _) | (_, None) => scope.location().cloned(),
        (Some(prefix), Some(location)) if prefix.get_ref() == location.get_ref() => scope.location().cloned(),
        (_, Some(location)) => Some(Location::parse(location.get_ref()).map_err(|error| refused(location, error))?),
    };
    if table.mirror.len() > MIRRORS {
        return Err((at, format!("the table has more than {MIRRORS} mirrors")));
    }
    let by_digest = table.mirror_by_digest_only;
    let mirrors: Result<_, _> = table.mirror.into_iter().map(|mirror| self::mirror(mirror, by_digest)).collect();
    Ok(Table { scope, location, insecure: table.insecure, blocked: table.blocked, mirrors: mirrors? })
}

fn mirror(mirror: Spanned<MirrorTable>, by_digest_only: bool) -> Result<Mirror, Refusal> {
    let at = mirror.span();
    let MirrorTable { location, insecure, pull_from_mirror } = mirror.into_inner();
    let location = location.ok_or_else(|| (at, "the mirror has no `location`".to_owned()))?;
    let pull = match &pull_from_mirror {
        Some(text) if by_digest_only => {
            let problem = "`pull-from-mirror` must not be set where `mirror-by-digest-only` is true";
            return Err((text.span(), problem.to_owned()));
        }
        Some(text) => match text.get_ref().as_str() {
            "" | "all" => Pull::All,
            "digest-only" => Pull::DigestOnly,
            "tag-only" => Pull::TagOnly,
            _ => return Err((text.span(), "`pull-from-mirror` is `all`, `digest-only` or `tag-only`".to_owned())),
        },
        None if by_digest_only => Pull::DigestOnly,
        None => Pull::All,
    };
    let place = Location::parse(location.get_ref()).map_err(|error| refused(&location, error))?;
    Ok(Mirror { location: place, insecure, pull })
}

fn refused(text: &Spanned<String>, error: ScopeError) -> Refusal {
    let shown: String = text.get_ref().chars().take(100).collect();
    (text.span(), format!("{shown:?}: {error}"))
}

/// The text of a file.
fn text(file: &Path) -> Result<String, FileError> {
    let failed = |source| FileError::Read { file: file.to_owned(), source };
    let mut text = String::new();
    let opened = fs::File::open(file).map_err(failed)?;
    opened.take(FILE_BYTES.saturating_add(1)).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > FILE_BYTES {
        let problem = format!("it is larger than {FILE_BYTES} bytes");
        return Err(FileError::Limit { file: file.to_owned(), problem });
    }
    Ok(text)
}

/// The files `*.conf` of a directory, by name.
fn drop_in_files(directory: &Path) -> Result<Vec<PathBuf>, FileError> {
    let failed = |source| FileError::Read { file: directory.to_owned(), source };
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "conf") && !path.is_dir() {
            files.push(path);
        }
        if files.len() > DROP_INS {
            let problem = format!("it has more than {DROP_INS} files");
            return Err(FileError::Limit { file: directory.to_owned(), problem });
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Version;

    fn error(text: &str) -> String {
        Registries::default().add_file("r.conf".as_ref(), text).unwrap_err().to_string()
    }

    #[test]
    fn refusals_name_the_line() {
        let wildcard = "`*` is allowed in a prefix of the form `*.example.com` only, with no port and no path";
        for (text, expected) in [
            ("[[registry]]\nlocation = \"a.io\"\nblockd = true", "r.conf:3: unknown field `blockd`"),
            ("\n[[registrys]]\nlocation = \"a.io\"", "r.conf:2: unknown field `registrys`"),
            ("[[registry]]\nblocked = \"yes\"", "r.conf:2: invalid type: string \"yes\", expected a boolean"),
            ("[[registry]]\nblocked = true", "r.conf:1: the table has neither `prefix` nor `location`"),
            ("[[registry]]\nprefix = \"*.a.io/b\"", &format!("r.conf:2: \"*.a.io/b\": {wildcard}")),
            (
                "[[registry]]\nprefix = \"a.io\"\nlocation = \"https://b.io\"",
                "r.conf:3: \"https://b.io\": write it without",
            ),
            (
                "[[registry]]\nprefix = \"a.io\"\nlocation = \"b.io/c:v1\"",
                "r.conf:3: \"b.io/c:v1\": a location has no tag",
            ),
            ("[[registry]]\nlocation = \"a.io\"\n[[registry.mirror]]\ninsecure = true", "r.conf:3: the mirror has no"),
            (
                "[[registry]]\nlocation = \"a.io\"\n[[registry.mirror]]\nlocation = \"b.io\"\npull-from-mirror = \"tags\"",
                "r.conf:5: `pull-from-mirror` is `all`",
            ),
            (
                "[[registry]]\nlocation = \"a.io\"\nmirror-by-digest-only = true\n[[registry.mirror]]\nlocation = \"b.io\"\n\
                 pull-from-mirror = \"all\"",
                "r.conf:6: `pull-from-mirror` must not be set",
            ),
            (
                "[[registry]]\nlocation = \"a.io\"\n[[registry]]\nprefix = \"A.io\"",
                "r.conf:3: prefix \"a.io\" occurs twice",
            ),
            ("[registries.search]\nregistries = ['a.io']", "r.conf:1: `registries` is of version 1"),
            ("[registries.block]\nregistries = ['a.io']", "r.conf:1: `registries` is of version 1"),
            ("x", "r.conf:1: "),
            ("\n\n\"", "r.conf:3: "),
        ] {
            let error = error(text);
            assert!(error.starts_with(expected), "{text}\n{error}\n{expected}");
        }
        let mirrors = "[[registry.mirror]]\nlocation = \"b.io\"\n".repeat(MIRRORS + 1);
        assert!(error(&format!("[[registry]]\nlocation = \"a.io\"\n{mirrors}")).contains("more than 32 mirrors"));
    }

    #[test]
    fn settings_about_other_things_are_accepted() {
        let text = "unqualified-search-registries = [\"a.io\"]\nshort-name-mode = \"enforcing\"\ncredential-helpers = [\"x\"]\n\
                    [aliases]\n\"ubi8\" = \"registry.access.redhat.com/ubi8\"\n";
        let mut registries = Registries::default();
        registries.add_file("r.conf".as_ref(), text).unwrap();
        assert!(registries.is_empty());
    }

    #[test]
    fn later_files_replace_tables() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        };
        let file = write("registries.conf", "[[registry]]\nlocation = \"a.io\"\nblocked = true\n");
        write("d/20.conf", "[[registry]]\nprefix = \"a.io\"\nlocation = \"c.io\"\n");
        write("d/10.conf", "[[registry]]\nprefix = \"a.io\"\nlocation = \"b.io\"\n[[registry]]\nlocation = \"d.io\"\n");
        write("d/30.conf.bak", "nonsense");
        let drop_ins = [directory.path().join("d"), directory.path().join("absent")];
        let registries = Registries::read(Some(&file), &drop_ins).unwrap();
        let endpoints = registries.endpoints("a.io/x", Version::Tag("v1")).unwrap();
        assert_eq!(endpoints.iter().map(|endpoint| endpoint.reference.as_str()).collect::<Vec<_>>(), ["c.io/x:v1"]);
        let error = Registries::read(Some(&directory.path().join("absent")), &[]).unwrap_err().to_string();
        assert!(error.contains("absent: No such file"), "{error}");
        write("d/40.conf", "x");
        let error = Registries::read(Some(&file), &drop_ins).unwrap_err().to_string();
        assert!(error.contains("d/40.conf:1: "), "{error}");
        let huge = write("huge.conf", &"#".repeat(usize::try_from(FILE_BYTES).unwrap() + 1));
        let error = Registries::read(Some(&huge), &[]).unwrap_err().to_string();
        assert!(error.contains("larger than"), "{error}");
    }

    proptest! {
        #[test]
        fn no_text_is_too_much(text in "(\\[\\[registry(\\.mirror)?\\]\\]\n|(prefix|location|blocked|insecure) = (\"[a-z.*/:@]{0,8}\"|true)\n|\\PC{0,4}){0,8}") {
            let mut registries = Registries::default();
            if registries.add_file("r.conf".as_ref(), &text).is_ok() {
                let _ = registries.endpoints("a.io/x", Version::Tag("v1"));
            }
        }
    }
}
