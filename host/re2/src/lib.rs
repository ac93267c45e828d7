//! Regular expressions as the API server reads them.
//!
//! Patterns in schemas and in CEL are in the syntax of RE2, as Go's package `regexp` reads it
//! (<https://pkg.go.dev/regexp/syntax>). The crate `regex` descends from it and matches alike, but reads some texts
//! differently: an open bracket within a class begins another class, `\d` means more than ten digits, `\0` is no character.
//! [`translate()`] writes a pattern so that `regex` takes it for what Go takes it for.
//!
//! | module | holds |
//! |---|---|
//! | [`translate`](mod@translate) | one pattern after the other, piece by piece |
//! | `class` | what stands between brackets |
//! | [`patterns`] | all patterns of one document, within one budget |

mod class;
pub mod patterns;
mod scanner;
pub mod translate;

pub use regex::Regex;

pub use patterns::{Exhausted, Pattern, PatternError, Patterns};
pub use translate::{Invalid, translate};

/// Compiles a pattern; the compiled expression takes at most so many bytes.
///
/// # Errors
/// Where Go would refuse it, or it takes more.
pub fn compile(pattern: &str, bytes: usize) -> Result<Regex, Invalid> {
    let translated = translate(pattern)?;
    regex::RegexBuilder::new(&translated).size_limit(bytes).build().map_err(Invalid::from)
}
