//! `chandler catalog search`.

use crate::{
    CommandError,
    arguments::{catalogs::CatalogArguments, format::ListFormat},
    read::catalogs,
    view::{
        catalogs::{PackageRow, found},
        output,
        terminal::Terminal,
    },
};

/// Search packages by their texts
///
/// Lists the packages with all words in their name, description, provider, keywords, or in the kinds that their newest version provides.
/// Upper and lower case are the same. With --platform, only platform operators are listed: packages whose newest version has the property
/// chandler.dev/platform-operator.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  A table of the packages that match, with what they say about themselves. On a narrow terminal,
  channels and catalogs are left out, and descriptions are cut.

Exit codes: 0 success, even if nothing matches; 1 failed; 2 wrong usage

Examples:
  chandler catalog search database --catalog quay.io/operatorhubio/catalog:latest
  Which package provides a kind:
    chandler catalog search Certificate --catalog ./catalog
  What a PlatformOperator is meant for:
    chandler catalog search --platform")]
pub struct Search {
    /// Words to look for
    #[arg(value_name = "TEXT", required_unless_present = "platform")]
    pub words: Vec<String>,

    /// Only packages that are platform operators
    #[arg(long)]
    pub platform: bool,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = ListFormat::Text)]
    pub output: ListFormat,

    /// The catalogs.
    #[command(flatten)]
    pub catalogs: CatalogArguments,
}

impl Search {
    /// Prints the packages that match.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let catalogs = catalogs::open(&self.catalogs.options(), terminal).await?;
        let all = super::all(&catalogs)?;
        let matching = all
            .iter()
            .filter(|package| package.platform_operator || !self.platform)
            .filter(|package| self.words.iter().all(|word| package.mentions(word)));
        let rows: Vec<PackageRow<'_>> = matching.map(PackageRow::from).collect();
        if rows.is_empty() {
            let what = if self.platform { "platform operator" } else { "package" };
            let words = self.words.join(" and ");
            let nothing = if words.is_empty() {
                format!("these catalogs have no {what}")
            } else {
                format!("no {what} mentions {words}")
            };
            terminal.line(nothing);
            if self.output.is_table() {
                return Ok(());
            }
        }
        output::print(&output::data(&rows, self.output.data(), || found(&rows, self.output.columns()))?)
    }
}
