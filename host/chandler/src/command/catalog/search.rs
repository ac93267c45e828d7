//! `chandler catalog search`.

use crate::{
    CommandError,
    arguments::{catalogs::CatalogArguments, format::DataFormat},
    read::catalogs,
    view::{
        catalogs::{PackageRow, packages},
        output,
        terminal::Terminal,
    },
};

/// Search packages by their texts
///
/// Lists the packages with all words in their name, description, provider, keywords, or in the kinds that their newest version provides.
/// Upper and lower case are the same.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The table of `chandler catalog list`, with the packages that match.

Exit codes: 0 success, even if nothing matches; 1 failed; 2 wrong usage

Examples:
  chandler catalog search database --catalog quay.io/operatorhubio/catalog:latest
  Which package provides a kind:
    chandler catalog search Certificate --catalog ./catalog")]
pub struct Search {
    /// Words to look for
    #[arg(value_name = "TEXT", required = true)]
    pub words: Vec<String>,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = DataFormat::Text)]
    pub output: DataFormat,

    /// The catalogs.
    #[command(flatten)]
    pub catalogs: CatalogArguments,
}

impl Search {
    /// Prints the packages that match.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let catalogs = catalogs::open(&self.catalogs, terminal).await?;
        let all = super::all(&catalogs)?;
        let found = all.iter().filter(|package| self.words.iter().all(|word| package.mentions(word)));
        let rows: Vec<PackageRow<'_>> = found.map(PackageRow::from).collect();
        if rows.is_empty() {
            terminal.line(format!("no package mentions {}", self.words.join(" and ")));
            if self.output == DataFormat::Text {
                return Ok(());
            }
        }
        output::print(&output::data(&rows, self.output, || packages(&rows, Terminal::output().columns()))?)
    }
}
