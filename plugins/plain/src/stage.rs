//! Run levels: files named `0000_<level>_<component>...` are rolled out level by level.
//!
//! This is the convention of OpenShift's cluster-version operator, which applies manifests in the order of their names,
//! level by level, the components of one level in parallel. A stage is a level here, so that each level becomes healthy
//! before the next begins, and components of one level are rolled out together.
//!
//! The cluster-version operator also applies the files of one component in order. With `release` in the configuration,
//! each component is a sequence of the host within its stage: sequences do not wait for one another, since components of
//! one level may depend on each other. Without it, the host's order of kinds within a stage replaces the order of files.

/// The stage of files without a level that sort after all files with one: above the highest level, 99.
const AFTER_ALL: u32 = 100;

/// The run level of a file name. A component name must follow the level; both `_` and `-` are used after the component,
/// so anything may follow that.
///
/// ```
/// use chandler_plain::stage::run_level;
///
/// assert_eq!(run_level("0000_50_olm_00-namespace.yaml"), Some(50));
/// assert_eq!(run_level("50_olm.yaml"), None);
/// ```
pub fn run_level(file_name: &str) -> Option<u32> {
    let (level, component) = file_name.strip_prefix("0000_")?.split_once('_')?;
    let two_digits = level.len() == 2 && level.bytes().all(|byte| byte.is_ascii_digit());
    let named = component.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit());
    level.parse().ok().filter(|_| two_digits && named)
}

/// The component in a file name, whose files are applied one after the other: `0000_<level>_<component>_...`, with any number
/// of digits in the level. Files without one follow one another.
///
/// ```
/// use chandler_plain::stage::component;
///
/// assert_eq!(component("0000_50_cluster-ingress-operator_00-crd.yaml"), Some("cluster-ingress-operator"));
/// assert_eq!(component("0000_50_olm-crd.yaml"), None);
/// ```
pub fn component(file_name: &str) -> Option<&str> {
    let (level, rest) = file_name.strip_prefix("0000_")?.split_once('_')?;
    let (component, _) = rest.split_once('_')?;
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_level = !level.is_empty() && level.bytes().all(|byte| byte.is_ascii_digit());
    (is_level && component.split('-').all(is_word)).then_some(component)
}

/// The stage of each file name; the names are in byte order.
///
/// Without any level there are no stages. Otherwise a file without a level keeps its place in the order: it gets the
/// level before it, or after all levels a stage of its own.
pub fn stages<S: AsRef<str>>(file_names: &[S]) -> Vec<Option<u32>> {
    let levels: Vec<Option<u32>> = file_names.iter().map(|name| run_level(name.as_ref())).collect();
    let Some(last) = levels.iter().rposition(Option::is_some) else {
        return levels;
    };
    let mut current = 0;
    let stage = |(index, level): (usize, &Option<u32>)| {
        current = level.unwrap_or(current);
        Some(if index > last { AFTER_ALL } else { current })
    };
    levels.iter().enumerate().map(stage).collect()
}

/// The stages of the files of a release image: of `manifests/` and of `release-manifests/`.
///
/// The levels of both directories are one order, in which each level begins with `manifests/`. If only one directory has levels, the files of the
/// other one come before all levels (`manifests/`) or after them.
pub(crate) fn across<S: AsRef<str>>(own: &[S], components: &[S]) -> (Vec<Option<u32>>, Vec<Option<u32>>) {
    let (mut first, mut second) = (stages(own), stages(components));
    let has_levels = |stages: &[Option<u32>]| stages.iter().any(Option::is_some);
    if has_levels(&first) || has_levels(&second) {
        for (stages, otherwise) in [(&mut first, 0), (&mut second, AFTER_ALL)] {
            for stage in stages {
                stage.get_or_insert(otherwise);
            }
        }
    }
    (first, second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_parsed_from_file_names() {
        for (name, level) in [
            ("0000_03_cluster-version-operator_00-namespace.yaml", Some(3)),
            ("0000_50_olm_06-psm-operator.deployment.yaml", Some(50)),
            ("0000_00_a_b", Some(0)),
            ("0000_5_olm_a.yaml", None),
            ("0000_500_olm_a.yaml", None),
            ("0000_13_cluster-kube-scheduler-operator-crd.yaml", Some(13)),
            ("0000_50.yaml", None),
            ("0000_50_", None),
            ("0000_50_OLM_a.yaml", None),
            ("0000_50__a.yaml", None),
            ("00_50_a.yaml", None),
            ("0000_+5_olm_a.yaml", None),
            ("50_olm_a.yaml", None),
            ("", None),
        ] {
            assert_eq!(run_level(name), level, "{name}");
        }
    }

    #[test]
    fn components_are_parsed_from_file_names() {
        for (name, parsed) in [
            ("0000_50_olm_06-psm-operator.deployment.yaml", Some("olm")),
            ("0000_03_cluster-version-operator_00-namespace.yaml", Some("cluster-version-operator")),
            ("0000_500_a_b", Some("a")),
            ("0000_50_a-_b", None),
            ("0000_50__b", None),
            ("0000_50_a.b_c", None),
            ("0000_50_olm-crd.yaml", None),
            ("0000__a_b", None),
            ("99_ingress-operator_01_roles.yaml", None),
        ] {
            assert_eq!(component(name), parsed, "{name}");
        }
    }

    #[test]
    fn files_without_a_level_keep_their_place() {
        let staged = stages(&[
            "!first.yaml",
            "0000_10_a_x.yaml",
            "0000_10_b_x.yaml",
            "0000_10x.yaml",
            "0000_30_a_x.yaml",
            "01_roles.yaml",
            "deployment.yaml",
        ]);
        assert_eq!(staged, [0, 10, 10, 10, 30, 100, 100].map(Some));
        assert_eq!(stages(&["01_roles.yaml", "02_deployment.yaml"]), [None, None]);
        assert_eq!(stages::<&str>(&[]), [None; 0]);
    }

    #[test]
    fn the_levels_of_both_directories_of_a_release_image_are_one_order() {
        let own = ["0000_00_a_x.yaml", "0000_90_a_x.yaml"];
        let components = ["0000_03_b_x.yaml", "x.yaml"];
        assert_eq!(across(&own, &components), (vec![Some(0), Some(90)], vec![Some(3), Some(100)]));
        assert_eq!(across(&["x.yaml"], &["0000_50_b_x.yaml"]), (vec![Some(0)], vec![Some(50)]));
        assert_eq!(across(&["0000_50_b_x.yaml"], &["x.yaml"]), (vec![Some(50)], vec![Some(100)]));
        assert_eq!(across(&["x.yaml"], &["x.yaml"]), (vec![None], vec![None]));
        assert_eq!(across(&[], &["0000_50_b_x.yaml"]), (vec![], vec![Some(50)]));
    }
}
