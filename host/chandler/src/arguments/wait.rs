//! Whether and how long a command waits for the result.

use std::time::Duration;

use clap::{ArgMatches, parser::ValueSource};

use super::values;
use crate::CommandError;

/// Whether and how long a command waits.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Wait {
    /// Follow the rollout until it is healthy or has failed. `--wait=false` returns at once
    #[arg(long, value_name = "BOOL", default_value_t = true, default_missing_value = "true", num_args = 0..=1,
          require_equals = true, action = clap::ArgAction::Set)]
    pub wait: bool,

    /// Timeout of --wait
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = values::duration)]
    pub timeout: Duration,
}

/// Refuses a `--wait` or `--timeout` that the rest of the command line leaves without an effect. With `--dry-run`, which previews a whole
/// command line, returns a note instead.
pub fn check(matches: &ArgMatches) -> Result<Option<&'static str>, CommandError> {
    let mut matches = matches;
    while let Some((_, below)) = matches.subcommand() {
        matches = below;
    }
    // A command has only some of these arguments.
    let is_given = |id: &str| {
        matches.try_contains_id(id).unwrap_or_default() && matches.value_source(id) == Some(ValueSource::CommandLine)
    };
    let flag = |id: &str| matches.try_get_one::<bool>(id).ok().flatten().copied();
    let waits = flag("wait") != Some(false);
    if is_given("timeout") && !waits {
        return Err(CommandError::usage("--timeout has no effect with --wait=false").hint("omit one of them"));
    }
    if !(is_given("timeout") || is_given("wait") && waits) {
        return Ok(None);
    }
    if flag("apply") == Some(false) {
        return Err(CommandError::usage("without --apply, nothing is changed and nothing waits")
            .hint("omit --wait and --timeout"));
    }
    Ok((flag("dry_run") == Some(true)).then_some("--dry-run waits for nothing: --wait and --timeout have no effect"))
}
