//! `chandler crds`.

use crate::{CommandError, view::output};

/// Print the CRDs as YAML on standard output
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Example:
  chandler crds | kubectl apply --server-side -f -

Exit codes: 0 done")]
pub struct Crds {}

impl Crds {
    /// Prints them.
    pub fn run(&self) -> Result<(), CommandError> {
        let yaml = chandler_api::crds_yaml()
            .map_err(|error| CommandError::failed("failed to serialize the CRDs").because(&error))?;
        output::print(&yaml)
    }
}
