//! Versions of bundles, and the two languages of ranges that catalogs and users write.
//!
//! | module | language | written by |
//! |---|---|---|
//! | [`masterminds`] | `>=1.2, <2 \|\| ^3` (Masterminds/semver) | users: `range` of a requirement |
//! | [`blang`] | `>=1.2.0 <2.0.0` (blang/semver) | catalogs: `skipRange`, `versionRange` |

pub mod blang;
pub mod masterminds;
mod release;

pub use release::VersionRelease;

/// The longest text of a version or range, in bytes.
const BYTES: usize = 512;
/// The most comparisons in one range.
const COMPARISONS: usize = 64;

/// A text is not a version or not a range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// A version that is not one of Semantic Versioning 2.0.
    #[error("{0:?} is not a semantic version")]
    Version(String),
    /// A range of a user that is malformed.
    #[error("improper constraint: {0:?}")]
    Constraint(String),
    /// A range of a catalog that is malformed.
    #[error("{0:?} is not a version range")]
    Range(String),
}

/// Splits off a leading number; `None` if there is none or it is too large.
fn number(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at_checked(digits)?;
    Some((digits.parse().ok()?, rest))
}
