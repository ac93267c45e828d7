//! `chandler crds`.

use serde_json::Value;

use crate::{
    CommandError,
    view::output::{self, Format},
};

/// Print the CRDs on standard output
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Example:
  chandler crds | kubectl apply --server-side -f -

Exit codes: 0 done")]
pub struct Crds {
    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Yaml)]
    pub output: Format,
}

impl Crds {
    /// Prints them.
    pub fn run(&self) -> Result<(), CommandError> {
        let failed = |error: serde_json::Error| CommandError::failed("failed to serialize the CRDs").because(&error);
        output::print(&match self.output {
            Format::Yaml => chandler_api::crds_yaml().map_err(failed)?,
            Format::Json => {
                let crds: Result<Vec<Value>, _> = chandler_api::crds().iter().map(serde_json::to_value).collect();
                output::write(&crds.map_err(failed)?, Format::Json)?
            }
        })
    }
}
