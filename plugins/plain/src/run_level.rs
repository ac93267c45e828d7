//! Run levels: file names of the form `0000_NN_component_name` order a bundle.
//!
//! The cluster-version operator (`docs/user/reconciliation.md` upstream) applies manifests in the order of their file names
//! and knows `0000_NN_` as run level `NN`: what lies at a lower level is in place before a higher one begins, and components of
//! one level do not wait for each other. Here a run level becomes a stage; inside a stage the host orders by kind. Other file
//! names sort behind `0000_`, so what has no run level comes last.

/// The stages of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stages {
    leveled: bool,
}

/// The stage of files without a run level, where others have one: behind the highest level, 99.
const LAST: u32 = 100;

impl Stages {
    /// The stages of a bundle with these files. Without any run level there is only one stage.
    pub fn of<'a>(mut file_names: impl Iterator<Item = &'a str>) -> Self {
        Self { leveled: file_names.any(|name| run_level(name).is_some()) }
    }

    /// The stage of a file; none where the bundle has only one.
    pub fn stage(self, file_name: &str) -> Option<u32> {
        self.leveled.then(|| run_level(file_name).unwrap_or(LAST))
    }
}

/// The run level in a file name: `NN` of `0000_NN_component...`.
pub fn run_level(file_name: &str) -> Option<u32> {
    let (level, component) = file_name.strip_prefix("0000_")?.split_once('_')?;
    let two_digits = level.len() == 2 && level.bytes().all(|byte| byte.is_ascii_digit());
    let named = component.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    if two_digits && named { level.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_levels_are_read_from_file_names() {
        for (name, level) in [
            ("0000_13_cluster-kube-scheduler-operator_03_crd.yaml", Some(13)),
            ("0000_00_cluster-version-operator-crd.yaml", Some(0)),
            ("0000_5_a.yaml", None),
            ("0000_050_a.yaml", None),
            ("0000_50.yaml", None),
            ("0000_50_.yaml", None),
            ("00_50_a.yaml", None),
            ("99_ingress-operator_01_roles.yaml", None),
        ] {
            assert_eq!(run_level(name), level, "{name}");
        }
    }

    #[test]
    fn what_has_no_run_level_comes_last_where_others_have_one() {
        let stages = Stages::of(["0000_50_a.yaml", "b.yaml"].into_iter());
        assert_eq!((stages.stage("0000_50_a.yaml"), stages.stage("b.yaml")), (Some(50), Some(100)));
        let none = Stages::of(["a.yaml", "b.yaml"].into_iter());
        assert_eq!(none.stage("a.yaml"), None);
    }
}
