//! Charts of Helm in archives. `helm package` puts the files of a chart below one directory with its name; the bundle begins in that directory, as for
//! Helm.

use std::collections::BTreeMap;

/// The file at the root of each chart.
pub(crate) const CHART: &str = "Chart.yaml";

/// The files of an archive. If all are below one directory with `Chart.yaml` in it, the paths lose this directory. Other archives stay as they
/// are.
pub(crate) fn at_root<T>(files: BTreeMap<String, T>) -> BTreeMap<String, T> {
    let Some(directory) = only_directory(&files).filter(|directory| files.contains_key(&format!("{directory}{CHART}")))
    else {
        return files;
    };
    let below = |(path, file): (String, T)| path.strip_prefix(&directory).map(|path| (path.to_owned(), file));
    files.into_iter().filter_map(below).collect()
}

/// The directory that all files are in, with a slash at its end.
fn only_directory<T>(files: &BTreeMap<String, T>) -> Option<String> {
    // The paths are sorted: what the first and the last one begin with, all between them begin with.
    let (first, _) = files.first_key_value()?;
    let (last, _) = files.last_key_value()?;
    let directory = format!("{}/", first.split_once('/')?.0);
    last.starts_with(&directory).then_some(directory)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn moved(paths: &[&str]) -> Vec<String> {
        at_root(paths.iter().map(|path| ((*path).to_owned(), ())).collect()).into_keys().collect()
    }

    #[test]
    fn the_directory_of_a_chart_becomes_the_root() {
        assert_eq!(
            moved(&["web/Chart.yaml", "web/charts/sub/Chart.yaml", "web/templates/a.yaml"]),
            ["Chart.yaml", "charts/sub/Chart.yaml", "templates/a.yaml"]
        );
        for other in [
            &[][..],
            &["Chart.yaml", "templates/a.yaml"],
            &["web/Chart.yaml", "web-2/a.yaml"],
            &["web/Chart.yaml", "a.yaml"],
            &["web/Chart.yaml", "zoo/a.yaml"],
            &["charts/web/Chart.yaml"],
            &["harbour/manifests/a.yaml", "harbour/metadata/annotations.yaml"],
        ] {
            let mut expected: Vec<String> = other.iter().map(|path| (*path).to_owned()).collect();
            expected.sort();
            assert_eq!(moved(other), expected);
        }
    }

    proptest! {
        #[test]
        fn no_file_is_lost(paths in proptest::collection::btree_set("(a|b|a/b|a-b)/(Chart.yaml|x|y/z)", 0..6)) {
            let files: BTreeMap<String, String> = paths.iter().map(|path| (path.clone(), path.clone())).collect();
            let moved = at_root(files);
            prop_assert_eq!(moved.values().cloned().collect::<std::collections::BTreeSet<_>>(), paths);
            for (path, was) in moved {
                prop_assert!(was == path || was.split_once('/').unwrap().1 == path);
            }
        }
    }
}
