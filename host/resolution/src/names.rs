//! The names of the BundleDeployments of a set.

use std::collections::{BTreeMap, BTreeSet};

use chandler_core::Digest;

/// The longest name of a BundleDeployment.
const NAME: usize = 52;
/// The BundleDeployments of sets have names that begin so: of the sets of Resolutions, and of the sets that ConfigMaps decide.
const RESERVED: [&str; 2] = ["resolveset-", "decidedset-"];

/// The names of the BundleDeployments of packages. `wanted` is what the spec asks for, `current` what the set has, and `others` the packages
/// that other sets have, by the names of their BundleDeployments.
///
/// - A package of the set keeps its name: another name would be another BundleDeployment, which uninstalls the package and installs it again.
/// - A new package gets the wanted name, or the name of the package, unless another package of the set has it, even one that leaves the set now,
///   or another package of another set: a member that passed to that set kept its name.
/// - Wanted names go before names of packages.
pub fn names<'a>(
    packages: impl IntoIterator<Item = &'a str>,
    wanted: &BTreeMap<String, String>,
    current: &BTreeMap<String, String>,
    others: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let is_of_other = |name: &String, package: &str| others.get(name).is_some_and(|other| other != package);
    let packages: BTreeSet<&str> = packages.into_iter().collect();
    let mut taken: BTreeSet<String> = current.values().cloned().collect();
    let kept = packages.iter().filter_map(|package| Some(((*package).to_owned(), current.get(*package)?.clone())));
    let mut names: BTreeMap<String, String> = kept.collect();
    for package in &packages {
        let is_reserved = |name: &String| RESERVED.iter().any(|prefix| name.starts_with(prefix));
        let name = wanted.get(*package).map(|name| deployment_name(name)).filter(|name| !is_reserved(name));
        if let Some(name) =
            name.filter(|name| !names.contains_key(*package) && !taken.contains(name) && !is_of_other(name, package))
        {
            taken.insert(name.clone());
            names.insert((*package).to_owned(), name);
        }
    }
    for package in packages {
        if !names.contains_key(package) {
            let name =
                Some(deployment_name(package)).filter(|name| !taken.contains(name) && !is_of_other(name, package));
            let name = name.unwrap_or_else(|| hashed(package));
            taken.insert(name.clone());
            names.insert(package.to_owned(), name);
        }
    }
    names
}

/// The name of the BundleDeployment of a package whose name nothing else decides: the package, if it is short enough.
pub fn deployment_name(package: &str) -> String {
    if package.len() <= NAME { package.to_owned() } else { hashed(package) }
}

fn hashed(package: &str) -> String {
    let digest = Digest::of(package.as_bytes());
    let hash: String = digest.hex().chars().take(8).collect();
    let kept: String = package.chars().take(NAME - hash.len() - 1).collect();
    format!("{}-{hash}", kept.trim_end_matches(['-', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(package, name)| ((*package).to_owned(), (*name).to_owned())).collect()
    }

    fn named(packages: &[&str], wanted: &[(&str, &str)], current: &[(&str, &str)]) -> Vec<(String, String)> {
        names(packages.iter().copied(), &map(wanted), &map(current), &BTreeMap::new()).into_iter().collect()
    }

    #[test]
    fn a_package_keeps_its_name_and_a_new_one_gets_what_is_wanted() {
        let expected = |entries: &[(&str, &str)]| map(entries).into_iter().collect::<Vec<_>>();
        for (packages, wanted, current, names) in [
            (&["app", "base"][..], &[("app", "one")][..], &[][..], &[("app", "one"), ("base", "base")][..]),
            // An installed package is not installed again, whatever its PlatformOperator is called.
            (&["app"], &[("app", "one")], &[("app", "app")], &[("app", "app")]),
            (&["app"], &[], &[("app", "one")], &[("app", "one")]),
            (&["app"], &[("app", "two")], &[("app", "one")], &[("app", "one")]),
            // Other packages may have these names.
            (&["app", "base"], &[("app", "base"), ("base", "app")], &[], &[("app", "base"), ("base", "app")]),
            // A name with the prefix of sets would be in the way of a set.
            (&["app"], &[("app", "resolveset-shop")], &[], &[("app", "app")]),
            (&["app"], &[("app", "decidedset-shop")], &[], &[("app", "app")]),
            // A member that leaves the set is not replaced under its name.
            (&["new"], &[("new", "one")], &[("old", "one")], &[("new", "new")]),
        ] {
            assert_eq!(named(packages, wanted, current), expected(names), "{packages:?} {wanted:?} {current:?}");
        }
    }

    #[test]
    fn a_name_that_another_package_of_another_set_has_is_not_used() {
        let named = |wanted: &[(&str, &str)], others: &[(&str, &str)]| {
            names(["app"], &map(wanted), &BTreeMap::new(), &map(others))["app"].clone()
        };
        assert_eq!(named(&[("app", "one")], &[("one", "base")]), "app");
        assert!(named(&[], &[("app", "base")]).starts_with("app-"));
        // The package itself is not installed a second time under another name.
        assert_eq!(named(&[("app", "one")], &[("one", "app")]), "one");
    }

    #[test]
    fn no_two_packages_have_one_name() {
        let taken = named(&["app", "base"], &[("app", "base")], &[]);
        assert_eq!(taken[0].1, "base");
        assert!(taken[1].1.starts_with("base-") && taken[1].1.len() <= NAME, "{taken:?}");
        let equal = named(&["a", "b"], &[("a", "one"), ("b", "one")], &[]);
        assert_eq!(equal, [("a".to_owned(), "one".to_owned()), ("b".to_owned(), "b".to_owned())]);
        let long = "x".repeat(60);
        let short = named(&["a"], &[("a", long.as_str())], &[]);
        assert_eq!(short[0].1, deployment_name(&long));
    }
}
