//! A command that only says what it would write.

use crate::write::deployment::Effect;

/// Whether anything is written.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct DryRun {
    /// Print what would be written, and write nothing: the API server checks the request (a server-side dry run)
    #[arg(long)]
    pub dry_run: bool,
}

impl DryRun {
    /// The effect of requests.
    pub fn effect(self) -> Effect {
        if self.dry_run { Effect::Check } else { Effect::Store }
    }

    /// A line about what was written, or would be: `done` is `suspended x`, and `planned` the infinitive, `suspend x`.
    pub fn line(self, done: &str, planned: &str) -> String {
        if self.dry_run { format!("would {planned}; nothing was changed") } else { done.to_owned() }
    }
}
