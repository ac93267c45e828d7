//! The rules of a `.helmignore`: which files of the directory of a chart are not part of the chart, as `helm package` decides.
//!
//! The provisioner `helm` applies them to a bundle, and the command line before it publishes a directory.
//!
//! | module | contents |
//! |---|---|
//! | `rules` | the lines of a file |
//! | `pattern` | the pattern of a line |

mod pattern;
mod rules;

pub use pattern::matches;
pub use rules::{RuleError, Rules};

/// The name of the file, at the root of a chart.
pub const FILE: &str = ".helmignore";

/// How many comparisons of characters are left, since the patterns are not trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps(Option<u64>);

/// The comparisons took too many steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("comparing the files with its patterns takes too many steps")]
pub struct TooManySteps;

impl Steps {
    /// So many steps.
    pub const fn of(steps: u64) -> Self {
        Self(Some(steps))
    }

    /// As many steps as it takes, where something else limits the time.
    pub const fn unlimited() -> Self {
        Self(None)
    }

    pub(crate) fn take(&mut self, steps: usize) -> Result<(), TooManySteps> {
        let Some(left) = &mut self.0 else { return Ok(()) };
        *left = left.checked_sub(steps as u64).ok_or(TooManySteps)?;
        Ok(())
    }
}
