//! The versions that are in two ranges, as a range.

use std::fmt;

use semver::{Prerelease, Version};

use super::{Comparison, OPERATORS, Open, Operator, Range};

impl Range {
    /// The range of the versions that are in both ranges, or `None` if the two name no version in common on their face, such as `1.0.0-rc.1`
    /// and `1.x`. It may still be empty, like `<1, >=2`.
    ///
    /// Pre-releases match only alternatives that name one. So an alternative with a pre-release is compared as the releases
    /// that it matches, where the other one names none: joined as they are, the two would match pre-releases that the other one refuses.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        let mut alternatives = Vec::new();
        for one in &self.alternatives {
            for other in &other.alternatives {
                let joined = match (names_prerelease(one), names_prerelease(other)) {
                    (true, false) => releases(one).map(|one| [one, other.clone()].concat()),
                    (false, true) => releases(other).map(|other| [one.clone(), other].concat()),
                    _ => Some([one.as_slice(), other.as_slice()].concat()),
                };
                alternatives.extend(joined);
            }
        }
        (!alternatives.is_empty()).then_some(Self { alternatives })
    }
}

fn names_prerelease(all: &[Comparison]) -> bool {
    all.iter().any(|one| !one.version.pre.is_empty())
}

/// Comparisons without pre-releases that match the same releases; `None` if no release matches.
fn releases(all: &[Comparison]) -> Option<Vec<Comparison>> {
    let mut found = Vec::new();
    for one in all {
        let version = Version { pre: Prerelease::EMPTY, ..one.version.clone() };
        let is_exact = matches!(one.open, Open::Nothing | Open::Everything);
        let operator = match one.operator {
            _ if one.version.pre.is_empty() => one.operator,
            // A pre-release is less than its release, so no release equals it.
            Operator::Same if one.open == Open::Nothing => return None,
            Operator::NotEqual if is_exact => continue,
            Operator::Greater if is_exact => Operator::AtLeast,
            Operator::AtMost if one.open == Open::Nothing => Operator::Less,
            operator => operator,
        };
        found.push(Comparison { operator, version, open: one.open });
    }
    if found.is_empty() {
        found.push(Comparison { operator: Operator::Same, version: Version::new(0, 0, 0), open: Open::Everything });
    }
    Some(found)
}

impl fmt::Display for Range {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, all) in self.alternatives.iter().enumerate() {
            to.write_str(if index == 0 { "" } else { " || " })?;
            for (index, one) in all.iter().enumerate() {
                write!(to, "{}{one}", if index == 0 { "" } else { ", " })?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Version { major, minor, patch, pre, .. } = &self.version;
        let operator = OPERATORS.iter().find(|(_, operator)| *operator == self.operator);
        to.write_str(operator.map_or("", |(token, _)| token))?;
        match self.open {
            Open::Everything => to.write_str("*")?,
            Open::Minor => write!(to, "{major}")?,
            Open::Patch => write!(to, "{major}.{minor}")?,
            Open::Nothing => write!(to, "{major}.{minor}.{patch}")?,
        }
        if pre.is_empty() { Ok(()) } else { write!(to, "-{pre}") }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn joined(one: &str, other: &str) -> Option<String> {
        let range = |text: &str| Range::parse(text).unwrap();
        range(one).intersection(&range(other)).map(|range| range.to_string())
    }

    #[test]
    fn both_ranges_hold() {
        assert_eq!(joined(">=1.2, <2", "1.x || ^3").as_deref(), Some(">=1.2, <2, =1 || >=1.2, <2, ^3"));
        assert_eq!(joined("1.2 - 1.5", "!=1.3.0").as_deref(), Some(">=1.2, <=1.5, !=1.3.0"));
        assert_eq!(joined(">=1.0.0-0", "<2").as_deref(), Some(">=1.0.0, <2"));
        assert_eq!(joined(">=1.0.0-0", "<2.0.0-0").as_deref(), Some(">=1.0.0-0, <2.0.0-0"));
        assert_eq!(joined("1.0.0-rc.1", "1.x"), None);
        assert_eq!(joined("!=1.0.0-rc.1", "*").as_deref(), Some("=*, =*"));
    }

    fn version() -> impl Strategy<Value = String> {
        let pre = prop_oneof![3 => Just(""), 1 => Just("-0"), 1 => Just("-rc.1"), 1 => Just("-rc.2")];
        (0..3_u8, 0..3_u8, 0..3_u8, pre).prop_map(|(major, minor, patch, pre)| format!("{major}.{minor}.{patch}{pre}"))
    }

    fn partial() -> impl Strategy<Value = String> {
        let pre = prop_oneof![4 => Just(""), 1 => Just("-rc.1")];
        let open = (0..3_u8, 0..3_u8, prop::sample::select(vec!["x", "1.x", "1", "*", ""]), pre);
        let open = open.prop_map(|(major, minor, shape, pre)| match shape {
            "x" => format!("{major}.x{pre}"),
            "1.x" => format!("{major}.{minor}.x{pre}"),
            "1" => format!("{major}{pre}"),
            "*" => format!("*{pre}"),
            _ => format!("{major}.{minor}{pre}"),
        });
        prop_oneof![3 => version(), 2 => open]
    }

    fn range() -> impl Strategy<Value = String> {
        let operators: Vec<&str> = OPERATORS.iter().map(|(token, _)| *token).collect();
        let comparison =
            (prop::sample::select(operators), partial()).prop_map(|(operator, it)| format!("{operator}{it}"));
        let hyphen = (partial(), partial()).prop_map(|(from, to)| format!("{from} - {to}"));
        let one = prop_oneof![4 => comparison, 1 => hyphen];
        let all = prop::collection::vec(one, 1..3).prop_map(|all| all.join(", "));
        prop::collection::vec(all, 1..3).prop_map(|alternatives| alternatives.join(" || "))
    }

    proptest! {
        #[test]
        fn a_version_is_in_the_intersection_if_it_is_in_both(one in range(), other in range(), version in version()) {
            let (one, other) = (Range::parse(&one).unwrap(), Range::parse(&other).unwrap());
            let version = Version::parse(&version).unwrap();
            let both = one.intersection(&other);
            let expected = one.matches(&version) && other.matches(&version);
            prop_assert_eq!(both.as_ref().is_some_and(|both| both.matches(&version)), expected);
            let read = both.map(|both| Range::parse(&both.to_string()).unwrap());
            prop_assert_eq!(read.is_some_and(|read| read.matches(&version)), expected, "as text");
        }
    }
}
