//! Regular expressions of templates and schemas.

use chandler_re2::Regex;

/// The most that a compiled expression may take.
const PROGRAM_BYTES: usize = 1 << 20;

/// Compiles a pattern. The error is Go's text, if Go refuses the pattern too.
pub(crate) fn compile_default(pattern: &str) -> Result<Regex, String> {
    chandler_re2::compile(pattern, PROGRAM_BYTES).map_err(|error| error.to_string())
}
