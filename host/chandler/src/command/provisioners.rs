//! `chandler provisioners`.

use std::path::PathBuf;

use crate::{
    CommandError,
    arguments::format::DataFormat,
    read::release_files::{self, Listed, ReleaseFilesError},
    view::{output, terminal::Terminal, text::one_line},
    write::files::write_all,
};

/// List the provisioners in this program, or write them to files
///
/// With --to, the command writes what `chandler preflight --to DIR` reads: the Wasm components, the CRDs and the roles of this version, and
/// release.json, which lists them. Images of Chandler have the same files. It contacts no cluster.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  Class, format, version of the contract, size and digest of each component on standard output.

Exit codes: 0 done, 1 failed, 2 wrong usage

Examples:
  chandler provisioners
  Write the components of this version, to compare them with another one:
    chandler provisioners --to ./release")]
pub struct Provisioners {
    /// Directory for the files. It must not exist, or be empty
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = DataFormat::Text)]
    pub output: DataFormat,
}

impl Provisioners {
    /// Prints the list, and writes the files.
    pub fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let failed = |error: ReleaseFilesError| CommandError::failed("failed to read the provisioners").because(&error);
        if let Some(directory) = &self.to {
            let files = release_files::files().map_err(failed)?;
            write_all(&files, directory)?;
            terminal.line(format!("wrote {}", one_line(&directory.display().to_string())));
        }
        let listed = release_files::embedded().map_err(failed)?;
        output::print(&output::data(&listed, self.output, || text(&listed))?)
    }
}

fn text(listed: &[Listed]) -> String {
    let line = |one: &Listed| {
        let Listed { class, format, contract, size, checked } = one;
        format!("{class:<28}  {format:<14}  contract {contract}  {size:>8} bytes  {}\n", checked.digest)
    };
    listed.iter().map(line).collect()
}
