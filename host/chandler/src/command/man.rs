//! `chandler man`.

use std::{fs, io, path::PathBuf};

use clap::CommandFactory as _;

use super::Arguments;
use crate::{
    CommandError,
    view::{terminal::Terminal, text::count},
};

/// Write the manual pages into a directory
///
/// Writes a page of section 1 for each command, with the text of --help: `chandler.1`, `chandler-install.1`, and so on. Existing pages
/// of these names are replaced.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The number of pages on standard error.

Exit codes: 0 success, 1 failed, 2 wrong usage

Examples:
  For this user:
    chandler man ~/.local/share/man/man1
    man chandler-install
  Read one page without installing it:
    chandler man /tmp/chandler && man /tmp/chandler/chandler-upgrade.1")]
pub struct Man {
    /// Directory for the pages. It is created if it does not exist
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// A manual page.
struct Page {
    name: String,
    text: Vec<u8>,
}

impl Man {
    /// Writes the pages.
    pub fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let failed = |error: io::Error| {
            CommandError::failed(format!("failed to write the manual pages into {}", self.directory.display()))
                .because(&error)
        };
        let pages = pages().map_err(failed)?;
        fs::create_dir_all(&self.directory).map_err(failed)?;
        for page in &pages {
            fs::write(self.directory.join(&page.name), &page.text).map_err(failed)?;
        }
        terminal.line(format!("wrote {} into {}", count(pages.len(), "manual page"), self.directory.display()));
        Ok(())
    }
}

/// The page of each command that is not hidden.
fn pages() -> io::Result<Vec<Page>> {
    let mut root = Arguments::command().disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    render(root, &mut pages)?;
    Ok(pages)
}

fn render(command: clap::Command, pages: &mut Vec<Page>) -> io::Result<()> {
    let below: Vec<clap::Command> = command.get_subcommands().filter(|below| !below.is_hide_set()).cloned().collect();
    let man = clap_mangen::Man::new(command);
    let (name, mut text) = (man.get_filename(), Vec::new());
    man.render(&mut text)?;
    pages.push(Page { name, text });
    below.into_iter().try_for_each(|command| render(command, pages))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_options() {
        let pages = pages().unwrap();
        let text = |name: &str| {
            let page = pages.iter().find(|page| page.name == name).unwrap();
            String::from_utf8(page.text.clone()).unwrap()
        };
        let names: BTreeSet<&str> = pages.iter().map(|page| page.name.as_str()).collect();
        assert_eq!(names.len(), pages.len(), "each page has a name of its own");
        let root = Arguments::command();
        for command in root.get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = format!("chandler-{}.1", command.get_name());
            assert!(names.contains(name.as_str()), "{name}");
            for option in command.get_arguments().filter_map(clap::Arg::get_long) {
                assert!(text(&name).replace('\\', "").contains(&format!("--{option}")), "{name} --{option}");
            }
            for below in command.get_subcommands() {
                assert!(names.contains(format!("chandler-{}-{}.1", command.get_name(), below.get_name()).as_str()));
            }
        }
        assert!(!names.contains("chandler-reference.1"), "hidden commands have none");
        assert!(text("chandler.1").contains("Exit codes"));
    }

    #[test]
    fn pages_are_written_into_a_new_directory() {
        let directory = tempfile::tempdir().unwrap();
        let man = Man { directory: directory.path().join("man1") };
        man.run(&Terminal::detect()).unwrap();
        assert!(fs::read_to_string(man.directory.join("chandler-install.1")).unwrap().starts_with(".ie"));
        man.run(&Terminal::detect()).unwrap();
    }
}
