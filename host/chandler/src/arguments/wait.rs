//! Whether and how long a command waits for the result.

use std::time::Duration;

use super::values;

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
