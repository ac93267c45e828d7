//! Regular expressions in the syntax of Go's package `regexp`, for the crate `regex`.
//!
//! The translation is the one of host/expression, of which a plugin cannot depend.

mod class;
mod scanner;
mod translate;

use regex::Regex;

/// The most that a compiled expression may take.
const PROGRAM_BYTES: usize = 1 << 20;

/// Compiles a pattern. The error is Go's text, if Go refuses the pattern too.
pub(crate) fn compile_default(pattern: &str) -> Result<Regex, String> {
    compile(pattern, PROGRAM_BYTES)
}

/// Compiles a pattern, whose program may have at most so many bytes. The error is Go's text, if Go refuses the pattern too.
fn compile(pattern: &str, bytes: usize) -> Result<Regex, String> {
    let translated = translate::translate(pattern).map_err(|error| error.to_string())?;
    regex::RegexBuilder::new(&translated).size_limit(bytes).build().map_err(|error| error.to_string())
}
