//! Regular expressions with the syntax of RE2, as Go's package `regexp` implements it (<https://pkg.go.dev/regexp/syntax>).
//!
//! Patterns in schemas, in CEL and in Helm charts have this syntax. The crate `regex` descends from RE2 and matches alike, but parses some texts
//! differently: an open bracket within a class begins another class, `\d` matches more than ten digits, `\0` is not a
//! character. [`translate()`] rewrites a pattern so that `regex` interprets it as Go does.
//!
//! | module | contents |
//! |---|---|
//! | `translate` | translates a pattern piece by piece |
//! | `class` | translates character classes |
//! | `scanner` | reads a pattern from start to end |

mod class;
mod scanner;
mod translate;

pub use regex::Regex;

pub use translate::{Invalid, translate};

/// Compiles a pattern, whose program may have at most so many bytes.
///
/// # Errors
/// If Go would refuse it, or if the program is larger.
pub fn compile(pattern: &str, bytes: usize) -> Result<Regex, Invalid> {
    let translated = translate(pattern)?;
    regex::RegexBuilder::new(&translated).size_limit(bytes).build().map_err(Invalid::from)
}
