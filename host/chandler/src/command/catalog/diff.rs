//! `chandler catalog diff`.

use std::process::ExitCode;

use chandler_catalog::difference;

use crate::{
    CommandError,
    arguments::{catalogs::Fetching, format::DataFormat},
    read::catalogs,
    view::{catalogs::differences, failure::FailureKind, output, terminal::Terminal, text::count},
};

/// Compare two catalogs
///
/// Prints the packages, channels and bundles that only one catalog has, channels with another head, bundles with another image or other
/// properties, and what only the second catalog deprecates.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  Lines on standard output, with `+` for what only the second catalog has, `-` for what only the
  first has, `~` for what changed, and `!` for deprecations; a summary on standard error.

Exit codes: 0 no difference, 1 failed, 2 wrong usage, 4 the catalogs differ

Examples:
  chandler catalog diff ./catalog-before ./catalog
  Two versions of an image:
    chandler catalog diff quay.io/example/catalog:v4.19 quay.io/example/catalog:v4.20")]
pub struct Diff {
    /// The catalog to compare with: a directory, a file, an archive, a URL or an image
    #[arg(value_name = "BEFORE")]
    pub before: String,

    /// The catalog that is compared
    #[arg(value_name = "AFTER")]
    pub after: String,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = DataFormat::Text)]
    pub output: DataFormat,

    /// How the catalogs are fetched.
    #[command(flatten)]
    pub fetching: Fetching,
}

impl Diff {
    /// Prints the differences.
    pub async fn run(&self, terminal: &Terminal) -> Result<ExitCode, CommandError> {
        let before = catalogs::index(&self.before, &self.fetching.options()).await?;
        let after = catalogs::index(&self.after, &self.fetching.options()).await?;
        let found = difference::of(&before, &after).map_err(|error| catalogs::damaged(&error))?;
        output::print(&output::data(&found, self.output, || differences(&found))?)?;
        terminal.line(if found.is_empty() {
            "no difference".to_owned()
        } else {
            format!("{} differ", count(found.len(), "package"))
        });
        Ok(ExitCode::from(if found.is_empty() { 0 } else { FailureKind::Changes.exit_code() }))
    }
}
