//! Versions and constraints with the rules of Masterminds/semver v3 (<https://github.com/Masterminds/semver>), which Helm and Sprig use.
//!
//! | item | purpose |
//! |---|---|
//! | [`Version`] | a version, whose minor and patch numbers may be missing |
//! | [`Constraint`] | a range of versions |

mod constraint;
mod version;

pub use constraint::Constraint;
pub use version::Version;

/// A text is neither a version nor a constraint. The messages are the texts of the library in Go.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// The text does not have the form of a version.
    #[error("invalid semantic version")]
    Invalid,
    /// A number in the pre-release starts with 0.
    #[error("version segment starts with 0")]
    LeadingZero,
    /// A number does not fit into 64 bits.
    #[error("error parsing version segment: strconv.ParseUint: parsing {0:?}: value out of range")]
    Number(String),
    /// The constraint is too long.
    #[error("the constraint has more than {} bytes", constraint::MOST_BYTES)]
    TooLong,
    /// A part of the constraint does not have the form of one.
    #[error("improper constraint: {0}")]
    Constraint(String),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn constraints_hold_as_in_go() {
        for (constraint, version, holds) in [
            ("<1.25-0", "v1.33.0", false),
            (">=1.19", "v1.33.0-gke.1", false),
            (">=1.19-0", "v1.33.0-gke.1", true),
            (">=1.4-0, <1.7-0", "1.6.9", true),
            (">= 1.18-0", "1.18.0", true),
            ("^1.7-0", "1.33.0", true),
            ("^0.2", "0.3.0", false),
            ("~1.2.3", "1.2.9", true),
            ("~1", "1.9.9", true),
            ("2.x.x", "2.31.3", true),
            ("*", "0.0.1", true),
            ("", "3.0.0", true),
            ("1.2 - 1.4", "1.4.0", true),
            ("1.2 - 1.4", "1.5.0", false),
            ("<1 || >=2", "2.1.0", true),
            ("<1 || >=2", "1.1.0", false),
            (">1", "1.9.0", false),
            ("!=1.2", "1.2.5", false),
            ("<=1.2", "1.2.9", true),
            (">=0.0.0-0", "0.21.0-SNAPSHOT", true),
            (">=1.16.0-0 <1.30", "1.20.1", true),
        ] {
            let parsed = Constraint::parse(constraint).unwrap();
            assert_eq!(parsed.check(&Version::parse(version).unwrap()), holds, "{constraint} {version}");
        }
    }

    #[test]
    fn versions_and_constraints_that_are_none_are_refused() {
        for text in ["", "a", "1.2.3.4", "1.2.3-", "v", "1.2.3-01"] {
            assert!(Version::parse(text).is_err(), "{text}");
        }
        for text in ["foo", "> ", "1.2.3.4", ">=1.2,,<3", "1.2 !"] {
            assert!(Constraint::parse(text).is_err(), "{text}");
        }
        let version = Version::parse("v1.2-rc.1+b").unwrap();
        assert_eq!((version.to_string(), version.original), ("1.2.0-rc.1+b".to_owned(), "v1.2-rc.1+b".to_owned()));
    }

    proptest! {
        #[test]
        fn parsers_never_panic(text in "\\PC{0,30}|[-0-9.xv<>=~^|, *+]{0,20}") {
            let _ = Version::parse(&text);
            let _ = Constraint::parse(&text).map(|constraint| constraint.check(&Version::parse("1.2.3").unwrap()));
        }
    }
}
