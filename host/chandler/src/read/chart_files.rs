//! The files of a chart in a directory of this machine: those that `helm package` packs, without what its `.helmignore` names.
//!
//! The provisioner applies the same rules, but only in the cluster: whatever is ignored, such as `.git` or a file with passwords, must not get there.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use chandler_content::{Store, Tree};
use chandler_core::Content as _;
use chandler_helmignore::{FILE, Rules, Steps, TooManySteps};

use super::{
    file,
    source::{CHART, refused},
};
use crate::CommandError;

/// The bytes of a `.helmignore` that are read, and the most rules that it may have.
const BYTES: u64 = 64 << 10;
/// How many characters may be compared for one directory. A chart with 20,000 files and 30 rules takes a tenth.
const STEPS: u64 = 100_000_000;

/// The directory of a chart, with its rules.
pub(super) struct ChartFiles {
    directory: PathBuf,
    rules: Rules,
}

impl ChartFiles {
    /// The chart in a directory; `None` if it is not the directory of a chart.
    ///
    /// # Errors
    /// Its `.helmignore` cannot be read, or Helm refuses it.
    pub(super) fn of(directory: &Path) -> Result<Option<Self>, CommandError> {
        if !directory.join(CHART).is_file() {
            return Ok(None);
        }
        let path = directory.join(FILE);
        let unusable = || CommandError::failed(format!("{} cannot be used", path.display()));
        // A pipe or a device has no end.
        let text = match path.metadata() {
            Ok(metadata) if metadata.is_file() => {
                file::read(&path, BYTES).map_err(|error| unusable().because(&error))?
            }
            Ok(_) => return Err(unusable().cause("it is not a file")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(unusable().because(&error)),
        };
        let rules = Rules::parse(&String::from_utf8_lossy(&text)).map_err(|error| {
            unusable()
                .because(&error)
                .hint("Helm refuses it as well: correct the pattern, so that the files that it ignores are known")
        })?;
        Ok(Some(Self { directory: directory.to_owned(), rules }))
    }

    /// Copies the files into the store.
    ///
    /// # Errors
    /// The files cannot be read, or the rules leave out the chart itself.
    pub(super) async fn import(self, store: &Store) -> Result<Tree, CommandError> {
        let Self { directory, rules } = self;
        let exhausted = Arc::new(AtomicBool::new(false));
        let (mut steps, seen) = (Steps::of(STEPS), Arc::clone(&exhausted));
        let leaves_out = move |path: &str, is_directory: bool| {
            rules.leave_out_entry(path, is_directory, &mut steps).unwrap_or_else(|TooManySteps| {
                seen.store(true, Ordering::Relaxed);
                // The rest need not be read.
                true
            })
        };
        let tree = store.import_directory_without(&directory, leaves_out).await;
        let tree = tree.map_err(|error| refused(&format!("directory {}", directory.display()), &error))?;
        let path = directory.join(FILE);
        if exhausted.load(Ordering::Relaxed) {
            return Err(CommandError::failed(format!("{} cannot be used", path.display()))
                .because(&TooManySteps)
                .hint("use fewer patterns, with fewer stars"));
        }
        if tree.read(CHART, 0, 1).is_err() {
            return Err(CommandError::failed(format!("{} leaves out {CHART}, so no chart is left", path.display()))
                .hint("a pattern that begins with `!` leaves out everything that it does not match, as in Helm"));
        }
        Ok(tree)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use chandler_content::Limits;

    use super::*;

    /// The paths of a chart whose directory has these files.
    async fn packed(files: &[(&str, &str)]) -> Result<String, String> {
        let directory = tempfile::tempdir().unwrap();
        let chart = directory.path().join("web");
        for (path, text) in files {
            let path = chart.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        listed(&chart).await.map_err(|error| error.replace(&directory.path().display().to_string(), ""))
    }

    async fn listed(chart: &Path) -> Result<String, String> {
        let cache = tempfile::tempdir().unwrap();
        let store = Store::open(cache.path(), Limits::default()).unwrap();
        let found = ChartFiles::of(chart).map_err(|error| error.to_string())?;
        let tree = found.expect("a chart").import(&store).await.map_err(|error| error.to_string())?;
        Ok(tree.entries("", None, 100).into_iter().map(|entry| entry.path).collect::<Vec<_>>().join(" "))
    }

    #[tokio::test]
    async fn files_that_helm_package_leaves_out_are_not_read() {
        let chart = [
            (".helmignore", "# secrets\n.env\n.git/\n*.bak\n/docs/\n"),
            ("Chart.yaml", "name: web\n"),
            (".env", "PASSWORD=x"),
            (".git/config", "[core]"),
            ("docs/a.md", ""),
            ("templates/.hidden.yaml", ""),
            ("templates/a.yaml", ""),
            ("templates/a.yaml.bak", ""),
            ("charts/db/.env", ""),
            ("charts/db/Chart.yaml", ""),
        ];
        let expected = ".helmignore Chart.yaml charts/db/Chart.yaml templates/a.yaml";
        assert_eq!(packed(&chart).await.as_deref(), Ok(expected));
        let all = packed(&chart[1..]).await.unwrap();
        assert!(all.contains(".env") && !all.contains("templates/.hidden.yaml"), "{all}");
    }

    #[tokio::test]
    async fn ignored_entries_that_no_bundle_may_have_do_no_harm() {
        let directory = tempfile::tempdir().unwrap();
        let at = |path: &str| directory.path().join(path);
        fs::write(at("Chart.yaml"), "name: web\n").unwrap();
        fs::create_dir(at("real")).unwrap();
        symlink("/", at("node_modules")).unwrap();
        symlink("nowhere", at("dangling.tmp")).unwrap();
        assert!(listed(directory.path()).await.is_err(), "they are refused");
        fs::write(at(".helmignore"), "node_modules/\n*.tmp\n").unwrap();
        assert_eq!(listed(directory.path()).await.as_deref(), Ok(".helmignore Chart.yaml"));
    }

    #[tokio::test]
    async fn hostile_rules_are_refused() {
        let of = async |rules: &str| packed(&[("Chart.yaml", "name: web\n"), (".helmignore", rules)]).await;
        insta::assert_snapshot!(of("a/**/b\n").await.unwrap_err(), @r"
        error: /web/.helmignore cannot be used
          cause: double-star (**) syntax is not supported
          hint: Helm refuses it as well: correct the pattern, so that the files that it ignores are known
        ");
        insta::assert_snapshot!(of("Chart.*\n").await.unwrap_err(), @r"
        error: /web/.helmignore leaves out Chart.yaml, so no chart is left
          hint: a pattern that begins with `!` leaves out everything that it does not match, as in Helm
        ");
        assert_eq!(of("!templates/\n").await, of("Chart.*\n").await);
        let long = of(&"*".repeat(70_000)).await.unwrap_err();
        assert!(long.contains("is longer than 65536 bytes"), "{long}");
        let slow = format!("*{}b\n", "a".repeat(100)).repeat(600);
        let long = "a".repeat(200);
        let names: Vec<String> = (0..200).map(|number| format!("{number}{long}")).collect();
        let mut files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
        files.extend([("Chart.yaml", "name: web\n"), (".helmignore", slow.as_str())]);
        insta::assert_snapshot!(packed(&files).await.unwrap_err(), @r"
        error: /web/.helmignore cannot be used
          cause: comparing the files with its patterns takes too many steps
          hint: use fewer patterns, with fewer stars
        ");
    }

    #[tokio::test]
    async fn rules_that_are_not_utf8_match_as_in_the_provisioner() {
        let directory = tempfile::tempdir().unwrap();
        let at = |path: &str| directory.path().join(path);
        fs::write(at("Chart.yaml"), "name: web\n").unwrap();
        fs::write(at(".env"), "").unwrap();
        fs::write(at(".helmignore"), b"\xff*\n.env\n").unwrap();
        assert_eq!(listed(directory.path()).await.as_deref(), Ok(".helmignore Chart.yaml"));
        fs::remove_file(at(".helmignore")).unwrap();
        fs::create_dir(at(".helmignore")).unwrap();
        assert!(listed(directory.path()).await.unwrap_err().contains("it is not a file"));
    }
}
