//! Regular expressions as the API server interprets them: with Go's syntax, which the crate `chandler-re2` translates.
//!
//! | module | contents |
//! |---|---|
//! | [`patterns`] | all patterns of one document, within one budget |

pub mod patterns;

pub use chandler_re2::{Invalid, Regex, compile, translate};

pub use patterns::{Exhausted, Pattern, PatternError, Patterns};
