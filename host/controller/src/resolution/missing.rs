//! The selected catalogs that are not ready, and what is not decided without them.
//!
//! A controller that starts with an empty cache, such as the other replica, knows for a moment only some of the catalogs, or none. A registry may
//! also be away for long. Installed packages stay as they are meanwhile, although other catalogs may offer something else.

use std::fmt;

use chandler_resolution::{Plan, PlannedMember};

use crate::catalog::KnownCatalog;

/// Catalogs that are not ready.
pub(super) struct Missing<'a> {
    /// Their names.
    pub(super) names: Vec<&'a str>,
    /// Whether this process has not yet tried to read one of them.
    is_starting: bool,
}

impl<'a> Missing<'a> {
    /// The ones of these catalogs that are not ready.
    pub(super) fn among(catalogs: &'a [KnownCatalog]) -> Self {
        let missing = || catalogs.iter().filter(|it| it.digest.is_none());
        let names = missing().map(|it| it.source.name.as_str()).collect();
        Self { names, is_starting: missing().any(|it| !it.is_tried) }
    }

    /// Why a plan must wait for the catalogs. If it need not, its members keep the catalogs and channels that they came from.
    pub(super) fn hold_back(&self, plan: &mut Plan, before: &[PlannedMember]) -> Option<String> {
        let of = |package: &str| before.iter().find(|it| it.package == package);
        let is_same = |one: &PlannedMember, other: &PlannedMember| {
            (&one.bundle, &one.version, &one.image) == (&other.bundle, &other.version, &other.image)
        };
        for member in plan.set() {
            let current = of(&member.package);
            if self.is_starting && !current.is_some_and(|current| is_same(current, member)) {
                return Some(format!("package {} waits until each catalog was read once", member.package));
            }
            let away = current.and_then(|current| current.catalog.as_deref()).filter(|it| self.names.contains(it));
            if let (Some(current), Some(away)) = (current, away)
                && !is_same(current, member)
            {
                return Some(format!(
                    "package {} came from catalog {away}, and stays as it is without it",
                    member.package
                ));
            }
        }
        for member in plan.members.iter_mut().filter(|it| it.catalog.is_none()) {
            let current = of(&member.package).filter(|current| is_same(current, member));
            if let Some(current) = current.filter(|it| it.catalog.as_deref().is_some_and(|it| self.names.contains(&it)))
            {
                member.catalog.clone_from(&current.catalog);
                member.channel.clone_from(&current.channel);
            }
        }
        None
    }
}

impl fmt::Display for Missing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "catalogs that are not ready: {}", self.names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(package: &str, version: &str, catalog: Option<&str>) -> PlannedMember {
        PlannedMember {
            package: package.to_owned(),
            bundle: format!("{package}.v{version}"),
            version: version.to_owned(),
            catalog: catalog.map(str::to_owned),
            channel: catalog.map(|_| "stable".to_owned()),
            image: format!("registry.test/{package}:{version}"),
            ..PlannedMember::default()
        }
    }

    fn held_back(missing: &Missing<'_>, members: Vec<PlannedMember>) -> (Option<String>, Vec<PlannedMember>) {
        let before = [member("app", "1.0.0", Some("first")), member("base", "1.0.0", Some("second"))];
        let mut plan = Plan { members, ..Plan::default() };
        (missing.hold_back(&mut plan, &before), plan.members)
    }

    #[test]
    fn what_is_installed_keeps_its_catalog_while_that_is_away() {
        for is_starting in [false, true] {
            let missing = Missing { names: vec!["first"], is_starting };
            let members = vec![member("app", "1.0.0", None), member("base", "1.0.0", None)];
            let (why, members) = held_back(&missing, members);
            assert_eq!(why, None);
            assert_eq!(members, [member("app", "1.0.0", Some("first")), member("base", "1.0.0", None)]);
        }
    }

    #[test]
    fn a_package_does_not_move_to_another_catalog_while_its_own_is_away() {
        let missing = Missing { names: vec!["first"], is_starting: false };
        let moved = vec![member("app", "2.0.0", Some("second"))];
        assert_eq!(
            held_back(&missing, moved).0.as_deref(),
            Some("package app came from catalog first, and stays as it is without it")
        );
        let others = vec![member("base", "2.0.0", Some("second")), member("new", "1.0.0", Some("second"))];
        assert_eq!(held_back(&missing, others.clone()), (None, others), "they do not depend on it");
    }

    #[test]
    fn nothing_is_chosen_before_each_catalog_was_tried() {
        let missing = Missing { names: vec!["first"], is_starting: true };
        for chosen in [member("base", "2.0.0", Some("second")), member("new", "1.0.0", Some("second"))] {
            let why = format!("package {} waits until each catalog was read once", chosen.package);
            assert_eq!(held_back(&missing, vec![chosen]).0, Some(why));
        }
    }

    #[test]
    fn catalogs_without_an_index_are_missing() {
        let known = |name: &str, digest: Option<&str>, is_tried: bool| KnownCatalog {
            source: chandler_resolver::Source { name: name.to_owned(), ..chandler_resolver::Source::default() },
            digest: digest.map(|text| chandler_core::Digest::of(text.as_bytes())),
            is_stale: false,
            is_tried,
        };
        let catalogs = [known("read", Some("content"), false), known("failed", None, true), known("new", None, false)];
        let missing = Missing::among(&catalogs);
        assert_eq!(
            (missing.to_string().as_str(), missing.is_starting),
            ("catalogs that are not ready: failed, new", true)
        );
        let missing = Missing::among(&catalogs[..2]);
        assert_eq!((missing.names, missing.is_starting), (vec!["failed"], false));
    }
}
